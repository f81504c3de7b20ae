//! How an error is told.

/// Returns an error with its causes, as one sentence.
///
/// A cause that its effect has told already, as some libraries do, is not told again.
#[must_use]
pub fn chain(problem: &dyn core::error::Error) -> String {
    let mut sentence = problem.to_string();
    let mut cause = problem.source();
    while let Some(problem) = cause {
        let text = problem.to_string();
        if !sentence.ends_with(&text) {
            sentence.push_str(": ");
            sentence.push_str(&text);
        }
        cause = problem.source();
    }
    sentence
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read: {0}")]
    struct Twice(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot start")]
    struct Once(#[source] Twice);

    #[test]
    fn a_cause_is_told_once() {
        let problem = Once(Twice(io::Error::other("no")));
        assert_eq!(chain(&problem), "cannot start: cannot read: no");
    }
}
