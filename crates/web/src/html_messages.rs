//! A page of messages as HTML.

use model::Seq;
use queries::messages::{RenderedMessage, RenderedPage};
use std::sync::Arc;

/// A page as HTML.
pub(crate) struct HtmlMessages {
    articles: Vec<Arc<str>>,
    /// The thread.
    pub(crate) thread: Seq,
    /// The first and the last message, by the ids of their events.
    pub(crate) first: Option<String>,
    pub(crate) last: Option<String>,
}

impl HtmlMessages {
    pub(crate) fn new(page: RenderedPage) -> HtmlMessages {
        let id = |message: Option<&RenderedMessage>| message.map(|message| message.stamp.id.to_string());
        let (first, last) = (id(page.messages.first()), id(page.messages.last()));
        let articles = page.messages.into_iter().map(|message| message.text).collect();
        HtmlMessages { articles, thread: page.thread_seq, first, last }
    }

    /// Whether there may be more before it.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        self.articles.len() >= most
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.articles.is_empty()
    }

    /// Its messages between two texts: copied once, because this is most of what pages are made of.
    pub(crate) fn between(&self, before: &str, after: &str) -> String {
        let length: usize = self.articles.iter().map(|article| article.len()).sum();
        let mut text = String::with_capacity(before.len() + length + after.len());
        text.push_str(before);
        self.articles.iter().for_each(|article| text.push_str(article));
        text.push_str(after);
        text
    }
}
