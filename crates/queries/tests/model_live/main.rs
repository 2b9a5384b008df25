//! Live streams whose rights change: random sequences against a naive model, with lagging readers and restarts in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

extern crate node as anteroom_node;
#[path = "../../../node/tests/common/mod.rs"]
mod common;
mod rights;

use anteroom_node::commands::{
    AdminCommand, AdminRequest, NameOrId, NewMessage, NewThread, ThreadChange, UserCommand, message_content,
};
use anteroom_queries::live::{
    ChangedRights, LiveHub, Recheck, ResumeAfter, StreamItem, Subscription, SubscriptionFilter, publish_journal,
};
use anteroom_queries::viewer::Viewer;
use common::{Home, NOW, caller, message};
use engine::access::Action;
use engine::reads::Reads as _;
use model::payload::MemberRole;
use model::{EventId, Nanos, Position};
use proptest::prelude::*;
use rights::{Rights, Told};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use store::shared::moderation::BlockKind;

const USERS: [&str; 3] = ["alice", "bob", "cat"];
const MONTH: u64 = 31 * 24 * 3600 * Nanos::SECOND;
/// More batches than a reader may be behind.
const MANY: usize = 70;

#[derive(Clone, Debug)]
enum Step {
    /// Somebody says something, so often, in the thread that all see or in the private one.
    Post {
        user: usize,
        private: bool,
        times: usize,
    },
    Edit {
        which: usize,
    },
    React {
        user: usize,
        which: usize,
    },
    Block {
        user: usize,
        other: usize,
        is_on: bool,
    },
    Participants {
        bob: bool,
        cat: bool,
    },
    Remove {
        user: usize,
    },
    Admit {
        user: usize,
    },
    Subscribe {
        user: usize,
        scope: Option<bool>,
        after: Option<usize>,
    },
    /// A month passes, and the journal is trimmed.
    Month,
    /// The node starts again, and readers come back.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS.len();
    let times = prop_oneof![12 => Just(1), 1 => Just(MANY)];
    prop_oneof![
        8 => (user(), any::<bool>(), times).prop_map(|(user, private, times)| Step::Post { user, private, times }),
        2 => any::<usize>().prop_map(|which| Step::Edit { which }),
        2 => (user(), any::<usize>()).prop_map(|(user, which)| Step::React { user, which }),
        2 => (user(), user(), any::<bool>()).prop_map(|(user, other, is_on)| Step::Block { user, other, is_on }),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(bob, cat)| Step::Participants { bob, cat }),
        1 => (1..USERS.len()).prop_map(|user| Step::Remove { user }),
        2 => (1..USERS.len()).prop_map(|user| Step::Admit { user }),
        6 => (user(), proptest::option::of(any::<bool>()), proptest::option::of(any::<usize>()))
            .prop_map(|(user, scope, after)| Step::Subscribe { user, scope, after }),
        1 => Just(Step::Month),
        1 => Just(Step::Restart),
    ]
}

/// A reader: who, of what, what they have to receive, and what they have.
struct Reader {
    user: usize,
    scope: Option<bool>,
    stream: Subscription,
    /// What they have heard of, and where they come back to.
    position: u64,
    expected: Vec<(&'static str, u64)>,
    received: Vec<(&'static str, u64)>,
    /// Whether they lost the right to read.
    has_ended: bool,
}

struct Trial {
    home: Option<Arc<Home>>,
    hub: LiveHub,
    now: u64,
    published: u64,
    rights: Rights,
    told: Vec<Told>,
    messages: Vec<(EventId, usize, bool)>,
    readers: Vec<Reader>,
    trimmed: u64,
    threads: [EventId; 2],
}

impl Trial {
    fn new() -> Trial {
        let home = Home::new();
        for user in USERS {
            home.make_admin(user);
        }
        let open = |is_private| {
            let new = NewThread { is_private, ..NewThread::default() };
            home.ask("alice", UserCommand::OpenThread(new)).unwrap().shown
        };
        let threads = [open(false), open(true)];
        let published = home.position();
        Trial {
            home: Some(Arc::new(home)),
            hub: LiveHub::default(),
            now: NOW.0,
            published,
            rights: Rights::default(),
            told: Vec::new(),
            messages: Vec::new(),
            readers: Vec::new(),
            trimmed: 0,
            threads,
        }
    }

    fn home(&self) -> &Arc<Home> {
        self.home.as_ref().unwrap()
    }

    fn name(&self, thread: bool) -> NameOrId {
        NameOrId::Event(self.threads[usize::from(thread)])
    }

    fn ask(&mut self, user: usize, command: UserCommand) -> Option<EventId> {
        self.now += Nanos::SECOND;
        let request = self.home().by(USERS[user], command);
        self.home().core.ask(request, Nanos(self.now)).ok().map(|done| done.shown)
    }

    /// Something was done: it is published, and whoever may see it has to receive it.
    fn tell(&mut self, name: &'static str, thread: Option<bool>, by: Option<usize>, shows: Option<usize>) {
        let number = self.publish();
        let told = Told { name, thread, by, shows, number };
        for reader in self.readers.iter_mut().filter(|reader| !reader.has_ended) {
            reader.has_ended = self.rights.gone.contains(&reader.user);
            let is_in_scope = reader.scope.is_none() || reader.scope == thread;
            if is_in_scope && self.rights.sees(reader.user, &told) {
                reader.expected.push((told.name, told.number));
            }
        }
        self.told.push(told);
    }

    fn publish(&mut self) -> u64 {
        let (from, to) = (self.published, self.home().position());
        let db = self.home().core.store().snapshot().unwrap();
        publish_journal(&*db, &self.hub, from, to).unwrap();
        self.published = to;
        to
    }

    fn recheck(&self, user: usize) -> Recheck {
        let (home, now) = (Arc::downgrade(self.home()), Nanos(self.now));
        Box::new(move || {
            let home = home.upgrade().expect("an open folder");
            let db = home.core.store().snapshot().unwrap();
            let viewer = Viewer::resolve(&*db, home.space, &caller(USERS[user]), Action::Read, now)?;
            Ok((db, viewer))
        })
    }

    fn open(&self, user: usize, scope: Option<bool>, after: ResumeAfter) -> Option<Subscription> {
        let thread = scope.map(|thread| self.threads[usize::from(thread)].to_string());
        let filter = SubscriptionFilter { thread, only_concerning_viewer: false };
        Subscription::open(&self.hub, &filter, after, self.recheck(user)).ok()
    }

    /// Somebody begins to read, from now on or from an earlier moment.
    fn subscribe(&mut self, user: usize, scope: Option<bool>, after: Option<usize>) {
        let now = self.published;
        let earlier = after.and_then(|after| self.told.get(after % self.told.len().max(1))).map(|told| told.number);
        let epoch = self.home().core.store().snapshot().unwrap().position().unwrap().epoch;
        let place = earlier.map_or(ResumeAfter::Now, |number| ResumeAfter::Position(Position { epoch, number }));
        let may_read = !self.rights.gone.contains(&user)
            && (scope != Some(true) || user == 0 || self.rights.insiders.contains(&user));
        let stream = self.open(user, scope, place);
        assert_eq!(stream.is_some(), may_read, "{} reads {scope:?}", USERS[user]);
        let Some(stream) = stream else { return };
        let is_reset = earlier.is_some_and(|number| number < self.trimmed);
        let from = if is_reset { now } else { earlier.unwrap_or(now) };
        let mut expected: Vec<_> = is_reset.then_some(("reset", now)).into_iter().collect();
        expected.extend(self.visible_after(from, user, scope));
        let (received, has_ended) = (Vec::new(), false);
        self.readers.push(Reader { user, scope, stream, position: from, expected, received, has_ended });
    }

    /// Every reader reads to the end, comes back where it was cut off, and has received what it had to.
    async fn drain(&mut self) {
        for at in 0..self.readers.len() {
            loop {
                let reader = &mut self.readers[at];
                let Some(item) = next_item(&mut reader.stream).await else {
                    assert!(!reader.has_ended, "{} may not read any more, and the stream stays", USERS[reader.user]);
                    break;
                };
                match item {
                    Some(StreamItem::KeepAlive) => {}
                    Some(StreamItem::Reset(position)) => {
                        reader.received.push(("reset", position.number));
                        reader.position = position.number;
                    }
                    Some(StreamItem::Event(event)) => {
                        let number = event.position.expect("a position").number;
                        reader.received.push((event.name, number));
                        reader.position = number;
                    }
                    None if reader.has_ended => break,
                    None if self.resume(at) => {}
                    None => break,
                }
            }
            let reader = &self.readers[at];
            assert_eq!(reader.received, reader.expected, "{} reads {:?}", USERS[reader.user], reader.scope);
        }
        self.readers.retain(|reader| !reader.has_ended);
    }

    /// A reader comes back where they were. What they have not received is told by what they may see now; from before
    /// what was trimmed they are told to read anew. Says whether they may read.
    fn resume(&mut self, at: usize) -> bool {
        let epoch = self.home().core.store().snapshot().unwrap().position().unwrap().epoch;
        let Reader { user, scope, position: number, .. } = self.readers[at];
        let place = ResumeAfter::Position(Position { epoch, number });
        let Some(stream) = self.open(user, scope, place) else { return false };
        let mut expected = self.readers[at].received.clone();
        match number < self.trimmed {
            true => expected.push(("reset", self.published)),
            false => expected.extend(self.visible_after(number, user, scope)),
        }
        (self.readers[at].stream, self.readers[at].expected) = (stream, expected);
        true
    }

    /// What was told after a position, of what somebody may see now.
    fn visible_after(&self, number: u64, user: usize, scope: Option<bool>) -> Vec<(&'static str, u64)> {
        let later = self.told.iter().filter(|told| told.number > number && (scope.is_none() || scope == told.thread));
        later.filter(|told| self.rights.sees(user, told)).map(|told| (told.name, told.number)).collect()
    }

    fn post(&mut self, user: usize, private: bool) {
        let content = message_content("text".into(), None).unwrap();
        let (thread, chosen, reply_to) = (Some(self.name(private)), None, None);
        let new = NewMessage { thread, chosen, content, reply_to, mentions: vec![], attachments: vec![] };
        let may = !self.rights.gone.contains(&user) && (!private || user == 0 || self.rights.insiders.contains(&user));
        let posted = self.ask(user, UserCommand::Post(new));
        assert_eq!(posted.is_some(), may, "{} posts", USERS[user]);
        if let Some(id) = posted {
            self.messages.push((id, user, private));
            self.rights.last[usize::from(private)] = Some(user);
            self.tell("message.created", Some(private), Some(user), Some(user));
        }
    }

    fn set_role(&mut self, user: usize, role: Option<MemberRole>) {
        if role.is_none() == self.rights.gone.contains(&user) {
            return;
        }
        let random = Box::new([0; 32]);
        let what = AdminCommand::SetRole { space: self.home().space, user: USERS[user].to_owned(), role, random };
        self.home().core.ask(AdminRequest::by("a test", what), Nanos(self.now)).unwrap();
        match role {
            Some(_) => drop(self.rights.gone.remove(&user)),
            None => drop(self.rights.gone.insert(user)),
        }
        self.tell("members.changed", None, None, None);
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Post { user, private, times } => (0..times).for_each(|_| self.post(user, private)),
            Step::Edit { which } if !self.messages.is_empty() => {
                let (id, author, private) = self.messages[which % self.messages.len()];
                let content = message_content("edited".into(), None).unwrap();
                if self.ask(author, UserCommand::Edit(message(id), content)).is_some() {
                    self.tell("message.changed", Some(private), Some(author), Some(author));
                }
            }
            Step::React { user, which } if !self.messages.is_empty() => {
                let (id, author, private) = self.messages[which % self.messages.len()];
                if self.ask(user, common::react(id)).is_some() {
                    self.tell("message.reacted", Some(private), Some(user), Some(author));
                }
            }
            Step::Edit { .. } | Step::React { .. } => {}
            Step::Block { user, other, is_on } if user != other && !self.rights.gone.contains(&user) => {
                let kind = is_on.then_some(BlockKind::Block);
                if self.ask(user, UserCommand::SetBlock(USERS[other].to_owned(), kind)).is_some() {
                    match is_on {
                        true => drop(self.rights.blocks.insert((user, other))),
                        false => drop(self.rights.blocks.remove(&(user, other))),
                    }
                    let db = self.home().core.store().snapshot().unwrap();
                    let identity = db.user(&self.home().space, USERS[user]).unwrap().unwrap().identity;
                    let no = db.space_no(&self.home().space).unwrap().unwrap();
                    self.hub.change_rights(no, ChangedRights::Of(vec![identity]));
                }
            }
            Step::Block { .. } => {}
            Step::Participants { bob, cat } => {
                let insiders: BTreeSet<usize> = [bob.then_some(1), cat.then_some(2)].into_iter().flatten().collect();
                let participants = Some(insiders.iter().map(|user| USERS[*user].to_owned()).collect());
                let change = ThreadChange { participants, ..ThreadChange::default() };
                if self.ask(0, UserCommand::UpdateThread(self.name(true), change)).is_some() {
                    self.rights.insiders = insiders;
                    self.tell("thread.changed", Some(true), Some(0), None);
                }
            }
            Step::Remove { user } => self.set_role(user, None),
            Step::Admit { user } => self.set_role(user, Some(MemberRole::Admin)),
            Step::Subscribe { user, scope, after } => self.subscribe(user, scope, after),
            Step::Month => {
                self.now += MONTH;
                let store = self.home().core.store();
                store.write(Nanos(self.now), |batch| batch.trim_journal(usize::MAX)).unwrap();
                self.trimmed = self.home().position();
            }
            Step::Restart => self.restart(),
        }
    }

    fn restart(&mut self) {
        self.hub = LiveHub::default();
        let home = Arc::into_inner(self.home.take().unwrap()).expect("nobody reads");
        self.home = Some(Arc::new(home.crash()));
        for at in 0..self.readers.len() {
            self.readers[at].has_ended = !self.resume(at);
        }
    }
}

/// What a stream brings now; none if it brings nothing.
async fn next_item(stream: &mut Subscription) -> Option<Option<StreamItem>> {
    let mut next = std::pin::pin!(stream.next());
    let mut polls = 0;
    std::future::poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Ready(item) => Poll::Ready(Some(item)),
        // It lets others run between two parts of the journal.
        Poll::Pending if polls < 3 => {
            polls += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever reads receives everything that they may see, once and in order, and nothing else.
    #[test]
    fn streams_bring_what_their_readers_may_see(steps in proptest::collection::vec(step(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut trial = Trial::new();
        for step in &steps {
            trial.take(step);
            runtime.block_on(trial.drain());
        }
    }
}
