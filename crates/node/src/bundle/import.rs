//! Import: a bundle is read on one thread, checked on two, and handed to the writer, which sets the pace.
//!
//! What is known already is skipped before its signature is checked, so importing a bundle again is quick: that is how
//! an import is resumed. Contents wait until everything before them has settled, because content that nobody refers to
//! yet is not kept.

use super::adopt::AdoptSpace;
use super::format::{BadBundle, BundleReader, Record};
use super::pace::{ImportSlot, ImportWindow};
use super::secrets::{BadSecrets, KEYS_RECORDS_MAX, Passphrase, SecretsReader, SpaceSecrets};
use super::tally::{ImportTally, Imported, KnownRecord};
use crate::locks;
use crate::running::Node;
use crate::threads;
use crate::writer::node_commands::{LearnSpaceKey, Tick};
use crate::writer_command::{Answered, AskError, RequestError, WriterCommand};
use crossbeam_channel::{Receiver, Sender, bounded};
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::Origin;
use model::crypto::event_id;
use model::stage::ContentState;
use std::io::Read;
use std::sync::{Arc, Mutex};
use store::Db;
use store::tables::Snapshot;

const CHECKERS: usize = 2;
/// Records between the reader and the checkers.
const QUEUE_MAX: usize = 256;
/// How many records a checker looks up in one snapshot before it takes a fresh one.
const LOOKS_PER_SNAPSHOT: u32 = 1024;

/// How far an import is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImportProgress {
    pub records: u64,
    pub bytes: u64,
}

/// Why an import did not come to its end. What was counted is kept.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The bundle is not fit.
    #[error(transparent)]
    Bundle(#[from] BadBundle),
    /// The node could not take more.
    #[error("the import stopped at byte {at}: {why}")]
    Node {
        /// The first record that was not taken.
        at: u64,
        why: RequestError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its keys cannot be read.
    #[error(transparent)]
    Keys(#[from] BadSecrets),
    /// Whoever watched it asked it to stop.
    #[error("the import was interrupted at byte {at}")]
    Interrupted {
        /// How far it was.
        at: u64,
    },
}

impl ImportError {
    /// What whoever asked for it can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            ImportError::Bundle(why) => why.what_to_do(),
            ImportError::Node { why: RequestError::Full, .. } => {
                "free some disk space, then run import again; what was read before is kept and skipped quickly"
            }
            ImportError::Node { .. } | ImportError::Store(_) => "run `anteroom verify`, then import again",
            ImportError::Keys(BadSecrets::Passphrase) => {
                "pass the passphrase that was given to export, or none to import what can be opened without the keys"
            }
            ImportError::Keys(_) => "use a newer release, or export the bundle again",
            ImportError::Interrupted { .. } => "run import again; what was read before is kept and skipped quickly",
        }
    }
}

/// Imports a bundle into a running node. The function that watches is told how far it is after each record, and says
/// whether to go on. With a passphrase the spaces whose keys the bundle carries are taken over. Answers with what
/// became of the records, and whether that was all of them.
pub fn import(
    node: &Node,
    input: impl Read,
    passphrase: Option<&Passphrase>,
    watch: &mut dyn FnMut(ImportProgress) -> bool,
) -> (Imported, Result<(), ImportError>) {
    let secrets = passphrase.map(|passphrase| Mutex::new(SecretsReader::new(passphrase)));
    let run = Run { node, pace: Arc::default(), tally: Arc::default(), secrets, adopted: Mutex::default() };
    let before = GivenUp::read(node);
    let (records, queue) = bounded(QUEUE_MAX);
    let read = std::thread::scope(|scope| {
        for _ in 0..CHECKERS {
            let queue = queue.clone();
            scope.spawn(|| run.check_or_fail(queue));
        }
        drop(queue);
        run.read(input, records, watch)
    });
    let settled = run.settle().and_then(|()| run.adopt());
    let mut tally = run.tally.lock();
    let after = GivenUp::read(node);
    tally.imported.expired = after.expired.saturating_sub(before.expired);
    tally.imported.carried_dropped = after.carried.saturating_sub(before.carried);
    tally.imported.waiting = node.snapshot().map_or(0, |db| db.held_total().unwrap_or(0));
    let failure = tally.failure.take().map_or(Ok(()), |(at, why)| Err(ImportError::Node { at, why }));
    (std::mem::take(&mut tally.imported), failure.and(read).and(settled))
}

/// How much was given up since the folder was made.
#[derive(Default)]
struct GivenUp {
    expired: u64,
    carried: u64,
}

impl GivenUp {
    fn read(node: &Node) -> GivenUp {
        let counts = node.snapshot().and_then(|db| db.counts()).unwrap_or_default();
        let count = |word| counts.iter().find(|(name, _)| name == word).map_or(0, |(_, count)| *count);
        GivenUp { expired: count("expired"), carried: count("carried-dropped") }
    }
}

/// A record on its way to the checkers.
struct Job {
    at: u64,
    record: Record,
    place: ImportSlot,
}

struct Run<'a> {
    node: &'a Node,
    pace: Arc<ImportWindow>,
    tally: Arc<ImportTally>,
    /// What reads keys, if they are to be read.
    secrets: Option<Mutex<SecretsReader<'a>>>,
    /// What the bundle says of spaces, until their events are here.
    adopted: Mutex<Vec<SpaceSecrets>>,
}

impl Run<'_> {
    fn read(
        &self,
        input: impl Read,
        records: Sender<Job>,
        watch: &mut dyn FnMut(ImportProgress) -> bool,
    ) -> Result<(), ImportError> {
        let mut reader = BundleReader::new(input)?;
        let mut is_settled = true;
        loop {
            let next = reader.next_record();
            let bytes = reader.at();
            self.tally.lock().imported.bytes = bytes;
            let Some((at, record)) = next? else { return Ok(()) };
            match &record {
                Record::Event { .. } => is_settled = false,
                Record::Content { .. } if !is_settled => {
                    self.settle()?;
                    is_settled = true;
                }
                Record::Content { .. } => {}
                Record::Keys { sealed } => {
                    self.take_keys(sealed)?;
                    let records = self.tally.count_record();
                    if !watch(ImportProgress { records, bytes }) {
                        return Err(ImportError::Interrupted { at: bytes });
                    }
                    continue;
                }
            }
            let Some(place) = self.pace.enter(bytes - at, &|| self.is_over()) else { return Ok(()) };
            if records.send(Job { at, record, place }).is_err() || self.tally.lock().failure.is_some() {
                return Ok(());
            }
            let records = self.tally.count_record();
            if !watch(ImportProgress { records, bytes }) {
                return Err(ImportError::Interrupted { at: bytes });
            }
        }
    }

    /// Keeps the keys of a space, so that its events can be opened as they come.
    fn take_keys(&self, sealed: &[u8]) -> Result<(), ImportError> {
        let Some(reader) = &self.secrets else {
            self.tally.lock().imported.keys_unread += 1;
            return Ok(());
        };
        let secrets = locks::lock(reader).open(sealed)?;
        let at = self.tally.lock().imported.bytes;
        for key in &secrets.keys {
            self.node.ask(LearnSpaceKey(secrets.space, *key)).map_err(|why| not_taken(at, why))?;
        }
        let mut adopted = locks::lock(&self.adopted);
        if adopted.len() >= KEYS_RECORDS_MAX {
            return Err(BadSecrets::TooMany.into());
        }
        adopted.push(secrets);
        Ok(())
    }

    /// Takes over the spaces whose keys came, after their events.
    fn adopt(&self) -> Result<(), ImportError> {
        let spaces = SpaceSecrets::join(std::mem::take(&mut *locks::lock(&self.adopted)));
        self.tally.lock().imported.spaces_with_keys = spaces.len() as u64;
        for secrets in spaces {
            let mut signing_secret = [0; 32];
            getrandom::fill(&mut signing_secret).map_err(|_| BadSecrets::Random)?;
            let at = self.tally.lock().imported.bytes;
            let adopted = self.node.ask(AdoptSpace { secrets, signing_secret }).map_err(|why| not_taken(at, why))?;
            let imported = &mut self.tally.lock().imported;
            imported.spaces_adopted += u64::from(adopted.is_new);
            imported.users_adopted += adopted.users;
        }
        Ok(())
    }

    /// Whether nothing more will be answered.
    fn is_over(&self) -> bool {
        let answer = self.node.submit(Tick, |_| ());
        matches!(answer, Err(RequestError::Stopped)) || self.tally.lock().failure.is_some()
    }

    /// Waits until everything that was read is committed and nothing is left that could go on by itself.
    fn settle(&self) -> Result<(), ImportError> {
        loop {
            if !self.pace.drain(&|| self.is_over()) || self.tally.lock().failure.is_some() {
                return Ok(());
            }
            if self.node.snapshot()?.is_at_rest()? {
                return Ok(());
            }
            let Some(place) = self.pace.enter(0, &|| self.is_over()) else { return Ok(()) };
            let at = self.tally.lock().imported.bytes;
            self.submit(at, Tick, place, |_, ()| ());
        }
    }

    /// Checks records. If that panics, the import has failed: a record is lost.
    fn check_or_fail(&self, queue: Receiver<Job>) {
        if !threads::run_logged("anteroom-import", || self.check(queue)) {
            let at = self.tally.lock().imported.bytes;
            self.tally.fail(at, RequestError::Failed("a thread of the import panicked; the log has details".into()));
        }
    }

    fn check(&self, queue: Receiver<Job>) {
        crate::running::yield_to_writer();
        let mut looks = Looks { node: self.node, snapshot: None, left: 0 };
        for job in queue {
            if self.tally.lock().failure.is_none() {
                self.check_one(&mut looks, job);
            }
        }
    }

    fn check_one(&self, looks: &mut Looks<'_>, Job { at, record, place }: Job) {
        match looks.known(&record) {
            // A fault here shows in the writer as well, which names it.
            Ok(None) | Err(_) => {}
            Ok(Some(known)) => return self.tally.count_known(known),
        }
        match record {
            Record::Event { blob, inline } => match self.node.receive(blob, Some(inline), Origin::Import) {
                Ok(arrive) => self.submit(at, arrive, place, |tally, (_, outcome)| tally.count_outcome(&outcome)),
                Err(why) => self.tally.count_dropped(at, why.word(), why.to_string()),
            },
            Record::Content { space, hash, bytes } => match self.node.receive_content(space, hash, bytes) {
                Some(deliver) => self.submit(at, deliver, place, ImportTally::count_delivered),
                None => self.tally.count_dropped(at, "content", format!("its bytes are not those of {hash}")),
            },
            // They are taken as they are read.
            Record::Keys { .. } => {}
        }
    }

    fn submit<C: WriterCommand<Error = StoreError>>(
        &self,
        at: u64,
        command: C,
        place: ImportSlot,
        count: fn(&ImportTally, C::Answer),
    ) {
        let tally = self.tally.clone();
        let on_answer = move |answer: Answered<C>| {
            match answer {
                Ok(answer) => count(&tally, answer),
                Err(AskError::NotRun(RequestError::Parked(_))) => tally.count_parked(),
                Err(AskError::NotRun(why)) => tally.fail(at, why),
                Err(AskError::Refused(fault)) => tally.fail(at, fault.into()),
            }
            drop(place);
        };
        if let Err(why) = self.node.submit_patiently(command, on_answer) {
            self.tally.fail(at, why);
        }
    }
}

fn not_taken(at: u64, why: AskError<StoreError>) -> ImportError {
    match why {
        AskError::NotRun(why) => ImportError::Node { at, why },
        AskError::Refused(fault) => ImportError::Store(fault),
    }
}

/// A checker's view of what is here, refreshed now and then.
struct Looks<'a> {
    node: &'a Node,
    snapshot: Option<Arc<Db<Snapshot>>>,
    left: u32,
}

impl Looks<'_> {
    fn known(&mut self, record: &Record) -> StoreResult<Option<KnownRecord>> {
        if self.left == 0 {
            self.snapshot = Some(self.node.snapshot()?);
            self.left = LOOKS_PER_SNAPSHOT;
        }
        self.left -= 1;
        match (&self.snapshot, record) {
            (_, Record::Keys { .. }) => Ok(None),
            (Some(db), Record::Event { blob, inline }) => known_event(db, blob, inline),
            (Some(db), Record::Content { space, hash, .. }) => {
                let Some(space) = db.space_no(space)? else { return Ok(None) };
                let content = db.content(space, hash)?;
                Ok(content
                    .filter(|row| row.place != engine::rows::ContentLocation::Absent)
                    .map(|_| KnownRecord::Content))
            }
            (None, _) => Ok(None),
        }
    }
}

fn known_event(db: &Db<Snapshot>, blob: &[u8], inline: &[u8]) -> StoreResult<Option<KnownRecord>> {
    let id = event_id(blob);
    if let Some(why) = db.refused(&id)? {
        return Ok(Some(KnownRecord::Refused(why)));
    }
    let Some(seq) = db.seq(&id)? else { return Ok(None) };
    let (Some(row), Some(kept)) = (db.event(seq)?, db.kept(seq)?) else { return Ok(None) };
    let wants_inline = row.content == ContentState::Missing && !row.has_inline && !inline.is_empty();
    Ok((kept.blob.bytes() == blob && !wants_inline).then_some(KnownRecord::Event))
}
