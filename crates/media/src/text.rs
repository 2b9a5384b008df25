//! The first page of a text: set in a typewriter face on a page, which is then drawn like that of a PDF.
//!
//! The face has the letters of western Europe. A text that is mostly in others has no preview: boxes say nothing.

/// Letters in a line, and lines on a page of A4.
const COLUMNS: usize = 92;
const LINES: usize = 66;
/// How many letters of a tab.
const TAB: usize = 4;
/// Of so many letters one at most may be none that the face has.
const FOREIGN_OF: usize = 10;
/// Bytes that are looked at: more than a page has.
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

/// What the beginning of a file says, if it is text with letters that the face has.
pub(crate) fn beginning_of_text(bytes: &[u8]) -> Option<&str> {
    let bytes = &bytes[..bytes.len().min(LOOKED_AT)];
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last letter may be cut.
        Err(why) if why.error_len().is_none() => std::str::from_utf8(&bytes[..why.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let is_laid_out = |letter: char| matches!(letter, '\t' | '\n' | '\r' | '\x0c');
    if text.trim().is_empty() || text.chars().any(|letter| letter.is_control() && !is_laid_out(letter)) {
        return None;
    }
    let foreign = text.chars().filter(|letter| !is_laid_out(*letter) && code(*letter).is_none()).count();
    (foreign * FOREIGN_OF <= text.chars().count()).then_some(text)
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

/// A PDF of one page with the beginning of the text.
pub(crate) fn page_of(text: &str) -> Vec<u8> {
    let mut content = b"BT /F 9 Tf 11 TL 49 790 Td\n".to_vec();
    for line in lines(text) {
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
            assert!(beginning_of_text(text.as_bytes()).is_some(), "{text}");
        }
        for other in ["", " \n\t ", "nul\0", "escape \x1b[0m", "Привет, мир", "你好"] {
            assert_eq!(beginning_of_text(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(beginning_of_text(&[0xff, 0xfe, b'a', 0]), None);
        assert_eq!(beginning_of_text("plain ü".as_bytes()[..7].as_ref()), Some("plain "), "the last letter is cut");
        let long = "x".repeat(LOOKED_AT * 2);
        assert_eq!(beginning_of_text(long.as_bytes()).map(str::len), Some(LOOKED_AT));
    }

    #[test]
    fn a_page_has_so_many_lines_and_letters() {
        assert_eq!(lines("a\n\nb\tc"), [b"a".to_vec(), Vec::new(), b"b   c".to_vec()]);
        let wide = lines(&"w".repeat(COLUMNS + 1));
        assert_eq!(wide.iter().map(Vec::len).collect::<Vec<_>>(), [COLUMNS, 1]);
        assert_eq!(lines(&"line\n".repeat(500)).len(), LINES);
        assert_eq!(lines("first page\x0csecond"), [b"first page".to_vec()]);
        assert_eq!(lines("€ж"), [vec![0x80, b'?']]);
    }
}
