//! `anteroom show`: prints one event.

use crate::context::Context;
use crate::data_folder;
use crate::event_id_argument::parse_event_id;
use crate::failure::Failure;
use crate::formatting::{escape_controls, format_time};
use clap::Args;
use engine::reads::{Reads as _, StoreResult as Read};
use engine::rows::EventRow;
use model::blob::BlobForm;
use model::payload::Payload;
use model::{Envelope, EventId, Seq};
use serde::{Deserialize, Serialize};
use std::fmt;
use store::Db;
use store::tables::Snapshot;
use store::views::messages::ShownContent;

/// Print an event: its envelope, references, stage and body
///
/// Secret keys in an event are never printed.
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Show {
    /// The event id; of a Nostr event also the id by which clients know it
    #[arg(value_name = "ID", value_parser = parse_event_id)]
    id: EventId,
}

#[derive(Debug, Serialize)]
struct Answer {
    id: String,
    number: u64,
    stage: &'static str,
    content_state: Option<&'static str>,
    blob: String,
    blob_bytes: usize,
    envelope: Option<Opened>,
    body: Body,
}

#[derive(Debug, Serialize)]
struct Opened {
    kind: String,
    created_at: u64,
    space: String,
    author: String,
    sealed_under: Option<String>,
    parents: Vec<String>,
    auxiliary_key: Option<String>,
    content_bytes: u64,
    content_hash: String,
    payload: Option<String>,
    references: Vec<Referred>,
}

#[derive(Debug, Serialize)]
struct Referred {
    role: String,
    id: String,
    stage: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Json(serde_json::Value),
    /// The length of content that is not JSON.
    Bytes(usize),
    /// The reason why there is no body to show.
    None(String),
}

impl Show {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let (db, _store) = data_folder::open_snapshot(context)?;
        let found = match db.seq(&self.id)? {
            Some(seq) => db.event(seq)?.map(|row| (seq, row)),
            None => None,
        };
        let Some((seq, row)) = found else { return Err(unknown_event(&db, &self.id)?) };
        let answer = describe_event(&db, seq, &row)?;
        context.print(&answer)?;
        Ok(0)
    }
}

/// The error for an id that is not stored.
pub(super) fn unknown_event(db: &Db<Snapshot>, id: &EventId) -> Result<Failure, Failure> {
    let why = match (db.refused(id)?, db.expired_at(id)?) {
        (Some(why), _) => format!("event {id} was refused and is not stored: {why}"),
        (None, Some(at)) => format!("event {id} expired {} and is not stored", format_time(at.0)),
        (None, None) => format!("there is no event {id}"),
    };
    Ok(Failure::new(why, "check the id; `anteroom explain` shows what is known about it and which events wait for it"))
}

fn describe_event(db: &Db<Snapshot>, seq: Seq, row: &EventRow) -> Read<Answer> {
    let kept = db.kept(seq)?;
    let envelope = db.opened(seq)?;
    let blob = match kept.as_ref().map(|kept| kept.blob.form()) {
        Some(BlobForm::Sealed { space, key }) => format!("sealed for space {space} under key {key}"),
        Some(BlobForm::Addressed { space, prekey }) => format!("sealed for space {space} to prekey {prekey}"),
        Some(_) => "plain".to_owned(),
        None => "missing".to_owned(),
    };
    Ok(Answer {
        id: row.id.to_string(),
        number: seq.0,
        stage: row.stage.word(),
        content_state: row.meta.as_ref().map(|_| row.content.word()),
        blob,
        blob_bytes: kept.map_or(0, |kept| kept.blob.bytes().len()),
        envelope: envelope.map(|envelope| describe_envelope(db, &envelope)).transpose()?,
        body: read_body(db, seq, row)?,
    })
}

fn describe_envelope(db: &Db<Snapshot>, envelope: &Envelope) -> Read<Opened> {
    let mut references = Vec::new();
    for reference in &envelope.references {
        let role = format!("{:?}", reference.role).to_lowercase();
        references.push(Referred { role, id: reference.id.to_string(), stage: stage_of(db, &reference.id)? });
    }
    let parents = envelope.parents.iter().filter(|parent| !parent.is_zero());
    Ok(Opened {
        kind: envelope.kind.to_string(),
        created_at: envelope.created_at.0,
        space: envelope.space.to_string(),
        author: envelope.author.to_string(),
        sealed_under: (!envelope.key.is_zero()).then(|| envelope.key.to_string()),
        parents: parents.map(EventId::to_string).collect(),
        auxiliary_key: (!envelope.aux.is_zero()).then(|| envelope.aux.to_string()),
        content_bytes: envelope.content_len,
        content_hash: envelope.content_hash.to_string(),
        payload: describe_payload(&envelope.payload),
        references,
    })
}

fn stage_of(db: &Db<Snapshot>, id: &EventId) -> Read<&'static str> {
    let row = match db.seq(id)? {
        Some(seq) => db.event(seq)?,
        None => None,
    };
    Ok(match row {
        Some(row) => row.stage.word(),
        None if db.refused(id)?.is_some() => "refused",
        None => "not stored",
    })
}

/// Leaves out the secret key of a key event.
fn describe_payload(payload: &Payload) -> Option<String> {
    match payload {
        Payload::None => None,
        Payload::Space { sealed: true } => Some("a sealed space".into()),
        Payload::Space { sealed: false } => Some("an open space".into()),
        Payload::Member { member, role } => Some(format!("{member} gets the role {role}")),
        Payload::Prekey(_) => Some("a prekey".into()),
        Payload::Key(_) => Some("a space key (secret)".into()),
        Payload::Opaque(bytes) => Some(format!("{} bytes of an unknown kind", bytes.len())),
    }
}

fn read_body(db: &Db<Snapshot>, seq: Seq, row: &EventRow) -> Read<Body> {
    if !row.is_applied() {
        return Ok(Body::None(format!("the event is {}", row.stage.word())));
    }
    Ok(match db.shown(seq)? {
        ShownContent::Here(bytes) if bytes.is_empty() => Body::None("the content is empty".into()),
        ShownContent::Here(bytes) => match serde_json::from_slice(&bytes) {
            Ok(value) => Body::Json(value),
            Err(_) => Body::Bytes(bytes.len()),
        },
        ShownContent::Absent => Body::None("its content has not arrived or was pruned".into()),
        ShownContent::Invalid => Body::None("its content is not valid for its kind".into()),
        ShownContent::Damaged => Body::None("what is stored of it is damaged; run `anteroom verify`".into()),
        ShownContent::Deleted(by) => Body::None(format!("deleted by event {}", by.id)),
    })
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "event      {}", self.id)?;
        writeln!(f, "stage      {}, number {}", self.stage, self.number)?;
        writeln!(f, "blob       {}, {} bytes", self.blob, self.blob_bytes)?;
        match &self.envelope {
            Some(opened) => write!(f, "{opened}")?,
            None => writeln!(f, "envelope   cannot be decrypted by this node")?,
        }
        if let Some(state) = self.content_state {
            writeln!(f, "state      {state}")?;
        }
        match &self.body {
            Body::Json(value) => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                writeln!(f, "body\n{}", escape_controls(&text))
            }
            Body::Bytes(length) => writeln!(f, "body       {length} bytes that are not JSON"),
            Body::None(why) => writeln!(f, "body       none: {why}"),
        }
    }
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kind       {}", self.kind)?;
        writeln!(f, "created    {} ({} ns)", format_time(self.created_at), self.created_at)?;
        writeln!(f, "space      {}", self.space)?;
        writeln!(f, "author     {}", self.author)?;
        let optional = [("sealed", &self.sealed_under), ("auxiliary", &self.auxiliary_key), ("payload", &self.payload)];
        for (name, text) in optional {
            text.as_ref().map_or(Ok(()), |text| writeln!(f, "{name:<11}{text}"))?;
        }
        self.parents.iter().try_for_each(|parent| writeln!(f, "parent     {parent}"))?;
        for reference in &self.references {
            writeln!(f, "{:<11}{} ({})", reference.role, reference.id, reference.stage)?;
        }
        writeln!(f, "content    {} bytes, {}", self.content_bytes, self.content_hash)
    }
}
