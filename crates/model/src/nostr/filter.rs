//! Filters: which events a client asks for (NIP-01).

use super::event::{NostrEvent, NostrId};
use crate::ids::NostrKey;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Values that one filter may list under one name.
const VALUES_MAX: usize = 1000;
/// Tags that one filter may ask for.
const TAG_FILTERS_MAX: usize = 3;

/// Why a value is not a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFilter {
    #[error("a filter is an object")]
    Form,
    #[error("{0:?} of a filter must be {1}")]
    Field(String, &'static str),
    #[error("{0:?} of a filter lists more than {VALUES_MAX} values")]
    Values(String),
    #[error("a filter asks for at most {TAG_FILTERS_MAX} tags")]
    Tags,
}

/// One tag that events must have, with one of these values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagFilter {
    pub letter: char,
    pub values: BTreeSet<String>,
}

/// Which events are asked for. What is not said does not matter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NostrFilter {
    pub ids: Option<BTreeSet<NostrId>>,
    pub authors: Option<BTreeSet<NostrKey>>,
    pub kinds: Option<BTreeSet<u16>>,
    pub tags: Vec<TagFilter>,
    /// In seconds, inclusive.
    pub since: Option<u64>,
    /// In seconds, inclusive.
    pub until: Option<u64>,
    /// How many of the latest, before live ones.
    pub limit: Option<usize>,
}

impl NostrFilter {
    /// The filter as others read it.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let texts = |values: Vec<String>| Value::from(values);
        if let Some(ids) = &self.ids {
            fields.insert("ids".into(), texts(ids.iter().map(NostrId::to_string).collect()));
        }
        if let Some(authors) = &self.authors {
            fields.insert("authors".into(), texts(authors.iter().map(NostrKey::to_string).collect()));
        }
        if let Some(kinds) = &self.kinds {
            fields.insert("kinds".into(), kinds.iter().copied().collect());
        }
        for TagFilter { letter, values } in &self.tags {
            fields.insert(format!("#{letter}"), texts(values.iter().cloned().collect()));
        }
        for (name, number) in
            [("since", self.since), ("until", self.until), ("limit", self.limit.map(|most| most as u64))]
        {
            fields.extend(number.map(|number| (name.to_owned(), number.into())));
        }
        Value::Object(fields)
    }

    /// Reads a filter. Names that are not known, such as `search`, ask for what this relay does not have.
    pub fn parse(value: &Value) -> Result<NostrFilter, BadFilter> {
        let fields: &Map<String, Value> = value.as_object().ok_or(BadFilter::Form)?;
        let mut filter = NostrFilter::default();
        for (name, value) in fields {
            let bad = |what| BadFilter::Field(name.chars().take(40).collect(), what);
            let number = || value.as_u64().ok_or_else(|| bad("a number that is not negative"));
            match name.as_str() {
                "ids" => filter.ids = Some(parse_all(name, value, "a list of ids of 64 digits", parse_hex)?),
                "authors" => filter.authors = Some(parse_all(name, value, "a list of keys of 64 digits", parse_hex)?),
                "kinds" => {
                    let kind = |value: &Value| value.as_u64().and_then(|kind| u16::try_from(kind).ok());
                    filter.kinds = Some(parse_all(name, value, "a list of numbers up to 65535", kind)?);
                }
                "since" => filter.since = Some(number()?),
                "until" => filter.until = Some(number()?),
                "limit" => filter.limit = Some(usize::try_from(number()?).unwrap_or(usize::MAX)),
                _ => {
                    let mut letters =
                        name.strip_prefix('#').ok_or_else(|| bad("a name that this relay knows"))?.chars();
                    let (Some(letter), None) = (letters.next().filter(char::is_ascii_alphabetic), letters.next())
                    else {
                        return Err(bad("a tag of one letter"));
                    };
                    let text = |value: &Value| value.as_str().map(str::to_owned);
                    filter.tags.push(TagFilter { letter, values: parse_all(name, value, "a list of texts", text)? });
                }
            }
        }
        if filter.tags.len() > TAG_FILTERS_MAX { Err(BadFilter::Tags) } else { Ok(filter) }
    }

    /// Whether an event is asked for, whatever the limit.
    pub fn matches(&self, event: &NostrEvent) -> bool {
        self.ids.as_ref().is_none_or(|ids| ids.contains(&event.id))
            && self.authors.as_ref().is_none_or(|authors| authors.contains(&event.author))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
            && self.since.is_none_or(|since| event.created_at >= since)
            && self.until.is_none_or(|until| event.created_at <= until)
            && self.tags.iter().all(|tag| tag.matches(event))
    }
}

impl TagFilter {
    fn matches(&self, event: &NostrEvent) -> bool {
        let mut name = [0; 4];
        let name: &str = self.letter.encode_utf8(&mut name);
        event.tags_of(name).any(|values| values.first().is_some_and(|value| self.values.contains(value)))
    }
}

fn parse_all<T: Ord>(
    name: &str,
    value: &Value,
    what: &'static str,
    parse: impl Fn(&Value) -> Option<T>,
) -> Result<BTreeSet<T>, BadFilter> {
    let name = || name.chars().take(40).collect::<String>();
    let values = value.as_array().ok_or_else(|| BadFilter::Field(name(), what))?;
    if values.len() > VALUES_MAX {
        return Err(BadFilter::Values(name()));
    }
    values.iter().map(&parse).collect::<Option<_>>().ok_or_else(|| BadFilter::Field(name(), what))
}

fn parse_hex<T: std::str::FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}
