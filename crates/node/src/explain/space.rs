//! Why an event of the `space` protocol does not count: the right that it stands on had ended, or never was.

use engine::protocol::space::counting::{membership, permission};
use engine::reads::{Reads as _, SpaceReads as _, StoreResult};
use engine::rows::Meta;
use model::Stamp;
use serde::Serialize;
use store::Db;
use store::tables::Snapshot;

/// How many authorities that stand on each other are followed.
const AUTHORITIES_MAX: usize = 32;

/// Why an applied event does not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum NotCounting {
    /// The membership it stands on had ended.
    Ended {
        authority: String,
        /// What ended it.
        by: String,
        /// From when on.
        from: u64,
    },
    /// The membership it stands on had been lessened too far.
    Lessened {
        authority: String,
        /// What lessened it.
        by: String,
        /// To which role.
        to: String,
    },
    /// The membership it stands on does not count itself.
    Authority {
        authority: String,
        /// Why that does not count.
        because: Option<Box<NotCounting>>,
    },
    /// What it stands on is being looked at again.
    Pending,
}

pub(super) fn why_not(db: &Db<Snapshot>, meta: &Meta, stamp: Stamp) -> StoreResult<NotCounting> {
    follow(db, meta, stamp, AUTHORITIES_MAX)
}

fn follow(db: &Db<Snapshot>, meta: &Meta, stamp: Stamp, depth: usize) -> StoreResult<NotCounting> {
    let found = match meta.authority {
        Some(authority) => db.event(authority)?.map(|row| (authority, row)),
        None => None,
    };
    let Some((standing_on, row)) = found else {
        return Ok(NotCounting::Pending);
    };
    let authority = row.id.to_string();
    if let (Some(above), Some(at)) = (&row.meta, row.stamp())
        && !above.counts
    {
        let because = if depth == 0 { None } else { Some(Box::new(follow(db, above, at, depth - 1)?)) };
        return Ok(NotCounting::Authority { authority, because });
    }
    let act = permission(db, meta)?;
    let mut role = membership(db, standing_on)?.role;
    for limit in db.limits(standing_on, stamp)? {
        let by = limit.from.id.to_string();
        match limit.cap {
            None => return Ok(NotCounting::Ended { authority, by, from: limit.from.at.0 }),
            Some(cap) => role = role.min(cap),
        }
        if !act.is_permitted(role) {
            return Ok(NotCounting::Lessened { authority, by, to: role.to_string() });
        }
    }
    // A change of rights is a task of its own; until it has run, rows and rights may differ.
    Ok(NotCounting::Pending)
}
