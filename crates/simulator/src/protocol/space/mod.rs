//! The `space` protocol: [`cast`] writes its events, [`world`] makes up a story of them, and [`mod@reference`] recomputes from
//! the set alone what every view must show.

pub mod cast;
pub mod reference;
pub mod world;
