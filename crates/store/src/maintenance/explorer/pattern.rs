//! How the bytes of a stored key and its text correspond, part by part.

use crate::keys::{KeyField, SEQ_BYTES, seq_bytes};
use engine::reads::StoreResult;
use model::{AuthorNo, EventId, Seq, SpaceId, SpaceNo};
use std::ops::Bound;

/// A part of a key. Parts that are numbers in the store and ids in the text must be whole in a prefix; the others may
/// be cut anywhere, since their text sorts as their bytes do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyPart {
    /// Letters that stand in the text only.
    Text(&'static str),
    /// Bytes that stand in the store only.
    Fixed(&'static [u8]),
    /// The number of an event; its id in the text.
    Event,
    /// The number of a space; its id in the text.
    Space,
    /// The number of an identity; its public key in the text.
    Author,
    /// The id of a space, as bytes.
    SpaceId,
    /// So many bytes, in hexadecimal.
    Hex(usize),
    /// A byte, in three digits.
    Byte,
    /// A number of eight bytes, in twenty digits.
    Number,
    /// A stamp: twenty digits, a dash, an event id.
    Stamp,
    /// Letters to the end.
    Word,
}

/// What numbers stand for.
pub(super) trait NumberNames {
    fn event_no(&self, id: &EventId) -> StoreResult<Option<Seq>>;
    fn event_id(&self, seq: Seq) -> StoreResult<EventId>;
    fn space_of_event(&self, seq: Seq) -> StoreResult<Option<SpaceId>>;
    fn space_no(&self, id: &SpaceId) -> StoreResult<Option<SpaceNo>>;
    fn space_id(&self, no: SpaceNo) -> StoreResult<SpaceId>;
    fn author_no(&self, key: &[u8; 32]) -> StoreResult<Option<AuthorNo>>;
    fn author_bytes(&self, no: AuthorNo) -> StoreResult<[u8; 32]>;
}

/// A range of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyRange {
    pub(super) from: Bound<Vec<u8>>,
    /// The last key, which is in it.
    pub(super) to: Vec<u8>,
    /// Whether everything in it is of the one space that was asked for; none if the prefix does not say.
    pub(super) is_of_space: Option<bool>,
}

const DIGITS: usize = 20;

impl KeyPart {
    /// How many bytes it has in the store; none if that varies.
    pub(super) fn bytes(self) -> Option<usize> {
        match self {
            KeyPart::Text(_) => Some(0),
            KeyPart::Fixed(bytes) => Some(bytes.len()),
            KeyPart::Event => Some(SEQ_BYTES),
            KeyPart::Number => Some(8),
            KeyPart::Space | KeyPart::Author => Some(4),
            KeyPart::SpaceId => Some(16),
            KeyPart::Hex(bytes) => Some(bytes),
            KeyPart::Byte => Some(1),
            KeyPart::Stamp => Some(24),
            KeyPart::Word => None,
        }
    }

    /// How many letters it has in the text; none if that varies.
    fn letters(self) -> Option<usize> {
        match self {
            KeyPart::Text(text) => Some(text.len()),
            KeyPart::Fixed(_) => Some(0),
            KeyPart::Event | KeyPart::Space | KeyPart::SpaceId => Some(32),
            KeyPart::Author => Some(64),
            KeyPart::Hex(bytes) => Some(2 * bytes),
            KeyPart::Byte => Some(3),
            KeyPart::Number => Some(DIGITS),
            KeyPart::Stamp => Some(DIGITS + 1 + 32),
            KeyPart::Word => None,
        }
    }

    /// The bytes of a whole part; none if it is not one, or names what is not known here.
    fn read(self, text: &str, names: &impl NumberNames) -> StoreResult<Option<Vec<u8>>> {
        Ok(match self {
            KeyPart::Text(expected) => (text == expected).then(Vec::new),
            KeyPart::Fixed(bytes) => Some(bytes.to_vec()),
            KeyPart::Event => match text.parse() {
                Ok(id) => names.event_no(&id)?.map(|seq| seq_bytes(seq).to_vec()),
                Err(_) => None,
            },
            KeyPart::Space => match text.parse() {
                Ok(id) => names.space_no(&id)?.map(|no| no.0.to_be_bytes().to_vec()),
                Err(_) => None,
            },
            KeyPart::Author => match from_hex(text, 32).and_then(|key| key.try_into().ok()) {
                Some(key) => names.author_no(&key)?.map(|no| no.0.to_be_bytes().to_vec()),
                None => None,
            },
            KeyPart::SpaceId => from_hex(text, 16),
            KeyPart::Hex(bytes) => from_hex(text, bytes),
            KeyPart::Byte => digits(text, 3).and_then(|number| u8::try_from(number).ok()).map(|byte| vec![byte]),
            KeyPart::Number => eight_bytes(text),
            KeyPart::Stamp => text.split_once('-').and_then(|(at, id)| {
                let (at, id) = (eight_bytes(at)?, from_hex(id, 16)?);
                Some([at, id].concat())
            }),
            KeyPart::Word => Some(text.as_bytes().to_vec()),
        })
    }

    fn write(self, bytes: &[u8], names: &impl NumberNames) -> StoreResult<String> {
        Ok(match self {
            KeyPart::Text(text) => text.to_owned(),
            KeyPart::Fixed(_) => String::new(),
            KeyPart::Event => names.event_id(Seq::read(bytes))?.to_string(),
            KeyPart::Space => names.space_id(SpaceNo::read(bytes))?.to_string(),
            KeyPart::Author => hex(&names.author_bytes(AuthorNo::read(bytes))?),
            KeyPart::SpaceId | KeyPart::Hex(_) => hex(bytes),
            KeyPart::Byte => format!("{:03}", bytes.first().copied().unwrap_or_default()),
            KeyPart::Number => format!("{:020}", u64::read(bytes)),
            KeyPart::Stamp => model::Stamp::read(bytes).to_string(),
            KeyPart::Word => String::from_utf8_lossy(bytes).into_owned(),
        })
    }

    /// The least and the greatest bytes of a part that begins with this text; none if it must be whole.
    fn cut(self, text: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let filled = |fill: &str| {
            let rest = fill.get(text.len()..)?;
            Some(format!("{text}{rest}"))
        };
        let hex_bounds = |bytes: usize| {
            let (low, high) = (filled(&"0".repeat(2 * bytes))?, filled(&"f".repeat(2 * bytes))?);
            Some((from_hex(&low, bytes)?, from_hex(&high, bytes)?))
        };
        match self {
            KeyPart::SpaceId => hex_bounds(16),
            KeyPart::Hex(bytes) => hex_bounds(bytes),
            KeyPart::Number => {
                let (low, high) = (filled(&"0".repeat(DIGITS))?, filled(&"9".repeat(DIGITS))?);
                Some((eight_bytes(&low)?, at_most_eight_bytes(&high)?))
            }
            KeyPart::Byte => {
                let (low, high) = (digits(&filled("000")?, 3)?, digits(&filled("999")?, 3)?);
                Some((vec![u8::try_from(low).ok()?], vec![high.min(255) as u8]))
            }
            KeyPart::Stamp => {
                let low = filled(&format!("{}-{}", "0".repeat(DIGITS), "0".repeat(32)))?;
                let high = filled(&format!("{}-{}", "9".repeat(DIGITS), "f".repeat(32)))?;
                let ((low_at, low_id), (high_at, high_id)) = (low.split_once('-')?, high.split_once('-')?);
                let low = [eight_bytes(low_at)?, from_hex(low_id, 16)?].concat();
                Some((low, [at_most_eight_bytes(high_at)?, from_hex(high_id, 16)?].concat()))
            }
            KeyPart::Word => Some((text.as_bytes().to_vec(), format!("{text}\u{10ffff}").into_bytes())),
            KeyPart::Event | KeyPart::Space | KeyPart::Author if text.is_empty() => {
                let bytes = self.bytes().unwrap_or_default();
                Some((vec![0; bytes], vec![0xff; bytes]))
            }
            KeyPart::Event | KeyPart::Space | KeyPart::Author | KeyPart::Text(_) | KeyPart::Fixed(_) => None,
        }
    }
}

/// Whether keys of this pattern may begin with that text, as far as its letters say.
pub(super) fn may_begin(parts: &[KeyPart], text: &str) -> bool {
    match parts.first() {
        Some(KeyPart::Text(word)) => text.starts_with(word) || word.starts_with(text),
        Some(_) | None => false,
    }
}

/// The stored key of a whole text.
pub(super) fn parse(parts: &[KeyPart], text: &str, names: &impl NumberNames) -> StoreResult<Option<Vec<u8>>> {
    let (mut key, mut rest) = (Vec::new(), text);
    for part in parts {
        let Some((head, tail)) = rest.split_at_checked(part.letters().unwrap_or(rest.len())) else { return Ok(None) };
        let Some(bytes) = part.read(head, names)? else { return Ok(None) };
        key.extend(bytes);
        rest = tail;
    }
    Ok(rest.is_empty().then_some(key))
}

/// The text of a stored key.
pub(super) fn to_text(parts: &[KeyPart], key: &[u8], names: &impl NumberNames) -> StoreResult<String> {
    let (mut text, mut rest) = (String::new(), key);
    for part in parts {
        let length = part.bytes().unwrap_or(rest.len());
        let (head, tail) = rest.split_at_checked(length).ok_or_else(|| crate::errors::broken("a key"))?;
        text.push_str(&part.write(head, names)?);
        rest = tail;
    }
    Ok(text)
}

/// The range of keys whose text begins with a prefix, within one space if only that may be seen.
pub(super) fn span(
    parts: &[KeyPart],
    prefix: &str,
    names: &impl NumberNames,
    only: Option<&SpaceId>,
) -> StoreResult<Option<KeyRange>> {
    let (mut low, mut rest, mut at) = (Vec::new(), prefix, 0);
    let mut is_of_space = None;
    // Whole parts, as far as the prefix goes.
    while let Some(part) = parts.get(at) {
        let whole = part.letters().and_then(|letters| rest.split_at_checked(letters));
        let is_cut_text = matches!(part, KeyPart::Text(text) if text.starts_with(rest));
        let (head, tail) = match (whole, part) {
            (Some(whole), _) => whole,
            // Nothing is left of the prefix, or it ends within these letters: they are the same in every key.
            (None, KeyPart::Text(text)) if is_cut_text => (*text, ""),
            (None, KeyPart::Space | KeyPart::SpaceId)
                if only.is_some_and(|space| space.to_string().starts_with(rest)) =>
            {
                ("", "")
            }
            (None, _) => break,
        };
        let own = only.filter(|_| head.is_empty()).map(SpaceId::to_string);
        let Some(bytes) = part.read(own.as_deref().filter(|_| is_space(*part)).unwrap_or(head), names)? else {
            return Ok(None);
        };
        is_of_space = is_of_space.or(belongs(*part, &bytes, names, only)?);
        low.extend(bytes);
        (rest, at) = (tail, at + 1);
    }
    if at == parts.len() && !rest.is_empty() {
        return Ok(None);
    }
    let mut high = low.clone();
    for (place, part) in parts.iter().enumerate().skip(at) {
        let text = if place == at { rest } else { "" };
        match part {
            KeyPart::Text(_) => continue,
            KeyPart::Fixed(bytes) => {
                low.extend_from_slice(bytes);
                high.extend_from_slice(bytes);
            }
            other => {
                let Some((least, greatest)) = other.cut(text) else { return Ok(None) };
                low.extend(least);
                high.extend(greatest);
            }
        }
    }
    Ok(Some(KeyRange { from: Bound::Included(low), to: high, is_of_space }))
}

fn is_space(part: KeyPart) -> bool {
    matches!(part, KeyPart::Space | KeyPart::SpaceId)
}

/// Whether a whole part says that the key is of the one space that was asked for; none if it says nothing about it.
fn belongs(part: KeyPart, bytes: &[u8], names: &impl NumberNames, only: Option<&SpaceId>) -> StoreResult<Option<bool>> {
    let Some(only) = only else { return Ok(None) };
    Ok(match part {
        KeyPart::Space => Some(names.space_no(only)?.is_some_and(|no| no.0.to_be_bytes() == bytes)),
        KeyPart::SpaceId => Some(only.0 == bytes),
        KeyPart::Event => Some(names.space_of_event(Seq::read(bytes))?.as_ref() == Some(only)),
        _ => None,
    })
}

pub(in crate::maintenance) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of exactly that number, in lower case only, so that every key has one text.
fn from_hex(text: &str, bytes: usize) -> Option<Vec<u8>> {
    let digit = |letter: u8| match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    pairs.collect::<Option<Vec<u8>>>().filter(|found| found.len() == bytes && text.len() == 2 * bytes)
}

fn digits(text: &str, letters: usize) -> Option<u128> {
    let is_number = text.len() == letters && text.bytes().all(|letter| letter.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn eight_bytes(text: &str) -> Option<Vec<u8>> {
    digits(text, DIGITS).and_then(|number| u64::try_from(number).ok()).map(|number| number.to_be_bytes().to_vec())
}

/// Twenty digits can say more than eight bytes hold.
fn at_most_eight_bytes(text: &str) -> Option<Vec<u8>> {
    let number = digits(text, DIGITS)?;
    Some(u64::try_from(number).unwrap_or(u64::MAX).to_be_bytes().to_vec())
}
