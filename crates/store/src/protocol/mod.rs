//! Rows that only one protocol has: a file for each protocol, read and written for the engine.

mod space;
