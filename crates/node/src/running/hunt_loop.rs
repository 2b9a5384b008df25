//! The hunting loop: the fetcher's session against real sources, a thread per request, within limits.

use crate::fetch::answers::AskedSource;
use crate::fetch::hunter::{FetchOrder, Fetched, Hunter, SourceClient};
use crate::large_content;
use crate::locks;
use crate::running::queue::{Lane, Queued};
use crate::running::{HuntEnd, HuntWake, IDLE, NodeInner};
use crate::threads;
use crate::writer::node_commands::{Arrive, EndHunt, RestGroup, WakeGroups};
use crate::writer_command::WriterCommand;
use crossbeam_channel::{Receiver, Sender, bounded};
use engine::chains;
use engine::fetch::RequestId;
use engine::reads::StoreError;
use engine::rows::Origin;
use model::blob::BlobForm;
use model::crypto::content_hash;
use model::{Group, Nanos, Need};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The most that jitter may shorten a rest by, in thousandths.
const JITTER_PERMILLE_MAX: u16 = 100;

/// Hunts until the node stops: wakes for commits, for the ends of requests, and for the clock.
pub(crate) fn hunt_loop(inner: &Arc<NodeInner>, source: &Arc<dyn SourceClient>, woken: &Receiver<HuntWake>) {
    let mut hunter = Hunter::new(inner.options.domains);
    let (mut ended, mut under_way) = (Vec::new(), 0);
    loop {
        let now = inner.clock.now();
        for HuntEnd { group, is_written } in std::mem::take(&mut *locks::lock(&inner.ended_hunts)) {
            hunter.settled(&group, is_written, now);
        }
        if inner.sources_changed.swap(false, Ordering::AcqRel) {
            hunter.sources_changed();
        }
        if inner.waking_failed.swap(false, Ordering::AcqRel) {
            hunter.waking_failed(now);
        }
        let mut look = || {
            let db = inner.core.store().snapshot()?;
            for ticket in ended.drain(..) {
                hunter.ended(&db, source.as_ref(), ticket, now);
            }
            let room = inner.options.fetches_max.saturating_sub(under_way);
            let orders = hunter.take_orders(&db, source.as_ref(), now, room)?;
            Ok::<_, StoreError>((orders, hunter.wake_at(&db, now).unwrap_or_default()))
        };
        // What could not be read is looked at again with the next wake.
        let (orders, wake_at) = look().unwrap_or_default();
        *locks::lock(&inner.domain_states) = hunter.domain_states(now);
        under_way += orders.iter().filter(|order| matches!(order, FetchOrder::Fetch { .. })).count();
        orders.into_iter().for_each(|order| begin(inner, source, order));
        let sleep = wake_at.map_or(IDLE, |at| Duration::from_nanos(at.0.saturating_sub(now.0)).min(IDLE));
        match woken.recv_timeout(sleep) {
            Ok(HuntWake::Ended(ticket)) => {
                under_way -= 1;
                ended.push(ticket);
            }
            Ok(HuntWake::Commit) | Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
            Ok(HuntWake::Stop) | Err(crossbeam_channel::RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Carries out an order.
fn begin(inner: &Arc<NodeInner>, source: &Arc<dyn SourceClient>, order: FetchOrder) {
    let ending = |group: &Group| EndingHunt { inner: inner.clone(), group: group.clone(), is_written: false };
    match order {
        FetchOrder::Ended { group, mark, started_at } => {
            let end = ending(&group);
            let jitter_permille = jitter(&group, started_at);
            let command = EndHunt { group, mark, started_at, jitter_permille };
            let _ = inner.queue.try_send(Queued::boxed(command, move |done| end.finish(done.is_ok())));
        }
        FetchOrder::Rest { group, mark } => {
            let end = ending(&group);
            let command = RestGroup { group, mark };
            let _ = inner.queue.try_send(Queued::boxed(command, move |done| end.finish(done.is_ok())));
        }
        FetchOrder::Wake { groups } => {
            let end = Waking { inner: inner.clone(), is_written: false };
            let _ = inner.queue.try_send(Queued::boxed(WakeGroups(groups), move |done| end.finish(done.is_ok())));
        }
        FetchOrder::Fetch { ticket, group, url, domain, needs } => {
            locks::lock(&inner.domain_requests).count(&domain);
            let (ended, source) = (Ended { inner: inner.clone(), ticket }, source.clone());
            // If no thread can be had, the request ends at once, and its hunt goes on elsewhere.
            let work = move || fetch(&ended.inner, source.as_ref(), &group, &url, &needs);
            if let Err(why) = threads::spawn("anteroom-fetch", work) {
                tracing::warn!(%why, "no thread for a request to a source");
            }
        }
    }
}

/// Tells that a request ended, however it did.
struct Ended {
    inner: Arc<NodeInner>,
    ticket: RequestId,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.inner.wakes.send(HuntWake::Ended(self.ticket));
    }
}

/// By how much the next hunt comes sooner, in thousandths: spread over groups and times, so that they do not all come at
/// once.
fn jitter(group: &Group, started_at: Nanos) -> u16 {
    let hash = blake3::hash(&[group.to_key().as_slice(), &started_at.0.to_be_bytes()].concat());
    u16::from(hash.as_bytes()[0]) * JITTER_PERMILLE_MAX / 255
}

/// Notes that the end of a hunt was written, or that it was not, however that came. The list takes every one of them: what
/// only wakes the loop may be dropped, what it must know may not.
struct EndingHunt {
    inner: Arc<NodeInner>,
    group: Group,
    is_written: bool,
}

impl EndingHunt {
    fn finish(mut self, is_written: bool) {
        self.is_written = is_written;
    }
}

impl Drop for EndingHunt {
    fn drop(&mut self) {
        let end = HuntEnd { group: self.group.clone(), is_written: self.is_written };
        locks::lock(&self.inner.ended_hunts).push(end);
        let _ = self.inner.wakes.try_send(HuntWake::Commit);
    }
}

/// Tells if groups that rest could not be woken.
struct Waking {
    inner: Arc<NodeInner>,
    is_written: bool,
}

impl Waking {
    fn finish(mut self, is_written: bool) {
        self.is_written = is_written;
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        if !self.is_written {
            self.inner.waking_failed.store(true, Ordering::Release);
            let _ = self.inner.wakes.try_send(HuntWake::Commit);
        }
    }
}

/// Asks one source. What comes is handed to the writer at once; the request has ended when the last of it is committed.
fn fetch(inner: &NodeInner, source: &dyn SourceClient, group: &Group, url: &str, needs: &[Need]) {
    let (committing, all_committed) = bounded::<()>(0);
    let (mut brought, mut unasked) = (0, 0);
    let result = source.fetch(group, url, needs, &mut |fetched| match store_fetched(
        inner,
        needs,
        fetched,
        committing.clone(),
    ) {
        Some(is_queued) => brought += usize::from(is_queued),
        None => unasked += 1,
    });
    drop(committing);
    // Nothing is ever sent: it ends when the last answer has let go of its end.
    let _ = all_committed.recv();
    let failed = match result {
        Ok(stored) => {
            brought += stored;
            None
        }
        Err(why) => Some(why.0),
    };
    let asked = AskedSource { place: url.to_owned(), at: inner.clock.now(), brought, unasked, failed };
    tracing::debug!(?asked, "a source was asked");
    inner.answers.note(group, asked);
}

/// Hands what a source brought to the writer, if it was asked for or is a key; nothing else is believed. Says whether
/// the writer took it.
fn store_fetched(inner: &NodeInner, needs: &[Need], fetched: Fetched, committing: Sender<()>) -> Option<bool> {
    let store = inner.core.store();
    match fetched {
        Fetched::Event { blob, inline } => {
            let received = chains::receive_blob(&**store.keys(), store.policy(), blob, inline, Origin::Peer(0));
            let arrival = inner.count_dropped(received).ok()?;
            let asked_for = needs.contains(&Need::Event(arrival.blob.id()));
            let is_key = matches!(arrival.blob.form(), BlobForm::Addressed { .. });
            (asked_for || is_key).then(|| queue_fetched(inner, Arrive(Box::new(arrival)), committing))
        }
        Fetched::Content { space, hash, bytes } => {
            let asked_for = needs.contains(&Need::Content(space, hash));
            (asked_for && content_hash(&bytes) == hash).then(|| {
                let staged = large_content::stage(store, space, hash, bytes, |begin| inner.ask(begin));
                staged.is_ok_and(|deliver| queue_fetched(inner, deliver, committing))
            })
        }
    }
}

fn queue_fetched(inner: &NodeInner, command: impl WriterCommand, committing: Sender<()>) -> bool {
    inner.send(Lane::Prompt, Queued::boxed(command, move |_| drop(committing))).is_ok()
}
