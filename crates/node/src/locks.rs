//! Taking locks. A lock that was held while a thread panicked is used again: what the locks of this crate guard (counts,
//! lists of handles, caches) is whole after every single change.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Takes a lock. Logs once if a thread panicked while it held it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| {
        mutex.clear_poison();
        log_poisoned();
        poisoned.into_inner()
    })
}

/// As [`lock`], to read.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(|poisoned| {
        lock.clear_poison();
        log_poisoned();
        poisoned.into_inner()
    })
}

/// As [`lock`], to write.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(|poisoned| {
        lock.clear_poison();
        log_poisoned();
        poisoned.into_inner()
    })
}

/// What waiting on a condition gives back. Whoever takes the lock next logs that a thread panicked.
pub(crate) fn after_wait<G>(waited: LockResult<G>) -> G {
    waited.unwrap_or_else(PoisonError::into_inner)
}

fn log_poisoned() {
    tracing::error!("a thread panicked while it held a lock; what the lock guards is used as it was left");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_good_again_after_a_panic() {
        let mutex = Mutex::new(1);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _held = mutex.lock();
                std::panic::resume_unwind(Box::new("planned"));
            });
            assert!(panics.join().is_err());
        });
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 1);
        assert!(!mutex.is_poisoned(), "it is logged once");
    }
}
