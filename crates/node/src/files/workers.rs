//! The threads that do work for files, one piece after another.

use crate::files::processing::{ImageRenderer, work_on};
use crate::locks;
use crate::running::{Node, NodeInner};
use crate::threads;
use media::Variant;
use model::Nanos;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// After so long a worker looks without having been woken.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// After a failure to take work or to say what came of it.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

impl Node {
    /// Starts so many workers beside the node, which make these renditions of images.
    pub fn start_workers(&self, count: u64, renderer: &Arc<impl ImageRenderer>, variants: &[Variant]) {
        for number in 1..=count {
            let (node, renderer, variants) = (self.clone(), renderer.clone(), variants.to_vec());
            let work = move || work_loop(&node, renderer.as_ref(), number, &variants);
            match threads::spawn("anteroom-worker", work) {
                Ok(thread) => locks::lock(&self.threads).push(thread),
                Err(why) => tracing::error!(%why, "no thread for a worker; renditions are made by the others"),
            }
        }
    }
}

fn work_loop(node: &Node, renderer: &dyn ImageRenderer, number: u64, variants: &[Variant]) {
    let inner = &node.inner;
    let id = inner.core.store().snapshot().and_then(|db| db.node_id()).map(|id| id.to_string()).unwrap_or_default();
    let worker = format!("worker {number} of node {id}");
    crate::running::yield_to_writer();
    while !inner.is_stopping.load(Ordering::Acquire) {
        let seen = inner.commits.load(Ordering::Acquire);
        let sleep = sleep_of(inner);
        if !sleep.is_zero() {
            wait_for_work(inner, seen, sleep);
            continue;
        }
        match work_on(inner.core.store(), node, renderer, &worker, variants) {
            Ok(_) => {}
            Err(why) => {
                tracing::warn!(%why, "work for a file could not be taken or noted; its lease ends by itself");
                wait_for_work(inner, u64::MAX, AFTER_FAILURE);
            }
        }
    }
}

/// Until the next work is due.
fn sleep_of(inner: &NodeInner) -> Duration {
    let next = inner.core.store().snapshot().and_then(|db| db.next_file_job()).unwrap_or_default();
    next.map_or(LOOK_AGAIN, |at: Nanos| Duration::from_nanos(at.0.saturating_sub(inner.clock.now().0)).min(LOOK_AGAIN))
}

/// Waits until there were more commits than that, or so long, or the node stops.
fn wait_for_work(inner: &NodeInner, seen: u64, at_most: Duration) {
    let (lock, condition) = &inner.position;
    let goes_on =
        |_: &mut u64| inner.commits.load(Ordering::Acquire) <= seen && !inner.is_stopping.load(Ordering::Acquire);
    let _ = locks::after_wait(condition.wait_timeout_while(locks::lock(lock), at_most, goes_on));
}
