//! What is different between two commits, as a page shows it.

use git::read::{ChangeKind, Comparison};
use maud::{Markup, html};

/// Files whose differences are shown on one page.
const FILES_MAX: usize = 300;
/// Lines of differences that are shown of one file.
const LINES_MAX: usize = 2000;
/// How much of one line is shown.
const LINE_CHARS_MAX: usize = 1000;

/// The differences of one file, as git told them.
#[derive(Debug, Default, PartialEq, Eq)]
struct FilePatch<'a> {
    /// Lines that show something.
    lines: Vec<&'a str>,
    is_binary: bool,
    added: usize,
    removed: usize,
    /// Lines that are left out.
    left_out: usize,
}

/// The differences of each file. A line of a file never begins like the line that begins a file.
fn split_patch(patch: &str) -> Vec<FilePatch<'_>> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    let mut is_in_lines = false;
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            files.push(FilePatch::default());
            is_in_lines = false;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        is_in_lines |= line.starts_with("@@ ");
        match (is_in_lines, line.as_bytes().first()) {
            (false, _) => {
                file.is_binary |= line.starts_with("Binary files ");
                continue;
            }
            (true, Some(b'+')) => file.added += 1,
            (true, Some(b'-')) => file.removed += 1,
            (true, _) => {}
        }
        if file.lines.len() < LINES_MAX { file.lines.push(line) } else { file.left_out += 1 }
    }
    files
}

fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Changed => "changed",
        ChangeKind::Renamed => "renamed",
    }
}

/// One line, with a class that says what it is.
fn patch_line(line: &str) -> Markup {
    let class = match line.as_bytes().first() {
        Some(b'+') => "added",
        Some(b'-') => "removed",
        Some(b'@') => "place",
        _ => "same",
    };
    let shown: String = line.chars().take(LINE_CHARS_MAX).collect();
    html! { span class=(class) { (shown) @if shown.len() < line.len() { "…" } "\n" } }
}

/// All files that differ, each with its differences, and what is left out.
pub(super) fn show_comparison(comparison: &Comparison) -> Markup {
    let text = comparison.patch.text();
    // A line that was cut off could be taken for another one.
    let whole = if comparison.patch.is_cut { text.rfind('\n').map_or("", |end| &text[..=end]) } else { text.as_str() };
    let patches = split_patch(whole);
    let (count, more) = (comparison.files.len(), if comparison.has_more_files { "+" } else { "" });
    let shown = patches.len().min(FILES_MAX).min(count);
    html! {
        h2 { (count) (more) @if count == 1 && !comparison.has_more_files { " file differs" } @else { " files differ" } }
        @for (number, (file, patch)) in comparison.files.iter().zip(&patches).take(FILES_MAX).enumerate() {
            details.patch open {
                summary {
                    b { (file.path) } " " span.note { (word(file.kind))
                        @if let Some(old) = &file.old_path { " from " (old) } }
                    @if !patch.is_binary { " " span.count { "+" (patch.added) " −" (patch.removed) } }
                }
                @if patch.is_binary { p.note { "A binary or large file, whose differences are not shown." } }
                @else if patch.lines.is_empty() { p.note { "Its lines are the same." } }
                @else { pre.diff { @for line in &patch.lines { (patch_line(line)) } } }
                @if patch.left_out > 0 { p.note { (patch.left_out) " more lines are left out." } }
                @if comparison.patch.is_cut && number + 1 == patches.len() {
                    p.note { "The differences of this file are not whole: there is too much to show." }
                }
            }
        }
        @if patches.len() > count && !comparison.has_more_files {
            p.note { "Git tells of more differences than files; look at the patch itself." }
        }
        @if shown < count {
            p.note { "The differences of " (count - shown) (more) " more files are not shown:" }
            ul.note { @for file in comparison.files.iter().skip(shown).take(FILES_MAX) { li { (file.path) " " (word(file.kind)) } } }
            @if count - shown > FILES_MAX { p.note { "and " (count - shown - FILES_MAX) (more) " others." } }
        }
    }
}

/// A patch that somebody sent, line by line.
pub(super) fn show_patch_text(text: &str) -> Markup {
    let total = text.lines().count();
    html! {
        pre.diff { @for line in text.lines().take(LINES_MAX) { (patch_line(line)) } }
        @if total > LINES_MAX { p.note { (total - LINES_MAX) " more lines are left out." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use git::read::{BoundedText, ChangedFile};

    const PATCH: &str = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n++++ more\n \
                         same\ndiff --git a/y b/y\nBinary files a/y and b/y differ\n";

    #[test]
    fn a_patch_is_split_into_files_and_its_lines_counted() {
        let files = split_patch(PATCH);
        assert_eq!(files.len(), 2);
        assert_eq!((files[0].added, files[0].removed, files[0].is_binary), (2, 1, false));
        assert_eq!(files[0].lines, ["@@ -1 +1,2 @@", "-old", "+new", "++++ more", " same"]);
        assert!(files[1].is_binary && files[1].lines.is_empty());
        assert_eq!(split_patch("nonsense\n+x"), Vec::<FilePatch<'_>>::new());
    }

    fn comparison(count: usize, patch: &str, is_cut: bool) -> Comparison {
        let file = |number| ChangedFile { kind: ChangeKind::Changed, path: format!("f{number}"), old_path: None };
        let patch = BoundedText { bytes: patch.as_bytes().to_vec(), is_cut };
        Comparison { files: (0..count).map(file).collect(), has_more_files: false, patch }
    }

    #[test]
    fn what_is_left_out_is_said() {
        let whole = show_comparison(&comparison(2, PATCH, false)).into_string();
        assert!(
            whole.contains("2 files differ") && whole.contains("+2 −1") && !whole.contains("not shown:"),
            "{whole}"
        );
        assert!(whole.contains("A binary or large file"));
        let part = show_comparison(&comparison(5, PATCH, true)).into_string();
        assert!(part.contains("The differences of 3 more files are not shown:") && part.contains("f4"), "{part}");
        assert!(part.contains("are not whole"));
        let many = show_comparison(&comparison(1000, PATCH, true)).into_string();
        assert!(many.contains("and 698 others"), "{many}");
        let cut = show_comparison(&comparison(2, "diff --git a/x b/x\n@@ -1 +1 @@\n+x\ndiff --gi", true)).into_string();
        assert!(!cut.contains("diff --gi") && cut.contains("+1 −0"), "{cut}");
        let long = format!("diff --git a/x b/x\n@@ -1 +1 @@\n{}", "+x\n".repeat(LINES_MAX + 9));
        let long = show_comparison(&comparison(1, &long, false)).into_string();
        assert!(long.contains("10 more lines are left out") && long.contains("1 file differs"));
    }

    #[test]
    fn nothing_in_a_patch_does_anything() {
        let patch = "diff --git a/x b/x\n@@ -1 +1 @@\n+<script>alert(1)</script>\n";
        let shown = show_comparison(&comparison(1, patch, false)).into_string();
        assert!(!shown.contains("<script") && shown.contains("&lt;script&gt;"), "{shown}");
    }
}
