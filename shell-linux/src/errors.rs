//! How an error is told.

/// Returns an error with its causes, as one sentence.
///
/// Some libraries repeat a cause in what it causes; then it is told once.
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
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Problem {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let texts = ["no such file", "cannot read a: no such file", "cannot start"];
        let problem =
            texts.into_iter().fold(None, |source, text| Some(Box::new(Problem { text, source })));
        let sentence = chain(&*problem.expect("there are three"));
        assert_eq!(sentence, "cannot start: cannot read a: no such file");
    }
}
