//! Files through the real binary: uploads, renditions made in a process of their own, images that attack, and kills.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod dump;

use common::Home;
use common::browsing::{Answer, get_with};
use common::served::Served;
use image::{DynamicImage, ImageFormat, RgbImage};
use serde_json::{Value, json};
use std::io::{Cursor, Read as _, Write as _};
use std::net::TcpStream;

/// Sends bytes as an upload. Answers with status and body.
fn upload(node: &Served, key: &str, name: &str, bytes: &[u8]) -> (u16, Value) {
    let (mut stream, head) = begin_upload(node, key, name, bytes.len());
    stream.write_all(&[head.as_bytes(), bytes].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, serde_json::from_slice(&answer[end + 4..]).unwrap_or_default())
}

fn begin_upload(node: &Served, key: &str, name: &str, length: usize) -> (TcpStream, String) {
    let address = node.url.trim_start_matches("http://").to_owned();
    let head = format!(
        "POST /v1/files?name={name} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nX-User-ID: alice\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    (TcpStream::connect(address).unwrap(), head)
}

fn content(node: &Served, key: &str, file: &Value, more: &str) -> Answer {
    let url = format!("{}/v1/files/{}/content{more}", node.url, file["id"].as_str().expect("an id"));
    get_with(&url, &format!("X-API-Key: {key}\r\nX-User-ID: alice\r\n"))
}

/// Waits for the live event that says that a file was processed or has failed.
fn wait_until(node: &Served, key: &str, file: &Value, is_so: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/v1/files/{}", file["id"].as_str().expect("an id"));
    for _ in 0..600 {
        let (_, shown) = node.send(key, "GET", &path, None);
        if is_so(&shown) {
            return shown;
        }
        std::thread::yield_now();
        // The answer to a write comes after whatever was committed before it.
        node.send(key, "PUT", &path, Some(json!({ "metadata": {} })));
    }
    panic!("it was not so in the end: {:?}", node.send(key, "GET", &path, None));
}

/// Waits until an upload that was begun has its row.
fn wait_for_uploading(node: &Served, key: &str) {
    for _ in 0..2000 {
        let (_, listed) = node.send(key, "GET", "/v1/files?status=uploading", None);
        if listed["files"].as_array().is_some_and(|files| !files.is_empty()) {
            return;
        }
    }
    panic!("the upload was not begun");
}

fn photo(format: ImageFormat) -> Vec<u8> {
    let picture = RgbImage::from_fn(1600, 900, |x, y| image::Rgb([(x / 7) as u8, (y / 5) as u8, 90]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A PNG of a few kilobytes that says it has 20,000 × 20,000 pixels.
fn bomb() -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    (0..20_000).for_each(|_| packed.write_all(&[0; 2501]).unwrap());
    let header = [&20_000u32.to_be_bytes()[..], &20_000u32.to_be_bytes(), &[1, 0, 0, 0, 0]].concat();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", packed.finish().unwrap()), (b"IEND", Vec::new())] {
        bytes.extend((data.len() as u32).to_be_bytes());
        let chunk = [&kind[..], &data].concat();
        bytes.extend(&chunk);
        bytes.extend(crc32fast::hash(&chunk).to_be_bytes());
    }
    bytes
}

#[test]
fn an_image_gets_its_renditions_and_what_attacks_its_decoder_is_refused_by_its_reason() {
    let node = Served::start(Home::new(), &[]);
    let key = node.key("backend");
    for format in [ImageFormat::Jpeg, ImageFormat::Png] {
        let (status, file) = upload(&node, &key, "photo", &photo(format));
        assert_eq!(status, 201, "{file}");
        let done = wait_until(&node, &key, &file, |file| file["status"] == "processed");
        assert_eq!(done["ready"], true, "{done}");
        let sizes: Vec<_> = done["renditions"].as_array().unwrap().iter().collect();
        let of = |variant: &str| {
            let found = sizes.iter().find(|made| made["variant"] == variant).expect("a rendition");
            (found["status"].clone(), found["width"].clone(), found["height"].clone())
        };
        assert_eq!(of("thumbnail_256"), (json!("processed"), json!(256), json!(144)));
        assert_eq!(of("full_2048"), (json!("processed"), json!(1600), json!(900)), "nothing grows");
        let thumbnail = content(&node, &key, &file, "?variant=thumbnail_256");
        assert_eq!((thumbnail.status, thumbnail.header("content-type")), (200, "image/jpeg"));
        let shown = image::load_from_memory(&thumbnail.body).unwrap();
        assert_eq!((shown.width(), shown.height()), (256, 144));
        assert!(thumbnail.header("content-disposition").starts_with("inline"));
    }
    let attack = bomb();
    assert!(attack.len() < 60_000);
    for (bytes, why) in [(attack, "20000"), (photo(ImageFormat::Png)[..2000].to_vec(), "damaged")] {
        let (status, file) = upload(&node, &key, "attack.png", &bytes);
        assert_eq!(status, 201, "{file}");
        let failed = wait_until(&node, &key, &file, |file| file["status"] == "failed");
        assert!(failed["error"].as_str().unwrap().contains(why), "{failed}");
        assert_eq!(content(&node, &key, &file, "").body, bytes, "the original is there all the same");
        let (status, _) = node.send(&key, "POST", &format!("/v1/files/{}/retry", file["id"].as_str().unwrap()), None);
        assert_eq!(status, 204);
    }
    let (status, _) = upload(&node, &key, "page.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>");
    assert_eq!(status, 201);
    let home = node.kill();
    home.run(&["verify"]).good();
}

#[test]
fn whatever_is_killed_while_it_uploads_loses_nothing_that_was_answered_and_leaves_no_bytes() {
    let mut home = Home::new();
    let large: Vec<u8> = (0..300_000u32).flat_map(u32::to_be_bytes).collect();
    let mut answered = Vec::new();
    for round in 0..3 {
        let node = Served::start(home, &[]);
        let key = node.key("backend");
        for (file, size) in &answered {
            assert_eq!(content(&node, &key, file, "").body.len(), *size, "round {round}");
        }
        let (status, file) = upload(&node, &key, "whole.bin", &large);
        assert_eq!(status, 201, "{file}");
        answered.push((file, large.len()));
        let (mut stream, head) = begin_upload(&node, &key, "half.bin", large.len());
        stream.write_all(&[head.as_bytes(), &large[..large.len() / 2]].concat()).unwrap();
        wait_for_uploading(&node, &key);
        home = node.kill();
    }
    let node = Served::start(home, &[]);
    let key = node.key("backend");
    let (_, failed) = node.send(&key, "GET", "/v1/files?status=failed", None);
    let failed = failed["files"].as_array().unwrap().clone();
    assert_eq!(failed.len(), 3);
    assert!(failed[0]["error"].as_str().unwrap().contains("stopped"), "{failed:?}");
    let home = node.kill();
    home.run(&["verify"]).good();
    home.json(&["--set", "store.unreferenced_content_hours=0", "collect"]);
    let objects = std::fs::read_dir(home.data().join("objects")).unwrap().count();
    assert_eq!(objects, 1, "the same bytes are kept once, and nothing else");
    let backup = home.json(&["backup", "whole.backup"]);
    assert_eq!(backup["objects"], 1);
}

#[test]
fn folders_become_files_once_and_what_is_missing_of_them_is_made() {
    let node = Served::start(Home::new(), &["--set", "files.workers=0"]);
    let key = node.key("backend");
    let album = node.home.path().join("album/deeper");
    std::fs::create_dir_all(&album).unwrap();
    std::fs::write(album.join("photo.jpg"), photo(ImageFormat::Jpeg)).unwrap();
    std::fs::write(album.join("../notes.bin"), b"\x01hello").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", album.join("link")).unwrap();
    let import = || node.home.json(&["files", "import", "album", "--user", "alice"]);
    let first = import();
    assert_eq!(
        (&first["uploaded"], &first["skipped"], &first["failed"]),
        (&json!(2), &json!(0), &json!([])),
        "{first}"
    );
    let again = import();
    assert_eq!((&again["uploaded"], &again["skipped"]), (&json!(0), &json!(2)), "{again}");
    std::fs::write(album.join("../notes.bin"), b"\x01hello again").unwrap();
    assert_eq!(import()["uploaded"], 1);
    let (_, listed) = node.send(&key, "GET", "/v1/files", None);
    let files = listed["files"].as_array().unwrap();
    let names: Vec<_> = files.iter().map(|file| (file["name"].clone(), file["metadata"]["path"].clone())).collect();
    assert!(names.contains(&(json!("photo.jpg"), json!("deeper/photo.jpg"))), "{names:?}");
    assert_eq!(files.len(), 3);
    // Nobody works here: the photo waits, and a backfill leaves it where it is.
    let photo = files.iter().find(|file| file["name"] == "photo.jpg").unwrap();
    let status = node.home.json(&["files", "status"]);
    assert_eq!((&status["backlog"], &status["open_uploads"]), (&json!(1), &json!(0)), "{status}");
    let seen = node.home.json(&["files", "backfill", "--dry-run"]);
    assert_eq!((&seen["processed"], &seen["valid"]), (&json!(3), &json!(3)), "{seen}");
    let id = photo["id"].as_str().unwrap();
    node.home.run(&["files", "retry", id]).bad(&["only a file whose processing has failed"]);
    node.home.run(&["files", "fail", id, "--why", "not now"]).good();
    node.home.run(&["files", "fail", id, "--why", "not now"]).bad(&["being processed"]);
    node.home.run(&["files", "retry", id]).good();
    node.home.run(&["files", "retry", "file-00000000000000000000000000000000"]).bad(&["there is no file"]);
    node.home.run(&["files", "retry", "cat.png"]).bad(&["32 hexadecimal digits"]);
    // With somebody who works it is made, and the same commands work on the folder.
    let node = Served::start(node.kill(), &[]);
    wait_until(&node, &key, photo, |file| file["status"] == "processed");
    let home = node.kill();
    let told = home.run(&["files", "backfill", "--fix-status"]).good();
    assert!(told.out.contains("processed 3, valid 3, invalid 0"), "{}", told.out);
    let told = home.run(&["files", "backfill", "--variant", "preview_99"]).bad(&[]);
    assert!(told.out.contains("1 queued for work"), "{}", told.out);
    let told = home.run(&["files", "status"]).good();
    assert!(told.out.contains("derived  rendition") && told.out.contains("1 file waiting"), "{}", told.out);
    home.run(&["files", "import", "album", "--user", "alice"]).bad(&["no node is running"]);
}

/// Sends a request with these headers. Answers with status and head.
fn raw(node: &Served, key: &str, request: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let address = node.url.trim_start_matches("http://").to_owned();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nX-User-ID: alice\r\nTus-Resumable: 1.0.0\r\n{headers}\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    (text[9..12].parse().unwrap(), text.split("\r\n\r\n").next().unwrap().to_owned())
}

fn append(node: &Served, key: &str, place: &str, offset: usize, body: &[u8]) -> u16 {
    let headers = format!("Upload-Offset: {offset}\r\nContent-Type: application/offset+octet-stream\r\n");
    raw(node, key, &format!("PATCH {place}"), &headers, body).0
}

/// What a file is of that was uploaded in that round.
fn bytes_of(round: usize) -> Vec<u8> {
    (0..150_000usize).map(|at| (at * (round + 3) / 7) as u8).collect()
}

#[test]
fn a_hundred_kills_during_uploads_and_processing_lose_nothing_and_leave_nothing() {
    const ROUNDS: usize = 100;
    let mut home = Home::new();
    let picture = photo(ImageFormat::Jpeg);
    let (mut whole, mut pictures, mut open) = (Vec::new(), Vec::new(), Vec::<(usize, String, usize)>::new());
    let mut key = String::new();
    for round in 0..ROUNDS {
        let node = Served::start(home, &["--log", "off"]);
        if round == 0 {
            key = node.key("backend");
        }
        // What goes on from an earlier round goes on from where it was acknowledged.
        if let Some((number, place, acknowledged)) = open.pop() {
            let (status, head) = raw(&node, &key, &format!("GET {place}"), "", b"");
            let offset = head.lines().find_map(|line| line.strip_prefix("upload-offset: ")).unwrap_or("none");
            assert_eq!((status, offset), (200, acknowledged.to_string().as_str()), "round {round}: {head}");
            assert_eq!(append(&node, &key, &place, acknowledged, &bytes_of(number)[acknowledged..]), 204);
            whole.push((number, place.replace("/uploads/", "/files/")));
        }
        // Each round is killed at another place.
        match round % 5 {
            0 => {
                let (mut stream, head) = begin_upload(&node, &key, "half.bin", 150_000);
                stream.write_all(&[head.as_bytes(), &bytes_of(round)[..120_000]].concat()).unwrap();
            }
            1 | 2 => {
                let (status, head) = raw(&node, &key, "POST /v1/uploads", "Upload-Length: 150000\r\n", b"");
                assert_eq!(status, 201, "{head}");
                let place = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned();
                let part = 50_000 + round * 300;
                let acknowledged = if round % 5 == 1 { 0 } else { part };
                if acknowledged > 0 {
                    assert_eq!(append(&node, &key, &place, 0, &bytes_of(round)[..part]), 204);
                }
                open.push((round, place, acknowledged));
            }
            3 => {
                let (status, file) = upload(&node, &key, "photo.jpg", &[picture.as_slice(), &[round as u8]].concat());
                assert_eq!(status, 201, "{file}");
                pictures.push(file);
            }
            _ => {
                let (status, file) = upload(&node, &key, "whole.bin", &bytes_of(round));
                assert_eq!(status, 201, "{file}");
                whole.push((round, format!("/v1/files/{}", file["id"].as_str().unwrap())));
            }
        }
        home = node.kill();
    }
    let node = Served::start(home, &["--log", "off"]);
    for (number, place) in &whole {
        let url = format!("{}{place}/content", node.url);
        let got = get_with(&url, &format!("X-API-Key: {key}\r\nX-User-ID: alice\r\n"));
        assert!(got.status == 200 && got.body == bytes_of(*number), "{place} of round {number}: {}", got.status);
    }
    for picture in &pictures {
        wait_until(&node, &key, picture, |file| file["status"] == "processed");
    }
    check_that_nothing_is_left(&node.kill());
}

/// Everything fits, nothing waits, and every object in the folder is spoken of.
fn check_that_nothing_is_left(home: &Home) {
    home.run(&["verify"]).good();
    let told = home.json(&["files", "status"]);
    assert_eq!(
        (&told["stuck"], &told["inconsistent"], &told["backlog"]),
        (&json!([]), &json!([]), &json!(0)),
        "{told}"
    );
    home.json(&["--set", "store.unreferenced_content_hours=0", "collect"]);
    let objects = std::fs::read_dir(home.data().join("objects")).unwrap().count();
    let backup = home.json(&["backup", "whole.backup"]);
    assert_eq!(backup["objects"], objects, "every object in the folder is spoken of");
}
