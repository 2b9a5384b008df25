//! What every step is given beside the event: the clock and the local limits, as arguments.

use crate::policy::Policy;
use model::Nanos;

/// The clock and the local limits.
#[derive(Clone, Copy, Debug)]
pub struct StepContext {
    /// Now.
    pub now: Nanos,
    /// Local limits.
    pub policy: Policy,
}
