//! Import: a bundle is read on one thread, checked on two, and handed to the writer, which sets the pace.
//!
//! What is known already is skipped before its signature is checked, so importing a bundle again is quick: that is how
//! an import is resumed. Contents wait until everything before them has settled, because content that nobody refers to
//! yet is not kept: it is put aside until everything else has been read.

use super::adopt::AdoptSpace;
use super::aside::{BundleInput, ContentsAside, SecondPass, WithoutRoom};
use super::format::{BadBundle, BundleReader, Record};
use super::import_error::ImportError;
use super::lookup::{Lookup, known_content};
use super::pace::{ImportSlot, ImportWindow};
use super::secrets::{BadSecrets, KEYS_RECORDS_MAX, Passphrase, SecretsReader, SpaceSecrets};
use super::tally::{ImportTally, Imported, KnownRecord};
use crate::locks;
use crate::running::Node;
use crate::threads;
use crate::writer::node_commands::{LearnSpaceKey, Tick};
use crate::writer_command::{Answered, AskError, RequestError, WriterCommand};
use crossbeam_channel::{Receiver, Sender, bounded};
use engine::reads::{Reads as _, StoreError};
use engine::rows::Origin;
use model::ContentHash;
use std::io::Read;
use std::sync::{Arc, Mutex};

const CHECKERS: usize = 2;
/// Records between the reader and the checkers.
const QUEUE_MAX: usize = 256;

/// How far an import is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImportProgress {
    pub records: u64,
    pub bytes: u64,
}

/// Imports a bundle into a running node. The function that watches is told how far it is after each record, and says
/// whether to go on. With a passphrase the spaces whose keys the bundle carries are taken over. Answers with what
/// became of the records, and whether that was all of them.
pub fn import(
    node: &Node,
    mut input: impl BundleInput,
    passphrase: Option<&Passphrase>,
    watch: &mut dyn FnMut(ImportProgress) -> bool,
) -> (Imported, Result<(), ImportError>) {
    let secrets = passphrase.map(|passphrase| Mutex::new(SecretsReader::new(passphrase)));
    let aside = Mutex::new(ContentsAside::new(&mut input));
    let run = Run { node, pace: Arc::default(), tally: Arc::default(), secrets, adopted: Mutex::default(), aside };
    let before = GivenUp::read(node);
    let (records, queue) = bounded(QUEUE_MAX);
    let read = std::thread::scope(|scope| {
        for _ in 0..CHECKERS {
            let queue = queue.clone();
            scope.spawn(|| run.check_or_fail(queue));
        }
        drop(queue);
        let read = run.read(&mut input, &records, watch);
        // What was read before the bundle broke off is kept.
        let again = match &read {
            Ok(()) | Err(ImportError::Bundle(_)) => run.read_again(&mut input, &records, watch),
            Err(_) => Ok(()),
        };
        let read = read.and(again);
        // The checkers end when nobody can send them more.
        drop(records);
        read
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
    /// It was put aside before.
    is_again: bool,
}

struct Run<'a> {
    node: &'a Node,
    pace: Arc<ImportWindow>,
    tally: Arc<ImportTally>,
    /// What reads keys, if they are to be read.
    secrets: Option<Mutex<SecretsReader<'a>>>,
    /// What the bundle says of spaces, until their events are here.
    adopted: Mutex<Vec<SpaceSecrets>>,
    aside: Mutex<ContentsAside>,
}

impl Run<'_> {
    fn read(
        &self,
        input: &mut impl BundleInput,
        records: &Sender<Job>,
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
            if !self.hand_over(records, at, bytes, record, false) {
                return Ok(());
            }
            let records = self.tally.count_record();
            if !watch(ImportProgress { records, bytes }) {
                return Err(ImportError::Interrupted { at: bytes });
            }
        }
    }

    /// Meets the contents again that nobody referred to when they were read.
    fn read_again(
        &self,
        input: &mut impl BundleInput,
        records: &Sender<Job>,
        watch: &mut dyn FnMut(ImportProgress) -> bool,
    ) -> Result<(), ImportError> {
        self.settle()?;
        if self.tally.lock().failure.is_some() {
            return Ok(());
        }
        let second = locks::lock(&self.aside).second_pass();
        let done = match second {
            SecondPass::Nothing => Ok(()),
            SecondPass::Aside { reader, places } => {
                let mut places = places.into_iter();
                self.read_contents(*reader, records, watch, |_| places.next())
            }
            SecondPass::Bundle { places, all_from } => {
                let at = self.tally.lock().imported.bytes;
                input.rewind().map_err(|why| BadBundle::Read { at, why })?;
                let is_wanted = |at: u64| at >= all_from || places.binary_search(&at).is_ok();
                self.read_contents(BundleReader::new(input)?, records, watch, |at| is_wanted(at).then_some(at))
            }
        };
        let (without_room, why) = locks::lock(&self.aside).take_without_room();
        done.and(self.judge_without_room(&without_room, why))
    }

    /// Contents that found no room are missed if anything refers to them by now, and unwanted otherwise.
    fn judge_without_room(&self, without_room: &WithoutRoom, why: Option<String>) -> Result<(), ImportError> {
        let (db, mut contents) = (self.node.snapshot()?, without_room.beyond);
        for (space, hash) in &without_room.known {
            match known_content(&db, space, hash)? {
                Some(known) => self.tally.count_known(known),
                None => contents += 1,
            }
        }
        let why = why.unwrap_or_else(|| "there was no room".into());
        if contents == 0 { Ok(()) } else { Err(ImportError::Aside { contents, why }) }
    }

    /// Hands over contents, where a function says at which place of the bundle they stand.
    fn read_contents<R: Read>(
        &self,
        mut reader: BundleReader<R>,
        records: &Sender<Job>,
        watch: &mut dyn FnMut(ImportProgress) -> bool,
        mut place: impl FnMut(u64) -> Option<u64>,
    ) -> Result<(), ImportError> {
        while let Some((at, record)) = reader.next_record()? {
            let length = reader.at() - at;
            let is_content = matches!(record, Record::Content { .. });
            if let Some(at) = place(at).filter(|_| is_content)
                && !self.hand_over(records, at, at + length, record, true)
            {
                return Ok(());
            }
            let (records, bytes) = {
                let imported = &self.tally.lock().imported;
                (imported.records, imported.bytes)
            };
            if !watch(ImportProgress { records, bytes }) {
                return Err(ImportError::Interrupted { at: bytes });
            }
        }
        Ok(())
    }

    /// Hands a record to the checkers, when there is room. Says whether to go on.
    fn hand_over(&self, records: &Sender<Job>, at: u64, end: u64, record: Record, is_again: bool) -> bool {
        let Some(place) = self.pace.enter(end - at, &|| self.is_over()) else { return false };
        records.send(Job { at, record, place, is_again }).is_ok() && self.tally.lock().failure.is_none()
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
        let mut lookup = Lookup::new(self.node);
        for job in queue {
            if self.tally.lock().failure.is_none() {
                self.check_one(&mut lookup, job);
            }
        }
    }

    fn check_one(&self, lookup: &mut Lookup<'_>, Job { at, record, place, is_again }: Job) {
        match lookup.known(&record) {
            // A fault here shows in the writer as well, which names it.
            Ok(None) | Err(_) => {}
            Ok(Some(KnownRecord::Unwanted)) if is_again => {}
            Ok(Some(KnownRecord::Unwanted)) => return self.put_aside(at, &record),
            Ok(Some(known)) => return self.tally.count_known(known),
        }
        match record {
            Record::Event { blob, inline } => match self.node.receive(blob, Some(inline), Origin::Import) {
                Ok(arrive) => self.submit(at, arrive, place, |tally, (_, outcome)| tally.count_outcome(&outcome)),
                Err(why) => self.tally.count_dropped(at, why.word(), why.to_string()),
            },
            Record::Content { space, hash, bytes } => match self.node.receive_content(space, hash, bytes) {
                Ok(Some(deliver)) => self.submit(at, deliver, place, ImportTally::count_delivered),
                Ok(None) => self.count_changed(at, &hash),
                Err(AskError::NotRun(why)) => self.tally.fail(at, why),
                Err(AskError::Refused(fault)) => self.tally.fail(at, fault.into()),
            },
            // They are taken as they are read.
            Record::Keys { .. } => {}
        }
    }

    /// Keeps a content for the end.
    fn put_aside(&self, at: u64, record: &Record) {
        let Record::Content { space, hash, bytes } = record else { return };
        if model::crypto::content_hash(bytes) != *hash {
            return self.count_changed(at, hash);
        }
        locks::lock(&self.aside).put(at, space, hash, bytes);
    }

    fn count_changed(&self, at: u64, hash: &ContentHash) {
        self.tally.count_dropped(at, "content", format!("its bytes are not those of {hash}"));
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
