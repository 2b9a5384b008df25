//! Files: the event's content is the manifest of the bytes.

use super::{Belongs, KindRules};
use crate::protocol::space::ViewRow;
use crate::rows::Meta;
use model::Envelope;
use model::files::{Manifest, WantedBytes};
use model::limits::CONTENT_BYTES_MAX;

pub(crate) struct File;

impl KindRules for File {
    /// The id that its author chose for the file.
    fn aux_fits(&self, _: &Envelope) -> bool {
        true
    }

    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }

    fn body_fits(&self, body: &serde_json::Value) -> bool {
        Manifest::of_body(body).is_some_and(|manifest| manifest.content.len <= CONTENT_BYTES_MAX)
    }

    fn wanted_bytes(&self, body: &serde_json::Value) -> Option<WantedBytes> {
        Manifest::of_body(body).map(|manifest| manifest.content).filter(|wanted| wanted.len > 0)
    }

    fn rows(&self, meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
        [ViewRow::File { space: meta.space }].into_iter().chain(ViewRow::chosen(meta, envelope)).collect()
    }
}
