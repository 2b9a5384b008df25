//! The clock is an argument: only the command line makes a real one.

use model::Nanos;

/// Something that tells the time.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    fn now(&self) -> Nanos;
}
