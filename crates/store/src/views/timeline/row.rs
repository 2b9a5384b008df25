//! The bytes of a row of the timeline.

use crate::at_rest::Inline;
use crate::encode::{get_number, get_varint, put_varint};
use crate::errors::broken;
use engine::reads::StoreResult;
use engine::rows::EventRow;
use model::blob::BlobForm;
use model::reader::{ByteReader, TooShort};
use model::stage::ContentState;
use model::{AuthorNo, Blob, KeyId, Seq};

/// Hints in a timeline row: what else there may be of a message.
pub(crate) const HINT_VERSIONS: u8 = 1;
pub(crate) const HINT_REACTIONS: u8 = 2;
pub(crate) const HINT_REPLIES: u8 = 4;
/// The message itself refers to more than its thread.
pub(crate) const HINT_REFERS: u8 = 8;

/// Longer content is read from the event, so that large messages are not kept twice.
const COPIED_BYTES_MAX: usize = 160;

/// A row of the timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimelineRow<'a> {
    pub(crate) seq: Seq,
    pub(crate) hints: u8,
    pub(crate) said: Option<TextCopy<'a>>,
}

/// What a message says, in the form in which it rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TextCopy<'a> {
    pub(super) author: AuthorNo,
    pub(super) form: TextCopyForm,
    pub(super) bytes: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextCopyForm {
    /// As it travels in an open space.
    Plain,
    /// Beginning with a tag.
    AtRest,
    /// As it travels in a sealed space, under this key.
    Sealed(KeyId),
}

impl<'a> TextCopy<'a> {
    /// What an event says, if it can be shown and is short.
    pub(crate) fn of(row: &EventRow, blob: &[u8], inline: Option<&'a Inline<'_>>) -> Option<TextCopy<'a>> {
        let inline = inline.filter(|inline| inline.bytes.len() <= COPIED_BYTES_MAX)?;
        let author = row.meta.as_ref().filter(|_| row.content == ContentState::Processed)?.author;
        let form = match (Blob::form_of(blob).ok()?, Blob::open_space_of(blob)) {
            (BlobForm::Sealed { key, .. }, _) => TextCopyForm::Sealed(key),
            (_, Some(_)) if inline.is_at_rest => TextCopyForm::AtRest,
            (_, Some(_)) => TextCopyForm::Plain,
            (_, None) => return None,
        };
        Some(TextCopy { author, form, bytes: &inline.bytes })
    }
}

impl<'a> TimelineRow<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> StoreResult<TimelineRow<'a>> {
        Self::read(bytes).map_err(|_| broken("a timeline row"))
    }

    fn read(bytes: &'a [u8]) -> Result<TimelineRow<'a>, TooShort> {
        let mut reader = ByteReader::new(bytes);
        let (hints, seq) = (reader.u8()?, Seq(get_varint(&mut reader)?));
        if reader.rest().is_empty() {
            return Ok(TimelineRow { seq, hints, said: None });
        }
        let author = AuthorNo(get_number(&mut reader)?);
        let form = match reader.u8()? {
            0 => TextCopyForm::Plain,
            1 => TextCopyForm::AtRest,
            2 => TextCopyForm::Sealed(KeyId(reader.array()?)),
            _ => return Err(TooShort),
        };
        Ok(TimelineRow { seq, hints, said: Some(TextCopy { author, form, bytes: reader.rest() }) })
    }

    /// The number of the message in bytes that begin like a row.
    pub(super) fn seq_in(bytes: &[u8]) -> Option<Seq> {
        get_varint(&mut ByteReader::new(bytes.get(1..)?)).ok().map(Seq)
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.said.map_or(0, |said| said.bytes.len()));
        out.push(self.hints);
        put_varint(self.seq.0, &mut out);
        if let Some(said) = self.said {
            put_varint(u64::from(said.author.0), &mut out);
            match said.form {
                TextCopyForm::Plain => out.push(0),
                TextCopyForm::AtRest => out.push(1),
                TextCopyForm::Sealed(key) => {
                    out.push(2);
                    out.extend(key.0);
                }
            }
            out.extend(said.bytes);
        }
        out
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use engine::rows::{EventKind, Meta, Origin};
    use model::stage::Stage;
    use model::{ContentHash, EventId, Kind, Nanos, SpaceNo};
    use proptest::prelude::*;

    const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

    /// A message of thread 1 as its event's row tells it.
    pub(in crate::views::timeline) fn message() -> EventRow {
        let meta = Meta {
            kind: EventKind::Space(Kind::Message),
            at: NOW,
            space: SpaceNo(1),
            author: AuthorNo(3),
            authority: None,
            subject: Some(Seq(1)),
            grants: None,
            counts: true,
            content_len: 2,
            content_hash: ContentHash([0; 32]),
        };
        EventRow {
            id: EventId([9; 16]),
            stage: Stage::Applied { position: 1 },
            content: ContentState::Processed,
            has_inline: true,
            origin: Origin::Local,
            received_at: NOW,
            meta: Some(meta),
        }
    }

    #[test]
    fn what_is_not_shown_or_long_is_not_copied() {
        let short = Inline::wire(b"{}".to_vec());
        assert!(TextCopy::of(&message(), &[0; 300], Some(&short)).is_some());
        assert!(TextCopy::of(&message(), &[0; 300], None).is_none());
        assert!(TextCopy::of(&message(), &[0; 300], Some(&Inline::wire(vec![b' '; 513]))).is_none());
        for content in [ContentState::Missing, ContentState::Pruned, ContentState::Invalid] {
            assert!(TextCopy::of(&EventRow { content, ..message() }, &[0; 300], Some(&short)).is_none());
        }
    }

    proptest! {
        #[test]
        fn a_row_reads_back_as_it_was_written(
            (seq, hints, author, form) in any::<(u64, u8, u32, Option<u8>)>(),
            key in any::<[u8; 16]>(),
            bytes in proptest::collection::vec(any::<u8>(), 0..99),
        ) {
            let form = form.map(|form| match form % 3 {
                0 => TextCopyForm::Plain,
                1 => TextCopyForm::AtRest,
                _ => TextCopyForm::Sealed(KeyId(key)),
            });
            let said = form.map(|form| TextCopy { author: AuthorNo(author), form, bytes: &bytes });
            let row = TimelineRow { seq: Seq(seq), hints, said };
            let written = row.to_bytes();
            prop_assert_eq!(TimelineRow::decode(&written).expect("a row"), row);
        }
    }
}
