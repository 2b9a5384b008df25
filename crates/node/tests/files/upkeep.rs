//! Looking after files: what is missing is made, what does not fit is told.

use super::common::{Home, NOW};
use super::{FILE, Fake, ask, check, upload_version, variants, waiting, work};
use anteroom_node::commands::files::FileCommand;
use anteroom_node::commands::files::jobs::{LEASE_NANOS, TakeWork};
use anteroom_node::files::backfill::{Backfill, BackfillOptions, BackfillPage, look_at};
use anteroom_node::files::processing::RenderFailure;
use anteroom_node::files::report::files_report;
use media::Variant;
use model::files::{DerivedStatus, StoredStatus};
use store::Batch;
use store::shared::files::{DerivedFile, FileVersion};

fn backfill(home: &Home, fix_status: bool, dry_run: bool) -> BackfillPage {
    let variants = variants().iter().map(Variant::to_string).collect();
    let options = BackfillOptions { variants, fix_status };
    match dry_run {
        true => look_at(&*home.core.store().snapshot().unwrap(), &options, None, 100).unwrap(),
        false => home.core.ask(Backfill { options, after: None, most: 100 }, NOW).unwrap(),
    }
}

fn totals(page: &BackfillPage) -> [u64; 5] {
    [page.processed, page.valid, page.invalid, page.queued, page.fixed]
}

/// Writes a relation as something else may have left it.
fn tamper(home: &Home, variant: &str, change: impl Fn(DerivedFile) -> DerivedFile) {
    let space = home.space;
    let write = |batch: &mut Batch<'_>| {
        let row = batch.db().derived_file(&space, FILE, variant)?.unwrap();
        batch.put_derived(&space, FILE, &change(row))
    };
    home.core.store().write(NOW, write).unwrap();
}

#[test]
fn a_backfill_makes_what_is_missing_notes_what_is_there_and_tells_what_does_not_fit() {
    let home = waiting();
    let is_image = |batch: &mut Batch<'_>| {
        let row = batch.db().file_version(&home.space, FILE, 1)?.unwrap();
        batch.put_version(&home.space, (FILE, 1), &FileVersion { is_renderable: true, ..row })
    };
    home.core.store().write(NOW, is_image).unwrap();
    assert_eq!(totals(&backfill(&home, true, true)), [1, 1, 0, 0, 0], "work waits for it already");
    assert!(work(&home, NOW, &Fake(Ok(500))));
    assert_eq!(totals(&backfill(&home, true, false)), [1, 1, 0, 0, 0]);
    // A relation that does not say that it is done, although its file is there.
    tamper(&home, "thumbnail_256", |row| DerivedFile { status: DerivedStatus::Failed, ..row });
    let told = backfill(&home, false, false);
    assert_eq!((totals(&told), told.findings[0].variant.as_deref()), ([1, 0, 1, 0, 0], Some("thumbnail_256")));
    assert_eq!(totals(&backfill(&home, true, true)), [1, 0, 1, 0, 1], "a dry run says what would be done");
    assert_eq!(totals(&backfill(&home, true, false)), [1, 0, 1, 0, 1]);
    assert_eq!(totals(&backfill(&home, true, false)), [1, 1, 0, 0, 0], "and it is done");
    // One that says it is done, and speaks of nothing.
    tamper(&home, "full_2048", |row| DerivedFile { child: None, ..row });
    assert_eq!(totals(&backfill(&home, false, true)), [1, 0, 1, 1, 0]);
    assert_eq!(home.core.store().snapshot().unwrap().next_file_job().unwrap(), None);
    assert_eq!(totals(&backfill(&home, false, false)), [1, 0, 1, 1, 0]);
    assert!(work(&home, NOW, &Fake(Ok(501))));
    assert_eq!(totals(&backfill(&home, false, false)), [1, 1, 0, 0, 0]);
    check(&home, NOW);
    // What is hidden is left alone.
    ask(&home, NOW, FileCommand::Delete).unwrap();
    assert_eq!(totals(&backfill(&home, true, false)), [0; 5]);
}

#[test]
fn what_is_stuck_has_failed_or_does_not_fit_is_reported() {
    let home = waiting();
    let report = |now| files_report(&*home.core.store().snapshot().unwrap(), Some(home.space), now).unwrap();
    let take = TakeWork { worker: "a worker".into(), variants: vec!["thumbnail_256".into()] };
    home.core.ask(take, NOW).unwrap().unwrap();
    assert_eq!((report(NOW).stuck, report(NOW).backlog), (vec![], 1));
    let later = report(NOW.plus(LEASE_NANOS));
    let tiers: Vec<_> = later.stuck.iter().map(|row| (row.tier, row.variant.as_deref(), row.seconds)).collect();
    assert_eq!(tiers, [("file", None, 600), ("object", None, 600), ("derived", Some("thumbnail_256"), 600)]);
    ask(&home, NOW, FileCommand::FailWork("it looks wrong".into())).unwrap();
    let failed = report(NOW.plus(LEASE_NANOS));
    assert_eq!((failed.stuck.len(), failed.failed.len(), failed.backlog), (0, 1, 0));
    tamper(&home, "thumbnail_256", |row| DerivedFile { status: DerivedStatus::Processed, ..row });
    let odd = report(NOW);
    assert!(odd.inconsistent[0].1.contains("thumbnail_256"), "{:?}", odd.inconsistent);
    let counts: Vec<_> = odd.counts.iter().map(|row| (row.tier, row.status, row.count)).collect();
    assert_eq!(counts, [("derived", "processed", 1), ("file", "failed", 1), ("object", "failed", 1)]);
}

#[test]
fn a_version_that_cannot_be_processed_is_told_and_tried_again() {
    let home = waiting();
    assert!(work(&home, NOW, &Fake(Ok(500))));
    upload_version(&home, 9, true);
    assert!(work(&home, NOW, &Fake(Err(RenderFailure::Refused("no image".into())))));
    let version = home.core.store().snapshot().unwrap().file_version(&home.space, FILE, 2).unwrap().unwrap();
    assert_eq!((version.status, version.error.as_deref()), (StoredStatus::Failed, Some("no image")));
    let found = backfill(&home, true, false);
    assert_eq!(found.fixed, 0, "the renditions of the older version are not those of this one");
    ask(&home, NOW, FileCommand::Retry).unwrap();
    assert!(work(&home, NOW, &Fake(Ok(501))));
    assert_eq!(totals(&backfill(&home, true, false)), [1, 1, 0, 0, 0]);
    check(&home, NOW);
}
