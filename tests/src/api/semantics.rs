//! What an API server does, as cases that run against the fake and against a real one.

mod events;
mod nodes;
mod owners;
mod request;
mod watches;

use anyhow::Result;
use futures_util::future::{BoxFuture, join_all};
use kube::Client;

pub use request::{Answer, Requests};

/// One thing that an API server does.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// A sentence.
    pub name: &'static str,
    run: fn(Requests, String) -> BoxFuture<'static, Result<()>>,
}

impl Case {
    /// Tries the case with objects whose names begin with `prefix`.
    ///
    /// # Errors
    ///
    /// If the server does otherwise.
    pub async fn run(&self, client: &Client, prefix: &str) -> Result<()> {
        let name = format!("{prefix}-{}", self.name.replace('_', "-"));
        (self.run)(Requests::new(client.clone()), name).await
    }
}

/// Runs all cases at once and returns those that fail, each with its reason.
pub async fn failures(client: &Client, prefix: &str) -> Vec<String> {
    let run = async |case: &Case| match case.run(client, prefix).await {
        Ok(()) => None,
        Err(error) => Some(format!("{}: {error:#}", case.name)),
    };
    join_all(CASES.iter().map(run)).await.into_iter().flatten().collect()
}

/// Checks that what `compact` makes the server forget cannot be watched or listed.
///
/// `compact` gets a version, and makes the server forget what came before it.
///
/// # Errors
///
/// If the server does otherwise.
pub async fn compaction(
    client: &Client,
    prefix: &str,
    compact: impl AsyncFnOnce(u64) -> Result<()>,
) -> Result<()> {
    watches::what_is_forgotten_is_410(Requests::new(client.clone()), prefix, compact).await
}

macro_rules! cases {
    ($($place:ident: $($name:ident),+;)+) => {
        &[$($(Case {
            name: stringify!($name),
            run: |requests, name| Box::pin($place::$name(requests, name)),
        }),+),+]
    };
}

/// All cases.
pub const CASES: &[Case] = cases! {
    nodes:
        a_patch_of_one_condition_keeps_the_others,
        new_conditions_come_first,
        the_order_of_conditions_may_be_set,
        a_merge_patch_replaces_all_conditions,
        a_condition_is_deleted_by_its_type,
        a_condition_without_its_type_is_refused,
        null_deletes_one_annotation,
        a_stale_resource_version_is_a_conflict,
        a_foreign_uid_is_422,
        a_patch_that_changes_nothing_keeps_the_version,
        the_status_sub_resource_ignores_spec,
        the_main_resource_ignores_status,
        what_is_missing_is_404,
        a_second_create_is_409,
        a_bad_name_is_422,
        an_unknown_content_type_is_415,
        a_body_that_is_not_json_is_400,
        a_deleted_node_is_gone;
    owners:
        a_bare_node_has_no_owners_before_an_apply,
        each_manager_owns_its_conditions,
        an_event_written_in_both_groups_keeps_the_last_owners,
        who_writes_a_field_takes_it,
        a_manager_is_named_by_its_user_agent,
        an_apply_owns_what_it_names,
        an_apply_that_changes_nothing_has_no_time,
        an_apply_to_the_status_of_nothing_is_404,
        an_apply_conflicts_with_other_owners,
        an_apply_removes_what_it_leaves_out;
    events:
        an_event_is_read_in_both_groups,
        a_core_event_is_read_in_both_groups,
        a_series_is_patched_in,
        a_series_counts_from_two,
        an_event_needs_its_fields,
        an_event_time_has_six_decimals,
        an_event_needs_its_namespace,
        a_note_has_at_most_1024_bytes,
        only_the_series_of_an_event_changes,
        a_core_event_may_change,
        an_event_of_the_same_name_is_409;
    watches:
        a_watch_goes_on_from_a_version,
        a_watch_without_a_version_begins_with_what_is_there,
        a_bookmark_comes_before_the_end,
        a_field_selector_narrows_list_and_watch,
        an_unknown_field_selector_is_400,
        a_list_comes_in_pages,
        initial_events_end_with_a_bookmark;
};
