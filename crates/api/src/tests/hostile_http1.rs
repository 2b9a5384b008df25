//! What attackers say over HTTP/1 on a real socket: a 4xx or a closed connection, and nobody else notices.

use super::app;
use server::Limits;
use server::test_support::Wire;

const HOST: &str = "host: a\r\nconnection: close\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_are_too_much_or_wrong() {
    let wire = Wire::new(app, Limits::default()).await;
    let many: String = (0..150).map(|number| format!("x-{number}: 1\r\n")).collect();
    let long = "a".repeat(40_000);
    let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\n{HOST}{more}\r\n");
    let cases: Vec<(&str, String, &[u16])> = vec![
        ("a large header", get("/healthz", &format!("x-large: {long}\r\n")), &[431]),
        ("many headers", get("/healthz", &many), &[431]),
        ("a long path", get(&format!("/{long}"), ""), &[414, 431]),
        ("a long query", get(&format!("/v1/threads?a={long}"), ""), &[414, 431]),
        ("a path of 30,000 bytes", get(&format!("/v1/threads/{}", &long[..30_000]), ""), &[401]),
        ("an unknown method", format!("BREW /healthz HTTP/1.1\r\n{HOST}\r\n"), &[405]),
        ("a method of signs", format!("G@T /healthz HTTP/1.1\r\n{HOST}\r\n"), &[400]),
        ("a method without end", "A".repeat(40_000), &[431, 400, 0]),
        ("a tunnel", format!("CONNECT example.org:443 HTTP/1.1\r\n{HOST}\r\n"), &[404, 405, 400]),
        ("a star", format!("GET * HTTP/1.1\r\n{HOST}\r\n"), &[404, 405, 400]),
        ("somebody else's address", get("http://evil.example/nothing", ""), &[404]),
        ("an address that is none", get("http://[::1/", ""), &[400]),
        ("no slash", get("healthz", ""), &[400, 404]),
        ("an unknown version", format!("GET /healthz HTTP/9.9\r\n{HOST}\r\n"), &[400, 505, 0]),
        ("another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01\u{1}".to_owned() + "\r\n\r\n", &[400, 0]),
        ("a zero in a header", get("/healthz", "x-zero: a\0b\r\n"), &[400]),
        ("a header without colon", get("/healthz", "nonsense\r\n"), &[400]),
        ("a space before the colon", get("/healthz", "x-user-id : bob\r\n"), &[400]),
        ("a folded header", get("/healthz", "x-a: b\r\n c: d\r\n"), &[400]),
        ("a lone return in a header", get("/healthz", "x-a: b\rx-c: d\r\n"), &[400]),
    ];
    for (what, bytes, expected) in cases {
        let (status, heard) = wire.status(bytes.as_bytes()).await;
        assert!(expected.contains(&status), "{what}: {status} {heard}");
        wire.others_are_answered().await;
    }
    let (status, _) = wire.status(b"GET /\xff\xfe HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!([400, 404].contains(&status), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_hide_in_others() {
    let wire = Wire::new(app, Limits::default()).await;
    let hidden = "DELETE /hidden HTTP/1.1\r\nhost: a\r\n\r\n";
    let post = |headers: &str, body: &str| {
        format!(
            "POST /v1/threads/t/messages HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-api-key: {}\r\nx-user-id: alice\r\n\
             content-type: application/json\r\n{headers}\r\n{body}",
            wire.home.backend
        )
    };
    let good = "c\r\n{\"body\": 12}\r\n0\r\n\r\n";
    for (what, headers, body) in [
        ("two lengths", "content-length: 11\r\ncontent-length: 12\r\n", "{\"body\": 1}"),
        ("a list of lengths", "content-length: 11, 12\r\n", "{\"body\": 1}"),
        ("a length with a sign", "content-length: +11\r\n", "{\"body\": 1}"),
        ("a negative length", "content-length: -1\r\n", "{\"body\": 1}"),
        ("a length beyond numbers", "content-length: 99999999999999999999999\r\n", "{\"body\": 1}"),
        ("an unknown coding", "transfer-encoding: xchunked\r\n", good),
        ("chunks that are not last", "transfer-encoding: chunked, identity\r\n", good),
        ("a chunk beyond numbers", "transfer-encoding: chunked\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
        ("a chunk of no number", "transfer-encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
        ("a chunk that is longer", "transfer-encoding: chunked\r\n", "2\r\n{\"body\": 1}\r\n0\r\n\r\n"),
        ("less than announced", "content-length: 5\r\n", "{\"body\": 1}"),
    ] {
        let (status, heard) = wire.status((post(headers, body) + hidden).as_bytes()).await;
        assert!((400..500).contains(&status), "{what}: {status} {heard}");
        assert_eq!(heard.matches("HTTP/1.1 ").count(), 1, "{what}: {heard}");
        wire.others_are_answered().await;
    }
    let long = format!("1;{}\r\n", "a".repeat(50_000));
    let (status, heard) = wire.status(post("transfer-encoding: chunked\r\n", &long).as_bytes()).await;
    assert_eq!(status, 400, "a chunk with a long extension: {heard}");
    // A length beside chunks is refused, and nothing is read after it.
    for both in
        ["transfer-encoding: chunked\r\ncontent-length: 4\r\n", "content-length: 4\r\ntransfer-encoding: chunked\r\n"]
    {
        let bytes = post(both, good).replace("connection: close\r\n", "") + hidden;
        let (status, heard) = wire.status(bytes.as_bytes()).await;
        assert_eq!((status, heard.matches("HTTP/1.1 ").count()), (400, 1), "{both}: {heard}");
    }
    for (what, hosts) in
        [("no host", ""), ("two hosts", "host: a\r\nhost: b\r\n"), ("the same twice", "host: a\r\nhost: a\r\n")]
    {
        let bytes = format!("GET /healthz HTTP/1.1\r\n{hosts}\r\n") + hidden;
        let (status, heard) = wire.status(bytes.as_bytes()).await;
        assert_eq!((status, heard.matches("HTTP/1.1 ").count()), (400, 1), "{what}: {heard}");
    }
    // HTTP/1.0 had none, and a second request on the same connection is looked at as the first.
    assert!(wire.said(b"GET /healthz HTTP/1.0\r\n\r\n").await.starts_with(b"HTTP/1.0 200"));
    let client = wire.client().await;
    client.says(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let first = String::from_utf8_lossy(&client.hears_some().await).into_owned();
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    client.says(post("content-length: 4\r\ntransfer-encoding: chunked\r\n", good).as_bytes()).await;
    let heard = String::from_utf8_lossy(&client.hears().await).into_owned();
    assert!(heard.starts_with("HTTP/1.1 400"), "{heard}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_too_much() {
    let wire = Wire::new(app, Limits::default()).await;
    let deep = [b"{\"body\":".to_vec(), b"[".repeat(100_000)].concat();
    let digits = [b"{\"body\":".to_vec(), b"9".repeat(100_000), b"}".to_vec()].concat();
    for (what, body, expected) in [
        ("very deep", deep, 400),
        ("a very long number", digits, 400),
        ("a very great number", b"{\"body\":1e999999999}".to_vec(), 400),
        ("the same field twice", b"{\"body\":1,\"body\":2}".to_vec(), 422),
        ("an id with a zero", b"{\"id\":\"a\\u0000b\",\"body\":1}".to_vec(), 422),
        ("an id with a line break", b"{\"id\":\"a\\r\\nset-cookie: b\",\"body\":1}".to_vec(), 422),
        ("not UTF-8", b"{\"body\":\"\xc0\xaf\"}".to_vec(), 400),
        ("a byte more than is taken", vec![b' '; 128 * 1024 + 1], 413),
    ] {
        let (status, heard) = wire.status(&wire.post("/v1/threads/t/messages", &body)).await;
        assert_eq!(status, expected, "{what}: {heard}");
        assert!(!heard.contains("set-cookie"), "{what}: {heard}");
        wire.others_are_answered().await;
    }
    for path in ["/v1/threads/a%0d%0aset-cookie:%20b/messages", "/v1/threads/%2e%2e%2f%2e%2e/messages"] {
        let (status, heard) = wire.status(&wire.post(path, b"{\"body\":1}")).await;
        assert!([404, 422].contains(&status), "{path}: {heard}");
        assert!(!heard.contains("\nset-cookie"), "{path}: {heard}");
    }
    let endless = format!(
        "POST /v1/threads/t/messages HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\nx-user-id: alice\r\nconnection: close\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{}",
        wire.home.backend,
        format!("400\r\n{}\r\n", " ".repeat(1024)).repeat(1000)
    );
    let (status, heard) = wire.status(endless.as_bytes()).await;
    assert!([413, 0].contains(&status), "a body without end: {heard}");
    wire.others_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_take_their_time_are_not_waited_for() {
    let wire = Wire::new(app, Wire::impatient_limits()).await;
    let post = format!(
        "POST /v1/threads/t/messages HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\nx-user-id: alice\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        wire.home.backend
    );
    for (what, bytes, expected) in [
        ("nothing", &b""[..], &[0][..]),
        ("half a word", b"GE", &[0, 408]),
        ("half a head", b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-slow: ", &[0, 408]),
        ("a part of HTTP/2's first words", b"PRI * HTTP", &[0]),
        ("a part of a body", post.as_bytes(), &[408]),
    ] {
        let client = wire.client().await;
        client.says(bytes).await;
        wire.others_are_answered().await;
        let heard = String::from_utf8_lossy(&client.hears().await).into_owned();
        let status = heard.get(9..12).and_then(|text| text.parse().ok()).unwrap_or(0);
        assert!(expected.contains(&status), "{what}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_only_so_many_connections() {
    let wire = Wire::new(app, Limits { address_connections_max: 3, ..Limits::default() }).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let client = wire.client().await;
        client.says(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(client.hears_some().await.starts_with(b"HTTP/1.1 200"));
        clients.push(client);
    }
    assert_eq!(wire.client().await.hears().await, b"");
    clients.pop();
    wire.others_are_answered().await;
}
