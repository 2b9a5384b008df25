//! Files: what the content of a file event says of its bytes, and the statuses of files, objects and derived files.
//!
//! The statuses of the three tiers each have one function that knows the allowed edges ([`FileStatus::may_become`] and its
//! like). Deletion is a time beside the status, never a status.

use crate::body;
use crate::ids::ContentHash;
use serde_json::{Map, Value};

/// A rendition of a rendition, and so on, is at most so deep.
pub const DERIVATION_DEPTH_MAX: usize = 5;
/// The longest name of a file.
pub const FILE_NAME_CHARS_MAX: usize = 255;
/// The longest media type.
pub const MEDIA_TYPE_BYTES_MAX: usize = 127;

/// The content of a file event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The id that its author chose for the file.
    pub id: Option<String>,
    pub name: String,
    pub media_type: String,
    /// How many bytes the file has.
    pub size: u64,
    /// The bytes as they travel: sealed in a sealed space.
    pub content: WantedBytes,
}

/// The bytes of a file, which are content of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedBytes {
    pub hash: ContentHash,
    /// How many bytes travel.
    pub len: u64,
}

impl Manifest {
    /// The content of the event.
    pub fn encode(&self) -> Result<Vec<u8>, body::BadBody> {
        let mut fields = Map::from_iter([
            ("name".to_owned(), self.name.as_str().into()),
            ("type".to_owned(), self.media_type.as_str().into()),
            ("size".to_owned(), self.size.into()),
            ("hash".to_owned(), self.content.hash.to_string().into()),
            ("length".to_owned(), self.content.len.into()),
        ]);
        fields.extend(self.id.as_deref().map(|id| ("id".to_owned(), id.into())));
        body::encode(&Value::Object(fields))
    }

    /// Reads it from a body; none if it is none.
    pub fn of_body(body: &Value) -> Option<Manifest> {
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let number = |name: &str| body.get(name).and_then(Value::as_u64);
        let size = number("size")?;
        Some(Manifest {
            id: text("id").map(str::to_owned),
            name: text("name")?.to_owned(),
            media_type: text("type")?.to_owned(),
            size,
            content: WantedBytes { hash: text("hash")?.parse().ok()?, len: number("length").unwrap_or(size) },
        })
    }
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident { $($(#[$state_doc:meta])* $state:ident = $word:literal => [$($next:ident),*];)* })*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
        )]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $($(#[$state_doc])* $state,)* }

        impl $name {
            /// Every status, in the order of a life without trouble.
            pub const ALL: &'static [$name] = &[$($name::$state,)*];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $($name::$state => $word,)* }
            }

            /// What it may become.
            pub fn next(self) -> &'static [$name] {
                match self { $($name::$state => &[$($name::$next,)*],)* }
            }

            /// Whether it may become another.
            pub fn may_become(self, next: $name) -> bool {
                self.next().contains(&next)
            }

            /// The status of that word.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|status| status.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    )*};
}

statuses! {
    /// Where a file stands.
    FileStatus {
        /// There is a record, and no bytes yet.
        Created = "created" => [Uploading, Uploaded, Failed];
        /// Its bytes are coming.
        Uploading = "uploading" => [Uploaded, Failed];
        /// Its bytes are here.
        Uploaded = "uploaded" => [Processing, Archived];
        /// Its renditions are being made.
        Processing = "processing" => [Processed, Failed];
        /// Everything that was expected is here.
        Processed = "processed" => [Archived];
        /// Its upload or its processing has failed.
        Failed = "failed" => [Uploading, Processing];
        /// It was put away, and is not shown among the others, until somebody brings it back.
        Archived = "archived" => [Uploaded, Processed];
    }
    /// Where the stored bytes of a version of a file stand.
    StoredStatus {
        Created = "created" => [Uploading, Uploaded, Failed];
        Uploading = "uploading" => [Uploaded, Failed];
        Uploaded = "uploaded" => [Processing];
        Processing = "processing" => [Processed, Failed];
        Processed = "processed" => [];
        Failed = "failed" => [Uploading, Processing];
    }
    /// Where the making of a derived file stands.
    DerivedStatus {
        Created = "created" => [Processing, Processed, Failed];
        Processing = "processing" => [Processed, Failed];
        /// Only a backfill takes it back, and says why.
        Processed = "processed" => [Processing];
        Failed = "failed" => [Processing];
    }
}

impl StoredStatus {
    /// Whether the bytes of a version may become another status. After a failure, whether bytes are stored decides which way
    /// it goes on: they are uploaded again, or processed again.
    pub fn may_become_with(self, next: StoredStatus, has_bytes: bool) -> bool {
        let goes_on = match (self, next) {
            (StoredStatus::Failed, StoredStatus::Uploading) => !has_bytes,
            (StoredStatus::Failed, StoredStatus::Processing) => has_bytes,
            _ => true,
        };
        goes_on && self.may_become(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn table<S: Copy + std::fmt::Display>(all: &[S], next: impl Fn(S) -> Vec<S>) -> String {
        let line = |status: &S| {
            let next: Vec<String> = next(*status).iter().map(ToString::to_string).collect();
            format!("{status} -> {}\n", next.join(" "))
        };
        all.iter().map(line).collect()
    }

    #[test]
    fn the_edges_are_those_of_the_design() {
        expect![[r#"
            created -> uploading uploaded failed
            uploading -> uploaded failed
            uploaded -> processing archived
            processing -> processed failed
            processed -> archived
            failed -> uploading processing
            archived -> uploaded processed
        "#]]
        .assert_eq(&table(FileStatus::ALL, |status| status.next().to_vec()));
        expect![[r#"
            created -> uploading uploaded failed
            uploading -> uploaded failed
            uploaded -> processing
            processing -> processed failed
            processed -> 
            failed -> uploading processing
        "#]]
        .assert_eq(&table(StoredStatus::ALL, |status| status.next().to_vec()));
        expect![[r#"
            created -> processing processed failed
            processing -> processed failed
            processed -> processing
            failed -> processing
        "#]]
        .assert_eq(&table(DerivedStatus::ALL, |status| status.next().to_vec()));
    }

    #[test]
    fn what_has_failed_goes_on_as_its_bytes_allow() {
        let goes = |next, has_bytes| StoredStatus::Failed.may_become_with(next, has_bytes);
        assert_eq!([true, false].map(|has_bytes| goes(StoredStatus::Uploading, has_bytes)), [false, true]);
        assert_eq!([true, false].map(|has_bytes| goes(StoredStatus::Processing, has_bytes)), [true, false]);
        assert!(!goes(StoredStatus::Uploaded, true));
        assert!(StoredStatus::Created.may_become_with(StoredStatus::Uploading, false));
    }

    #[test]
    fn words_are_read_back() {
        for status in FileStatus::ALL {
            assert_eq!(FileStatus::from_word(status.word()), Some(*status));
        }
        assert_eq!(FileStatus::from_word("deleted"), None, "deletion is a time");
        assert_eq!(FileStatus::from_word("active"), None);
        assert!(!FileStatus::Processed.may_become(FileStatus::Uploaded));
    }

    #[test]
    fn a_manifest_is_read_back_and_one_without_a_length_travels_plain() {
        let content = WantedBytes { hash: ContentHash([7; 32]), len: 52 };
        let (name, media_type) = ("cat.png".to_owned(), "image/png".to_owned());
        let manifest = Manifest { id: Some("cat".to_owned()), name, media_type, size: 12, content };
        let body: Value = serde_json::from_slice(&manifest.encode().expect("canonical")).expect("JSON");
        assert_eq!(Manifest::of_body(&body), Some(manifest));
        let mut short = body;
        short.as_object_mut().expect("an object").remove("length");
        assert_eq!(Manifest::of_body(&short).map(|manifest| manifest.content.len), Some(12));
        assert_eq!(Manifest::of_body(&serde_json::json!({ "name": "x", "type": "y", "size": 1, "hash": "z" })), None);
    }
}
