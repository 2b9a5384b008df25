//! Text of people as HTML: Markdown without raw HTML and without anything that a browser would fetch.

use linkify::{LinkFinder, LinkKind};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeStream, html};
use pulldown_cmark_escape::escape_html;

/// What is shown of one text; the rest is behind a link to the message.
const BYTES_MAX: usize = 16 * 1024;
/// What may become of it; a text of which more would is shown as it was written.
const HTML_BYTES_MAX: usize = 4 * BYTES_MAX;

/// Markdown as HTML that is safe to show.
pub(crate) fn html_of(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(BYTES_MAX)];
    // No tables: their rows are filled up with empty cells, and a little text becomes a great deal of HTML.
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut out = String::with_capacity(shown.len() + shown.len() / 4);
    // A line that was broken stays broken, as people expect of a chat.
    let events = Parser::new_ext(shown, options).map(harmless);
    html::push_html(&mut out, marked(TextMergeStream::new(events)));
    if out.len() > HTML_BYTES_MAX {
        out.clear();
        out.push_str("<pre>");
        let _ = escape_html(&mut out, shown);
        out.push_str("</pre>");
    }
    if shown.len() < text.len() {
        out.push_str("<p class=\"note\">The text is longer; this is its beginning.</p>");
    }
    out
}

/// What could do something other than show text becomes text, or a link that says where it leads.
fn harmless(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::SoftBreak => Event::HardBreak,
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { link_type: LinkType::Email, dest_url, id, .. }) => {
            let (link_type, title) = (LinkType::Email, CowStr::Borrowed(""));
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::Start(Tag::Link { dest_url, id, .. } | Tag::Image { dest_url, id, .. }) => {
            let (link_type, title) = (LinkType::Inline, CowStr::Borrowed(""));
            Event::Start(Tag::Link { link_type, dest_url: vetted(dest_url), title, id })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        // A heading in a message is not one of the page.
        Event::Start(Tag::Heading { .. }) => Event::Start(Tag::Strong),
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Strong),
        Event::FootnoteReference(text) => Event::Text(text),
        other => other,
    }
}

/// An address that may be followed, or one that leads nowhere.
fn vetted(address: CowStr<'_>) -> CowStr<'_> {
    let is_here = address.starts_with('/') && !address.starts_with("//") && !address.contains('\\');
    if is_here || is_web_address(&address) { address } else { CowStr::Borrowed("#") }
}

/// Whether an address leads to another page or to somebody's mailbox, and runs nothing.
pub(crate) fn is_web_address(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https" | "mailto"))
}

/// Marks `@name` in text, and makes addresses links.
fn marked<'a>(events: impl Iterator<Item = Event<'a>>) -> impl Iterator<Item = Event<'a>> {
    let (mut is_code, mut links) = (false, 0_u32);
    events.flat_map(move |event| {
        match &event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Start(Tag::Link { .. }) => links += 1,
            Event::End(TagEnd::Link) => links = links.saturating_sub(1),
            _ => {}
        }
        // A picture in a link would be a link in a link.
        let is_inner = match &event {
            Event::Start(Tag::Link { .. }) => links > 1,
            Event::End(TagEnd::Link) => links > 0,
            _ => false,
        };
        match event {
            _ if is_inner => Vec::new(),
            Event::Text(text) if !is_code && links == 0 && text.contains("://") => split_links(&text),
            Event::Text(text) if !is_code && text.contains('@') => split_mentions(&text),
            other => vec![other],
        }
    })
}

fn split_links<'a>(text: &str) -> Vec<Event<'a>> {
    let mut finder = LinkFinder::new();
    finder.kinds(&[LinkKind::Url]);
    let mut events = Vec::new();
    for span in finder.spans(text) {
        let part = span.as_str();
        let scheme = part.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if span.kind().is_none() || !matches!(scheme.as_deref(), Some("https" | "http")) {
            events.extend(split_mentions(part));
            continue;
        }
        let (dest_url, title, id) = (part.to_owned().into(), CowStr::Borrowed(""), CowStr::Borrowed(""));
        events.push(Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id }));
        events.push(Event::Text(part.to_owned().into()));
        events.push(Event::End(TagEnd::Link));
    }
    events
}

fn split_mentions<'a>(text: &str) -> Vec<Event<'a>> {
    let mut events = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let name = name_at(&rest[at + 1..]);
        let is_word = rest[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
        if name.is_empty() || !is_word {
            let end = at + 1 + name.len();
            events.push(Event::Text(rest[..end].to_owned().into()));
            rest = &rest[end..];
            continue;
        }
        events.push(Event::Text(rest[..at].to_owned().into()));
        events.push(Event::InlineHtml("<span class=\"at\">".into()));
        events.push(Event::Text(format!("@{name}").into()));
        events.push(Event::InlineHtml("</span>".into()));
        rest = &rest[at + 1 + name.len()..];
    }
    events.push(Event::Text(rest.to_owned().into()));
    events
}

/// The longest beginning of a text that can be a name.
fn name_at(text: &str) -> &str {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let end = text.find(|letter| !is_letter(letter)).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', '-'])
}

/// The names that a text mentions, each once.
pub(crate) fn mentions(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text.match_indices('@').map(|(at, _)| name_at(&text[at + 1..])).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_shown_as_they_mean_it() {
        for (text, expected) in [
            ("a *b* **c** `d`", "<p>a <em>b</em> <strong>c</strong> <code>d</code></p>\n"),
            ("one\ntwo", "<p>one<br />\ntwo</p>\n"),
            ("# big", "<strong>big</strong>"),
            ("[x](https://a.example/)", "<p><a href=\"https://a.example/\">x</a></p>\n"),
            ("hi @bob, ok", "<p>hi <span class=\"at\">@bob</span>, ok</p>\n"),
            ("mail a@b.c", "<p>mail a@b.c</p>\n"),
            ("<a@b.c>", "<p><a href=\"mailto:a@b.c\">a@b.c</a></p>\n"),
            ("[d](/docs)", "<p><a href=\"/docs\">d</a></p>\n"),
            ("[d](//evil.example)", "<p><a href=\"#\">d</a></p>\n"),
            ("`@bob`", "<p><code>@bob</code></p>\n"),
            (
                "see https://a.example/b_c?d=e&f (@bob).",
                "<p>see <a href=\"https://a.example/b_c?d=e&amp;f\">https://a.example/b_c?d=e&amp;f</a> \
                 (<span class=\"at\">@bob</span>).</p>\n",
            ),
            ("(http://a.example/@x).", "<p>(<a href=\"http://a.example/@x\">http://a.example/@x</a>).</p>\n"),
            ("[https://a.example](https://b.example)", "<p><a href=\"https://b.example\">https://a.example</a></p>\n"),
            ("`https://a.example`", "<p><code>https://a.example</code></p>\n"),
            ("Https://a.example", "<p><a href=\"Https://a.example\">Https://a.example</a></p>\n"),
            ("[![a](/b) https://c.example](/d)", "<p><a href=\"/d\">a https://c.example</a></p>\n"),
            ("ssh://a.example", "<p>ssh://a.example</p>\n"),
        ] {
            assert_eq!(html_of(text), expected, "{text}");
        }
    }

    #[test]
    fn nothing_that_people_write_does_anything() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html;base64,AAAA)",
            "![x](http://evil.example/pixel.png)",
            "<a href=\"javascript:alert(1)\">x</a>",
            "<div\nonclick=alert(1)>",
            "[x](vbscript:x \"a\\\" onmouseover=alert(1)\")",
            "@<script>alert(1)</script>",
            "https://a.example/\"onmouseover=alert(1)//",
            "javascript://https://a.example/%0aalert(1)",
            "https://a.example/<script>alert(1)</script>",
            "```<script>\n</script>\n```",
            "<style>*{display:none}</style>",
            "<!-- --><iframe src=//evil.example></iframe>",
        ] {
            let shown = html_of(text);
            for tag in shown.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
                let name = tag.split(' ').next().unwrap_or_default().trim_start_matches('/');
                let known = ["p", "a", "br", "strong", "em", "code", "pre", "span"];
                assert!(known.contains(&name), "{text}: {shown}");
                for word in ["script:", "data:", "src=", " on"] {
                    assert!(!tag.to_ascii_lowercase().contains(word), "{text}: {shown}");
                }
            }
        }
    }

    #[test]
    fn a_little_text_does_not_become_a_great_deal_of_html() {
        let table = format!("{}\n{}\n{}", "a|".repeat(500), "-|".repeat(500), "x\n".repeat(4000));
        for text in [table, "> ".repeat(8000), "* ".repeat(8000), "`a`".repeat(5000), "@a ".repeat(5000)] {
            let shown = html_of(&text).len();
            assert!(shown <= HTML_BYTES_MAX + 200 || shown <= 6 * text.len() + 200, "{shown} of {}", text.len());
        }
    }

    #[test]
    fn mentions_are_names_each_once() {
        assert_eq!(mentions("@bob and @alice-b. @bob @ x@"), ["alice-b", "bob"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_shown(text in ".{0,400}") {
            let shown = html_of(&text);
            proptest::prop_assert!(!shown.to_ascii_lowercase().contains("<script"));
        }
    }
}
