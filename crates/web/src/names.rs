//! Names as people type them.

/// The names in a list: with spaces, commas or semicolons between them, and perhaps with `@`.
pub(crate) fn split_names(text: &str) -> Vec<String> {
    let names = text.split([' ', ',', ';', '\n']).map(|name| name.trim().trim_start_matches('@'));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
