//! Content that goes through an object comes back, whole and by ranges, and nobody changes it unnoticed.

use crate::{
    Backend as _, ContentReader, ContentWriter, FolderBackend, ObjectCheck, ObjectError, PausedContent, ReadForm,
    WriteForm, check_objects, hash_object,
};
use model::content::{ChunkBinding, open_content, seal_content};
use model::crypto::{ObjectKey, SpaceKey, content_hash};
use model::limits::CHUNK_BYTES;
use model::{Identity, Nanos, ObjectName, SpaceId};
use proptest::prelude::*;
use std::sync::Arc;

const NAME: ObjectName = ObjectName([7; 16]);

struct Place {
    folder: tempfile::TempDir,
    backend: FolderBackend,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let backend = FolderBackend::new(folder.path().to_owned()).expect("a backend");
    Place { folder, backend }
}

impl Place {
    fn files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).expect("readable").count()
    }

    fn write(&self, form: WriteForm, pieces: &[&[u8]]) -> crate::WrittenContent {
        let mut writer = ContentWriter::new(&self.backend, NAME, form, u64::MAX).expect("begun");
        pieces.iter().for_each(|piece| writer.write(piece).expect("written"));
        writer.finish().expect("finished")
    }

    fn read(&self, form: ReadForm, range: std::ops::Range<u64>) -> Result<Vec<u8>, ObjectError> {
        let mut bytes = Vec::new();
        ContentReader::open(&self.backend, NAME, form)?.read::<ObjectError>(range, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }
}

fn space_key() -> Arc<SpaceKey> {
    Arc::new(SpaceKey::new(&SpaceId([1; 16]), [2; 32]))
}

fn object_key() -> ObjectKey {
    ObjectKey::new(&[3; 32])
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 / 7) as u8).collect()
}

/// Lengths around the places where something changes.
fn lengths() -> impl Strategy<Value = usize> {
    let edge = prop_oneof![Just(0usize), Just(1), Just(2)];
    (edge, -2i64..3, 0i64..2).prop_map(|(chunks, around, few)| {
        usize::try_from(chunks as i64 * CHUNK_BYTES as i64 + around + few * 700).unwrap_or(0)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_is_written_in_pieces_reads_back_by_ranges(
        len in lengths(),
        cuts in proptest::collection::vec(0usize..140_000, 0..4),
        range in (0u64..140_000, 0u64..140_000),
        is_sealed: bool,
    ) {
        let (place, plain) = (place(), bytes(len));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(len)).chain([0, len]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &plain[cut[0]..cut[1]]).collect();
        let (write, read) = match is_sealed {
            true => (WriteForm::Sealed(space_key()), ReadForm::Sealed(space_key())),
            false => (WriteForm::Encrypted(object_key()), ReadForm::Encrypted(object_key())),
        };
        let written = place.write(write, &pieces);
        let travels = match is_sealed {
            true => seal_content(&space_key(), &plain, 0, Identity([0; 32]), Nanos(0)),
            false => plain.clone(),
        };
        prop_assert_eq!((written.hash, written.len), (content_hash(&travels), travels.len() as u64));
        prop_assert_eq!(written.plain_len, len as u64);
        prop_assert_eq!(&written.beginning, &plain[..len.min(4096)]);
        let range = range.0.min(range.1)..range.0.max(range.1);
        let expected = &plain[(range.start as usize).min(len)..(range.end as usize).min(len)];
        prop_assert_eq!(place.read(read.clone(), range), Ok(expected.to_vec()));
        let mut reader = ContentReader::open(&place.backend, NAME, read).expect("opened");
        prop_assert_eq!(reader.len(), len as u64);
        prop_assert_eq!(reader.read_all(), Ok(plain));
    }
}

#[test]
fn content_that_was_sealed_elsewhere_rests_as_it_travels_and_opens_here() {
    let (place, plain) = (place(), bytes(3 * CHUNK_BYTES + 5));
    let wire = seal_content(&space_key(), &plain, 0, Identity([0; 32]), Nanos(0));
    let written = place.write(WriteForm::AsItTravels, &wire.chunks(1000).collect::<Vec<_>>());
    assert_eq!(written.hash, content_hash(&wire));
    assert_eq!(place.read(ReadForm::AsItTravels, 0..u64::MAX).as_deref(), Ok(wire.as_slice()));
    assert_eq!(place.read(ReadForm::Sealed(space_key()), 70_000..70_010).as_deref(), Ok(&plain[70_000..70_010]));
    assert_eq!(open_content(&space_key(), &wire, ChunkBinding::Shared).as_deref(), Ok(plain.as_slice()));
    let mut reader = ContentReader::open(&place.backend, NAME, ReadForm::AsItTravels).expect("opened");
    assert_eq!(hash_object(&mut reader), Ok((content_hash(&wire), wire.len() as u64)));
}

#[test]
fn no_byte_of_what_rests_encrypted_can_be_changed_moved_or_cut_off() {
    let (place, plain) = (place(), bytes(2 * CHUNK_BYTES + 9));
    place.write(WriteForm::Encrypted(object_key()), &[&plain]);
    let path = place.backend.path(NAME);
    let stored = std::fs::read(&path).expect("there");
    assert!(
        !stored.windows(64).any(|window| plain.windows(64).next() == Some(window)),
        "it is not readable on the disk"
    );
    let read = || place.read(ReadForm::Encrypted(object_key()), 0..u64::MAX);
    // Behind the content are the hashes of its three groups, which `verify` looks at.
    let end = stored.len() - 3 * 32;
    for at in [0, 1, 2, 40, 70_000, end - 1] {
        let mut changed = stored.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).expect("written");
        assert!(matches!(read(), Err(ObjectError::Damaged(NAME, _))), "byte {at}");
    }
    let chunk = CHUNK_BYTES + 40;
    for cut in [stored.len() - 1, end, end - 1, 2 + 2 * chunk, 2 + chunk, 2 + chunk + 20, 1] {
        std::fs::write(&path, &stored[..cut]).expect("written");
        assert!(matches!(read(), Err(ObjectError::Damaged(NAME, _))), "cut at {cut}");
    }
    let swapped = [&stored[..2], &stored[2 + chunk..2 + 2 * chunk], &stored[2..2 + chunk], &stored[2 + 2 * chunk..]];
    std::fs::write(&path, swapped.concat()).expect("written");
    assert!(matches!(read(), Err(ObjectError::Damaged(NAME, _))), "swapped");
    std::fs::write(&path, &stored).expect("written");
    assert_eq!(read(), Ok(plain));
    let other = ContentReader::open(&place.backend, NAME, ReadForm::Encrypted(ObjectKey::new(&[4; 32])));
    assert!(other.expect("opened").read_all().is_err(), "another key");
    assert!(place.read(ReadForm::AsItTravels, 0..9).is_err(), "another form");
    let moved = ObjectName([8; 16]);
    std::fs::rename(&path, place.backend.path(moved)).expect("moved");
    let reader = ContentReader::open(&place.backend, moved, ReadForm::Encrypted(object_key()));
    assert!(reader.expect("opened").read_all().is_err(), "another name");
}

#[test]
fn an_object_has_its_name_only_when_it_is_whole() {
    let place = place();
    let mut writer =
        ContentWriter::new(&place.backend, NAME, WriteForm::Encrypted(object_key()), u64::MAX).expect("begun");
    writer.write(&bytes(200_000)).expect("written");
    assert_eq!(place.backend.open(NAME).err(), Some(ObjectError::NotFound(NAME)));
    drop(writer);
    assert_eq!(place.files(), 0, "what was given up leaves nothing");
    place.write(WriteForm::Encrypted(object_key()), &[b"x"]);
    assert_eq!(place.files(), 1);
    place.backend.remove(NAME).expect("removed");
    place.backend.remove(NAME).expect("removed already");
    assert_eq!(place.files(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is paused, cut off behind the pause and resumed, in however many processes: the content is the same.
    #[test]
    fn content_that_is_paused_and_resumed_is_the_same(
        len in lengths(),
        stops in proptest::collection::vec((0usize..140_000, 0usize..70_000, any::<bool>()), 0..4),
        is_sealed: bool,
    ) {
        let (place, plain) = (place(), bytes(len));
        let form = || match is_sealed {
            true => WriteForm::Sealed(space_key()),
            false => WriteForm::Encrypted(object_key()),
        };
        let mut writer = ContentWriter::new_resumable(&place.backend, NAME, form(), u64::MAX).expect("begun");
        let mut stops: Vec<_> = stops.into_iter().map(|(at, lost, again)| (at.min(len), lost, again)).collect();
        stops.sort_unstable();
        let mut at = 0;
        for (stop, lost, is_killed) in stops {
            writer.write(&plain[at..stop.max(at)]).expect("written");
            at = stop.max(at);
            let paused = writer.pause().expect("paused");
            prop_assert_eq!(paused.plain_len, at as u64);
            if is_killed {
                // What comes after the pause is lost with the process.
                writer.write(&vec![9; lost]).expect("written");
                drop(writer);
                writer = ContentWriter::resume(&place.backend, NAME, form(), u64::MAX, paused).expect("resumed");
            }
        }
        writer.write(&plain[at..]).expect("written");
        let written = writer.finish().expect("finished");
        let whole = self::place().write(form(), &[&plain]);
        prop_assert_eq!(written, whole);
        let read = if is_sealed { ReadForm::Sealed(space_key()) } else { ReadForm::Encrypted(object_key()) };
        prop_assert_eq!(place.read(read, 0..u64::MAX), Ok(plain));
        prop_assert_eq!(place.files(), 1);
    }
}

#[test]
fn what_does_not_fit_what_is_known_of_it_is_not_resumed() {
    let place = place();
    let form = || WriteForm::Encrypted(object_key());
    let mut writer = ContentWriter::new_resumable(&place.backend, NAME, form(), u64::MAX).expect("begun");
    writer.write(&bytes(150_000)).expect("written");
    let paused = writer.pause().expect("paused");
    drop(writer);
    let resume = |paused: PausedContent, form: WriteForm| {
        ContentWriter::resume(&place.backend, NAME, form, u64::MAX, paused).map(drop)
    };
    assert_eq!(resume(paused.clone(), form()), Ok(()));
    let uneven = PausedContent { plain_len: paused.plain_len + 1, ..paused.clone() };
    assert!(matches!(resume(uneven, form()), Err(ObjectError::Damaged(..))));
    let more = PausedContent { plain_len: paused.plain_len + CHUNK_BYTES as u64, ..paused.clone() };
    assert!(resume(more, form()).is_err(), "there is less");
    assert!(resume(paused.clone(), WriteForm::Encrypted(ObjectKey::new(&[4; 32]))).is_err(), "another key");
    assert!(resume(paused.clone(), WriteForm::Sealed(space_key())).is_err(), "another form");
    place.backend.remove(NAME).expect("removed");
    assert_eq!(resume(paused, form()), Err(ObjectError::NotFound(NAME)));
}

#[test]
fn the_tree_of_a_hash_is_checked_with_the_content() {
    let (place, plain) = (place(), bytes(3 * CHUNK_BYTES));
    let wire = seal_content(&space_key(), &plain, 0, Identity([0; 32]), Nanos(0));
    place.write(WriteForm::Sealed(space_key()), &[&plain]);
    let path = place.backend.path(NAME);
    let stored = std::fs::read(&path).expect("there");
    assert_eq!(stored.len(), 2 + wire.len() + 4 * 32, "three chunks and what sealing adds are four groups");
    let check = || hash_object(&mut ContentReader::open(&place.backend, NAME, ReadForm::AsItTravels).expect("opened"));
    assert_eq!(check(), Ok((content_hash(&wire), wire.len() as u64)));
    let mut changed = stored.clone();
    changed[2 + wire.len() + 40] ^= 1;
    std::fs::write(&path, &changed).expect("written");
    assert!(matches!(check(), Err(ObjectError::Damaged(NAME, _))));
}

#[test]
fn a_folder_does_what_is_expected_of_a_place_for_objects() {
    let place = place();
    let checks = check_objects(&place.backend, [NAME, ObjectName([8; 16])]);
    let failed: Vec<&ObjectCheck> = checks.iter().filter(|check| check.problem.is_some()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!((checks.len(), place.files()), (9, 0));
}

#[test]
fn what_a_killed_process_left_is_removed_by_its_name() {
    let place = place();
    std::fs::write(place.folder.path().join(format!("{NAME}.part")), b"half").expect("written");
    place.backend.remove(NAME).expect("removed");
    assert_eq!(place.files(), 0);
}

#[test]
fn content_is_not_longer_than_it_may_be() {
    let place = place();
    let mut writer = ContentWriter::new(&place.backend, NAME, WriteForm::AsItTravels, 10).expect("begun");
    writer.write(&[0; 10]).expect("as long as it may be");
    assert_eq!(writer.write(&[0]), Err(ObjectError::TooLong(10)));
}
