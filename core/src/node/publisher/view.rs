//! The Node as the API server has it, as far as it matters here.

use core::time::Duration;

use crate::time::Timestamp;

/// What was read of the agent's own Node: by a watch, or as the answer to a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeView<'a> {
    /// Its uid: another one is another Node of the same name.
    pub uid: &'a str,
    /// Its resource version, where that is a number; etcd's are, and grow until an older copy of it
    /// is restored.
    pub version: Option<u64>,
    /// Whether a watch begins with it, so that it is the newest whatever its version.
    pub is_listed: bool,
    /// Its conditions, the agent's and others'.
    pub conditions: &'a [SeenCondition<'a>],
    /// The annotation that asks to clear a condition, and its field manager.
    pub clear: Option<Mark<'a>>,
    /// The annotation that orders a reboot, and its field manager.
    pub reboot: Option<Mark<'a>>,
}

/// A condition as it stands on the Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCondition<'a> {
    /// Its type.
    pub name: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// Its reason.
    pub reason: &'a str,
    /// Its message.
    pub message: &'a str,
    /// When its status changed; `None` where that is not to be read.
    pub transition: Option<Timestamp>,
    /// The field manager that wrote it last, if that is known and somebody else.
    pub writer: Option<&'a str>,
    /// When that one last wrote to the Node.
    pub written: Option<Timestamp>,
    /// Whether the agent's own field manager has written it.
    pub is_own: bool,
}

/// An annotation that asks for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    /// Its value.
    pub value: &'a str,
    /// The field manager that wrote it; empty where that is not known.
    pub by: &'a str,
    /// How long ago that was, if that is known.
    pub age: Option<Duration>,
}
