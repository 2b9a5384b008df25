//! See `decoders::backup`: as it is, and under a hash that fits.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    simulator::decoders::backup(bytes);
    simulator::decoders::backup_under(bytes, |key, bytes| *blake3::keyed_hash(key, bytes).as_bytes());
});
