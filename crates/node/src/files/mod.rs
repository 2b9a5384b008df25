//! Files beside the writer: bytes on their way in ([`upload`]) and out ([`reading`]), renditions ([`processing`]), what is
//! looked at again ([`backfill`]), and how files stand ([`report`]).

pub mod backfill;
mod piped;
pub mod processing;
pub mod reading;
pub mod report;
pub mod upload;
mod workers;
