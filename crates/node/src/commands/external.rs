//! Events that were signed by a client whose key this node does not have.
//!
//! The client has an event prepared, signs it and submits it. Whether it may be stored is decided here, inside the
//! transaction, as for any other command: the caller may submit, the membership is in force, the thread is open to its
//! author, what it refers to was not deleted, and there is room for it. Submitting the same event again changes nothing,
//! so that no idempotency key is needed.

use crate::commands::conversation::check_access;
use crate::commands::deletion::check_event_target;
use crate::commands::lookup::{is_open_to, principal, thread_of};
use crate::commands::{Caller, CommandError, moderation, users};
use crate::pipeline::{arrive, policy};
use crate::writer_command::WriterCommand;
use engine::Opened;
use engine::access::{Action, Facts};
use engine::create::{CreateError, Seal};
use engine::opened::Opening;
use engine::protocol::space::counting::acting_role;
use engine::reads::{Reads as _, SpaceReads as _};
use engine::receive::{self, Arrival};
use engine::rows::{ContentLocation, ContentRow, Origin, Outcome};
use model::blob::BadBlob;
use model::envelope::Role;
use model::stage::ContentState;
use model::{Blob, EventId, Kind, Need, SpaceId, Stamp, Verified};
use store::tables::TableReads;
use store::{Batch, Db};

/// Stores an event that its author signed elsewhere.
#[derive(Clone, Debug)]
pub struct SubmitSigned {
    /// The space for which the caller was proven.
    pub space: SpaceId,
    /// Who submits it; not necessarily its author.
    pub caller: Caller,
    /// The event, whose signature was checked.
    pub signed: Verified,
    /// Its content as it travels.
    pub content: Vec<u8>,
}

/// What became of an event that was signed elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Submission {
    /// Its id, which depends on the key under which the space is sealed now.
    pub event: EventId,
    /// What became of it. An event may be refused by the rules of its kind, or wait for what it needs.
    pub outcome: Outcome,
    /// Its content, if that is not here: it was not sent, or what was sent is not what was signed for.
    pub missing: Option<Need>,
}

impl WriterCommand for SubmitSigned {
    type Answer = Submission;
    type Error = CommandError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<Submission, CommandError> {
        let no = users::space_no(batch, &self.space)?;
        let (principal, _) = principal(batch.db(), &self.space, &self.caller, batch.now())?;
        check_access(&principal, Action::Submit, &Facts::default())?;
        let envelope = self.signed.envelope();
        if envelope.space != self.space {
            return Err(CommandError::OtherSpace);
        }
        self.check_membership(batch)?;
        self.check_thread(batch.db())?;
        let blob = self.seal(batch.db())?;
        let event = blob.id();
        // What is here already is answered as such, whatever became of its target since.
        if batch.db().seq(&event)?.is_none() {
            check_event_target(batch.db(), envelope)?;
            moderation::check_quota(batch, no, &envelope.author, self.content.len() as u64)?;
        }
        let outcome = self.store(batch, blob)?;
        // What would be applied without any effect is not taken in: whoever sent it hears why.
        if let Outcome::Applied(seq) = outcome
            && batch.db().event(seq)?.and_then(|row| row.meta).is_some_and(|meta| !meta.counts)
        {
            return Err(CreateError::NoRight.into());
        }
        Ok(Submission { event, outcome, missing: self.missing_content(batch.db(), &event)? })
    }
}

impl SubmitSigned {
    fn missing_content<V: TableReads>(&self, db: &Db<V>, event: &EventId) -> Result<Option<Need>, CommandError> {
        let Some(seq) = db.seq(event)? else { return Ok(None) };
        let Some(row) = db.event(seq)?.filter(|row| row.content == ContentState::Missing) else { return Ok(None) };
        let Some(meta) = row.meta else { return Ok(None) };
        let is_stored = |content: ContentRow| content.place != ContentLocation::Absent;
        let is_here = row.has_inline || meta.content_len == 0;
        if is_here || db.content(meta.space, &meta.content_hash)?.is_some_and(is_stored) {
            return Ok(None);
        }
        Ok(Some(Need::Content(self.space, meta.content_hash)))
    }

    /// Removed members are turned away, whatever time they put into the event. An authority that is not here yet is
    /// waited for.
    fn check_membership(&self, batch: &Batch<'_>) -> Result<(), CommandError> {
        let envelope = self.signed.envelope();
        let authority = envelope.reference(Role::Authority);
        let Some(seq) = authority.map(|id| batch.db().seq(&id)).transpose()?.flatten() else { return Ok(()) };
        let at = Stamp { at: batch.now().max(envelope.created_at), id: EventId([0xff; 16]) };
        // What is no membership, or not applied yet, is for POST to refuse or to wait for.
        if batch.db().membership(seq)?.is_none() {
            return Ok(());
        }
        acting_role(batch.db(), seq, at)?.map(drop).ok_or(CommandError::NotInForce)
    }

    /// Nobody writes into a private thread who does not take part in it, wherever they sign.
    fn check_thread<V: TableReads>(&self, db: &Db<V>) -> Result<(), CommandError> {
        let envelope = self.signed.envelope();
        let named = envelope.reference(Role::Thread).or_else(|| envelope.reference(Role::Target));
        let Some(seq) = named.map(|id| db.seq(&id)).transpose()?.flatten() else { return Ok(()) };
        match thread_of(db, seq)? {
            Some((thread, meta)) if !is_open_to(db, thread, &meta, &envelope.author)? => {
                Err(CommandError::Unknown("thread or message"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Wraps the event as the space asks.
    fn seal<V: TableReads>(&self, db: &Db<V>) -> Result<Blob, CommandError> {
        let blob = match users::seal_for(db, &self.space)? {
            // A key travels only to the prekey that it is for.
            _ if self.signed.envelope().kind == Kind::Key => Err(BadBlob::Header),
            Seal::Key(key) => Blob::seal(&self.signed, &key),
            Seal::Plain | Seal::Prekey(_) => Blob::plain(&self.signed),
        };
        blob.map_err(|why| CreateError::Blob(why).into())
    }

    /// STORE and POST for the event, and its content beside it, inline or not.
    fn store(&self, batch: &mut Batch<'_>, blob: Blob) -> Result<Outcome, CommandError> {
        let policy = policy(batch);
        let is_inline = self.content.len() as u64 <= policy.inline_bytes_max;
        let inline = (is_inline && !self.content.is_empty()).then(|| self.content.clone());
        let opened = Opened::Space(self.signed.clone());
        let is_content = opened.is_content(&self.content);
        let arrival = Arrival { blob, opening: Opening::Opened(opened), inline, verdict: None, origin: Origin::Local };
        let outcome = arrive(batch, &receive::complete(batch.db(), &policy, arrival))?;
        if !is_inline && is_content {
            batch.deliver(&self.space, &self.signed.envelope().content_hash, &self.content)?;
        }
        Ok(outcome)
    }
}
