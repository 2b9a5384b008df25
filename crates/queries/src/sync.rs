//! Locks. A panic while a lock is held leaves it poisoned; this is the one place that decides what then happens.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, also after a panic of whoever held it.
///
/// What is behind locks here are counters, maps and queues that are whole after every statement, and nothing of it is
/// durable: to go on with it is better than to refuse every request from then on. The panic is logged once.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| {
        mutex.clear_poison();
        tracing::error!(
            what = std::any::type_name::<T>(),
            "a thread panicked while it held a lock; its value is used as it is"
        );
        poisoned.into_inner()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_lock_goes_on_after_a_panic() {
        let mutex = Arc::new(Mutex::new(1));
        let other = mutex.clone();
        let panicked = std::thread::spawn(move || {
            let _held = other.lock();
            panic!("while the lock is held");
        });
        assert!(panicked.join().is_err() && mutex.is_poisoned());
        *lock(&mutex) += 1;
        assert_eq!(*lock(&mutex), 2);
        assert!(!mutex.is_poisoned());
    }
}
