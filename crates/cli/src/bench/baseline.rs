//! Baselines: signature verification alone, and the database engine alone.

use super::event_generator::{RawEvent, in_parallel};
use anyhow::Result;
use ed25519_dalek::{Signature, VerifyingKey};
use model::{Blob, Envelope, Verified};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// Strict signature verifications per second on all cores, as the library does them: the author's key is read anew for
/// every event.
pub(crate) fn verify_per_s(raw: &[RawEvent]) -> Result<f64> {
    let signed: Vec<(Verified, Vec<u8>)> = raw
        .iter()
        .map(|raw| {
            let envelope = Blob::parse(raw.blob.clone())?.check_plain()?;
            let text = envelope.text_to_sign();
            Ok((envelope, text))
        })
        .collect::<Result<_>>()?;
    let begun = Instant::now();
    in_parallel(signed.len() as u64, |number| {
        let (envelope, text) = &signed[number as usize];
        let (envelope, signature) = black_box(Envelope::decode(envelope.bytes())?);
        VerifyingKey::from_bytes(&envelope.author.0)?.verify_strict(text, &Signature::from_bytes(&signature))?;
        Ok(())
    })?;
    Ok(signed.len() as f64 / begun.elapsed().as_secs_f64())
}

const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const IDS: TableDefinition<'_, [u8; 16], u64> = TableDefinition::new("ids");
const BY_AUTHOR: TableDefinition<'_, [u8; 32], u64> = TableDefinition::new("by_author");
const TIMELINE: TableDefinition<'_, [u8; 32], [u8; 9]> = TableDefinition::new("timeline");
const JOURNAL: TableDefinition<'_, u64, [u8; 21]> = TableDefinition::new("journal");
const USAGE: TableDefinition<'_, [u8; 8], &[u8]> = TableDefinition::new("usage");

/// Messages per second if redb alone writes the rows of an ordinary message, with that many events stored.
pub(crate) fn engine_per_s(folder: &Path, stored: u64, measured: u64, batch: u64, row_bytes: usize) -> Result<f64> {
    let database = Database::builder().set_cache_size(192 << 20).create(folder.join("bare.redb"))?;
    let mut at = 0;
    while at < stored {
        let part = 8192.min(stored - at);
        write_rows(&database, at, part, row_bytes)?;
        at += part;
    }
    let begun = Instant::now();
    while at < stored + measured {
        let part = batch.max(1).min(stored + measured - at);
        write_rows(&database, at, part, row_bytes)?;
        at += part;
    }
    let elapsed = begun.elapsed().as_secs_f64();
    black_box(database.begin_read()?.open_table(IDS)?.first()?.is_some());
    Ok(measured as f64 / elapsed)
}

fn write_rows(database: &Database, from: u64, count: u64, row_bytes: usize) -> Result<()> {
    let row = vec![5; row_bytes];
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    {
        let mut events = transaction.open_table(EVENTS)?;
        let mut ids = transaction.open_table(IDS)?;
        let mut by_author = transaction.open_table(BY_AUTHOR)?;
        let mut timeline = transaction.open_table(TIMELINE)?;
        let mut journal = transaction.open_table(JOURNAL)?;
        let mut usage = transaction.open_table(USAGE)?;
        for number in from..from + count {
            let id: [u8; 32] = *hash_number(number);
            let mut short = [0; 16];
            short.copy_from_slice(&id[..16]);
            events.insert(number, row.as_slice())?;
            ids.insert(short, number)?;
            by_author.insert(ordered_key(number.wrapping_mul(2_654_435_761) % 1000, number, &short), number)?;
            timeline.insert(ordered_key(number % 100, number, &short), [1; 9])?;
            journal.insert(number, [2; 21])?;
        }
        for author in 0..count.min(1000) {
            usage.insert(author.to_be_bytes(), [7u8; 81].as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn hash_number(number: u64) -> Box<[u8; 32]> {
    Box::new(model::crypto::content_hash(&number.to_be_bytes()).0)
}

fn ordered_key(first: u64, number: u64, id: &[u8; 16]) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&first.to_be_bytes());
    key[8..16].copy_from_slice(&number.to_be_bytes());
    key[16..].copy_from_slice(id);
    key
}
