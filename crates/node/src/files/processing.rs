//! Renditions: work that waits in rows, taken on a lease, done beside the writer, and noted in one commit.
//!
//! Whoever works ([`work_on`]) takes the file whose work is due on a lease, for a time; reads its bytes; has a [`ImageRenderer`]
//! make what is missing; writes what was made; and says so with the token of the lease. A worker that comes too late
//! changes nothing: another has the work by then, and what it makes of the same bytes is the same. What fails for now is
//! tried again later and later, at most so many times; what is refused for what it is, is not.

use crate::commands::files::completion::{CompleteWork, MadeRendition, NothingToMake};
use crate::commands::files::jobs::{FailWork, LeasedWork, TakeWork, WorkError};
use crate::files::reading::FileReader;
use crate::large_content::StagedContent;
use crate::writer_command::{Answered, AskError, WriterCommand};
use engine::create::Seal;
use engine::reads::{Reads as _, StoreError};
use media::{OriginalKind, RenderRefusal, Variant};
use model::content::seal_content;
use model::crypto::content_hash;
use model::limits::{BODY_BYTES_MAX, CONTENT_BYTES_MAX};
use model::{Identity, Nanos, SpaceId};
use objects::{ContentWriter, WriteForm};
use store::Store;
use store::shared::files::FileContent;

/// The largest original that renditions are made of.
pub const ORIGINAL_BYTES_MAX: u64 = 128 << 20;
/// So many bytes of a text are read: it may be a log of gigabytes, and one page is shown.
const TEXT_BYTES_READ: u64 = 64 << 10;

/// Makes renditions. What strangers upload is decoded, so this runs in a process of its own.
pub trait ImageRenderer: Send + Sync + 'static {
    /// Makes these renditions of an image.
    fn render(&self, original: &[u8], variants: &[Variant]) -> Result<Vec<MadeImage>, RenderFailure>;
}

/// A rendition that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeImage {
    pub variant: String,
    pub media_type: String,
    pub width: u32,
    pub height: u32,
    pub bytes: Vec<u8>,
}

/// Why no renditions were made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RenderFailure {
    /// The same bytes will be refused again.
    #[error("{0}")]
    Refused(String),
    /// It may work another time.
    #[error("{0}")]
    Temporary(String),
    /// Nothing is made of such files.
    #[error("nothing is made of such files")]
    NotSupported,
}

/// Makes renditions in this process: for tests, and for the process that does nothing else.
#[derive(Clone, Copy, Debug)]
pub struct InProcess;

impl ImageRenderer for InProcess {
    fn render(&self, original: &[u8], variants: &[Variant]) -> Result<Vec<MadeImage>, RenderFailure> {
        let refused = |why: RenderRefusal| match why {
            RenderRefusal::NotSupported => RenderFailure::NotSupported,
            why => RenderFailure::Refused(why.to_string()),
        };
        let image = media::OpenedImage::open(original, &media::DecodeLimits::default()).map_err(refused)?;
        let made = image.render(variants).map_err(refused)?;
        Ok(made
            .into_iter()
            .map(|made| MadeImage {
                variant: made.variant.to_string(),
                media_type: made.format.media_type().to_owned(),
                width: made.width,
                height: made.height,
                bytes: made.bytes,
            })
            .collect())
    }
}

/// Does what is due for one file, as that worker. Says whether there was anything to do.
pub fn work_on(
    store: &Store,
    ask: &impl AskWriter,
    renderer: &dyn ImageRenderer,
    worker: &str,
    variants: &[Variant],
) -> Result<bool, AskError<WorkError>> {
    let names = variants.iter().map(Variant::to_string).collect();
    let Some(work) = ask.ask(TakeWork { worker: worker.to_owned(), variants: names })? else { return Ok(false) };
    let LeasedWork { space, file, token, .. } = work;
    let done = make(store, ask, renderer, &work, variants);
    match done {
        Ok(made) => ask.ask(CompleteWork { space, file, token, made })?,
        Err(RenderFailure::NotSupported) => ask.ask(NothingToMake { space, file, token })?,
        Err(RenderFailure::Refused(why)) => {
            ask.ask(FailWork { space, file, token, why, is_permanent: true })?;
        }
        Err(RenderFailure::Temporary(why)) => {
            ask.ask(FailWork { space, file, token, why, is_permanent: false })?;
        }
    }
    Ok(true)
}

/// Whoever hands commands to a writer: a running node, or a writer without threads.
pub trait AskWriter {
    fn ask<C: WriterCommand>(&self, command: C) -> Answered<C>;
}

impl AskWriter for crate::running::Node {
    fn ask<C: WriterCommand>(&self, command: C) -> Answered<C> {
        crate::running::Node::ask(self, command)
    }
}

fn make(
    store: &Store,
    ask: &impl AskWriter,
    renderer: &dyn ImageRenderer,
    work: &LeasedWork,
    variants: &[Variant],
) -> Result<Vec<MadeRendition>, RenderFailure> {
    let temporary = |why: String| RenderFailure::Temporary(why);
    let original = read_original(store, work)?;
    let missing: Vec<Variant> =
        variants.iter().filter(|variant| work.missing.iter().any(|name| name == variant.name())).cloned().collect();
    let mut made = Vec::new();
    for image in renderer.render(&original, &missing)? {
        let (size, content) = (image.bytes.len() as u64, store_derived(store, ask, &work.space, &image.bytes));
        let (hash, len, content) = content.map_err(|why| temporary(why.to_string()))?;
        let MadeImage { variant, media_type, width, height, .. } = image;
        let (dimensions, reference) = (Some((width, height)), FileContent { hash, len });
        made.push(MadeRendition { variant, media_type, dimensions, size, reference, content });
    }
    Ok(made)
}

/// The whole original, which is bounded, or the beginning of a text.
fn read_original(store: &Store, work: &LeasedWork) -> Result<Vec<u8>, RenderFailure> {
    let temporary = |why: StoreError| RenderFailure::Temporary(why.to_string());
    let db = store.snapshot().map_err(temporary)?;
    let absent = || RenderFailure::Temporary("its bytes are not here".to_owned());
    let number = db.space_no(&work.space).map_err(temporary)?.ok_or_else(absent)?;
    let reader = FileReader::open(&*db, (&work.space, number), &work.content).map_err(temporary)?;
    let mut reader = reader.ok_or_else(absent)?;
    let mut beginning = Vec::new();
    read_into(&mut reader, media::BEGINNING_BYTES as u64, &mut beginning)?;
    if OriginalKind::of(&beginning) == Some(OriginalKind::Text) {
        let mut text = Vec::new();
        return read_into(&mut reader, TEXT_BYTES_READ, &mut text).map(|()| text);
    }
    if reader.len() > ORIGINAL_BYTES_MAX {
        let most = ORIGINAL_BYTES_MAX >> 20;
        return Err(RenderFailure::Refused(format!("it is larger than {most} MiB, so no previews are made of it")));
    }
    let mut original = Vec::with_capacity(usize::try_from(reader.len()).unwrap_or(0));
    read_into(&mut reader, u64::MAX, &mut original).map(|()| original)
}

/// Reads so many of the first bytes.
fn read_into(reader: &mut FileReader, most: u64, bytes: &mut Vec<u8>) -> Result<(), RenderFailure> {
    let read = reader.read::<objects::ObjectError>(0..most, &mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    read.map_err(|why| RenderFailure::Temporary(why.to_string()))
}

type Stored = (model::ContentHash, u64, StagedContent);

/// A derived file as content of its space: small ones pass through the writer, larger ones go into an object.
pub fn store_derived(
    store: &Store,
    ask: &impl AskWriter,
    space: &SpaceId,
    bytes: &[u8],
) -> Result<Stored, AskError<WorkError>> {
    let fault = |why: StoreError| AskError::NotRun(why.into());
    let db = store.snapshot().map_err(fault)?;
    let seal = crate::commands::seal_of_content(&*db, space).map_err(|why| AskError::Refused(why.into()))?;
    if bytes.len() <= BODY_BYTES_MAX {
        let wire = match &seal {
            Seal::Key(key) => seal_content(key, bytes, 0, Identity([0; 32]), Nanos(0)),
            Seal::Plain | Seal::Prekey(_) => bytes.to_vec(),
        };
        return Ok((content_hash(&wire), wire.len() as u64, StagedContent::Bytes(wire)));
    }
    let begin = crate::commands::files::jobs::BeginRendition { space: *space, is_encrypted: seal_is_plain(&seal) };
    let object = ask.ask(begin)?;
    let form = match (seal, object.key) {
        (Seal::Key(key), _) => WriteForm::Sealed(key),
        (_, Some(key)) => WriteForm::Encrypted(key),
        (_, None) => return Err(fault(StoreError::Broken("an object without a key".to_owned()))),
    };
    let backend = store.disk().objects();
    let write = || -> Result<objects::WrittenContent, objects::ObjectError> {
        let mut writer = ContentWriter::new(backend.as_ref(), object.name, form, CONTENT_BYTES_MAX)?;
        writer.write(bytes)?;
        writer.finish()
    };
    let written = write().map_err(|why| AskError::NotRun(why.into()))?;
    Ok((written.hash, written.len, StagedContent::Object(object.name, written.len)))
}

fn seal_is_plain(seal: &Seal) -> bool {
    !matches!(seal, Seal::Key(_))
}
