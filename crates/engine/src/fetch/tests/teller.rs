//! The language of the stories.
//!
//! A story is a list of sentences separated by bars. `a: x/1 y/1` says that the group `a` has unmet needs and these
//! sources, the part before the slash being the domain. `limits 1 2` allows one request in flight and two starts a
//! minute. `at 30` moves the clock to that second. `due a` hunts, `end 1` ends the first request, `met a` and `need a`
//! change what is unmet, `wake` shows when the hunts want to be woken, `queued` who waits where, `domains` how many are
//! remembered. While whoever performs the requests is `occupied`, until it is `idle` again, none of them begins.

use super::super::{
    DomainLimits, FetchReads, HuntInput, HuntMark, HuntOutput, Hunts, Nanoseconds, RequestId, SECOND, Source,
};
use std::collections::{BTreeMap, BTreeSet};

/// Who tells the story, and writes down what the hunts did.
pub(super) struct Teller {
    hunts: Hunts<String>,
    town: Town,
    tickets: Vec<RequestId>,
    now: Nanoseconds,
    is_occupied: bool,
    pub(super) transcript: String,
}

/// Who needs what, and where it may be had.
#[derive(Default)]
struct Town {
    pending: BTreeSet<String>,
    sources: BTreeMap<String, Vec<Source>>,
}

impl FetchReads<String> for Town {
    fn pending(&self, group: &String) -> bool {
        self.pending.contains(group)
    }

    fn sources(&self, group: &String) -> Vec<Source> {
        self.sources.get(group).cloned().unwrap_or_default()
    }
}

impl Town {
    fn settle(&mut self, group: &str, urls: &[&str]) {
        let source = |url: &&str| Source {
            url: (*url).to_owned(),
            domain: url.split('/').next().unwrap_or_default().to_owned(),
        };
        self.pending.insert(group.to_owned());
        let sources = urls.iter().map(source).collect();
        self.sources.insert(group.to_owned(), sources);
    }
}

impl Default for Teller {
    fn default() -> Self {
        Teller {
            hunts: Hunts::new(DomainLimits::default()),
            town: Town::default(),
            tickets: Vec::new(),
            now: 0,
            is_occupied: false,
            transcript: String::new(),
        }
    }
}

impl Teller {
    pub(super) fn tell(&mut self, sentence: &str) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let told = match words.as_slice() {
            ["at", seconds] => self.pass_time(number(seconds)),
            ["due", group] => self.hunt(group),
            ["end", ticket] => self.end(number(ticket)),
            ["wake"] => self.wake(),
            ["queued"] => self.queued(),
            ["domains"] => self.hunts.domains().count().to_string(),
            other => return self.arrange(other),
        };
        self.transcript += &format!("{sentence} -> {told}\n");
    }

    /// Changes the scene, of which the transcript says nothing.
    fn arrange(&mut self, words: &[&str]) {
        match words {
            ["occupied"] => self.is_occupied = true,
            ["idle"] => self.is_occupied = false,
            ["limits", in_flight, starts] => {
                self.hunts = Hunts::new(DomainLimits {
                    in_flight_max: number(in_flight) as u32,
                    starts_per_window_max: number(starts) as u32,
                    window: 60 * SECOND,
                });
            }
            ["met", group] => drop(self.town.pending.remove(*group)),
            ["need", group] => drop(self.town.pending.insert((*group).to_owned())),
            [group, urls @ ..] => self.town.settle(group.trim_end_matches(':'), urls),
            [] => {}
        }
    }

    fn hunt(&mut self, group: &str) -> String {
        let (group, mark) = (group.to_owned(), HuntMark { next: self.now, joined: 0 });
        self.hear(HuntInput::Due { group, mark })
    }

    fn end(&mut self, number: u64) -> String {
        let ticket = self.tickets[number as usize - 1];
        self.hear(HuntInput::Ended { ticket })
    }

    fn wake(&self) -> String {
        let wake_at = self.hunts.wake_at(self.now);
        wake_at.map_or("never".to_owned(), |at| (at / SECOND).to_string())
    }

    fn pass_time(&mut self, seconds: u64) -> String {
        self.now = seconds * SECOND;
        self.hear(HuntInput::Tick)
    }

    fn hear(&mut self, input: HuntInput<String>) -> String {
        self.hunts.hear(&self.town, input, self.now);
        let mut told = Vec::new();
        while let Some(output) = self.hunts.take(!self.is_occupied, self.now) {
            told.push(match output {
                HuntOutput::Start { ticket, group, url, domain: _ } => {
                    self.tickets.push(ticket);
                    format!("{}: {group} {url}", self.tickets.len())
                }
                HuntOutput::HuntEnded { group, .. } => format!("hunt for {group} over"),
            });
        }
        if told.is_empty() { "nothing".to_owned() } else { told.join(", ") }
    }

    fn queued(&self) -> String {
        let places: Vec<String> = self.hunts.queued().map(|(domain, group)| format!("{group} at {domain}")).collect();
        if places.is_empty() { "nobody".to_owned() } else { places.join(", ") }
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_default()
}
