//! The `anteroom` command: arguments, configuration, logging; the composition root.
#![allow(missing_docs)]

mod bench;

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("bench") => {
            let words: Vec<String> = words.collect();
            let name = words.iter().find(|word| !word.starts_with('-')).cloned();
            let dir = words.iter().position(|word| word == "--dir").and_then(|at| words.get(at + 1)).map(Into::into);
            bench::run(name.as_deref(), words.iter().any(|word| word == "--quick"), dir)
        }
        _ => Ok(()),
    }
}
