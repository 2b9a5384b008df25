//! See `decoders::packet`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| simulator::decoders::packet(bytes));
