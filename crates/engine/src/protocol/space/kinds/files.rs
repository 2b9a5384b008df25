//! Files: the event's content is the manifest of the bytes.

use super::{Belongs, KindRules};
use crate::protocol::space::ViewRow;
use crate::rows::Meta;
use model::{ContentHash, Envelope};

pub(crate) struct File;

impl KindRules for File {
    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }

    fn body_fits(&self, body: &serde_json::Value) -> bool {
        let text = |name: &str| body.get(name).and_then(serde_json::Value::as_str);
        let hash = text("hash").is_some_and(|hash| hash.parse::<ContentHash>().is_ok());
        let size = body.get("size").is_some_and(serde_json::Value::is_u64);
        hash && size && text("name").is_some() && text("type").is_some()
    }

    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        vec![ViewRow::File { space: meta.space }]
    }
}
