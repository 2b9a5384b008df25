//! As what messages are rendered: JSON for programs, HTML for pages.

use crate::kept::RenderedMessage;
use crate::pages::{AuthorBadge, article};
use crate::problem::Problem;
use crate::render::Message;
use model::Seq;
use std::sync::Arc;

/// As what messages are wanted.
#[derive(Clone, Copy)]
pub(super) enum MessageFormat<'a> {
    Json,
    /// With links into a space of this name.
    Html(&'a str),
}

impl MessageFormat<'_> {
    /// What was rendered before.
    pub(super) fn kept(self, kept: &RenderedMessage) -> Option<&Arc<str>> {
        match self {
            MessageFormat::Json => kept.json.as_ref(),
            MessageFormat::Html(_) => kept.html.as_ref(),
        }
    }

    pub(super) fn rendered(
        self,
        message: &Message,
        face: impl FnOnce() -> Result<AuthorBadge, Problem>,
    ) -> Result<Arc<str>, Problem> {
        match self {
            MessageFormat::Json => {
                let text = serde_json::to_string(message);
                Ok(text.map_err(|_| Problem::broken("a message could not be written as JSON"))?.into())
            }
            MessageFormat::Html(space) => Ok(article(space, message, &face()?).into_string().into()),
        }
    }
}

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
    pub(super) fn new(
        articles: Vec<Arc<str>>,
        thread: Seq,
        first: Option<String>,
        last: Option<String>,
    ) -> HtmlMessages {
        HtmlMessages { articles, thread, first, last }
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
