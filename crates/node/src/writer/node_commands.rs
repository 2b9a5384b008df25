//! What the node itself asks of its writer: to store what arrived, to look after content and schedules, to keep secrets.

use crate::commands::{self, CommandError};
use crate::fetch::retry;
use crate::jobs::{self, PurgeResult};
use crate::pipeline::{STEPS_PER_BATCH_MAX, arrive, policy};
use crate::writer_command::WriterCommand;
use ed25519_dalek::SigningKey;
use engine::content::{self, PruneResult};
use engine::create::NewEvent;
use engine::fetch::HuntMark;
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::receive::Arrival;
use engine::rows::Outcome;
use model::{EventId, Group, Identity, Nanos, Need, SpaceId};
use store::Batch;
use store::shared::webhooks::{WebhookId, WebhookProgress};

/// Stores what arrived.
#[derive(Clone, Debug)]
pub struct Arrive(pub Box<Arrival>);

impl WriterCommand for Arrive {
    type Answer = (EventId, Outcome);
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<(EventId, Outcome)> {
        arrive(batch, &self.0).map(|outcome| (self.0.blob.id(), outcome))
    }
}

/// Makes a new event, signed by a key that is at hand.
#[derive(Clone, Debug)]
pub struct Create {
    /// The key of its author.
    pub author: Box<SigningKey>,
    /// What it says.
    pub draft: Box<NewEvent>,
}

impl WriterCommand for Create {
    type Answer = EventId;
    type Error = CommandError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<EventId, CommandError> {
        commands::create_event(batch, &self.author, NewEvent::clone(&self.draft))
    }
}

/// Drops the content of an event on this node.
#[derive(Clone, Copy, Debug)]
pub struct Prune(pub EventId);

impl WriterCommand for Prune {
    type Answer = PruneResult;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<PruneResult> {
        let Some(seq) = batch.db().seq(&self.0)? else { return Ok(PruneResult::Nothing("not known")) };
        let (pruned, changes) = content::prune(batch.db(), &policy(batch), seq)?;
        batch.apply(changes)?;
        Ok(pruned)
    }
}

/// Wants the pruned content of an event back.
#[derive(Clone, Copy, Debug)]
pub struct WantBack(pub EventId);

impl WriterCommand for WantBack {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        let Some(seq) = batch.db().seq(&self.0)? else { return Ok(()) };
        let changes = content::want_back(batch.db(), &policy(batch), seq)?;
        batch.apply(changes)
    }
}

/// Hunts now, without waiting for the schedule.
#[derive(Clone, Debug)]
pub enum HuntNow {
    /// Looks again at an event, and hunts for what it needs.
    ForEvent(EventId),
    /// Hunts for a need.
    ForNeed(Need),
    /// Hunts for everything that is missing of a group.
    ForGroup(Group),
}

impl WriterCommand for HuntNow {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        match self {
            HuntNow::ForEvent(id) => retry::retry_event(batch, id),
            HuntNow::ForNeed(need) => retry::retry_need(batch, need),
            HuntNow::ForGroup(group) => retry::hunt_now(batch, group),
        }
    }
}

/// Schedules the next hunt of a group whose hunt has ended.
#[derive(Clone, Debug)]
pub struct EndHunt {
    pub group: Group,
    /// What its row said when the hunt began.
    pub mark: HuntMark,
    /// When the hunt began.
    pub started_at: Nanos,
    /// By how much the next attempt comes sooner, in thousandths.
    pub jitter_permille: u16,
}

impl WriterCommand for EndHunt {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        retry::end_hunt(batch, &self.group, self.mark, self.started_at, self.jitter_permille)
    }
}

/// Lets a group rest until somebody can be asked for it.
#[derive(Clone, Debug)]
pub struct RestGroup {
    pub group: Group,
    /// What its row said when nobody was found.
    pub mark: HuntMark,
}

impl WriterCommand for RestGroup {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        retry::rest_group(batch, &self.group, self.mark)
    }
}

/// Hunts for groups that rested, since somebody can be asked for them now.
#[derive(Clone, Debug)]
pub struct WakeGroups(pub Vec<Group>);

impl WriterCommand for WakeGroups {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        retry::wake_groups(batch, &self.0)
    }
}

/// Purges the content of events of a space.
#[derive(Clone, Debug)]
pub struct Purge {
    pub space: SpaceId,
    pub targets: Vec<EventId>,
    /// How the audit log calls whoever asked for it.
    pub audit_name: String,
}

impl WriterCommand for Purge {
    type Answer = Vec<(EventId, PurgeResult)>;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<Vec<(EventId, PurgeResult)>> {
        let mut purged = Vec::new();
        for target in &self.targets {
            let done = jobs::purge(batch, &self.space, target)?;
            if !matches!(done, PurgeResult::Nothing(_)) {
                batch.audit(Some(self.space), &self.audit_name, "purge", &target.to_string())?;
            }
            purged.push((*target, done));
        }
        Ok(purged)
    }
}

/// Forgets content that nobody refers to, and objects that nobody writes any more. Says how many. Objects are removed after
/// the commit.
#[derive(Clone, Copy, Debug)]
pub struct Collect;

impl WriterCommand for Collect {
    type Answer = usize;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<usize> {
        Ok(batch.forget_unfinished(STEPS_PER_BATCH_MAX)? + batch.forget_unused(STEPS_PER_BATCH_MAX)?)
    }
}

/// Keeps the secret of a prekey, and the space it was made for.
#[derive(Clone, Copy, Debug)]
pub struct AddPrekey(pub [u8; 32], pub Option<SpaceId>);

impl WriterCommand for AddPrekey {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.add_prekey(self.0, self.1)
    }
}

/// Keeps a space key that was made here.
#[derive(Clone, Copy, Debug)]
pub struct AddSpaceKey(pub SpaceId, pub [u8; 32]);

impl WriterCommand for AddSpaceKey {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.add_space_key(self.0, self.1)
    }
}

/// Keeps a space key that came from elsewhere: it opens what is sealed under it, and nothing is sealed under it here.
#[derive(Clone, Copy, Debug)]
pub struct LearnSpaceKey(pub SpaceId, pub [u8; 32]);

impl WriterCommand for LearnSpaceKey {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.learn_space_key(self.0, self.1)
    }
}

/// Keeps a transit secret that was agreed with a peer for a space.
#[derive(Clone, Copy, Debug)]
pub struct AddTransit {
    pub secret: [u8; 32],
    /// The space it attributes packets to.
    pub space: SpaceId,
    /// The peer it was agreed with.
    pub peer: u32,
}

impl WriterCommand for AddTransit {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.add_transit(self.secret, self.space, self.peer)
    }
}

/// Keeps the signing key of a custodial identity.
#[derive(Clone, Copy, Debug)]
pub struct AddCustodian(pub Identity, pub [u8; 32]);

impl WriterCommand for AddCustodian {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.add_custodian(&self.0, &self.1)
    }
}

/// Adds to the count of what was dropped for a reason before it reached the writer.
#[derive(Clone, Copy, Debug)]
pub struct CountDropped(pub &'static str, pub u64);

impl WriterCommand for CountDropped {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.count(self.0, self.1);
        Ok(())
    }
}

/// Saves how far a webhook has delivered the journal.
#[derive(Clone, Debug)]
pub struct SaveWebhookProgress {
    /// The space of the webhook.
    pub space: SpaceId,
    pub webhook: WebhookId,
    /// How far it is.
    pub progress: WebhookProgress,
}

impl WriterCommand for SaveWebhookProgress {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        commands::webhooks::save_progress(batch, &self.space, &self.webhook, &self.progress)
    }
}

/// Does nothing by itself: the transaction does what the clock asks for, and goes on with what waits.
#[derive(Clone, Copy, Debug)]
pub struct Tick;

impl WriterCommand for Tick {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, _batch: &mut Batch<'_>) -> StoreResult<()> {
        Ok(())
    }
}
