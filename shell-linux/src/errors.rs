//! How an error is told.

/// Returns an error with its causes, as one sentence.
#[must_use]
pub fn chain(problem: &dyn core::error::Error) -> String {
    let mut sentence = problem.to_string();
    let mut cause = problem.source();
    while let Some(problem) = cause {
        sentence.push_str(": ");
        sentence.push_str(&problem.to_string());
        cause = problem.source();
    }
    sentence
}
