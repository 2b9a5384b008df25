//! How the bytes of a stored key and its text correspond, part by part.

use engine::reads::Answer;
use model::{AuthorNo, EventId, Identity, Seq, SpaceId, SpaceNo};
use std::ops::Bound;

/// A part of a key. Parts that are numbers in the store and ids in the text must be whole in a prefix; the others may
/// be cut anywhere, since their text sorts as their bytes do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
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
pub(super) trait Names {
    fn event_no(&self, id: &EventId) -> Answer<Option<Seq>>;
    fn event_id(&self, seq: Seq) -> Answer<EventId>;
    fn space_of_event(&self, seq: Seq) -> Answer<Option<SpaceId>>;
    fn space_no(&self, id: &SpaceId) -> Answer<Option<SpaceNo>>;
    fn space_id(&self, no: SpaceNo) -> Answer<SpaceId>;
    fn author_no(&self, id: &Identity) -> Answer<Option<AuthorNo>>;
    fn author_id(&self, no: AuthorNo) -> Answer<Identity>;
}

/// A range of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) from: Bound<Vec<u8>>,
    /// The last key, which is in it.
    pub(super) to: Vec<u8>,
    /// Whether everything in it is of the one space that was asked for.
    pub(super) is_of_space: bool,
}

const DIGITS: usize = 20;

impl Part {
    /// How many bytes it has in the store; none if that varies.
    pub(super) fn bytes(self) -> Option<usize> {
        match self {
            Part::Text(_) => Some(0),
            Part::Fixed(bytes) => Some(bytes.len()),
            Part::Event | Part::Number => Some(8),
            Part::Space | Part::Author => Some(4),
            Part::SpaceId => Some(16),
            Part::Hex(bytes) => Some(bytes),
            Part::Byte => Some(1),
            Part::Stamp => Some(24),
            Part::Word => None,
        }
    }

    /// How many letters it has in the text; none if that varies.
    fn letters(self) -> Option<usize> {
        match self {
            Part::Text(text) => Some(text.len()),
            Part::Fixed(_) => Some(0),
            Part::Event | Part::Space | Part::SpaceId => Some(32),
            Part::Author => Some(64),
            Part::Hex(bytes) => Some(2 * bytes),
            Part::Byte => Some(3),
            Part::Number => Some(DIGITS),
            Part::Stamp => Some(DIGITS + 1 + 32),
            Part::Word => None,
        }
    }

    /// The bytes of a whole part; none if it is not one, or names what is not known here.
    fn read(self, text: &str, names: &impl Names) -> Answer<Option<Vec<u8>>> {
        Ok(match self {
            Part::Text(expected) => (text == expected).then(Vec::new),
            Part::Fixed(bytes) => Some(bytes.to_vec()),
            Part::Event => match text.parse() {
                Ok(id) => names.event_no(&id)?.map(|seq| seq.0.to_be_bytes().to_vec()),
                Err(_) => None,
            },
            Part::Space => match text.parse() {
                Ok(id) => names.space_no(&id)?.map(|no| no.0.to_be_bytes().to_vec()),
                Err(_) => None,
            },
            Part::Author => match text.parse() {
                Ok(id) => names.author_no(&id)?.map(|no| no.0.to_be_bytes().to_vec()),
                Err(_) => None,
            },
            Part::SpaceId => from_hex(text, 16),
            Part::Hex(bytes) => from_hex(text, bytes),
            Part::Byte => digits(text, 3).and_then(|number| u8::try_from(number).ok()).map(|byte| vec![byte]),
            Part::Number => eight_bytes(text),
            Part::Stamp => text.split_once('-').and_then(|(at, id)| {
                let (at, id) = (eight_bytes(at)?, from_hex(id, 16)?);
                Some([at, id].concat())
            }),
            Part::Word => Some(text.as_bytes().to_vec()),
        })
    }

    fn write(self, bytes: &[u8], names: &impl Names) -> Answer<String> {
        let four = || u32::from_be_bytes(crate::encode::key(&[bytes]));
        let eight = || u64::from_be_bytes(crate::encode::key(&[bytes]));
        Ok(match self {
            Part::Text(text) => text.to_owned(),
            Part::Fixed(_) => String::new(),
            Part::Event => names.event_id(Seq(eight()))?.to_string(),
            Part::Space => names.space_id(SpaceNo(four()))?.to_string(),
            Part::Author => names.author_id(AuthorNo(four()))?.to_string(),
            Part::SpaceId | Part::Hex(_) => hex(bytes),
            Part::Byte => format!("{:03}", bytes.first().copied().unwrap_or_default()),
            Part::Number => format!("{:020}", eight()),
            Part::Stamp => {
                let (at, id) = bytes.split_at(bytes.len().min(8));
                format!("{:020}-{}", u64::from_be_bytes(crate::encode::key(&[at])), hex(id))
            }
            Part::Word => String::from_utf8_lossy(bytes).into_owned(),
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
            Part::SpaceId => hex_bounds(16),
            Part::Hex(bytes) => hex_bounds(bytes),
            Part::Number => {
                let (low, high) = (filled(&"0".repeat(DIGITS))?, filled(&"9".repeat(DIGITS))?);
                Some((eight_bytes(&low)?, at_most_eight_bytes(&high)?))
            }
            Part::Byte => {
                let (low, high) = (digits(&filled("000")?, 3)?, digits(&filled("999")?, 3)?);
                Some((vec![u8::try_from(low).ok()?], vec![high.min(255) as u8]))
            }
            Part::Stamp => {
                let low = filled(&format!("{}-{}", "0".repeat(DIGITS), "0".repeat(32)))?;
                let high = filled(&format!("{}-{}", "9".repeat(DIGITS), "f".repeat(32)))?;
                let ((low_at, low_id), (high_at, high_id)) = (low.split_once('-')?, high.split_once('-')?);
                let low = [eight_bytes(low_at)?, from_hex(low_id, 16)?].concat();
                Some((low, [at_most_eight_bytes(high_at)?, from_hex(high_id, 16)?].concat()))
            }
            Part::Word => Some((text.as_bytes().to_vec(), format!("{text}\u{10ffff}").into_bytes())),
            Part::Event | Part::Space | Part::Author if text.is_empty() => {
                let bytes = self.bytes().unwrap_or_default();
                Some((vec![0; bytes], vec![0xff; bytes]))
            }
            Part::Event | Part::Space | Part::Author | Part::Text(_) | Part::Fixed(_) => None,
        }
    }
}

/// Whether keys of this pattern may begin with that text, as far as its letters say.
pub(super) fn may_begin(parts: &[Part], text: &str) -> bool {
    match parts.first() {
        Some(Part::Text(word)) => text.starts_with(word) || word.starts_with(text),
        Some(_) | None => false,
    }
}

/// The stored key of a whole text.
pub(super) fn parse(parts: &[Part], text: &str, names: &impl Names) -> Answer<Option<Vec<u8>>> {
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
pub(super) fn to_text(parts: &[Part], key: &[u8], names: &impl Names) -> Answer<String> {
    let (mut text, mut rest) = (String::new(), key);
    for part in parts {
        let (head, tail) = rest.split_at(part.bytes().unwrap_or(rest.len()).min(rest.len()));
        text.push_str(&part.write(head, names)?);
        rest = tail;
    }
    Ok(text)
}

/// The range of keys whose text begins with a prefix, within one space if only that may be seen.
pub(super) fn span(parts: &[Part], prefix: &str, names: &impl Names, only: Option<&SpaceId>) -> Answer<Option<Span>> {
    let (mut low, mut rest, mut at) = (Vec::new(), prefix, 0);
    let mut is_of_space = None;
    // Whole parts, as far as the prefix goes.
    while let Some(part) = parts.get(at) {
        let whole = part.letters().and_then(|letters| rest.split_at_checked(letters));
        let is_cut_text = matches!(part, Part::Text(text) if text.starts_with(rest));
        let (head, tail) = match (whole, part) {
            (Some(whole), _) => whole,
            // Nothing is left of the prefix, or it ends within these letters: they are the same in every key.
            (None, Part::Text(text)) if is_cut_text => (*text, ""),
            (None, Part::Space | Part::SpaceId) if only.is_some_and(|space| space.to_string().starts_with(rest)) => {
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
            Part::Text(_) => continue,
            Part::Fixed(bytes) => {
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
    Ok(Some(Span { from: Bound::Included(low), to: high, is_of_space: is_of_space.unwrap_or(false) }))
}

fn is_space(part: Part) -> bool {
    matches!(part, Part::Space | Part::SpaceId)
}

/// Whether a whole part says that the key is of the one space that was asked for; none if it says nothing about it.
fn belongs(part: Part, bytes: &[u8], names: &impl Names, only: Option<&SpaceId>) -> Answer<Option<bool>> {
    let Some(only) = only else { return Ok(None) };
    Ok(match part {
        Part::Space => Some(names.space_no(only)?.is_some_and(|no| no.0.to_be_bytes() == bytes)),
        Part::SpaceId => Some(only.0 == bytes),
        Part::Event => {
            let seq = Seq(u64::from_be_bytes(crate::encode::key(&[bytes])));
            Some(names.space_of_event(seq)?.as_ref() == Some(only))
        }
        _ => None,
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
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
