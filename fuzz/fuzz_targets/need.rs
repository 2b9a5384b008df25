//! See `decoders::need`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| simulator::decoders::need(bytes));
