//! Bodies: JSON objects in canonical form, so that equal statements are equal bytes. The form is that of RFC 8785 (sorted
//! keys, minimal escapes, shortest numbers), except that integers of up to 64 bits keep their digits.

use crate::limits::{BODY_BYTES_MAX, JSON_DEPTH_MAX};
use serde_json::Value;

/// Why content is not a message body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBody {
    #[error("the content with its body is larger than {BODY_BYTES_MAX} bytes")]
    Long,
    #[error("the content with its body is nested deeper than {JSON_DEPTH_MAX} levels")]
    Deep,
    #[error("the body is not JSON")]
    Json,
    #[error("the body is not a JSON object")]
    Object,
    #[error("the body is not in canonical form (RFC 8785, with the digits of integers)")]
    Canonical,
}

/// The canonical bytes of a JSON object.
pub fn encode(value: &Value) -> Result<Vec<u8>, BadBody> {
    if !value.is_object() {
        return Err(BadBody::Object);
    }
    let bytes = to_canonical(value);
    decode(&bytes)?;
    Ok(bytes)
}

/// Reads a body, which must be a JSON object in canonical form.
pub fn decode(bytes: &[u8]) -> Result<Value, BadBody> {
    if bytes.len() > BODY_BYTES_MAX {
        return Err(BadBody::Long);
    }
    if nesting(bytes) > JSON_DEPTH_MAX {
        return Err(BadBody::Deep);
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|_| BadBody::Json)?;
    if !value.is_object() {
        return Err(BadBody::Object);
    }
    if to_canonical(&value) == bytes { Ok(value) } else { Err(BadBody::Canonical) }
}

fn to_canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => out.extend(value.to_string().as_bytes()),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => out.extend(ryu_js::Buffer::new().format(float).as_bytes()),
            None => out.extend(number.to_string().as_bytes()),
        },
        Value::Array(items) => write_list(out, (b'[', b']'), items.iter(), write_canonical),
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            write_list(out, (b'{', b'}'), fields.into_iter(), |(name, value), out| {
                out.extend(Value::from(name.as_str()).to_string().as_bytes());
                out.push(b':');
                write_canonical(value, out);
            });
        }
    }
}

fn write_list<T>(
    out: &mut Vec<u8>,
    (open, close): (u8, u8),
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(close);
}

/// Something in a JSON text that would come back changed, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Inexact {
    #[error(
        "{path}: the number {number} cannot be kept exactly; send an integer of at most 64 bits, a number with fewer \
         digits, or a string"
    )]
    Number { path: String, number: String },
    /// The reader of JSON takes an object with such a name for something else.
    #[error("{path}: names that begin with {RESERVED_PREFIX} are reserved; choose another")]
    Name { path: String },
}

/// How names begin that the reader of JSON keeps for itself.
const RESERVED_PREFIX: &str = "$serde_json::private::";

/// The first thing in a JSON text that would come back changed; none if all of it is kept. Integers of up to 64 bits keep
/// their digits, other numbers are kept as a double.
pub fn find_inexact(json: &str) -> Option<Inexact> {
    let (mut path, mut at) = (Vec::new(), 0);
    let bytes = json.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => path.push(PathStep::Name(None)),
            b'[' => path.push(PathStep::Index(0)),
            b'}' | b']' => drop(path.pop()),
            b',' => match path.last_mut() {
                Some(PathStep::Index(index)) => *index += 1,
                Some(PathStep::Name(name)) => *name = None,
                None => {}
            },
            b'"' => {
                let text = token(json, at, string_length);
                at += text.len();
                if let Some(PathStep::Name(name @ None)) = path.last_mut() {
                    *name = serde_json::from_str(text).ok();
                    if name.as_ref().is_some_and(|name| name.starts_with(RESERVED_PREFIX)) {
                        return Some(Inexact::Name { path: path_text(&path) });
                    }
                }
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let number = token(json, at, |bytes| bytes.iter().take_while(|byte| is_part(byte)).count());
                if !is_exact(number) {
                    return Some(Inexact::Number { path: path_text(&path), number: number.chars().take(40).collect() });
                }
                at += number.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// A step from a JSON value into it.
enum PathStep {
    /// A field; none before its name was read.
    Name(Option<String>),
    Index(usize),
}

fn path_text(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Name(name) if text.is_empty() => text.push_str(name.as_deref().unwrap_or_default()),
            PathStep::Name(name) => text.push_str(&format!(".{}", name.as_deref().unwrap_or_default())),
            PathStep::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text.chars().take(200).collect()
}

/// A part of a text that begins at a place and is at least one byte long.
fn token(text: &str, at: usize, length: impl Fn(&[u8]) -> usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    rest.get(..length(rest.as_bytes()).max(1)).unwrap_or(rest)
}

/// The length of a JSON string with its quotes.
fn string_length(bytes: &[u8]) -> usize {
    let mut is_escaped = false;
    for (index, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    bytes.len()
}

/// Whether a number is kept with its value.
fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    match number.parse::<f64>() {
        Ok(float) if float.is_finite() => decimal(number) == decimal(ryu_js::Buffer::new().format(float)),
        Ok(_) | Err(_) => false,
    }
}

/// The digits of a number without zeros around them, and the place of the point behind them: equal for equal values.
fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let (is_negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let trimmed = digits.trim_end_matches('0');
    if trimmed.is_empty() {
        return Some((false, String::new(), 0));
    }
    let zeros = (digits.len() - trimmed.len()) as i64;
    let exponent = exponent.parse::<i64>().ok()?.checked_sub(fraction.len() as i64)?.checked_add(zeros)?;
    Some((is_negative, trimmed.to_owned(), exponent))
}

/// The depth of nesting. Only brackets outside strings count.
fn nesting(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in bytes {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (false, _) => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_objects_read_back() {
        let value = serde_json::json!({"text": "hé\u{1}", "n": 1.5, "a": [true, null]});
        let bytes = encode(&value).expect("encoded");
        assert_eq!(decode(&bytes), Ok(value));
    }

    #[test]
    fn integers_keep_their_digits_and_keys_sort_as_in_javascript() {
        let text = r#"{"a":9007199254740993,"b":-9223372036854775808,"c":18446744073709551615,"d":1e+21,"e":0.1}"#;
        let value = decode(text.as_bytes()).expect("canonical");
        assert_eq!(encode(&value).as_deref(), Ok(text.as_bytes()));
        // Read exactly, not to the nearest but one.
        let float = r#"{"a":3.402823466e+38,"b":1.7976931348623157e+308}"#;
        assert_eq!(decode(float.as_bytes()).and_then(|value| encode(&value)).as_deref(), Ok(float.as_bytes()));
        // U+FB33 sorts after a surrogate pair in UTF-16, and before it in UTF-8.
        let sorted = "{\"\u{20ac}\":1,\"\u{1f600}\":2,\"\u{fb33}\":3}";
        assert!(decode(sorted.as_bytes()).is_ok());
        for other in [r#"{"a":1.0}"#, r#"{"a":1e2}"#, r#"{"a":-0}"#, r#"{"a":18446744073709551616}"#] {
            assert_eq!(decode(other.as_bytes()), Err(BadBody::Canonical), "{other}");
        }
    }

    #[test]
    fn a_number_that_would_change_is_found_with_its_path() {
        let exact = r#"{"a":[9007199254740993,18446744073709551615,-1,1.0,1e2,0.1,-0,100000000000000000000],"b\"":{"12345678901234567890123":"x"}}"#;
        assert_eq!(find_inexact(exact), None);
        let reserved = r#"{"body":[{"$serde_json::private::\u0052awValue":"18446744073709551616"}]}"#;
        let path = "body[0].$serde_json::private::RawValue".to_owned();
        assert_eq!(find_inexact(reserved), Some(Inexact::Name { path }));
        for (text, path, number) in [
            (r#"{"body":{"n":9007199254740993.5}}"#, "body.n", "9007199254740993.5"),
            (r#"{"body":[1,{"x":[0,18446744073709551617]}]}"#, "body[1].x[1]", "18446744073709551617"),
            (r#"{"a":"1,2","b":0.10000000000000000001}"#, "b", "0.10000000000000000001"),
            (r#"{"a":{"b":1},"c":1e400}"#, "c", "1e400"),
        ] {
            let want = Inexact::Number { path: path.to_owned(), number: number.to_owned() };
            assert_eq!(find_inexact(text), Some(want), "{text}");
        }
    }

    #[test]
    fn everything_else_is_named() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        for (text, want) in [
            ("", BadBody::Json),
            ("[]", BadBody::Object),
            ("\"x\"", BadBody::Object),
            ("{\"a\":NaN}", BadBody::Json),
            ("{\"a\": 1}", BadBody::Canonical),
            ("{\"b\":1,\"a\":2}", BadBody::Canonical),
            ("{\"a\":1,\"a\":1}", BadBody::Canonical),
            ("{\"a\":\"\\ud800\"}", BadBody::Json),
            ("\u{feff}{}", BadBody::Json),
            (&deep, BadBody::Deep),
            (&format!("{{\"a\":\"{}\"}}", "x".repeat(BODY_BYTES_MAX)), BadBody::Long),
        ] {
            assert_eq!(decode(text.as_bytes()), Err(want), "{}", &text[..text.len().min(40)]);
        }
        assert_eq!(decode(b"{\"a\":\"\xff\"}"), Err(BadBody::Json));
    }
}
