//! Refusals, as the `Status` objects that an API server sends.

use serde_json::{Value, json};

use super::resource::Resource;

/// A refusal: a `metav1.Status` whose code is also the answer's.
#[derive(Debug)]
pub(super) struct Failure(pub(super) Value);

impl Failure {
    /// Refuses with `code`, `reason` and a message for people.
    pub(super) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": code,
        });
        if !reason.is_empty() {
            status["reason"] = json!(reason);
        }
        Self(status)
    }

    /// Refuses what cannot be understood.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// There is no such object.
    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    /// There is such an object.
    pub(super) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// Somebody else was faster.
    pub(super) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The object breaks a rule: `causes` are field, reason and message of each.
    pub(super) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let said: Vec<_> =
            causes.iter().map(|(field, _, message)| format!("{field}: {message}")).collect();
        let message = format!("{} \"{name}\" is invalid: {}", resource.kind, said.join(", "));
        let mut failure = Self::new(422, "Invalid", message);
        let causes: Vec<_> = causes
            .iter()
            .map(|(field, reason, message)| {
                json!({"field": field, "reason": reason, "message": message})
            })
            .collect();
        failure.0["details"] = json!({"name": name, "kind": resource.kind, "causes": causes});
        failure
    }

    /// What a watch or a list asks for is no longer kept.
    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Returns the HTTP status code.
    pub(super) fn code(&self) -> u16 {
        self.0["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(500)
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.0["details"] = json!({"name": name, "kind": resource.plural});
        if !resource.group.is_empty() {
            self.0["details"]["group"] = json!(resource.group);
        }
        self
    }
}

/// A field, a reason such as `FieldValueInvalid`, and a message.
pub(super) type Cause = (String, &'static str, String);
