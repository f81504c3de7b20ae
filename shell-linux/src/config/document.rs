//! A YAML document as a tree in which every node knows its place.

use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{
    DefaultMessageFormatter, DuplicateKeyPolicy, MergeKeyPolicy, MessageFormatter as _,
    NonFiniteFloatPolicy, Spanned,
};

use super::problem::{Place, Problem};

/// A node of the document.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it begins; of an alias, where the alias stands.
    pub(super) place: Place,
    /// What it is.
    pub(super) value: Value,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Value {
    /// `true` or `false`; `yes` and `on` are text.
    Bool(bool),
    /// A number with a fraction or an exponent.
    Float,
    /// A whole number.
    Integer(i128),
    /// A list.
    List(Vec<Node>),
    /// Keys and values as they stand in the document, a key given twice included.
    Map(Vec<(Node, Node)>),
    /// Nothing, `null` or `~`.
    Null,
    /// A text.
    Text(String),
}

/// Reads a document; one without content is `Null`.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            flow_nesting_limit: DEPTH_MAX,
            max_aliases: ALIASES_MAX,
            max_depth: DEPTH_MAX,
            max_events: 3 * NODES_MAX,
            max_nodes: NODES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: NODES_MAX },
        // A key given twice is found later, so that it does not hide what follows.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| problem(&error))
}

/// Says in a person's words why a text is no document.
#[expect(clippy::wildcard_enum_match_arm, reason = "the parser's own words do for the others")]
fn problem(error: &serde_saphyr::Error) -> Problem {
    let error = error.without_snippet();
    let place = error.location().map_or(Place::START, |at| Place::new(at.line(), at.column()));
    let cause = match error {
        serde_saphyr::Error::AliasError { error, .. } => error,
        error => error,
    };
    let message = match cause {
        serde_saphyr::Error::Budget { .. }
        | serde_saphyr::Error::AliasReplayLimitExceeded { .. } => {
            "more or deeper nested than a configuration can be; is this the right file?".to_owned()
        }
        serde_saphyr::Error::MultipleDocuments { .. } => {
            "a second document begins; keep one".to_owned()
        }
        error => {
            let what = DefaultMessageFormatter.format_message(error);
            format!("not readable as YAML: {what}; mend it here")
        }
    };
    Problem::new(place, "", message)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        let place = Place::new(spanned.referenced.line(), spanned.referenced.column());
        Ok(Self { place, value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a map")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        i128::try_from(value).map(Value::Integer).map_err(|_| E::custom("number is too large"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Float)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}

/// Most nodes of a document: a thousand patterns fit, and a tree of them stays below 4 MiB.
const NODES_MAX: usize = 20_000;

/// Most aliases: more than a person writes, too few for a bomb.
const ALIASES_MAX: usize = 100;

/// Deepest nesting: the keys need 4, and the reader calls itself once a level.
const DEPTH_MAX: usize = 16;
