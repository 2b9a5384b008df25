//! A crash at every single operation on the disk.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use anteroom_simulator::crash::Script;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn nothing_acknowledged_is_lost_wherever_the_machine_crashes() {
    let script = Script::new(300);
    assert!(script.commits >= 300, "{script:?}");
    let next = AtomicUsize::new(0);
    let part = 50;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let from = next.fetch_add(part, Ordering::Relaxed);
                        if from >= script.operations() {
                            return Ok(());
                        }
                        script.crash_at_each(from, from + part)?;
                    }
                })
            })
            .collect();
        for worker in workers {
            let result: Result<(), String> = worker.join().unwrap();
            result.unwrap();
        }
    });
}
