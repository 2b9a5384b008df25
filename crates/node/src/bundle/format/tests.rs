//! Bundles that are whole read back; every other one has a name.

use super::*;
use expect_test::{Expect, expect};

fn sample() -> Vec<u8> {
    let mut writer = BundleWriter::new(Vec::new()).expect("written");
    writer.event(b"blob", b"inline").expect("written");
    writer.content(&SpaceId([1; 16]), &ContentHash([2; 32]), b"bytes").expect("written");
    writer.finish().expect("written")
}

fn read(bytes: &[u8]) -> Result<Vec<(u64, Record)>, BadBundle> {
    let mut reader = BundleReader::new(bytes)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok(records)
}

/// Changes a sample bundle and compares what reading it says.
fn check(change: impl FnOnce(&mut Vec<u8>), expected: Expect) {
    let mut bytes = sample();
    change(&mut bytes);
    let said = match read(&bytes) {
        Ok(records) => format!("{} records", records.len()),
        Err(why) => why.to_string(),
    };
    expected.assert_eq(&said);
}

#[test]
fn what_was_written_reads_back() {
    let records = read(&sample()).expect("a whole bundle");
    let event = Record::Event { blob: b"blob".to_vec(), inline: b"inline".to_vec() };
    let content = Record::Content { space: SpaceId([1; 16]), hash: ContentHash([2; 32]), bytes: b"bytes".to_vec() };
    assert_eq!(records, [(16, event), (35, content)]);
}

#[test]
fn everything_wrong_has_a_name() {
    check(|_| (), expect!["2 records"]);
    check(
        |bytes| bytes.clear(),
        expect![[r#"this is not an anteroom bundle: it does not begin with "anteroom bundle""#]],
    );
    check(
        |bytes| bytes[0] = b'A',
        expect![[r#"this is not an anteroom bundle: it does not begin with "anteroom bundle""#]],
    );
    check(|bytes| bytes.truncate(15), expect!["the bundle ends too early at byte 15: it was cut off"]);
    check(|bytes| bytes[15] = 2, expect!["the bundle has version 2, and this release knows version 1"]);
    check(|bytes| bytes[16] = 9, expect!["the bundle has a record of unknown type 9 at byte 16"]);
    check(
        |bytes| bytes[17] = 1,
        expect!["the event record at byte 16 says it is 16777230 bytes long, and 6524 is the most"],
    );
    check(|bytes| bytes[22] = 99, expect!["the event record at byte 16 is shorter than its parts"]);
    check(|bytes| bytes[24] ^= 1, expect!["the checksum of the bundle is wrong: it was changed on the way"]);
    check(|bytes| bytes.push(0), expect!["the bundle goes on after its end at byte 138"]);
    let count_at = sample().len() - END_BYTES + 7;
    check(|bytes| bytes[count_at] = 3, expect!["the bundle says it has 3 records, and 2 were found"]);
}

#[test]
fn a_bundle_cut_anywhere_is_not_a_bundle() {
    let whole = sample();
    for length in 0..whole.len() {
        let said = read(&whole[..length]);
        let named = match &said {
            Err(BadBundle::Other) => length == 0,
            Err(BadBundle::CutOff { at }) => *at == length as u64,
            _ => false,
        };
        assert!(named, "cut at {length}: {said:?}");
    }
}

#[test]
fn any_flipped_bit_is_noticed() {
    let whole = sample();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            assert!(read(&bytes).is_err(), "bit {bit} of byte {at}");
        }
    }
}
