//! What attackers say over HTTP/2 on a real socket: floods end, and nobody else notices.

use super::app;
use server::Limits;
use server::test_support::Wire;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a length").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What a client says first; streams begin with this window.
fn hello(window: u32) -> Vec<u8> {
    let setting = [&4_u16.to_be_bytes()[..], &window.to_be_bytes()].concat();
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, &setting)].concat()
}

/// The headers of a request, each literal.
fn fields(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let pseudo = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "a")];
    for (name, value) in pseudo.iter().chain(more) {
        bytes.push(0);
        for text in [name, value] {
            number(&mut bytes, text.len());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    bytes
}

/// A length of HPACK, with seven bits at first.
fn number(bytes: &mut Vec<u8>, length: usize) {
    if length < 127 {
        bytes.push(length as u8);
        return;
    }
    bytes.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        bytes.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    bytes.push(rest as u8);
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields("GET", path, &[]))
}

fn go_away() -> Vec<u8> {
    frame(GO_AWAY, 0, 0, &[0; 8])
}

/// The frames that came, each with its kind, flags, stream and payload.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut found = Vec::new();
    while bytes.len() >= 9 {
        let length = usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
        let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        let Some(payload) = bytes.get(9..9 + length) else { break };
        found.push((bytes[3], bytes[4], stream, payload.to_vec()));
        bytes = &bytes[9 + length..];
    }
    found
}

/// Says this after the first words, and gives the kinds of the frames that came until the server closed.
async fn heard(wire: &Wire, said: &[Vec<u8>]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    frames(&wire.said(&[hello(65_535), said.concat()].concat()).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_client_is_answered() {
    let wire = Wire::new(app, Limits::default()).await;
    let frames = heard(&wire, &[get(1, "/healthz"), go_away()]).await;
    let of_stream = |kind| frames.iter().any(|frame| frame.0 == kind && frame.2 == 1);
    assert!(of_stream(HEADERS) && of_stream(DATA) && !of_stream(RESET), "{frames:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_taken_back_at_once_end_the_connection() {
    let wire = Wire::new(app, Limits::default()).await;
    let cancel = 8_u32.to_be_bytes();
    let flood: Vec<u8> =
        (0..10_000).flat_map(|n| [get(2 * n + 1, "/healthz"), frame(RESET, 0, 2 * n + 1, &cancel)].concat()).collect();
    let client = wire.client().await;
    client.says(&hello(65_535)).await;
    let frames = frames(&client.says_and_hears(&[flood, go_away()].concat()).await);
    let answered = frames.iter().filter(|frame| frame.0 == HEADERS).count();
    assert!(answered < 10_000, "{answered}");
    wire.others_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_requests_at_once_than_are_taken_are_refused() {
    let wire = Wire::new(app, Limits::default()).await;
    let api_key = wire.home.backend.clone();
    let more = [("x-api-key", api_key.as_str()), ("x-user-id", "alice"), ("content-type", "application/json")];
    let post = fields("POST", "/v1/threads/t/messages", &more);
    let flood: Vec<u8> = (0..300).flat_map(|n| frame(HEADERS, END_HEADERS, 2 * n + 1, &post)).collect();
    let client = wire.client().await;
    client.says(&[hello(65_535), flood].concat()).await;
    let mut came = Vec::new();
    let is_refused = |came: &[u8]| frames(came).iter().any(|frame| frame.0 == RESET && frame.3 == 7_u32.to_be_bytes());
    while !is_refused(&came) {
        let some = client.hears_some().await;
        assert!(!some.is_empty(), "the connection ended without a refusal");
        came.extend(some);
    }
    wire.others_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_without_end_end_the_connection() {
    let wire = Wire::new(app, Limits::default()).await;
    let mut flood = vec![frame(HEADERS, END_STREAM, 1, &fields("GET", "/healthz", &[]))];
    flood.extend((0..10_000).map(|_| frame(CONTINUATION, 0, 1, &fields("GET", "/", &[])[..0])));
    let frames = heard(&wire, &flood).await;
    assert!(!frames.iter().any(|frame| frame.0 == HEADERS), "{frames:?}");
    wire.others_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_too_large_is_not_taken() {
    let wire = Wire::new(app, Limits::default()).await;
    let large = "a".repeat(12_000);
    let more: Vec<_> = ["x-a", "x-b", "x-c", "x-d"].into_iter().map(|name| (name, large.as_str())).collect();
    let fields = fields("GET", "/healthz", &more);
    let mut said = vec![frame(HEADERS, END_STREAM, 1, &fields[..16_000])];
    said.push(frame(CONTINUATION, 0, 1, &fields[16_000..32_000]));
    said.push(frame(CONTINUATION, END_HEADERS, 1, &fields[32_000..]));
    said.push(go_away());
    let frames = heard(&wire, &said).await;
    // 431 has no number of its own in HPACK; what matters is that no body follows.
    assert!(!frames.iter().any(|frame| frame.0 == DATA && !frame.3.is_empty()), "{frames:?}");
    wire.others_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_settings_costs_no_more_than_it_says() {
    let wire = Wire::new(app, Limits::default()).await;
    let mut said = vec![frame(SETTINGS, 0, 0, &[]); 20_000];
    said.extend([frame(6, 0, 0, &[7; 8]), get(1, "/healthz"), go_away()]);
    heard(&wire, &said).await;
    wire.others_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_no_window_is_not_waited_for() {
    let wire = Wire::new(app, Wire::impatient_limits()).await;
    let client = wire.client().await;
    client.says(&[hello(0), get(1, "/v1/openapi.json")].concat()).await;
    wire.others_are_answered().await;
    let frames = frames(&client.hears().await);
    assert!(!frames.iter().any(|frame| frame.0 == DATA && !frame.3.is_empty()), "{frames:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_stream_that_nobody_takes_ends() {
    let wire = Wire::new(app, Wire::impatient_limits()).await;
    let client = wire.client().await;
    let key = wire.home.backend.clone();
    let more = [("x-api-key", key.as_str()), ("x-user-id", "bob")];
    let listen = frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields("GET", "/v1/events", &more));
    client.says(&[hello(0), listen].concat()).await;
    wire.says_until_nobody_listens(&client, "short").await;
}
