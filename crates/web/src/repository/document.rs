//! Documents of a repository as HTML: Markdown whose links lead to pages of the repository.
//!
//! Raw HTML is not taken over: its tags are left out, and the text between them stays. Pictures of the repository are
//! shown; those of elsewhere are links, because a browser would fetch them from there.

use crate::markdown::is_web_address;
use crate::repository::frame::link;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use server::auth::sessions::percent_decode;
use std::collections::BTreeMap;

/// What may become of a document, for each of its bytes; one of which more would is shown as it was written.
const HTML_FACTOR_MAX: usize = 12;
/// Headings of different names that links can lead to.
const HEADINGS_MAX: usize = 1000;
/// What stands before the name of a place in a document, so that it is not one of the page.
const PLACE: &str = "doc-";

/// Where a document stands.
pub(crate) struct DocumentLinks<'a> {
    /// What paths of the repository's pages begin with.
    pub(crate) base: &'a str,
    /// The commit, as links name it.
    pub(crate) at: &'a str,
    /// The folder that the document is in.
    pub(crate) folder: &'a str,
}

impl DocumentLinks<'_> {
    /// Where a link leads; nothing, if it must not be followed.
    fn address(&self, target: &str, page: &str) -> Option<String> {
        if is_web_address(target) {
            return Some(target.to_owned());
        }
        if let Some(place) = target.strip_prefix('#') {
            return Some(format!("#{PLACE}{}", slug(place)));
        }
        let has_scheme = target.split('/').next().is_some_and(|first| first.contains(':'));
        if has_scheme || target.starts_with("//") || target.contains('\\') {
            return None;
        }
        let (path, place) = target.split_once('#').map_or((target, ""), |(path, place)| (path, place));
        let path = path.split('?').next().unwrap_or_default();
        let query = [("at", self.at), ("path", &self.path_of(path)?)];
        let place = if place.is_empty() { String::new() } else { format!("#{PLACE}{}", slug(place)) };
        Some(link(self.base, page, &query) + &place)
    }

    /// A path of the repository, seen from the folder of the document.
    fn path_of(&self, relative: &str) -> Option<String> {
        let decoded = percent_decode(relative);
        let (beginning, rest) = match decoded.strip_prefix('/') {
            Some(rest) => ("", rest),
            None => (self.folder, decoded.as_str()),
        };
        let mut steps: Vec<&str> = Vec::new();
        for step in beginning.split('/').chain(rest.split('/')) {
            match step {
                "" | "." => {}
                ".." => drop(steps.pop()?),
                step => steps.push(step),
            }
        }
        Some(steps.join("/"))
    }
}

/// The name of a place, as hosts of repositories make it of a heading.
fn slug(text: &str) -> String {
    let letter = |letter: char| match letter {
        ' ' | '-' => Some('-'),
        '_' => Some('_'),
        letter => letter.is_alphanumeric().then_some(letter),
    };
    text.trim().to_lowercase().chars().filter_map(letter).collect()
}

/// A document as HTML that is safe to show.
pub(crate) fn document_html(text: &str, links: &DocumentLinks<'_>) -> String {
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_TABLES;
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    let mut events: Vec<Event<'_>> = Vec::new();
    // Tables are filled up with empty cells: a little text could become a great deal of HTML.
    for event in Parser::new_ext(text, options) {
        events.push(event);
        if events.len() > text.len().saturating_mul(2) + 1000 {
            return plain(text);
        }
    }
    name_headings(&mut events);
    html::push_html(&mut out, harmless(events, links).into_iter());
    if out.len() > text.len().saturating_mul(HTML_FACTOR_MAX) + 10_000 { plain(text) } else { out }
}

/// A text as it was written.
fn plain(text: &str) -> String {
    maud::html! { pre { (text) } }.into_string()
}

/// Gives each heading a name that links can lead to.
fn name_headings(events: &mut [Event<'_>]) {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for at in 0..events.len() {
        if !matches!(events[at], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        if taken.len() >= HEADINGS_MAX {
            return;
        }
        let words = events[at..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let title: String = words
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let name = slug(&title);
        let count = taken.entry(name.clone()).or_default();
        let unique = if *count == 0 { name } else { format!("{name}-{count}") };
        *count += 1;
        if let Event::Start(Tag::Heading { id, classes, attrs, .. }) = &mut events[at] {
            (*classes, *attrs) = (Vec::new(), Vec::new());
            *id = Some(format!("{PLACE}{unique}").into());
        }
    }
}

/// Leaves out what could do something other than show text, and makes links lead to pages of the repository.
fn harmless<'a>(events: Vec<Event<'a>>, links: &DocumentLinks<'_>) -> Vec<Event<'a>> {
    let mut shown = Vec::with_capacity(events.len());
    // Pictures of elsewhere become links, which end where the picture does; links in links are left out.
    let (mut depth, mut images): (u32, Vec<ShownAs>) = (0, Vec::new());
    // A tag or a comment may go on in the next line.
    let mut html_block: Option<String> = None;
    for event in events {
        let title = CowStr::Borrowed("");
        match event {
            Event::Html(text) | Event::InlineHtml(text) => match &mut html_block {
                Some(block) => block.push_str(&text),
                None => shown.push(Event::Text(without_tags(&text).into())),
            },
            Event::Start(Tag::HtmlBlock) => html_block = Some(String::new()),
            Event::End(TagEnd::HtmlBlock) => {
                let text = without_tags(&html_block.take().unwrap_or_default());
                if !text.trim().is_empty() {
                    shown.push(Event::Start(Tag::Paragraph));
                    shown.push(Event::Text(text.into()));
                    shown.push(Event::End(TagEnd::Paragraph));
                }
            }
            Event::Start(Tag::Link { link_type, dest_url, id, .. }) => {
                let dest_url = links.address(&dest_url, "files").map_or(CowStr::Borrowed("#"), CowStr::from);
                depth += 1;
                if depth == 1 {
                    shown.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if depth == 1 {
                    shown.push(Event::End(TagEnd::Link));
                }
                depth = depth.saturating_sub(1);
            }
            Event::Start(Tag::Image { link_type, dest_url, id, .. }) => {
                let is_inside = depth > 0;
                let is_outside = is_web_address(&dest_url);
                let address = links.address(&dest_url, if is_outside { "files" } else { "raw" });
                let (shown_as, tag) = match (address, is_outside, is_inside) {
                    (Some(address), false, _) => {
                        let dest_url = address.into();
                        (ShownAs::Picture, Some(Tag::Image { link_type, dest_url, title, id }))
                    }
                    (Some(address), true, false) => {
                        let dest_url = address.into();
                        (ShownAs::Link, Some(Tag::Link { link_type, dest_url, title, id }))
                    }
                    (None, _, _) | (Some(_), true, true) => (ShownAs::Text, None),
                };
                images.push(shown_as);
                shown.extend(tag.map(Event::Start));
            }
            Event::End(TagEnd::Image) => match images.pop() {
                Some(ShownAs::Picture) => shown.push(Event::End(TagEnd::Image)),
                Some(ShownAs::Link) => shown.push(Event::End(TagEnd::Link)),
                Some(ShownAs::Text) | None => {}
            },
            other => shown.push(other),
        }
    }
    shown
}

/// What becomes of a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownAs {
    Picture,
    Link,
    Text,
}

/// The text between tags, without comments.
fn without_tags(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let tag = &rest[start..];
        let end = if tag.starts_with("<!--") { "-->" } else { ">" };
        match tag.find(end) {
            Some(at) => rest = &tag[at + end.len()..],
            None => return out,
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: DocumentLinks<'static> = DocumentLinks { base: "/r.git", at: "refs/heads/m", folder: "docs" };

    #[test]
    fn links_lead_to_pages_of_the_repository() {
        let at = "?at=refs%2Fheads%2Fm";
        for (target, expected) in [
            ("https://a.example/", Some("https://a.example/".to_owned())),
            ("a.md", Some(format!("/r.git/files{at}&path=docs%2Fa.md"))),
            ("./a%20b.md", Some(format!("/r.git/files{at}&path=docs%2Fa%20b.md"))),
            ("../LICENSE", Some(format!("/r.git/files{at}&path=LICENSE"))),
            ("/src/x.rs?raw=1#L3", Some(format!("/r.git/files{at}&path=src%2Fx.rs#doc-l3"))),
            ("#Some Thing!", Some("#doc-some-thing".to_owned())),
            ("../../etc/passwd", None),
            ("javascript:alert(1)", None),
            ("JAVASCRIPT:alert(1)", None),
            ("data:text/html,x", None),
            ("//evil.example/x", None),
            ("\\\\evil.example", None),
        ] {
            assert_eq!(LINKS.address(target, "files"), expected, "{target}");
        }
    }

    #[test]
    fn documents_are_shown_as_they_are_meant() {
        for (text, expected) in [
            ("# A *b*", "<h1 id=\"doc-a-b\">A <em>b</em></h1>\n"),
            ("# A\n# A", "<h1 id=\"doc-a\">A</h1>\n<h1 id=\"doc-a-1\">A</h1>\n"),
            ("one\ntwo", "<p>one\ntwo</p>\n"),
            ("![x](a.png)", "<p><img src=\"/r.git/raw?at=refs%2Fheads%2Fm&amp;path=docs%2Fa.png\" alt=\"x\" /></p>\n"),
            ("![x](https://e.example/p.png)", "<p><a href=\"https://e.example/p.png\">x</a></p>\n"),
            ("[![x](https://e.example/p.png)](https://f.example)", "<p><a href=\"https://f.example\">x</a></p>\n"),
            ("[x](javascript:alert(1))", "<p><a href=\"#\">x</a></p>\n"),
            ("a <b>bold</b> c", "<p>a bold c</p>\n"),
        ] {
            assert_eq!(document_html(text, &LINKS), expected, "{text}");
        }
        let comment = document_html("<!-- a -> b\n c -->\n\n<div\n class=\"x\"\n>after</div>\n", &LINKS);
        assert_eq!(comment.trim(), "<p>after\n</p>");
        let block = document_html("<p align=\"center\">\n  <img src=x onerror=alert(1)> text\n</p>\n", &LINKS);
        assert!(block.contains("text") && !block.contains("onerror") && !block.contains("<img"), "{block}");
    }

    #[test]
    fn nothing_in_a_document_does_anything() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<<script>script>alert(1)</script>",
            "<!-- --><iframe src=//evil.example></iframe>",
            "[x](vbscript:x \"a\\\" onmouseover=alert(1)\")",
            "# x {onclick=alert(1)}",
            "![\"><script>](a.png)",
            "```html\n<script>\n```",
            "<a href=\"javascript:alert(1)\">x</a>",
        ] {
            let shown = document_html(text, &LINKS);
            for tag in shown.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
                let name = tag.split(' ').next().unwrap_or_default().trim_start_matches('/');
                assert!(["p", "a", "h1", "pre", "code", "img"].contains(&name), "{text}: {shown}");
                assert!(!tag.contains(" on") && !tag.contains("script:"), "{text}: {shown}");
            }
        }
    }

    #[test]
    fn a_little_document_does_not_become_a_great_deal_of_html() {
        let table = format!("{}\n{}\n{}", "a|".repeat(2000), "-|".repeat(2000), "x\n".repeat(4000));
        for text in [table, "> ".repeat(8000), "* ".repeat(8000), "# a\n".repeat(5000), "#\n".repeat(100_000)] {
            let shown = document_html(&text, &LINKS).len();
            assert!(shown <= text.len() * HTML_FACTOR_MAX + 20_000, "{shown} of {}", text.len());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_document_can_be_shown(text in ".{0,400}") {
            let shown = document_html(&text, &LINKS).to_ascii_lowercase();
            proptest::prop_assert!(!shown.contains("<script") && !shown.contains("javascript:"));
        }
    }
}
