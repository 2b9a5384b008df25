//! JSON documents as people read them.

use serde_json::Value;
use std::fmt;

/// A JSON document as people read it: lists as columns, the rest as names with their values.
#[derive(Debug, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct Document(pub(crate) Value);

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Value::Object(fields) = &self.0 else { return write!(f, "{}", plain(&self.0)) };
        let fields: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
        let width = fields.iter().filter(|(_, value)| !value.is_array()).map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in fields {
            match value {
                Value::Array(rows) if rows.is_empty() => writeln!(f, "no {name}")?,
                Value::Array(rows) => columns(f, rows)?,
                other => writeln!(f, "{name:<width$}  {}", told(name, other))?,
            }
        }
        Ok(())
    }
}

/// A value as people read it: times as dates, lists and objects as what is in them.
fn told(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Number(at) if name.ends_with("_ts") || name == "ts" => {
            at.as_u64().map_or_else(|| plain(value), crate::formatting::moment)
        }
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(parts) => parts.iter().map(|part| told("", part)).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| format!("{name}={}", told(name, value))).collect::<Vec<_>>().join(" ")
        }
        Value::Number(_) | Value::String(_) => plain(value),
    }
}

fn plain(value: &Value) -> String {
    let on_one_line = |text: &str| crate::formatting::tame(text).replace(['\n', '\t'], " ");
    value.as_str().map_or_else(|| value.to_string(), on_one_line)
}

/// Rows of objects as columns, in the order of the first one's fields; columns that are empty everywhere are left out.
fn columns(f: &mut fmt::Formatter<'_>, rows: &[Value]) -> fmt::Result {
    let Some(first) = rows.first().and_then(Value::as_object) else {
        return rows.iter().try_for_each(|row| writeln!(f, "{}", plain(row)));
    };
    let is_told = |name: &&String| rows.iter().any(|row| !row[name.as_str()].is_null());
    let names: Vec<&String> = first.keys().filter(is_told).collect();
    let cell = |row: &Value, name: &str| told(name, &row[name]);
    let width = |name: &String| rows.iter().map(|row| cell(row, name).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = names.iter().map(|name| width(name).max(name.len()).min(60)).collect();
    let mut line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}")).collect();
        writeln!(f, "{}", cells.join("  ").trim_end())
    };
    line(names.iter().map(|name| (*name).clone()).collect())?;
    rows.iter().try_for_each(|row| line(names.iter().map(|name| cell(row, name)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_are_columns_and_what_is_absent_is_left_out() {
        let document = json!({
            "going": 2, "next": null, "empty": [], "begun_ts": 1_700_000_000_000_000_000_u64,
            "messages": [{ "id": "a", "why": "age", "note": null }, { "id": "bcd", "why": "count", "note": null }],
        });
        let shown = Document(document).to_string();
        assert_eq!(shown, "begun_ts  2023-11-14 22:13:20 UTC\nno empty\ngoing     2\nid   why\na    age\nbcd  count\n");
    }
}
