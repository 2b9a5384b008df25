//! Webhooks: what is sent when, and a model of one that sometimes fails, against a real receiver.

use super::*;
use axum::extract::State;
use engine::access::KeyRole;
use model::Position;
use node::commands::{
    AdminCommand, AdminRequest, AdminResult, Caller, CallerKind, CommandRequest, MessageRef, NewMessage, UserCommand,
    WebhookCommand, message_content,
};
use node::fetch::hunter::NoSources;
use node::{Clock, NodeOptions};
use outbound::AllowedNetworks;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use store::{FolderDisk, MasterKey, Store};

#[test]
fn an_entry_is_tried_for_a_day_and_what_is_gone_not_again() {
    let start = WebhookProgress::told_up_to(Position { epoch: 1, number: 7 });
    let (mut progress, mut now) = (start.clone(), Nanos(1_800_000_000 * Nanos::SECOND));
    let began = now;
    while progress.disabled.is_none() {
        progress = failed(progress, &Ok(500), now);
        assert!(progress.next > now && progress.number == 7);
        now = progress.next;
    }
    assert!(now.0 - began.0 >= RETRY_NANOS_MAX);
    assert!((10..30).contains(&progress.attempts), "{progress:?}");
    assert!(failed(start.clone(), &Ok(410), began).disabled.is_some());
    assert!(failed(start, &Err(SendError::NoAnswer), began).disabled.is_none());
}

#[test]
fn the_signature_is_that_of_the_standard() {
    let webhook = Webhook {
        url: String::new(),
        secret: [7; 32],
        previous: Some(([8; 32], Nanos(50))),
        kinds: Vec::new(),
        created_at: Nanos(0),
        progress: WebhookProgress::told_up_to(Position { epoch: 1, number: 0 }),
    };
    let by_hand = |secret: [u8; 32]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).expect("a key");
        mac.update(b"msg_1.1614265330.{\"test\": 2432232314}");
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    };
    let signed = |now| signatures(&webhook, "msg_1", 1_614_265_330, b"{\"test\": 2432232314}", Nanos(now));
    assert_eq!(signed(10), format!("{} {}", by_hand([7; 32]), by_hand([8; 32])));
    assert_eq!(signed(51), by_hand([7; 32]));
}

#[derive(Debug)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}

/// A receiver: how it answers, and what it took, by id and number.
#[derive(Debug, Default)]
struct Receiver {
    status: AtomicU16,
    taken: Mutex<Vec<(String, u64)>>,
    asked: AtomicU64,
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let status = receiver.status.load(Ordering::Relaxed);
    receiver.asked.fetch_add(1, Ordering::Relaxed);
    if status == 200 {
        let said: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let number = said["data"]["body"].as_str().and_then(|text| text.parse().ok()).expect("a number");
        let id = headers[ID].to_str().expect("an id").to_owned();
        lock(&receiver.taken).push((id, number));
    }
    StatusCode::from_u16(status).expect("a status")
}

async fn serve(listener: tokio::net::TcpListener, app: axum::Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = hyper_util::service::TowerToHyperService::new(app.clone());
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(hyper_util::rt::TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Post,
    /// Not of the kind that the webhook wants.
    React,
    Deliver,
    /// Something is sent, and the node stops before that is saved.
    Crash,
    Answer(u16),
    Later {
        minutes: u64,
    },
    Rotate,
    Enable,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Post),
        2 => Just(Step::React),
        6 => Just(Step::Deliver),
        2 => Just(Step::Crash),
        4 => prop_oneof![3 => Just(200), 3 => Just(500), 1 => Just(410)].prop_map(Step::Answer),
        4 => prop_oneof![Just(1), Just(60), Just(1500)].prop_map(|minutes| Step::Later { minutes }),
        1 => Just(Step::Rotate),
        2 => Just(Step::Enable),
    ]
}

struct Trial {
    node: Node,
    clock: Arc<HandClock>,
    space: SpaceId,
    receiver: Arc<Receiver>,
    dispatcher: WebhookDispatcher,
    posted: u64,
    last: Option<model::EventId>,
    /// Since when the next entry fails, in vain or until it was disabled.
    failing_since: Option<u64>,
    is_disabled: bool,
    _folder: tempfile::TempDir,
}

const WEBHOOK: WebhookId = [7; 8];

impl Trial {
    fn new(url: String, receiver: Arc<Receiver>) -> Trial {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Arc::new(FolderDisk::new(folder.path()).expect("a disk"));
        let store = Store::open(disk, MasterKey::new(&[5; 32]), store::StoreOptions::default()).expect("a store");
        let clock = Arc::new(HandClock(AtomicU64::new(1_800_000_000 * Nanos::SECOND)));
        let node = Node::start(store, clock.clone(), Arc::new(NoSources), NodeOptions::default());
        let found = AdminCommand::FoundSpace { name: "home".to_owned(), sealed: true, random: Box::new([1; 80]) };
        let founded = node.ask(AdminRequest::by("a test", found)).expect("a space");
        let AdminResult::Founded(space) = founded else { panic!("{founded:?}") };
        let dispatcher = WebhookDispatcher::new(node.clone(), OutboundClient::new(AllowedNetworks::all()));
        let (posted, last, failing_since, is_disabled) = (0, None, None, false);
        let mut trial = Trial {
            node,
            clock,
            space,
            receiver,
            dispatcher,
            posted,
            last,
            failing_since,
            is_disabled,
            _folder: folder,
        };
        // What was said before is not sent.
        trial.post();
        lock(&trial.receiver.taken).clear();
        trial.posted = 0;
        let kinds = vec!["message.created".to_owned()];
        trial.administer(WebhookCommand::Add { url, secret: Box::new([1; 32]), kinds });
        trial
    }

    fn administer(&self, command: WebhookCommand) {
        let what = AdminCommand::Webhook(self.space, WEBHOOK, command);
        self.node.ask(AdminRequest::by("a test", what)).expect("done");
    }

    fn act(&self, command: UserCommand) -> model::EventId {
        let kind = CallerKind::Key(KeyRole::Backend);
        let caller = Caller { kind, user: Some("alice".to_owned()), audit_name: String::new() };
        let request =
            CommandRequest { space: self.space, caller, idempotency: None, expected: None, command, random: [3; 32] };
        self.node.ask(request).expect("done").shown
    }

    fn post(&mut self) {
        self.posted += 1;
        let content = message_content(self.posted.to_string().into(), None).expect("content");
        let (chosen, reply_to, mentions, attachments) = (None, None, Vec::new(), Vec::new());
        let thread = Some("lobby".parse().expect("a name"));
        let new = NewMessage { thread, chosen, content, reply_to, mentions, attachments };
        self.last = Some(self.act(UserCommand::Post(new)));
    }

    fn react(&self) {
        let Some(last) = self.last else { return };
        let place = MessageRef { thread: None, message: last.to_string().parse().expect("a name") };
        self.act(UserCommand::React(place, node::commands::reaction_content("+1").expect("content")));
    }

    fn now(&self) -> u64 {
        self.clock.0.load(Ordering::Relaxed)
    }

    fn webhook(&self) -> Webhook {
        let db = self.node.snapshot().expect("a snapshot");
        db.webhook(&self.space, &WEBHOOK).expect("read").expect("a webhook")
    }

    /// Sends whatever is due until nothing is.
    async fn deliver(&mut self) {
        loop {
            let asked = self.receiver.asked.load(Ordering::Relaxed);
            let due = self.dispatcher.take_due().expect("read");
            assert!(due.is_empty() || !self.is_disabled, "something is sent although it is disabled");
            let Some((space, id, webhook)) = due.into_iter().next() else { return };
            assert!(self.dispatcher.take_due().expect("read").is_empty(), "it is sent to already");
            let has_moved = self.dispatcher.send(space, id, webhook).await;
            let asked = self.receiver.asked.load(Ordering::Relaxed) - asked;
            self.note(asked);
            if !has_moved {
                return;
            }
        }
    }

    /// What comes of requests that were answered as the receiver answers now.
    fn note(&mut self, asked: u64) {
        let status = self.receiver.status.load(Ordering::Relaxed);
        if asked > 0 && status == 200 {
            self.failing_since = None;
        } else if asked > 0 {
            let since = *self.failing_since.get_or_insert(self.now());
            self.is_disabled = status == 410 || self.now() - since >= RETRY_NANOS_MAX;
        }
    }

    async fn take(&mut self, step: &Step) {
        match *step {
            Step::Post => self.post(),
            Step::React => self.react(),
            Step::Deliver => self.deliver().await,
            Step::Crash => {
                if let Some((space, id, webhook)) = self.dispatcher.take_due().expect("read").into_iter().next() {
                    self.dispatcher.send_chunk(&space, &id, &webhook).await.expect("sent");
                }
                self.dispatcher =
                    WebhookDispatcher::new(self.node.clone(), OutboundClient::new(AllowedNetworks::all()));
            }
            Step::Answer(status) => self.receiver.status.store(status, Ordering::Relaxed),
            Step::Later { minutes } => drop(self.clock.0.fetch_add(minutes * 60 * Nanos::SECOND, Ordering::Relaxed)),
            Step::Rotate => self.administer(WebhookCommand::Rotate(Box::new([2; 32]))),
            Step::Enable => {
                self.administer(WebhookCommand::Enable);
                (self.is_disabled, self.failing_since) = (false, None);
            }
        }
        assert_eq!(self.webhook().progress.disabled.is_some(), self.is_disabled, "after {step:?}");
        self.compare();
    }

    /// What was taken is what was posted, in order; what was taken again has the id that it had.
    fn compare(&self) -> u64 {
        let taken = lock(&self.receiver.taken);
        let (mut ids, mut last) = (std::collections::BTreeMap::new(), 0);
        for (id, number) in taken.iter() {
            let known = ids.entry(*number).or_insert(id);
            assert_eq!(*known, id, "message {number} came under another id");
            assert!(*number <= last + 1, "{number} came after {last}");
            last = last.max(*number);
        }
        assert!(last <= self.posted);
        last
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Everything arrives in order, and again until it was taken, unless the webhook is disabled.
    #[test]
    fn a_webhook_receives_everything_in_order(steps in proptest::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let receiver = Arc::new(Receiver { status: AtomicU16::new(200), ..Receiver::default() });
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}/", listener.local_addr().expect("an address"));
            let app = axum::Router::new().route("/", axum::routing::post(receive)).with_state(receiver.clone());
            let serving = tokio::spawn(serve(listener, app));
            let mut trial = Trial::new(url, receiver);
            for step in &steps {
                trial.take(step).await;
            }
            for step in [Step::Answer(200), Step::Enable, Step::Later { minutes: 1500 }, Step::Deliver] {
                trial.take(&step).await;
            }
            assert_eq!(trial.compare(), trial.posted);
            trial.node.stop();
            serving.abort();
        });
    }
}
