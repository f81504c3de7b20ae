//! The agent, by the field cases of the kernel log.
