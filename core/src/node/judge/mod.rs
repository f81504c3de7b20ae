//! Judges: from readings, and what is remembered of earlier ones, to a verdict.

pub mod deadlock;
pub mod kernel;
pub mod readonly;
