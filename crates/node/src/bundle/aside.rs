//! Contents that come before the events that refer to them. They are met again when everything else has been read: by
//! reading a file a second time, or from a bounded file aside where the bundle comes through a pipe.

use super::format::{BundleReader, BundleWriter};
use model::{ContentHash, SpaceId};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write as _};
use std::path::PathBuf;

/// So many bytes of contents are put aside while a bundle comes through a pipe; more are not kept.
const ASIDE_BYTES_MAX: u64 = 1 << 30;
/// So many contents are remembered. Of a pipe, more are not kept; of a file, all that come after them are met again.
const PLACES_MAX: usize = 1 << 20;

/// So many contents that found no room are remembered, to know in the end whether anything refers to them.
const WITHOUT_ROOM_MAX: usize = 1 << 17;

/// Where a bundle is read from.
pub trait BundleInput: Read {
    /// Goes back to its beginning. Says whether it can.
    fn rewind(&mut self) -> io::Result<bool>;

    /// An empty file for contents that have to be met again, if it cannot go back, and how much may be put there.
    fn file_aside(&self) -> io::Result<(File, u64)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl BundleInput for BufReader<File> {
    fn rewind(&mut self) -> io::Result<bool> {
        self.seek(io::SeekFrom::Start(0)).map(|_| true)
    }
}

impl<I: BundleInput + ?Sized> BundleInput for Box<I> {
    fn rewind(&mut self) -> io::Result<bool> {
        (**self).rewind()
    }

    fn file_aside(&self) -> io::Result<(File, u64)> {
        (**self).file_aside()
    }
}

/// What can be read once.
#[derive(Debug)]
pub struct Pipe<R> {
    input: R,
    folder: PathBuf,
    room: u64,
}

impl<R> Pipe<R> {
    /// Contents that have to be met again are put into a file without a name in that folder.
    pub fn new(input: R, folder: PathBuf) -> Pipe<R> {
        Pipe { input, folder, room: ASIDE_BYTES_MAX }
    }

    /// The same, with room for so many bytes of contents.
    pub fn with_room(self, room: u64) -> Pipe<R> {
        Pipe { room, ..self }
    }
}

impl<R: Read> Read for Pipe<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

impl<R: Read> BundleInput for Pipe<R> {
    fn rewind(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    fn file_aside(&self) -> io::Result<(File, u64)> {
        Ok((tempfile::tempfile_in(&self.folder)?, self.room))
    }
}

/// Contents that nobody referred to when they were read.
#[derive(Debug, Default)]
pub(super) struct ContentsAside {
    /// Where they stand in the bundle, in the order in which they were put aside.
    places: Vec<u64>,
    /// From where on all have to be met again.
    all_from: Option<u64>,
    /// The bytes of those that cannot be read again; none for a file.
    file: Option<AsideFile>,
    without_room: WithoutRoom,
    /// Why the file aside cannot be used.
    failed: Option<String>,
}

/// Contents that found no room.
#[derive(Debug, Default)]
pub(super) struct WithoutRoom {
    pub(super) known: Vec<(SpaceId, ContentHash)>,
    /// How many more there are.
    pub(super) beyond: u64,
}

impl WithoutRoom {
    fn add(&mut self, space: &SpaceId, hash: &ContentHash) {
        if self.known.len() < WITHOUT_ROOM_MAX {
            self.known.push((*space, *hash));
        } else {
            self.beyond += 1;
        }
    }
}

#[derive(Debug)]
struct AsideFile {
    writer: BundleWriter<BufWriter<File>>,
    room: u64,
}

/// How contents are met again.
pub(super) enum SecondPass {
    /// Nothing was put aside.
    Nothing,
    /// The bundle is read again: those at these places, and all from one on.
    Bundle { places: Vec<u64>, all_from: u64 },
    /// They are here, and stood at these places.
    Aside { reader: Box<BundleReader<BufReader<File>>>, places: Vec<u64> },
}

impl ContentsAside {
    /// For a bundle that can be read a second time, or one that needs a file for them.
    pub(super) fn new(input: &mut impl BundleInput) -> ContentsAside {
        let mut aside = ContentsAside::default();
        if !input.rewind().unwrap_or(false) {
            let opened = input
                .file_aside()
                .and_then(|(file, room)| Ok(AsideFile { writer: BundleWriter::new(BufWriter::new(file))?, room }));
            match opened {
                Ok(file) => aside.file = Some(file),
                Err(why) => aside.failed = Some(why.to_string()),
            }
        }
        aside
    }

    /// Puts a content aside, whose hash was checked, if there is room for it.
    pub(super) fn put(&mut self, at: u64, space: &SpaceId, hash: &ContentHash, bytes: &[u8]) {
        let has_place = self.places.len() < PLACES_MAX;
        let put = match &mut self.file {
            _ if self.failed.is_some() => Ok(false),
            None if has_place => Ok(true),
            None => {
                self.all_from = Some(self.all_from.map_or(at, |from| from.min(at)));
                return;
            }
            Some(file) if has_place => file.put(space, hash, bytes),
            Some(_) => Ok(false),
        };
        if let Ok(true) = put {
            return self.places.push(at);
        }
        self.without_room.add(space, hash);
        if let Err(why) = put {
            self.failed = Some(why.to_string());
        }
    }

    /// Those that found no room, and what stood in the way, if it was a fault.
    pub(super) fn take_without_room(&mut self) -> (WithoutRoom, Option<String>) {
        (std::mem::take(&mut self.without_room), self.failed.clone())
    }

    /// How they are met again. Where the file aside fails, none of them is kept.
    pub(super) fn second_pass(&mut self) -> SecondPass {
        let mut places = std::mem::take(&mut self.places);
        match self.file.take() {
            _ if places.is_empty() => SecondPass::Nothing,
            None => {
                // Two threads check records, so that they come in about the order of the bundle.
                places.sort_unstable();
                SecondPass::Bundle { places, all_from: self.all_from.unwrap_or(u64::MAX) }
            }
            Some(file) => match file.into_reader() {
                Ok(reader) => SecondPass::Aside { reader: Box::new(reader), places },
                Err(why) => {
                    self.without_room.beyond += places.len() as u64;
                    self.failed = Some(why.to_string());
                    SecondPass::Nothing
                }
            },
        }
    }
}

impl AsideFile {
    fn put(&mut self, space: &SpaceId, hash: &ContentHash, bytes: &[u8]) -> io::Result<bool> {
        if self.writer.bytes().saturating_add(bytes.len() as u64) > self.room {
            return Ok(false);
        }
        self.writer.content(space, hash, bytes).map(|()| true)
    }

    fn into_reader(self) -> io::Result<BundleReader<BufReader<File>>> {
        let mut file = self.writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.flush()?;
        file.rewind()?;
        BundleReader::new(BufReader::new(file)).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_everything_from_the_first_content_without_a_place_on_is_read_again() {
        let mut aside = ContentsAside::default();
        for at in 0..=PLACES_MAX as u64 {
            aside.put(at, &SpaceId::ZERO, &ContentHash::ZERO, b"");
        }
        let SecondPass::Bundle { places, all_from } = aside.second_pass() else { panic!("there is a file to read") };
        assert_eq!((places.len(), all_from), (PLACES_MAX, PLACES_MAX as u64));
    }
}
