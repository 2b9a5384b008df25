//! Bodies: JSON objects in canonical form (RFC 8785), so that equal statements are equal bytes.

use crate::limits::{BODY_BYTES_MAX, JSON_DEPTH_MAX};
use serde_json::Value;

/// Why content is not a message body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBody {
    #[error("the body is larger than {BODY_BYTES_MAX} bytes; attach a file instead")]
    Long,
    #[error("the body is nested deeper than {JSON_DEPTH_MAX} levels")]
    Deep,
    #[error("the body is not JSON")]
    Json,
    #[error("the body is not a JSON object")]
    Object,
    #[error("the body is not in canonical form (RFC 8785)")]
    Canonical,
}

/// The canonical bytes of a JSON object.
pub fn encode(value: &Value) -> Result<Vec<u8>, BadBody> {
    if !value.is_object() {
        return Err(BadBody::Object);
    }
    let bytes = serde_json_canonicalizer::to_vec(value).map_err(|_| BadBody::Canonical)?;
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
    match serde_json_canonicalizer::to_vec(&value) {
        Ok(canonical) if canonical == bytes => Ok(value),
        Ok(_) | Err(_) => Err(BadBody::Canonical),
    }
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
