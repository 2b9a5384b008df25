//! Jobs: random sequences of commands against a naive model, with crashes in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::commands::{AdminCommand, AdminResult};
use anteroom_node::node_commands::Tick;
use common::{Home, NOW};
use model::{EventId, Nanos};
use proptest::prelude::*;
use std::collections::BTreeMap;
use store::shared::jobs::JobKind;
use store::shared::retention::Retention;

#[derive(Clone, Debug)]
enum Step {
    /// Users say this many things.
    Post {
        user: u8,
        times: u8,
    },
    /// What is beyond the rule is to go.
    Retain {
        whole_node: bool,
    },
    /// Everything that a user said is to go.
    Erase {
        user: u8,
    },
    Rotate,
    Encrypt,
    /// So many commits.
    Ticks(u8),
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2_u8, prop_oneof![Just(1_u8), Just(60)]).prop_map(|(user, times)| Step::Post { user, times }),
        2 => any::<bool>().prop_map(|whole_node| Step::Retain { whole_node }),
        2 => (0..2_u8).prop_map(|user| Step::Erase { user }),
        1 => Just(Step::Rotate),
        1 => Just(Step::Encrypt),
        4 => (1..4_u8).prop_map(Step::Ticks),
        2 => Just(Step::Crash),
    ]
}

/// A message: who wrote it, and whether it must go, in the end.
struct Said {
    id: EventId,
    user: String,
    must_go: bool,
}

struct Trial {
    home: Home,
    now: u64,
    keeps: Option<u64>,
    said: Vec<Said>,
    /// How often each name was erased; whoever comes back is somebody else.
    erased: [u32; 2],
    /// The work of each job, and whether it was seen to have ended.
    jobs: BTreeMap<u64, (JobKind, bool)>,
}

impl Trial {
    fn name(&self, user: u8) -> String {
        format!("user-{user}-{}", self.erased[usize::from(user)])
    }

    /// Something is asked for: one that has not started serves for it, and one that has is followed by another.
    fn begin(&mut self, what: AdminCommand, work: JobKind) {
        let db = self.home.core.store().snapshot().unwrap();
        let has_started = |number: &u64| db.job(*number).unwrap().expect("a job").started_at.is_some();
        let known = self.jobs.iter().filter(|(_, (other, _))| *other == work).map(|(number, _)| *number);
        let waiting = known.rev().find(|number| !has_started(number));
        let next = self.jobs.keys().last().map_or(1, |last| last + 1);
        let AdminResult::Begun(number) = self.home.administer(what) else { panic!("no job") };
        assert_eq!(number, waiting.unwrap_or(next), "{work:?}");
        self.jobs.entry(number).or_insert((work, false));
        self.look();
    }

    fn has_ended(&self, number: u64) -> bool {
        let db = self.home.core.store().snapshot().unwrap();
        let job = db.job(number).unwrap().expect("a job that was begun");
        assert_eq!(job.failed, None);
        assert_eq!(db.open_jobs().unwrap().contains(&number), job.ended_at.is_none());
        job.ended_at.is_some()
    }

    /// A job that has ended stays so, and there are no others.
    fn look(&mut self) {
        let numbers: Vec<u64> = self.jobs.keys().copied().collect();
        for number in numbers {
            let has_ended = self.has_ended(number);
            let (work, had_ended) = self.jobs.get_mut(&number).unwrap();
            assert!(has_ended || !*had_ended, "{work:?} goes on after its end");
            *had_ended = has_ended;
        }
        let db = self.home.core.store().snapshot().unwrap();
        for number in self.jobs.keys() {
            let job = db.job(*number).unwrap().unwrap();
            let before = job.after.map(|before| db.job(before).unwrap().unwrap());
            let has_waited = before.is_none_or(|before| job.started_at.is_none() || before.ended_at.is_some());
            assert!(has_waited, "job {number} started before the one that it follows had ended");
        }
        let known: Vec<u64> =
            db.jobs(u64::MAX, usize::MAX).unwrap().into_iter().map(|(number, _)| number).rev().collect();
        assert_eq!(known, Vec::from_iter(self.jobs.keys().copied()));
    }

    fn take(mut self, step: &Step) -> Trial {
        let space = self.home.space;
        match *step {
            Step::Post { user, times } => {
                for time in 0..times {
                    // Whoever writes for the first time is ahead of the clock by as many nanoseconds as events come before.
                    self.now += Nanos::SECOND;
                    let name = self.name(user);
                    let request = self.home.posting(&name, &format!("text {time}"));
                    let id = self.home.core.ask(request, Nanos(self.now)).unwrap().shown;
                    self.said.push(Said { id, user: name, must_go: false });
                }
            }
            Step::Retain { whole_node } => {
                let beyond = self.said.len().saturating_sub(self.keeps.map_or(usize::MAX, |keeps| keeps as usize));
                self.said.iter_mut().take(beyond).for_each(|said| said.must_go = true);
                let work = JobKind::Retain((!whole_node).then_some(space));
                self.begin(AdminCommand::Begin(work.clone()), work);
            }
            Step::Erase { user } => {
                let name = self.name(user);
                let db = self.home.core.store().snapshot().unwrap();
                let Some(known) = db.user(&space, &name).unwrap() else { return self };
                self.said.iter_mut().filter(|said| said.user == name).for_each(|said| said.must_go = true);
                self.erased[usize::from(user)] += 1;
                self.begin(AdminCommand::EraseUser(space, name), JobKind::Erase(space, known.identity));
            }
            Step::Rotate => self.begin(AdminCommand::Begin(JobKind::Rotate(space)), JobKind::Rotate(space)),
            Step::Encrypt => self.begin(AdminCommand::Begin(JobKind::Encrypt), JobKind::Encrypt),
            Step::Ticks(count) => {
                (0..count).for_each(|_| self.home.core.ask(Tick, Nanos(self.now)).unwrap());
            }
            Step::Crash => self.home = self.home.crash(),
        }
        self.look();
        self
    }

    /// All jobs end; what had to go is gone, once, and what could stay is there.
    fn end(mut self) {
        for _ in 0..400 {
            if self.jobs.values().all(|(_, has_ended)| *has_ended) {
                break;
            }
            self = self.take(&Step::Ticks(1));
        }
        self.home.core.settle(Nanos(self.now)).unwrap();
        let open: Vec<_> = self.jobs.values().filter(|(_, has_ended)| !has_ended).collect();
        assert!(open.is_empty(), "{open:?} do not end");
        let beyond = self.said.len().saturating_sub(self.keeps.map_or(usize::MAX, |keeps| keeps as usize));
        let mut gone = 0;
        for (index, said) in self.said.iter().enumerate() {
            let is_gone = self.home.is_purged(said.id);
            assert!(is_gone || !said.must_go, "message {index} of {} is still there", said.user);
            assert!(!is_gone || said.must_go || index < beyond, "message {index} of {} is gone", said.user);
            gone += u64::from(is_gone);
        }
        let db = self.home.core.store().snapshot().unwrap();
        for number in self.jobs.keys() {
            let job = db.job(*number).unwrap().unwrap();
            assert!(job.receipt.seen >= job.receipt.deleted, "{job:?}");
        }
        let deleted: u64 = self.jobs.keys().map(|number| db.job(*number).unwrap().unwrap().receipt.deleted).sum();
        assert_eq!(deleted, gone, "what the receipts say");
        self.home.verify();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn jobs_end_and_do_once_what_they_are_for(
        keeps in proptest::option::of(0..70_u64), steps in proptest::collection::vec(step(), 1..30),
    ) {
        let home = Home::new();
        // The thread is somebody's who stays.
        let first = home.post("opener", "welcome");
        if let Some(count) = keeps {
            let rule = Retention { count: Some(count), ..Retention::default() };
            home.administer(AdminCommand::Retain(home.space, None, Some(rule)));
        }
        let said = vec![Said { id: first, user: "opener".to_owned(), must_go: false }];
        let mut trial = Trial { home, now: NOW.0, keeps, said, erased: [0; 2], jobs: BTreeMap::new() };
        for step in &steps {
            trial = trial.take(step);
        }
        trial.end();
    }
}

#[test]
fn what_is_asked_for_again_waits_for_the_one_that_runs() {
    let home = Home::new();
    // More than one part of a job looks at.
    for number in 0..600 {
        home.post("opener", &format!("message {number}"));
    }
    let begin = || match home.administer(AdminCommand::Begin(JobKind::Rotate(home.space))) {
        AdminResult::Begun(number) => number,
        other => panic!("{other:?}"),
    };
    let job = |number| home.core.store().snapshot().unwrap().job(number).unwrap().unwrap();
    // The first part of a rotation makes the key, and no more.
    let first = begin();
    assert!(job(first).started_at.is_some() && job(first).ended_at.is_none());
    let second = begin();
    assert_eq!((second, job(second).after), (first + 1, Some(first)));
    // A third that is asked for now is the second, which has not started.
    assert_eq!(begin(), second);
    while job(first).ended_at.is_none() {
        assert_eq!(job(second).started_at, None, "the turn is that of the first");
        home.core.ask(Tick, NOW).unwrap();
    }
    home.core.settle(NOW).unwrap();
    assert!(job(second).ended_at.is_some());
}
