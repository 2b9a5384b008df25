//! Politeness towards one domain: how much is asked of it at a time, and whose turn it is.
//!
//! Two limits hold at once: how many requests are in flight, and how many were started within a sliding window. A start
//! at `t` occupies its place in the window from `t` until just before `t + window`. Groups that find the domain busy
//! wait in its queue. They take turns: a group whose request has ended goes behind all that are waiting. A group that
//! has nothing left to ask here leaves when its turn comes, and costs the domain nothing.

use super::{MINUTE, Nanoseconds};
use model::planted::{PlantedBug, is_planted};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How much may be asked of one domain. A limit of zero would silence a domain for ever and counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainLimits {
    /// Requests in flight at the same time.
    pub in_flight_max: u32,
    /// Starts within any one window.
    pub starts_per_window_max: u32,
    /// The length of the sliding window.
    pub window: Nanoseconds,
}

impl Default for DomainLimits {
    fn default() -> Self {
        DomainLimits { in_flight_max: 5, starts_per_window_max: 30, window: MINUTE }
    }
}

/// Whether a domain can take one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// It can.
    Now,
    /// It can from this moment on, when the window frees a slot.
    At(Nanoseconds),
    /// It can after one of the requests in flight has ended.
    AfterCompletion,
}

/// One domain: what it is doing for us, and who waits for it.
#[derive(Clone, Debug)]
pub struct Domain<G> {
    in_flight: u32,
    /// How many of those in flight have not been started yet.
    reserved: u32,
    /// The starts that may still be in the window, oldest first.
    starts: VecDeque<Nanoseconds>,
    queue: BTreeMap<G, Queued>,
    /// The queued groups without a request in flight, in the order of their turns.
    turns: VecDeque<G>,
    pause: Pause,
}

/// A group's stay in the queue.
#[derive(Clone, Debug)]
struct Queued {
    tried: BTreeSet<String>,
    state: QueuedState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueuedState {
    /// It has its place among the turns.
    Waiting,
    /// It has a request in flight, and no turn until that has ended.
    Asking,
}

/// Why the queue stood still when it was last looked at, and so what sets it going again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// Nobody was waiting for a turn.
    NobodyWaiting,
    /// The window was full.
    Window,
    /// Too many requests were in flight.
    Completion,
}

impl<G> Default for Domain<G> {
    fn default() -> Self {
        Domain {
            in_flight: 0,
            reserved: 0,
            starts: VecDeque::new(),
            queue: BTreeMap::new(),
            turns: VecDeque::new(),
            pause: Pause::NobodyWaiting,
        }
    }
}

impl<G: Ord + Clone> Domain<G> {
    /// Whether one more request may start.
    pub fn capacity(&self, limits: &DomainLimits, now: Nanoseconds) -> Capacity {
        if self.in_flight >= limits.in_flight_max.max(1) {
            return Capacity::AfterCompletion;
        }
        match self.slot_freed_at(limits, now) {
            Some(at) if at > now => Capacity::At(at),
            Some(_) | None => Capacity::Now,
        }
    }

    /// When the window lets the queue go on, if the window is what the queue waits for.
    pub fn wake_at(&self, limits: &DomainLimits, now: Nanoseconds) -> Option<Nanoseconds> {
        match self.pause {
            Pause::Window => Some(self.slot_freed_at(limits, now).unwrap_or(now)),
            Pause::NobodyWaiting | Pause::Completion => None,
        }
    }

    /// Counts a request that is to start as soon as somebody can perform it.
    pub fn reserve(&mut self) {
        self.in_flight = self.in_flight.saturating_add(1);
        self.reserved = self.reserved.saturating_add(1);
    }

    /// Counts the start of a request that has its place already.
    pub fn start(&mut self, now: Nanoseconds) {
        self.reserved = self.reserved.saturating_sub(1);
        self.starts.push_back(now);
    }

    /// Counts a request that has ended.
    pub fn complete(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Puts the group last in the queue, with the URLs that were already tried here. A group that is queued keeps its
    /// place, and what its stay has tried remains tried.
    pub fn enqueue(&mut self, group: G, tried: BTreeSet<String>) {
        if let Some(queued) = self.queue.get_mut(&group) {
            queued.tried.extend(tried);
            return;
        }
        self.turns.push_back(group.clone());
        self.queue.insert(group, Queued { tried, state: QueuedState::Waiting });
    }

    /// Starts the request of the group whose turn it is, if the domain can take one. `choose` names the next URL of a
    /// group, given those it has tried here; a group for which it names none leaves the queue.
    pub fn start_next(
        &mut self,
        limits: &DomainLimits,
        now: Nanoseconds,
        choose: impl Fn(&G, &BTreeSet<String>) -> Option<String>,
    ) -> Option<(G, String)> {
        while let Some(group) = self.next_turn(limits, now) {
            let Some(queued) = self.queue.get_mut(&group) else {
                continue;
            };
            if let Some(url) = choose(&group, &queued.tried) {
                queued.tried.insert(url.clone());
                queued.state = QueuedState::Asking;
                self.reserve();
                return Some((group, url));
            }
            self.queue.remove(&group);
        }
        None
    }

    /// Marks a queued group free, its request having ended: it gets its next turn after all that are waiting.
    pub fn mark_free(&mut self, group: &G) {
        let Some(queued) = self.queue.get_mut(group) else {
            return;
        };
        match queued.state {
            QueuedState::Asking => {
                queued.state = QueuedState::Waiting;
                self.turns.push_back(group.clone());
            }
            QueuedState::Waiting => {}
        }
    }

    /// Whether the group is in the queue. If so, only the queue asks here for it.
    pub fn is_queued(&self, group: &G) -> bool {
        self.queue.contains_key(group)
    }

    /// Requests that have not ended yet, those that begin in a moment among them, and how many starts are in the window.
    pub fn usage(&self) -> (u32, usize) {
        (self.in_flight, self.starts.len())
    }

    /// The groups in the queue.
    pub fn queued(&self) -> impl Iterator<Item = &G> {
        self.queue.keys()
    }

    /// Forgets the starts that have left the window. A clock that was set back would keep starts of its future in the
    /// window for as long as the step was wide; they count as started now.
    pub fn forget_starts(&mut self, limits: &DomainLimits, now: Nanoseconds) {
        for start in &mut self.starts {
            *start = now.min(*start);
        }
        while self.starts.front().is_some_and(|start| start.saturating_add(limits.window) <= now) {
            self.starts.pop_front();
        }
    }

    /// Whether nothing is in flight, queued or in the window, so that a new domain would behave the same.
    pub fn is_forgettable(&self) -> bool {
        self.in_flight == 0 && self.queue.is_empty() && self.starts.is_empty()
    }

    /// Takes the next turn if the domain can take a request, and otherwise notes why not.
    fn next_turn(&mut self, limits: &DomainLimits, now: Nanoseconds) -> Option<G> {
        if self.turns.is_empty() {
            self.pause = Pause::NobodyWaiting;
            return None;
        }
        match self.capacity(limits, now) {
            Capacity::Now => self.turns.pop_front(),
            Capacity::At(_) => {
                self.pause = Pause::Window;
                None
            }
            Capacity::AfterCompletion => {
                self.pause = Pause::Completion;
                None
            }
        }
    }

    /// When the window came, or comes, to have room for one more start; `None` if it was never full.
    fn slot_freed_at(&self, limits: &DomainLimits, now: Nanoseconds) -> Option<Nanoseconds> {
        let one_too_many = usize::from(is_planted(PlantedBug::WindowOneTooMany));
        let starts_max = limits.starts_per_window_max.max(1) as usize + one_too_many;
        let taken = self.starts.len() + self.reserved as usize;
        let blocking = taken.checked_sub(starts_max)?;
        // What has not started leaves the window no sooner than if it started now.
        let start = self.starts.get(blocking).copied().unwrap_or(now);
        Some(now.min(start).saturating_add(limits.window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const LIMITS: DomainLimits = DomainLimits { in_flight_max: 2, starts_per_window_max: 3, window: 60 };

    /// Tells a story of `time:happening` words and compares the capacity after each.
    fn check(story: &str, expected: Expect) {
        let mut domain = Domain::<char>::default();
        let mut lines = String::new();
        for word in story.split_whitespace() {
            let (time, happening) = word.split_once(':').unwrap_or(("0", word));
            let now = time.parse().unwrap_or_default();
            match happening {
                "start" => {
                    domain.reserve();
                    domain.start(now);
                }
                "reserve" => domain.reserve(),
                "begin" => domain.start(now),
                "end" => domain.complete(),
                "forget" => domain.forget_starts(&LIMITS, now),
                _look => {}
            }
            lines += &format!("{word} {:?}\n", domain.capacity(&LIMITS, now));
        }
        expected.assert_eq(&lines);
    }

    #[test]
    fn requests_in_flight_are_limited() {
        check(
            "0:start 0:start 5:end",
            expect![[r#"
                0:start Now
                0:start AfterCompletion
                5:end Now
            "#]],
        );
    }

    #[test]
    fn starts_in_the_window_are_limited_and_the_oldest_makes_room() {
        check(
            "0:start 1:end 10:start 11:end 20:start 21:end 59:look 60:look 60:forget 60:start 61:end",
            expect![[r#"
                0:start Now
                1:end Now
                10:start Now
                11:end Now
                20:start At(60)
                21:end At(60)
                59:look At(60)
                60:look Now
                60:forget Now
                60:start At(70)
                61:end At(70)
            "#]],
        );
    }

    #[test]
    fn what_waits_to_be_started_keeps_its_place_in_the_window_until_it_is() {
        check(
            "0:start 1:end 2:start 3:end 4:reserve 59:look 60:look 61:begin 62:end 63:start 64:end \
             64:start 65:end 120:look 121:look",
            expect![[r#"
                0:start Now
                1:end Now
                2:start Now
                3:end Now
                4:reserve At(60)
                59:look At(60)
                60:look Now
                61:begin Now
                62:end Now
                63:start Now
                64:end Now
                64:start At(121)
                65:end At(121)
                120:look At(121)
                121:look Now
            "#]],
        );
    }

    #[test]
    fn a_window_of_which_nothing_has_started_has_no_room() {
        let limits = DomainLimits { in_flight_max: 9, starts_per_window_max: 2, window: 60 };
        let mut domain = Domain::<char>::default();
        domain.reserve();
        domain.reserve();
        assert_eq!(domain.capacity(&limits, 1000), Capacity::At(1060));
        domain.start(1000);
        domain.start(1010);
        assert_eq!(domain.capacity(&limits, 1020), Capacity::At(1060));
    }

    #[test]
    fn a_clock_that_was_set_back_closes_the_domain_for_one_window_only() {
        check(
            "1000:start 1000:end 1000:start 1000:end 1000:start 1000:end 5:forget 64:look 65:look",
            expect![[r#"
                1000:start Now
                1000:end Now
                1000:start Now
                1000:end Now
                1000:start At(1060)
                1000:end At(1060)
                5:forget At(65)
                64:look At(65)
                65:look Now
            "#]],
        );
    }

    #[test]
    fn groups_take_turns() {
        let mut domain = Domain::default();
        domain.enqueue('a', BTreeSet::new());
        domain.enqueue('b', BTreeSet::new());
        let limits = DomainLimits { in_flight_max: 1, starts_per_window_max: 9, window: 60 };
        let mut order = String::new();
        while let Some((group, url)) = domain.start_next(&limits, 0, first_untried_of_three) {
            order += &format!("{group}{url} ");
            domain.complete();
            domain.mark_free(&group);
        }
        expect!["a1 b1 a2 b2 a3 b3 "].assert_eq(&order);
        assert!(!domain.is_queued(&'a') && !domain.is_queued(&'b'));
    }

    fn first_untried_of_three(_group: &char, tried: &BTreeSet<String>) -> Option<String> {
        ["1", "2", "3"].into_iter().find(|url| !tried.contains(*url)).map(str::to_owned)
    }

    #[test]
    fn a_group_that_is_queued_again_keeps_its_place_and_what_it_tried() {
        let mut domain = Domain::default();
        domain.enqueue('a', BTreeSet::from(["1".to_owned()]));
        domain.enqueue('b', BTreeSet::new());
        domain.enqueue('a', BTreeSet::from(["2".to_owned()]));
        let started = domain.start_next(&LIMITS, 0, first_untried_of_three);
        assert_eq!(started, Some(('a', "3".to_owned())));
    }

    #[test]
    fn limits_of_zero_count_as_one() {
        let limits = DomainLimits { in_flight_max: 0, starts_per_window_max: 0, window: 60 };
        let mut domain = Domain::<char>::default();
        assert_eq!(domain.capacity(&limits, 0), Capacity::Now);
        domain.reserve();
        domain.start(0);
        domain.complete();
        assert_eq!(domain.capacity(&limits, 0), Capacity::At(60));
    }
}
