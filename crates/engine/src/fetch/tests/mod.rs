//! Tests of the fetcher as a whole: told as short stories, and over many seeds.

mod properties;
mod purgatory;
mod returning;
mod scale;
mod stories;
mod teller;
