//! What the rows of files say.

use model::files::{DerivedStatus, FileStatus, StoredStatus, WantedBytes};
use model::{EventId, FileId, Identity, Nanos, ObjectName};
use serde::{Deserialize, Serialize};

/// What people know of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileRecord {
    pub owner: Identity,
    pub name: String,
    /// By the content where that tells it; until then what was said.
    pub media_type: String,
    /// How many bytes it has, once that is known.
    pub size: Option<u64>,
    pub status: FileStatus,
    pub created_at: Nanos,
    pub updated_at: Nanos,
    /// Since when it is hidden.
    pub deleted_at: Option<Nanos>,
    /// Whether its bytes are gone for ever.
    pub is_purged: bool,
    /// A JSON object that belongs to whoever uploaded it.
    pub metadata: String,
    /// Of what and how it was made; none for what somebody uploaded.
    pub derivation: Option<Derivation>,
    /// The event that speaks of the latest version.
    pub event: Option<EventId>,
    /// The latest version, from 1; zero before there are bytes.
    pub version: u32,
    /// What it was before it was archived.
    pub before_archive: Option<FileStatus>,
    /// Why it has failed.
    pub error: Option<String>,
    /// Its latest statuses, the first one first.
    pub history: Vec<StatusStep>,
}

/// A status that a file got, when, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StatusStep {
    pub at: Nanos,
    pub status: FileStatus,
    pub who: String,
    pub why: String,
}

/// How a derived file was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Derivation {
    pub parent: FileId,
    /// The family, such as `thumbnail`.
    pub derivation_type: String,
    /// Which of the family, such as `thumbnail_256`.
    pub variant: String,
    /// How many steps from an original.
    pub depth: u8,
}

/// The bytes of one version of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileVersion {
    /// The content of the space that they are, once they are here.
    pub content: Option<FileContent>,
    /// Where they are being written.
    pub object: Option<ObjectName>,
    pub size: Option<u64>,
    pub status: StoredStatus,
    pub created_at: Nanos,
    pub updated_at: Nanos,
    pub deleted_at: Option<Nanos>,
    pub error: Option<String>,
    /// The event that speaks of them, if somebody uploaded them.
    pub event: Option<EventId>,
    /// Whether this row holds a reference to the content, because no event does.
    pub holds_reference: bool,
    /// Whether renditions are expected of these bytes.
    pub is_renderable: bool,
}

/// The content that the bytes of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileContent {
    pub hash: model::ContentHash,
    /// How many bytes travel.
    pub len: u64,
}

impl FileContent {
    pub fn wanted(&self) -> WantedBytes {
        WantedBytes { hash: self.hash, len: self.len }
    }
}

/// A derived file that is expected of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DerivedFile {
    /// The file that was made.
    pub child: Option<FileId>,
    pub derivation_type: String,
    pub variant: String,
    /// A JSON object: what it is made with.
    pub parameters: String,
    pub status: DerivedStatus,
    pub attempts: u32,
    pub error: Option<String>,
    /// Width and height of what was made.
    pub dimensions: Option<(u32, u32)>,
    pub created_at: Nanos,
    pub updated_at: Nanos,
    pub deleted_at: Option<Nanos>,
}

/// Work that waits to be done for a file, or that somebody does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileJob {
    /// How often it was begun.
    pub attempts: u32,
    /// It is not begun before then.
    pub due: Nanos,
    pub lease: Option<Lease>,
    /// Why it was begun again, where a backfill did that.
    pub reason: Option<String>,
}

/// An upload whose bytes are coming into an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenUpload {
    /// Where the bytes are, but the last ones.
    pub object: ObjectName,
    /// The version that they will be.
    pub version: u32,
    /// It is given up when nothing has come until then.
    pub until: Nanos,
    /// How far it has come, if it may go on later, perhaps after the node has started again.
    pub pause: Option<UploadPause>,
}

/// How far an upload has come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UploadPause {
    /// How many bytes there will be.
    pub size: u64,
    /// How many have come.
    pub offset: u64,
    /// The last of them, which do not fill a chunk yet.
    pub pending: Vec<u8>,
}

/// What a link allows whoever has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LinkPurpose {
    /// To download a rendition of the file; the file itself, if none is named.
    Download { variant: Option<String> },
    /// To upload its bytes, once: exactly so many, if that was said.
    Upload { size: Option<u64> },
}

impl LinkPurpose {
    /// The method of requests that the link is for.
    pub fn method(&self) -> &'static str {
        match self {
            LinkPurpose::Download { .. } => "GET",
            LinkPurpose::Upload { .. } => "PUT",
        }
    }

    /// How many bytes are uploaded, exactly.
    pub fn size(&self) -> Option<u64> {
        match self {
            LinkPurpose::Download { .. } => None,
            LinkPurpose::Upload { size } => *size,
        }
    }

    /// The rendition that is downloaded.
    pub fn variant(&self) -> Option<&str> {
        match self {
            LinkPurpose::Download { variant } => variant.as_deref(),
            LinkPurpose::Upload { .. } => None,
        }
    }
}

/// A link by which whoever has it downloads or uploads a file, without an account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLink {
    /// What its URL is signed with.
    pub secret: [u8; 32],
    pub purpose: LinkPurpose,
    pub until: Nanos,
    pub created_at: Nanos,
    /// The user for whom it was made, in whose name bytes are uploaded.
    pub user: Option<String>,
    pub made_by: Identity,
}

impl std::fmt::Debug for FileLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileLink({:?} until {:?})", self.purpose, self.until)
    }
}

/// Who does some work, until when. Whoever comes later than that, or with another token, changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lease {
    /// The node and the worker.
    pub worker: String,
    /// Greater with every lease of a file.
    pub token: u64,
    pub until: Nanos,
}
