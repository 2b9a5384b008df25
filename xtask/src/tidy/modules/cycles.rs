//! Cycles among the arrows of one library.

use super::arrows::Arrows;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Modules that all lead to each other.
#[derive(Debug)]
pub(crate) struct Cycle<'a> {
    /// All of them.
    pub(crate) modules: BTreeSet<&'a str>,
    /// A shortest way from the first of them back to it; that one stands at both ends.
    pub(crate) way: Vec<&'a str>,
}

/// The groups of modules that lead to each other, each with one cycle as an example.
pub(crate) fn find(arrows: &Arrows) -> Vec<Cycle<'_>> {
    let mut cycles: Vec<Cycle<'_>> = Vec::new();
    for start in arrows.keys() {
        if cycles.iter().any(|cycle| cycle.modules.contains(start.as_str())) {
            continue;
        }
        if let Some(way) = shortest_way_back(arrows, start) {
            let reached = reachable(arrows, start);
            let leads_back = |module: &&str| reachable(arrows, module).contains(start.as_str());
            cycles.push(Cycle { modules: reached.into_iter().filter(leads_back).collect(), way });
        }
    }
    cycles
}

fn targets<'a>(arrows: &'a Arrows, from: &str) -> impl Iterator<Item = &'a str> {
    arrows.get(from).into_iter().flat_map(BTreeMap::keys).map(String::as_str)
}

/// What one arrow or more lead to.
fn reachable<'a>(arrows: &'a Arrows, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = targets(arrows, from).collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(targets(arrows, module));
        }
    }
    reached
}

fn shortest_way_back<'a>(arrows: &'a Arrows, start: &'a str) -> Option<Vec<&'a str>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for to in targets(arrows, way.last()?) {
            let longer = [way.as_slice(), &[to]].concat();
            if to == start {
                return Some(longer);
            }
            if seen.insert(to) {
                ways.push_back(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::arrows::{Arrows, Location};

    /// Reads arrows such as `a>b b>c`, and expects each cycle as its way and, in brackets, its modules.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut arrows = Arrows::new();
        for (from, to) in text.split_whitespace().filter_map(|arrow| arrow.split_once('>')) {
            arrows.entry(from.into()).or_default().insert(to.into(), Location { path: String::new(), line: 1 });
        }
        let found = super::find(&arrows);
        let lines = found.iter().map(|cycle| {
            let modules: Vec<&str> = cycle.modules.iter().copied().collect();
            format!("{} ({})", cycle.way.join(">"), modules.join(" "))
        });
        assert_eq!(lines.collect::<Vec<_>>().join(", "), expected);
    }

    #[test]
    fn arrows_in_one_direction_are_no_cycle() {
        check("", "");
        check("a>b a>c b>c", "");
        check("a>b a>c b>d c>d d>e", "");
    }

    #[test]
    fn the_shortest_way_back_is_shown() {
        check("a>b b>a", "a>b>a (a b)");
        check("a>b b>c c>d d>a b>a", "a>b>a (a b c d)");
        check("x>a a>b b>c c>a b>y", "a>b>c>a (a b c)");
    }

    #[test]
    fn each_group_is_told_once() {
        check("a>b b>a b>c c>d d>c", "a>b>a (a b), c>d>c (c d)");
    }
}
