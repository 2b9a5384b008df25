//! Writing many edits into one text, those of inner places inside those of outer ones.

use std::ops::Range;

/// A change of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Edit {
    /// The bytes that go.
    gone: Range<usize>,
    /// What comes.
    text: String,
    side: Side,
    /// How many bytes the place has that the edit belongs to.
    extent: usize,
}

/// Where an edit stands among those at the same byte: what ends there comes before what begins there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    After,
    Instead,
    Before,
}

impl Edit {
    /// Text at the beginning of a place.
    pub(crate) fn before(place: &Range<usize>, text: String) -> Edit {
        Edit { gone: place.start..place.start, text, side: Side::Before, extent: place.len() }
    }

    /// Text at the end of a place.
    pub(crate) fn after(place: &Range<usize>, text: String) -> Edit {
        Edit { gone: place.end..place.end, text, side: Side::After, extent: place.len() }
    }

    /// Text in place of some.
    pub(crate) fn instead(gone: Range<usize>, text: &str) -> Edit {
        Edit { gone, text: text.to_owned(), side: Side::Instead, extent: 0 }
    }
}

/// The text with all edits, each of which belongs to the place of that number; and for each edit the bytes of the new
/// text that come from it.
pub(crate) fn weave(text: &str, edits: &[(usize, Edit)]) -> (String, Vec<(usize, Range<usize>)>) {
    let mut sorted: Vec<_> = edits.iter().enumerate().collect();
    sorted.sort_by_key(|(index, (_, edit))| {
        // Of two places that begin together the outer one opens first; of two that end together it closes last. Two
        // places of the same extent close in the other order than they opened in.
        let (extent, order) = (edit.extent as i64, *index as i64);
        let nesting = match edit.side {
            Side::After => (extent, -order),
            Side::Instead => (0, order),
            Side::Before => (-extent, order),
        };
        (edit.gone.start, edit.side, nesting)
    });
    let (mut out, mut at, mut written) = (String::with_capacity(text.len() * 2), 0, Vec::new());
    for (_, (number, edit)) in sorted {
        out.push_str(text.get(at..edit.gone.start).unwrap_or_default());
        let from = out.len();
        out.push_str(&edit.text);
        written.push((*number, from..out.len()));
        at = at.max(edit.gone.end);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    (out, written)
}
