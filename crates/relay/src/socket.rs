//! A session over a WebSocket: one task that reads, writes and hears what happens, with bounds on each.

use crate::journal::read_journal;
use crate::live::LiveBatch;
use crate::session::{Session, SessionOutput};
use crate::state::RelayState;
use axum::extract::ws::{Message, WebSocket};
use futures_util::{SinkExt as _, StreamExt as _};
use node::nostr::SubmitNostr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Events of one client that the node has not decided about yet; the client waits when there are more.
const EVENTS_UNDER_WAY_MAX: usize = 512;
/// A client that takes nothing for so long is gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a quiet client is asked whether it lives.
const PING_INTERVAL: Duration = Duration::from_secs(50);
/// A client that has said nothing for so many of those is gone.
const PINGS_UNANSWERED_MAX: u32 = 3;

/// Why a session ends.
enum End {
    /// The client is gone, or asked for it.
    Client,
    /// The client does not take what it is sent.
    Slow,
    /// The node stops.
    Stopping,
}

/// What wakes the session.
enum Wake {
    Heard(Option<Result<Message, axum::Error>>),
    Decided(Option<String>),
    Live(Result<LiveBatch, RecvError>),
    Ping,
    Stopping,
}

/// Serves a client until it is gone.
pub(crate) async fn serve(state: Arc<RelayState>, socket: WebSocket) {
    let Ok(permit) = state.sockets.clone().try_acquire_owned() else { return };
    let mut connection = match Connection::new(&state, socket) {
        Ok(connection) => connection,
        Err(why) => {
            tracing::error!(%why, "a Nostr session could not begin");
            return;
        }
    };
    if let Err(End::Slow) = connection.run(&state).await {
        tracing::debug!("a Nostr client did not take what it was sent");
    }
    drop(permit);
}

struct Connection {
    socket: WebSocket,
    session: Session,
    decided: (mpsc::Sender<String>, mpsc::Receiver<String>),
    live: tokio::sync::broadcast::Receiver<LiveBatch>,
    /// The journal entry up to which live events were heard.
    position: u64,
    under_way: usize,
    unanswered: u32,
}

impl Connection {
    fn new(state: &RelayState, socket: WebSocket) -> Result<Connection, Box<dyn std::error::Error + Send + Sync>> {
        // First the live events, then where they begin: what comes in between is heard twice, not left out.
        let live = state.live.subscribe();
        let position = state.server.node.snapshot()?.position()?.number;
        let mut challenge = [0; 16];
        getrandom::fill(&mut challenge)?;
        let service = state.server.node.store().policy().service;
        Ok(Connection {
            socket,
            session: Session::new(hex::encode(challenge), service, state.access.clone()),
            decided: mpsc::channel(EVENTS_UNDER_WAY_MAX),
            live,
            position,
            under_way: 0,
            unanswered: 0,
        })
    }

    async fn run(&mut self, state: &Arc<RelayState>) -> Result<(), End> {
        let mut ending = state.ending.clone();
        let mut ping = tokio::time::interval(PING_INTERVAL);
        ping.reset();
        loop {
            let wake = tokio::select! {
                heard = self.socket.next(), if self.under_way < EVENTS_UNDER_WAY_MAX => Wake::Heard(heard),
                decided = self.decided.1.recv() => Wake::Decided(decided),
                batch = self.live.recv() => Wake::Live(batch),
                _ = ping.tick() => Wake::Ping,
                _ = ending.changed() => Wake::Stopping,
            };
            match wake {
                Wake::Heard(Some(Ok(message))) => self.hear(state, message).await?,
                Wake::Heard(_) => return Err(End::Client),
                Wake::Decided(answer) => self.answer(answer).await?,
                Wake::Live(batch) => self.hear_live(state, batch).await?,
                Wake::Ping => {
                    self.unanswered += 1;
                    if self.unanswered > PINGS_UNANSWERED_MAX {
                        return Err(End::Client);
                    }
                    self.send_all([Message::Ping(Vec::new().into())]).await?;
                }
                Wake::Stopping => {
                    let _ = self.send_all([Message::Close(None)]).await;
                    return Err(End::Stopping);
                }
            }
        }
    }

    async fn hear(&mut self, state: &Arc<RelayState>, message: Message) -> Result<(), End> {
        self.unanswered = 0;
        let text = match message {
            Message::Text(text) => text,
            Message::Close(_) => return Err(End::Client),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => return Ok(()),
        };
        let node = &state.server.node;
        let outputs = match node.snapshot() {
            // Looking for events may take a while, in which others are served by another thread.
            Ok(db) if !text.starts_with("[\"EVENT\"") => {
                tokio::task::block_in_place(|| self.session.hear(&text, &db, node.now()))
            }
            Ok(db) => self.session.hear(&text, &db, node.now()),
            Err(why) => {
                tracing::error!(%why, "a Nostr message could not be answered");
                return Err(End::Stopping);
            }
        };
        let mut sent = Vec::new();
        for output in outputs {
            match output {
                SessionOutput::Send(text) => sent.push(Message::Text(text.into())),
                SessionOutput::Submit(event) => {
                    let (id, decided) = (event.id.to_string(), self.decided.0.clone());
                    let refused_id = id.clone();
                    let on_answer = move |answer| {
                        // There is room for every event under way.
                        let _ = decided.try_send(Session::answer_event(&id, answer));
                    };
                    match node.submit(SubmitNostr(event), on_answer) {
                        Ok(()) => self.under_way += 1,
                        Err(why) => {
                            sent.push(Message::Text(Session::answer_event(&refused_id, Err(why.into())).into()))
                        }
                    }
                }
            }
        }
        self.send_all(sent).await
    }

    /// Sends the answer to an event, and those that have come since, at once.
    async fn answer(&mut self, first: Option<String>) -> Result<(), End> {
        let mut answers = Vec::new();
        let mut next = first;
        while let Some(answer) = next {
            self.under_way = self.under_way.saturating_sub(1);
            answers.push(Message::Text(answer.into()));
            next = self.decided.1.try_recv().ok();
        }
        self.send_all(answers).await
    }

    async fn hear_live(&mut self, state: &RelayState, batch: Result<LiveBatch, RecvError>) -> Result<(), End> {
        let batch = match batch {
            Ok(batch) => batch,
            Err(RecvError::Closed) => return Err(End::Stopping),
            // What was left out is in the journal.
            Err(RecvError::Lagged(_)) => {
                let latest = state.server.node.snapshot().and_then(|db| db.position()).map(|position| position.number);
                let Ok(latest) = latest else { return Err(End::Stopping) };
                Arc::new(read_journal(state, self.position, latest).map_err(|_| End::Stopping)?)
            }
        };
        let mut sent = Vec::new();
        for (number, served) in batch.iter().filter(|(number, _)| *number > self.position) {
            sent.extend(self.session.live(*number, served).map(|text| Message::Text(text.into())));
        }
        self.position = batch.last().map_or(self.position, |(number, _)| self.position.max(*number));
        self.send_all(sent).await
    }

    async fn send_all(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<(), End> {
        let socket = &mut self.socket;
        let sending = async {
            for message in messages {
                socket.feed(message).await?;
            }
            socket.flush().await
        };
        match timeout(SEND_TIMEOUT, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Client),
            Err(_) => Err(End::Slow),
        }
    }
}
