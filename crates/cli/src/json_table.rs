//! Shows JSON documents from the API as text: lists as tables, other fields as name and value.

use serde_json::Value;
use std::fmt;

/// The length of a time without what follows the seconds.
const TO_THE_SECOND: usize = 19;

#[derive(Debug, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct JsonTable {
    pub(crate) document: Value,
    /// The columns of its list, in this order; all of them if none is named.
    #[serde(skip)]
    pub(crate) columns: &'static [&'static str],
}

impl fmt::Display for JsonTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Value::Object(fields) = &self.document else { return write!(f, "{}", format_scalar(&self.document)) };
        let fields: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
        let width = fields.iter().filter(|(_, value)| !value.is_array()).map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in fields {
            match value {
                Value::Array(rows) if rows.is_empty() => writeln!(f, "no {name}")?,
                Value::Array(rows) => write_table(f, rows, self.columns)?,
                other => writeln!(f, "{name:<width$}  {}", format_value(name, other))?,
            }
        }
        Ok(())
    }
}

/// Times become dates; lists and objects become one line.
fn format_value(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        // To the second: `2026-03-21T17:04:09.000000001Z`.
        Value::String(at) if (name.ends_with("_at") || name == "since") && at.len() > TO_THE_SECOND => {
            format!("{} UTC", format_scalar(value)[..TO_THE_SECOND].replace('T', " "))
        }
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(parts) => parts.iter().map(|part| format_value("", part)).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| format!("{name}={}", format_value(name, value))).collect::<Vec<_>>().join(" ")
        }
        Value::Number(_) | Value::String(_) => format_scalar(value),
    }
}

fn format_scalar(value: &Value) -> String {
    let on_one_line = |text: &str| crate::formatting::escape_controls(text).replace(['\n', '\t'], " ");
    value.as_str().map_or_else(|| value.to_string(), on_one_line)
}

/// Columns are in the order of the first row's fields. Columns without any value are left out.
fn write_table(f: &mut fmt::Formatter<'_>, rows: &[Value], columns: &[&str]) -> fmt::Result {
    let Some(first) = rows.first().and_then(Value::as_object) else {
        return rows.iter().try_for_each(|row| writeln!(f, "{}", format_scalar(row)));
    };
    let has_value = |name: &&str| rows.iter().any(|row| !row[*name].is_null());
    let all = || first.keys().map(String::as_str).collect();
    let names: Vec<&str> = if columns.is_empty() { all() } else { columns.to_vec() };
    let names: Vec<&str> = names.into_iter().filter(has_value).collect();
    let cell = |row: &Value, name: &str| format_value(name, &row[name]);
    let width = |name: &str| rows.iter().map(|row| cell(row, name).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = names.iter().map(|name| width(name).max(name.len()).min(60)).collect();
    let mut line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}")).collect();
        writeln!(f, "{}", cells.join("  ").trim_end())
    };
    line(names.iter().map(|name| (*name).to_owned()).collect())?;
    rows.iter().try_for_each(|row| line(names.iter().map(|name| cell(row, name)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_become_tables_and_empty_columns_are_left_out() {
        let document = json!({
            "going": 2, "next": null, "empty": [], "begun_at": "2023-11-14T22:13:20.000000000Z",
            "messages": [{ "id": "a", "why": "age", "note": null }, { "id": "bcd", "why": "count", "note": null }],
        });
        let shown = JsonTable { document: document.clone(), columns: &[] }.to_string();
        assert_eq!(shown, "begun_at  2023-11-14 22:13:20 UTC\nno empty\ngoing     2\nid   why\na    age\nbcd  count\n");
        let shown = JsonTable { document, columns: &["why", "note", "id"] }.to_string();
        assert!(shown.ends_with("why    id\nage    a\ncount  bcd\n"), "{shown}");
    }
}
