//! Suggestions for misspelt names: "did you mean …?"

/// The candidate with the smallest edit distance.
pub(crate) fn closest_name<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates.into_iter().min_by_key(|candidate| edit_distance(word, candidate))
}

/// The Levenshtein distance.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().take(256).enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_right_one() {
        let known = ["store.cache_mib", "held.timeout_days", "log"];
        assert_eq!(closest_name("store.cache_mb", known), Some("store.cache_mib"));
        assert_eq!(closest_name("held.days", known), Some("held.timeout_days"));
        assert_eq!(closest_name("x", []), None);
        assert_eq!((edit_distance("kitten", "sitting"), edit_distance("", "abc")), (3, 3));
    }
}
