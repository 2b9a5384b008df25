//! What the relay says of itself (NIP-11): made from what it really does and the limits it really has.

use crate::messages::{MESSAGE_BYTES_MAX, SUBSCRIPTION_ID_BYTES_MAX};
use crate::session::SUBSCRIPTIONS_MAX;
use model::NostrKey;
use model::nostr::TAGS_MAX;
use node::git::GitAccess;
use queries::nostr::EVENTS_PER_FILTER_MAX;
use serde_json::{Value, json};

/// The NIPs that are supported; each has a test.
const NIPS: [u16; 10] = [1, 5, 9, 11, 40, 42, 45, 62, 70, 77];

/// The name under which the operator is known (NIP-05): the service itself.
pub(crate) fn names(operator: &NostrKey) -> Value {
    json!({ "names": { "_": operator.to_string() } })
}

/// The document.
pub(crate) fn document(access: &GitAccess, takes_contributions: bool) -> Value {
    let mut grasps = vec!["GRASP-01"];
    grasps.extend(access.archives().then_some("GRASP-05"));
    grasps.extend(takes_contributions.then_some("GRASP-06"));
    let mut document = json!({
        "name": "Anteroom",
        "description": "Git repositories that signed Nostr events authorise, and the events about them.",
        "software": "anteroom",
        "version": env!("CARGO_PKG_VERSION"),
        "supported_nips": NIPS,
        "supported_grasps": grasps,
        "repo_acceptance_criteria":
            "Repository announcements that list this service in both `clone` and `relays`, and those of maintainers \
             whom they name.",
        "limitation": {
            "max_message_length": MESSAGE_BYTES_MAX,
            "max_subscriptions": SUBSCRIPTIONS_MAX,
            "max_limit": EVENTS_PER_FILTER_MAX,
            "default_limit": EVENTS_PER_FILTER_MAX,
            "max_subid_length": SUBSCRIPTION_ID_BYTES_MAX,
            "max_event_tags": TAGS_MAX,
            "auth_required": false,
            "payment_required": false,
            "restricted_writes": true,
        },
    });
    if let Some(operator) = access.operator {
        document["pubkey"] = operator.to_string().into();
    } else if let Some(nips) = document["supported_nips"].as_array_mut() {
        nips.retain(|nip| *nip != 5);
    }
    let mut curation = Vec::new();
    if access.is_restricted() {
        curation.push("Only owners whom the operator lists have repositories here.");
    }
    if !access.writers.is_empty() {
        curation.push("Only those whom the operator lists may publish, after they have authenticated (NIP-42).");
    }
    if !curation.is_empty() {
        document["curation"] = curation.join(" ").into();
    }
    document
}
