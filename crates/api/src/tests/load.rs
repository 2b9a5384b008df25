//! What is measured of the load while the server runs.

use super::Home;
use super::rules::with_messages;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A test that waits for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn writes_that_wait_for_the_writer_are_load() {
    let home = with_messages(1).await;
    let ((entered, has_entered), (release, is_released)) = (channel(), channel::<()>());
    let is_released = Mutex::new(is_released);
    home.state.node.on_commit(move |_| {
        let _ = entered.send(());
        // Whoever drops the other end lets the writer go on, for ever.
        let _ = is_released.lock().expect("nobody panics").recv();
    });
    let post = |number: usize| home.by("alice", "POST", "/v1/messages", Some(json!({ "thread": "t", "body": number })));
    let mut first = Box::pin(post(0));
    assert!((&mut first).now_or_never().is_none_or(|posted| posted.status == 201));
    has_entered.recv().expect("the writer stands still");
    home.be_slow(1);
    // As many as are let in always, the first one included, and some more.
    let mut waiting = Box::pin(tokio::task::unconstrained(join_all((1..300).map(post))));
    assert!((&mut waiting).now_or_never().is_none(), "they wait for the writer");
    let refused = post(300).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert_eq!(home.by("alice", "GET", "/v1/threads", None).await.status, 200, "reads do not wait for it");
    drop(release);
    let statuses: Vec<u16> = waiting.await.iter().map(|posted| posted.status.as_u16()).collect();
    let is_let_in = |status: &&u16| **status == 201;
    assert_eq!(statuses.iter().take_while(is_let_in).count(), 255, "{statuses:?}");
    assert!(statuses[255..].iter().all(|status| *status == 503), "{statuses:?}");
    assert_eq!(post(301).await.status, 201, "what was answered is load no more");
}

#[tokio::test]
async fn the_lag_of_the_threads_is_measured_while_the_server_runs() {
    let home = Home::new();
    home.clock.be_steady();
    let server = server::serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    let asked = async || {
        tokio::task::yield_now().await;
        home.by("alice", "GET", "/v1/threads", None).await.status.as_u16()
    };
    let is_refused = async {
        while asked().await != 503 {
            // Whatever is waited for takes two seconds longer than it should.
            home.clock.advance(2);
        }
    };
    tokio::time::timeout(PATIENCE, is_refused).await.expect("somebody measures");
    let is_let_in = async { while asked().await != 200 {} };
    tokio::time::timeout(PATIENCE, is_let_in).await.expect("nothing is late any more");
    server.stop().await;
}
