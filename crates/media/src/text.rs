//! The first page of a text: set in a typewriter face on a page, which is then drawn like that of a PDF.
//!
//! The face has the letters of western Europe. A text that is mostly in others has no preview: boxes say nothing.

/// So many of the first bytes of a file tell what it is.
pub const BEGINNING_BYTES: usize = 4096;
/// Letters in a line, and lines on a page of A4.
const COLUMNS: usize = 92;
const LINES: usize = 66;
/// How many letters of a tab.
const TAB: usize = 4;
/// Of so many letters one at most may be none that the face has.
const FOREIGN_OF: usize = 10;
/// Bytes of which a page is made: more than one has.
const LOOKED_AT: usize = 4 * COLUMNS * LINES;

/// Letters that the encoding of the face has elsewhere than Unicode.
const ELSEWHERE: [(char, u8); 12] = [
    ('€', 0x80),
    ('…', 0x85),
    ('‰', 0x89),
    ('Œ', 0x8c),
    ('‘', 0x91),
    ('’', 0x92),
    ('“', 0x93),
    ('”', 0x94),
    ('•', 0x95),
    ('–', 0x96),
    ('—', 0x97),
    ('œ', 0x9c),
];

/// Whether the beginning of a file is text with letters that the face has.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let bytes = without_mark(&bytes[..bytes.len().min(BEGINNING_BYTES)]);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last letter may be cut.
        Err(why) if why.error_len().is_none() => std::str::from_utf8(&bytes[..why.valid_up_to()]).unwrap_or_default(),
        Err(_) => return false,
    };
    let is_laid_out = |letter: char| matches!(letter, '\t' | '\n' | '\r' | '\x0c');
    if text.trim().is_empty() || text.chars().any(|letter| letter.is_control() && !is_laid_out(letter)) {
        return false;
    }
    let foreign = text.chars().filter(|letter| !is_laid_out(*letter) && code(*letter).is_none()).count();
    foreign * FOREIGN_OF <= text.chars().count()
}

/// Some programs begin a text with a mark that is no letter.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The code of a letter in the face.
fn code(letter: char) -> Option<u8> {
    match u32::from(letter) {
        plain @ (0x20..=0x7e | 0xa0..=0xff) => u8::try_from(plain).ok(),
        _ => ELSEWHERE.iter().find(|(other, _)| *other == letter).map(|(_, code)| *code),
    }
}

/// The lines of the first page, broken where they are too long.
fn lines(text: &str) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let page = text.split('\x0c').next().unwrap_or_default();
    for line in page.lines().take(LINES) {
        let mut set = Vec::new();
        for letter in line.chars() {
            match letter {
                '\t' => set.resize((set.len() / TAB + 1) * TAB, b' '),
                '\r' => {}
                _ => set.push(code(letter).unwrap_or(b'?')),
            }
        }
        if set.is_empty() {
            lines.push(set);
        } else {
            lines.extend(set.chunks(COLUMNS).map(<[u8]>::to_vec));
        }
    }
    lines.truncate(LINES);
    lines
}

/// A PDF of one page with the beginning of the text. What is no letter, further down than anybody has looked, is a question
/// mark.
pub(crate) fn page_of(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(without_mark(&text[..text.len().min(LOOKED_AT)]));
    let mut content = b"BT /F 9 Tf 11 TL 49 790 Td\n".to_vec();
    for line in lines(&text) {
        content.push(b'<');
        content.extend(line.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
        content.extend(b"> Tj T*\n");
    }
    content.extend(b"ET");
    let stream = [format!("<< /Length {} >>\nstream\n", content.len()).as_bytes(), &content, b"\nendstream"].concat();
    let objects: [&[u8]; 5] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 4 0 R >> >> /Contents 5 0 R >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
        &stream,
    ];
    let (mut file, mut places) = (b"%PDF-1.4\n".to_vec(), Vec::new());
    for (number, object) in (1..).zip(objects) {
        places.push(file.len());
        file.extend(format!("{number} 0 obj\n").bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    file.extend(places.iter().flat_map(|place| format!("{place:010} 00000 n \n").into_bytes()));
    file.extend(format!("trailer << /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", places.len() + 1).bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_by_its_letters() {
        for text in ["hello", "Grüße – “quoted” für 5 €", "a\tb\r\nc", "\u{feff}with a mark", "mostly plain, one ж"]
        {
            assert!(is_text(text.as_bytes()), "{text}");
        }
        for other in ["", " \n\t ", "nul\0", "escape \x1b[0m", "Привет, мир", "你好"] {
            assert!(!is_text(other.as_bytes()), "{other:?}");
        }
        assert!(!is_text(&[0xff, 0xfe, b'a', 0]));
        assert!(is_text(&"plain ü".as_bytes()[..7]), "the last letter is cut");
        // What comes later than anybody looks changes nothing: it is told the same way by its beginning and as a whole.
        let long = [vec![b'x'; BEGINNING_BYTES], vec![0xff, 0, 0x1b]].concat();
        assert!(is_text(&long) && is_text(&long[..BEGINNING_BYTES]));
        assert!(!page_of(&long).is_empty());
    }

    #[test]
    fn a_page_has_so_many_lines_and_letters() {
        assert_eq!(lines("a\n\nb\tc"), [b"a".to_vec(), Vec::new(), b"b   c".to_vec()]);
        let wide = lines(&"w".repeat(COLUMNS + 1));
        assert_eq!(wide.iter().map(Vec::len).collect::<Vec<_>>(), [COLUMNS, 1]);
        assert_eq!(lines(&"line\n".repeat(500)).len(), LINES);
        assert_eq!(lines("first page\x0csecond"), [b"first page".to_vec()]);
        assert_eq!(lines("a\r\nb\rc\u{1b}"), [b"a".to_vec(), b"bc?".to_vec()]);
        assert_eq!(lines("€ж"), [vec![0x80, b'?']]);
    }
}
