//! The table of the resources that the fake serves.

use super::Fake;

/// A resource of the fake.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    /// Its API group; empty for the core.
    pub group: &'static str,
    /// Its version, such as `v1`.
    pub version: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Its objects' kind.
    pub kind: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether it has a sub-resource `status`.
    pub status: bool,
    /// Whether a change outside of `metadata` and `status` counts `metadata.generation` up.
    pub generation: bool,
    /// Lists that are merged item by item: their path, and the field that tells items apart.
    pub keyed: &'static [(&'static [&'static str], &'static str)],
    /// Fields that a selector may name, beside the object's name and namespace.
    pub selectable: &'static [&'static str],
    /// What more is known of its objects.
    pub form: Form,
}

/// What the fake knows of a resource's objects beyond the table's other columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An Event as the core group shows it; kept as an [`Event`](Self::Event).
    CoreEvent,
    /// An Event of `events.k8s.io`.
    Event,
    /// Nothing.
    Plain,
}

impl Resource {
    /// Returns its `apiVersion`.
    pub(super) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns its name with its group, as error messages write it.
    pub(super) fn qualified(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Returns the group and name that its objects are kept under.
    pub(super) fn kept_as(&self) -> (&'static str, &'static str) {
        match self.form {
            Form::CoreEvent => ("events.k8s.io", "events"),
            Form::Event | Form::Plain => (self.group, self.plural),
        }
    }

    /// Returns the field that tells apart the items of the list at `path`.
    pub(super) fn key_of(&self, path: &[&str]) -> Option<&'static str> {
        let owners = (path == ["metadata", "ownerReferences"]).then_some("uid");
        let keyed = self.keyed.iter().find(|(list, _)| *list == path);
        keyed.map(|(_, key)| *key).or(owners)
    }
}

impl Fake {
    /// The resources that a fake serves unless told otherwise.
    pub const RESOURCES: &'static [Resource] = &[
        Resource {
            plural: "nodes",
            kind: "Node",
            status: true,
            keyed: &[(&["status", "conditions"], "type"), (&["status", "addresses"], "type")],
            selectable: &["spec.unschedulable"],
            ..CORE
        },
        Resource { plural: "namespaces", kind: "Namespace", status: true, ..CORE },
        Resource {
            plural: "pods",
            kind: "Pod",
            namespaced: true,
            status: true,
            generation: true,
            keyed: &[(&["status", "conditions"], "type"), (&["spec", "containers"], "name")],
            selectable: &["spec.nodeName", "status.phase"],
            ..CORE
        },
        Resource {
            plural: "events",
            kind: "Event",
            namespaced: true,
            selectable: &[
                "involvedObject.kind",
                "involvedObject.name",
                "involvedObject.namespace",
                "involvedObject.uid",
                "reason",
                "reportingComponent",
                "type",
            ],
            form: Form::CoreEvent,
            ..CORE
        },
        Resource {
            group: "events.k8s.io",
            plural: "events",
            kind: "Event",
            namespaced: true,
            selectable: &[
                "regarding.kind",
                "regarding.name",
                "regarding.namespace",
                "regarding.uid",
                "reason",
                "reportingController",
                "type",
            ],
            form: Form::Event,
            ..CORE
        },
    ];
}

const CORE: Resource = Resource {
    group: "",
    version: "v1",
    plural: "",
    kind: "",
    namespaced: false,
    status: false,
    generation: false,
    keyed: &[],
    selectable: &[],
    form: Form::Plain,
};
