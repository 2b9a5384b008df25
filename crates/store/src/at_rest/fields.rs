//! Encrypting named fields of a JSON body and leaving the rest readable.
//!
//! A value that a path names becomes `{"_enc": hex, "v": 1}`, bound to the content's name and to its own place in the
//! JSON. Bodies are canonical, so putting the values back and writing canonically gives the very bytes that were
//! hashed. A body that cannot be read back like this is encrypted whole instead.

use super::storage_key::StorageKey;
use serde_json::{Map, Value, json};

const MARK: &str = "_enc";
const VERSION: u64 = 1;

/// The JSON with the named fields encrypted; none if it is no body, has none of the fields, or speaks in our terms.
pub(crate) fn seal(key: &StorageKey, name: &[u8], paths: &[String], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = model::body::decode(bytes).ok()?;
    if has_mark(&body) {
        return None;
    }
    let mut sealed = 0;
    for path in paths {
        let steps: Vec<&str> = path.split('.').collect();
        sealed += seal_at(key, name, &mut body, &steps, "")?;
    }
    let json = if sealed == 0 { None } else { serde_json::to_vec(&body).ok() };
    // The hash is over the very bytes, so that nothing rests like this without having been read back.
    json.filter(|json| open(key, name, json).as_deref() == Some(bytes))
}

/// The canonical bytes again; none if anything does not open.
pub(crate) fn open(key: &StorageKey, name: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(bytes).ok()?;
    open_at(key, name, &mut body, "")?;
    model::body::encode(&body).ok()
}

/// What a field's ciphertext is bound to: the content's name and the field's place.
fn field_name(name: &[u8], place: &str) -> Vec<u8> {
    [name, b"#", place.as_bytes()].concat()
}

/// A place one step further in. Names are written with their length, so that no two places read alike.
fn inside(place: &str, step: &str) -> String {
    format!("{place}/{}:{step}", step.len())
}

fn has_mark(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key(MARK) || map.values().any(has_mark),
        Value::Array(list) => list.iter().any(has_mark),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_sealed(map: &Map<String, Value>) -> bool {
    map.contains_key(MARK)
}

fn seal_at(key: &StorageKey, name: &[u8], value: &mut Value, steps: &[&str], place: &str) -> Option<usize> {
    let Some((step, rest)) = steps.split_first() else {
        let plain = serde_json::to_vec(value).ok()?;
        let mut sealed = Vec::new();
        key.seal_onto(&mut sealed, &field_name(name, place), &plain);
        *value = json!({ MARK: to_hex(&sealed), "v": VERSION });
        return Some(1);
    };
    let mut count = 0;
    match value {
        // Two paths may name the same field: what is encrypted already stays so.
        Value::Object(map) if is_sealed(map) => {}
        Value::Object(map) => {
            for (field, inner) in map.iter_mut().filter(|(field, _)| *step == "*" || *step == field.as_str()) {
                if !inner.as_object().is_some_and(is_sealed) {
                    count += seal_at(key, name, inner, rest, &inside(place, field))?;
                }
            }
        }
        Value::Array(list) if *step == "*" => {
            for (at, inner) in list.iter_mut().enumerate() {
                if !inner.as_object().is_some_and(is_sealed) {
                    count += seal_at(key, name, inner, rest, &inside(place, &at.to_string()))?;
                }
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Some(count)
}

fn open_at(key: &StorageKey, name: &[u8], value: &mut Value, place: &str) -> Option<()> {
    match value {
        Value::Object(map) if is_sealed(map) => {
            if map.get("v")?.as_u64()? != VERSION {
                return None;
            }
            let sealed = from_hex(map.get(MARK)?.as_str()?)?;
            let mut plain: Value = serde_json::from_slice(&key.open(&field_name(name, place), &sealed)?).ok()?;
            // A longer path may have been encrypted before a shorter one took the whole.
            open_at(key, name, &mut plain, place)?;
            *value = plain;
        }
        Value::Object(map) => {
            for (field, inner) in map.iter_mut() {
                open_at(key, name, inner, &inside(place, field))?;
            }
        }
        Value::Array(list) => {
            for (at, inner) in list.iter_mut().enumerate() {
                open_at(key, name, inner, &inside(place, &at.to_string()))?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Some(())
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some((nibble(pair[0])? << 4) | nibble(pair[1])?)).collect()
}
