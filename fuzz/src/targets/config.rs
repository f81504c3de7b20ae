//! The reader of the agent's configuration takes any text, and says what is wrong with it.

use fettle_agent::config::Config;

/// Takes `data` as a configuration, where it is UTF-8.
pub fn target(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    match Config::parse(text) {
        Ok(config) => {
            let _ = config.settings();
            assert!(!config.probes_differ(&config));
        }
        Err(problems) => {
            assert!(!problems.found().is_empty(), "what is wrong is said");
            for problem in problems.found() {
                assert!(problem.line > 0 && problem.column > 0, "{problem}");
                assert!(!problem.message.is_empty(), "{problem}");
            }
        }
    }
}
