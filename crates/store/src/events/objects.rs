//! Objects: which there are, whose they are, and when they go. Their bytes are in the [backend](objects::Backend).
//!
//! A row comes first: somebody writes an object, until a deadline. Then its bytes are written outside of any transaction,
//! and a small one says that content is there, or drops the object if that content is known already. What nobody speaks of
//! any more is forgotten by a row, removed after the commit by whoever looks at those rows, and only then the row goes. So
//! a crash at any moment leaves no object without a row, and nothing ever has to be listed.
//!
//! The key of an object is drawn with it and rests in its row, under the storage key of its space: a rotation puts rows to
//! rest anew, and leaves gigabytes alone.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::encode::{from_row, to_row};
use crate::errors::broken;
use crate::events::content::DeliverResult;
use crate::keys::*;
use crate::tables::TableReads;
use engine::Change;
use engine::change::RowChange;
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::{ContentLocation, ContentRow, Task};
use model::crypto::ObjectKey;
use model::{ContentHash, Nanos, ObjectName, SpaceId, SpaceNo};
use objects::{ContentReader, ObjectError, ReadForm};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The number of objects that were begun, from which names are drawn where chance is a seed.
const BEGUN: &str = "objects begun";

/// What is known of an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObjectRow {
    /// Whose content it is.
    pub space: SpaceId,
    pub state: ObjectState,
    /// Its secret as it rests; none if content rests as it travels, sealed.
    pub secret: Option<Vec<u8>>,
}

/// Where an object stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ObjectState {
    /// Somebody writes it. After this time nobody does any more.
    Writing { until: Nanos },
    /// It is the content of that hash.
    Stored { hash: ContentHash },
    /// Nobody speaks of it any more.
    Forgotten { since: Nanos },
}

/// An object that is to be written.
#[derive(Clone, Debug)]
pub struct NewObject {
    pub name: ObjectName,
    /// The key to write it under; none if the content rests as it travels.
    pub key: Option<ObjectKey>,
}

impl Batch<'_> {
    /// Begins an object for content of a space. Encrypted objects get a key.
    pub fn begin_object(&mut self, space: &SpaceId, is_encrypted: bool, until: Nanos) -> StoreResult<NewObject> {
        self.touch();
        let begun = self.db.about_number(BEGUN)?.saturating_add(1);
        self.db.tables.about.insert(BEGUN, &begun.to_be_bytes())?;
        let random = self.shared.random;
        let name = ObjectName(random.draw("anteroom v1 object name of a test", &begun.to_be_bytes())?);
        let (mut key, mut rests) = (None, None);
        if is_encrypted {
            let secret: Zeroizing<[u8; 32]> =
                Zeroizing::new(random.draw("anteroom v1 object key of a test", &begun.to_be_bytes())?);
            key = Some(ObjectKey::new(&secret));
            rests = Some(self.protect(space, ObjectKeyName::new(name).as_bytes(), secret.as_slice())?);
        }
        self.db.tables.unfinished_objects.insert(ObjectDueKey::new(until, name), ())?;
        let state = ObjectState::Writing { until };
        self.put_object(name, &ObjectRow { space: *space, state, secret: rests })?;
        Ok(NewObject { name, key })
    }

    /// Says that an object, which is durable, has the content of that hash and length. If nobody wants it, or it is here
    /// already, the object is forgotten.
    pub fn enter_object(
        &mut self,
        space: &SpaceId,
        hash: &ContentHash,
        len: u64,
        name: ObjectName,
    ) -> StoreResult<DeliverResult> {
        let row = self.db.object_row(name)?;
        let is_open = |row: &ObjectRow| row.space == *space && matches!(row.state, ObjectState::Writing { .. });
        // Whoever writes longer than they said comes too late: it may be gone already.
        let Some(row) = row.filter(is_open) else { return Ok(DeliverResult::Unwanted) };
        let wanted = match self.db.space_no(space)? {
            Some(no) => self.db.content(no, hash)?.map(|content| (no, content)),
            None => None,
        };
        let (no, content) = match wanted {
            Some((no, content)) if content.place == ContentLocation::Absent => (no, content),
            other => {
                self.forget_object(name)?;
                return Ok(if other.is_some() { DeliverResult::Known } else { DeliverResult::Unwanted });
            }
        };
        self.leave_object_state(name, &row)?;
        self.put_object(name, &ObjectRow { state: ObjectState::Stored { hash: *hash }, ..row })?;
        self.put_content(no, hash, &ContentRow { place: ContentLocation::Object(name), len, ..content })?;
        self.apply(vec![Change::Task(RowChange::Put, Task::Content(no, *hash, model::Seq(0)))])?;
        Ok(DeliverResult::Stored)
    }

    /// Forgets an object: it is removed after this is committed.
    pub fn forget_object(&mut self, name: ObjectName) -> StoreResult<()> {
        let Some(row) = self.db.object_row(name)? else { return Ok(()) };
        if matches!(row.state, ObjectState::Forgotten { .. }) {
            return Ok(());
        }
        self.leave_object_state(name, &row)?;
        let since = self.now;
        self.db.tables.forgotten_objects.insert(ObjectDueKey::new(since, name), ())?;
        self.put_object(name, &ObjectRow { state: ObjectState::Forgotten { since }, secret: None, ..row })
    }

    /// Gives whoever writes an object time until then.
    pub(crate) fn extend_object(&mut self, name: ObjectName, until: Nanos) -> StoreResult<()> {
        let Some(row) = self.db.object_row(name)? else { return Ok(()) };
        let ObjectState::Writing { until: before } = row.state else { return Ok(()) };
        if before != until {
            self.leave_object_state(name, &row)?;
            self.db.tables.unfinished_objects.insert(ObjectDueKey::new(until, name), ())?;
            self.put_object(name, &ObjectRow { state: ObjectState::Writing { until }, ..row })?;
        }
        Ok(())
    }

    /// Forgets objects that nobody writes any more. Says how many.
    pub fn forget_unfinished(&mut self, most: usize) -> StoreResult<usize> {
        let due = ..=ObjectDueKey::new(self.now, ObjectName([0xff; 16]));
        let rows = self.db.tables.unfinished_objects.range(due)?.take(most);
        let names = rows.map(|row| Ok(row?.key().name())).collect::<StoreResult<Vec<_>>>()?;
        names.iter().try_for_each(|name| self.forget_object(*name))?;
        Ok(names.len())
    }

    /// Forgets the rows of objects that were removed.
    pub fn objects_removed(&mut self, names: &[ObjectName]) -> StoreResult<usize> {
        let mut gone = 0;
        for name in names {
            let Some(row) = self.db.object_row(*name)? else { continue };
            if !matches!(row.state, ObjectState::Forgotten { .. }) {
                return Err(StoreError::Broken(format!("the object {name} was removed, but it is still spoken of")));
            }
            self.leave_object_state(*name, &row)?;
            self.db.tables.objects.remove(ObjectKeyName::new(*name))?;
            gone += 1;
        }
        Ok(gone)
    }

    fn leave_object_state(&mut self, name: ObjectName, row: &ObjectRow) -> StoreResult<()> {
        self.touch();
        match row.state {
            ObjectState::Writing { until } => {
                self.db.tables.unfinished_objects.remove(ObjectDueKey::new(until, name)).map(drop)
            }
            ObjectState::Forgotten { since } => {
                self.db.tables.forgotten_objects.remove(ObjectDueKey::new(since, name)).map(drop)
            }
            ObjectState::Stored { .. } => Ok(()),
        }
    }

    pub(crate) fn put_object(&mut self, name: ObjectName, row: &ObjectRow) -> StoreResult<()> {
        self.touch();
        self.db.tables.objects.insert(ObjectKeyName::new(name), &to_row(row)?)
    }
}

impl<V: TableReads> Db<V> {
    /// What is known of an object.
    pub fn object_row(&self, name: ObjectName) -> StoreResult<Option<ObjectRow>> {
        match self.tables.objects().get_row(ObjectKeyName::new(name))? {
            Some(row) => from_row(row.value()?, "an object").map(Some),
            None => Ok(None),
        }
    }

    /// How many objects there are, in whatever state.
    pub fn object_count(&self) -> StoreResult<u64> {
        self.tables.objects().len()
    }

    /// The word for where objects are.
    pub fn objects_word(&self) -> &'static str {
        self.disk.objects().word()
    }

    /// Objects that nobody speaks of any more, the oldest first.
    pub fn forgotten_objects(&self, most: usize) -> StoreResult<Vec<ObjectName>> {
        self.tables.forgotten_objects().iter()?.take(most).map(|row| Ok(row?.key().name())).collect()
    }

    /// Objects that somebody writes, or would if the node had not stopped.
    pub fn unfinished_objects(&self, most: usize) -> StoreResult<Vec<ObjectName>> {
        self.tables.unfinished_objects().iter()?.take(most).map(|row| Ok(row?.key().name())).collect()
    }

    /// Opens content that is an object, to be read as it travels. None if its key was destroyed.
    pub fn object_reader(
        &self,
        space: SpaceNo,
        hash: &ContentHash,
        name: ObjectName,
    ) -> StoreResult<Option<ContentReader>> {
        let row = self.object_row(name)?.ok_or_else(|| broken("the row of an object"))?;
        let space = self.space_id(space)?;
        if row.space != space || row.state != (ObjectState::Stored { hash: *hash }) {
            return Err(broken("an object that is not the content that its row says"));
        }
        let form = match (&row.secret, self.object_key(name, &row)?) {
            (None, _) => ReadForm::AsItTravels,
            (Some(_), Some(key)) => ReadForm::Encrypted(key),
            (Some(_), None) => return Ok(None),
        };
        ContentReader::open(self.disk.objects().as_ref(), name, form).map(Some).map_err(|why| unreadable(hash, &why))
    }

    /// The key of an object that is being written. None if its content rests as it travels, or its key was destroyed.
    pub fn key_of_object(&self, name: ObjectName) -> StoreResult<Option<ObjectKey>> {
        let row = self.object_row(name)?.ok_or_else(|| broken("the row of an object"))?;
        self.object_key(name, &row)
    }

    fn object_key(&self, name: ObjectName, row: &ObjectRow) -> StoreResult<Option<ObjectKey>> {
        let Some(secret) = &row.secret else { return Ok(None) };
        let opened = self.open_at_rest(&row.space, ObjectKeyName::new(name).as_bytes(), secret)?;
        let Some(secret) = opened.map(Zeroizing::new) else { return Ok(None) };
        let secret = secret.as_slice().try_into().map_err(|_| broken("the key of an object"))?;
        Ok(Some(ObjectKey::new(secret)))
    }

    pub(crate) fn object_bytes(
        &self,
        space: SpaceNo,
        hash: &ContentHash,
        name: ObjectName,
    ) -> StoreResult<Option<Vec<u8>>> {
        let Some(mut reader) = self.object_reader(space, hash, name)? else { return Ok(None) };
        let bytes = reader.read_all().map_err(|why| unreadable(hash, &why))?;
        if model::crypto::content_hash(&bytes) != *hash {
            return Err(StoreError::Broken(format!("the object of the content {hash} has other bytes")));
        }
        Ok(Some(bytes))
    }
}

/// An object that cannot be read is the trouble of its content, and nobody else's.
pub(crate) fn unreadable(hash: &ContentHash, why: &ObjectError) -> StoreError {
    StoreError::Broken(format!("the content {hash} cannot be read: {why}"))
}
