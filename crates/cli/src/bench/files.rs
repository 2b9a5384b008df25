//! Files: a large one up and down beside copying it on the same disk with its hash computed; small ones beside posts; and the
//! renditions of a photo of 12 megapixels beside `vipsthumbnail`.

use super::child_node::ChildNode;
use super::event_generator::create_temp_folder;
use super::git::{median, timed};
use super::http::{MakeRequest, run_load};
use super::{BenchOptions, figure, print_figures};
use crate::render_process::RenderProcess;
use anyhow::{Context as _, Result, ensure};
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use media::Variant;
use node::files::processing::ImageRenderer as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const PIECE: usize = 1 << 20;
const CONNECTIONS: usize = 16;
/// A photo of 12 megapixels.
const WIDTH: u32 = 4000;
const HEIGHT: u32 = 3000;
const VARIANTS: [(&str, u32); 3] = [("thumbnail_256", 256), ("preview_1024", 1024), ("full_2048", 2048)];

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let (mib, rounds, seconds) = if options.quick { (128, 3, 2) } else { (1024, 5, 10) };
    let folder = create_temp_folder(options.dir.as_deref())?;
    let folder = folder.path();
    let settings = ["files.workers=0", "http.backend_user_requests_per_second=1000000", "quota.user_mib=0"];
    let mut node = ChildNode::start(options, &settings)?;
    let large = measure_large(folder, &node, mib, rounds)?;
    let (small, posts) = measure_small(&node, Duration::from_secs(seconds))?;
    let peak = node.peak_mib()?;
    node.stop()?;
    let (ours, vips) = measure_renditions(folder, rounds)?;
    let megapixels = f64::from(WIDTH) * f64::from(HEIGHT) / 1e6;
    print_figures(
        "files",
        &[
            figure("large_mib", mib as f64, "size of the large file"),
            figure("copy_s", large.copy, "copying it with its hash computed, synced, median"),
            figure("upload_s", large.upload, "uploading it, median"),
            figure("download_s", large.download, "downloading it into a file, synced, median"),
            figure("upload_ratio_copy", large.copy / large.upload, "upload to copy"),
            figure("download_ratio_copy", large.copy / large.download, "download to copy"),
            figure("small_per_s", small, "files of 1 KiB uploaded over 16 connections, per second"),
            figure("posts_per_s", posts, "messages posted over 16 connections, per second"),
            figure("small_ratio_posts", small / posts, "small uploads to posts"),
            figure("renditions_s", ours, "three renditions of a photo, median"),
            figure("vips_s", vips, "the same by vipsthumbnail on one thread, median"),
            figure("renditions_mp_per_s", megapixels / ours, "megapixels per second of one core"),
            figure("renditions_ratio_vips", vips / ours, "renditions to vipsthumbnail"),
            figure("rss_mib", peak, "peak memory of the node"),
        ],
    )
}

/// Seconds that a large file took, medians.
struct Large {
    copy: f64,
    upload: f64,
    download: f64,
}

fn measure_large(folder: &Path, node: &ChildNode, mib: usize, rounds: usize) -> Result<Large> {
    let (source, copy, received) = (folder.join("source"), folder.join("copy"), folder.join("received"));
    let (mut copies, mut uploads, mut downloads) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        // Other bytes each time, so that nothing is here already.
        write_noise(&source, mib, round as u64 + 1)?;
        let mut file = String::new();
        let mut up = || timed(|| upload(node, &source).map(|id| file = id));
        let across = || timed(|| copy_hashing(&source, &copy));
        let (upload, copy) = if round.is_multiple_of(2) {
            let upload = up()?;
            (upload, across()?)
        } else {
            let copy = across()?;
            (up()?, copy)
        };
        let download = timed(|| download(node, &file, &received))?;
        ensure!(std::fs::metadata(&received)?.len() == (mib << 20) as u64, "the file came back with another length");
        discard(node, &file)?;
        // The first round is not counted.
        if round > 0 {
            copies.push(copy);
            uploads.push(upload);
            downloads.push(download);
        }
    }
    Ok(Large { copy: median(&mut copies), upload: median(&mut uploads), download: median(&mut downloads) })
}

/// Bytes that cannot be compressed, the same in every run.
fn write_noise(path: &Path, mib: usize, seed: u64) -> Result<()> {
    let mut noise = blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof();
    let (mut file, mut piece) = (File::create(path)?, vec![0; PIECE]);
    for _ in 0..mib {
        noise.fill(&mut piece);
        file.write_all(&piece)?;
    }
    Ok(file.sync_all()?)
}

fn copy_hashing(from: &Path, to: &Path) -> Result<()> {
    let (mut source, mut target) = (File::open(from)?, File::create(to)?);
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; PIECE]);
    loop {
        let read = source.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
        target.write_all(&piece[..read])?;
    }
    std::hint::black_box(hasher.finalize());
    Ok(target.sync_all()?)
}

fn begin(node: &ChildNode, method: &str, path: &str, length: u64) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(node.address)?;
    let (address, token) = (node.address, &node.token);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nX-User-ID: bench\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

/// Reads the head of an answer. Says its status, and leaves the reader at the body.
fn status_of(reader: &mut impl std::io::BufRead) -> Result<u16> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).context("no status")?.parse()?;
    while line.trim() != "" {
        line.clear();
        ensure!(reader.read_line(&mut line)? > 0, "the answer has no body");
    }
    Ok(status)
}

fn upload(node: &ChildNode, path: &Path) -> Result<String> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; PIECE]);
    let mut stream = begin(node, "POST", "/v1/files?name=large.bin", file.metadata()?.len())?;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        stream.write_all(&piece[..read])?;
    }
    let mut reader = BufReader::new(stream);
    let (status, mut body) = (status_of(&mut reader)?, String::new());
    reader.read_to_string(&mut body)?;
    ensure!(status == 201, "the node answers {status}: {body}");
    let shown: serde_json::Value = serde_json::from_str(&body)?;
    Ok(shown["id"].as_str().context("no id")?.to_owned())
}

fn download(node: &ChildNode, file: &str, to: &Path) -> Result<()> {
    let stream = begin(node, "GET", &format!("/v1/files/{file}/content"), 0)?;
    let (mut reader, mut target) = (BufReader::with_capacity(PIECE, stream), File::create(to)?);
    let status = status_of(&mut reader)?;
    ensure!(status == 200, "the node answers {status}");
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        target.write_all(piece)?;
        let length = piece.len();
        reader.consume(length);
    }
    Ok(target.sync_all()?)
}

fn discard(node: &ChildNode, file: &str) -> Result<()> {
    let stream = begin(node, "DELETE", &format!("/v1/files/{file}?purge=true"), 0)?;
    let status = status_of(&mut BufReader::new(stream))?;
    ensure!(status == 204, "the node answers {status}");
    Ok(())
}

/// Small uploads and posts per second.
fn measure_small(node: &ChildNode, time: Duration) -> Result<(f64, f64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (address, token) = (node.address, node.token.clone());
    let asked = move |path: &str, kind: &str, user: usize, body: Vec<u8>| -> Result<Request<Full<Bytes>>> {
        let request = Request::builder().method(Method::POST).uri(path).header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {token}")).header("content-type", kind);
        Ok(request.header("x-user-id", format!("user-{user}")).body(Full::new(Bytes::from(body)))?)
    };
    let asked = Arc::new(asked);
    let posting = asked.clone();
    let posts: Arc<MakeRequest> = Arc::new(move |connection, number| {
        let text = format!("message {number} of connection {connection} says something ordinary");
        let body = serde_json::json!({ "thread": "lobby", "body": { "text": text } }).to_string();
        posting("/v1/messages", "application/json", connection, body.into_bytes())
    });
    let uploads: Arc<MakeRequest> = Arc::new(move |connection, number| {
        let mut content = vec![7; 1024];
        content[..16].copy_from_slice(&[(connection as u64).to_be_bytes(), (number as u64).to_be_bytes()].concat());
        asked("/v1/files?name=small.bin", "application/octet-stream", connection, content)
    });
    let measure = |make: &Arc<MakeRequest>, time| {
        runtime.block_on(run_load(address, CONNECTIONS, time, make.clone())).map(|load| load.per_s)
    };
    measure(&posts, time / 4)?;
    let posts_per_s = measure(&posts, time)?;
    measure(&uploads, time / 4)?;
    Ok((measure(&uploads, time)?, posts_per_s))
}

/// Seconds for three renditions of a photo: by the process that the node starts, and by `vipsthumbnail` on one thread.
fn measure_renditions(folder: &Path, rounds: usize) -> Result<(f64, f64)> {
    let photo = folder.join("photo.jpg");
    write_photo(folder, &photo)?;
    let original = std::fs::read(&photo)?;
    let variants = VARIANTS.iter().map(|(name, _)| Ok(name.parse::<Variant>()?)).collect::<Result<Vec<Variant>>>()?;
    let (mut ours, mut vips) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let own = timed(|| {
            let made = RenderProcess.render(&original, &variants)?;
            ensure!(made.len() == VARIANTS.len(), "{} renditions were made", made.len());
            Ok(())
        })?;
        let other = timed(|| {
            for (name, edge) in VARIANTS {
                let out = format!("{}-{name}.jpg[Q=85,strip]", folder.join("vips").display());
                let mut command = Command::new("vipsthumbnail");
                command.env("VIPS_CONCURRENCY", "1").arg(&photo).args(["-s", &edge.to_string(), "-o", &out]);
                let ran = command.output().context("vipsthumbnail cannot be started (libvips-tools)")?;
                ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            }
            Ok(())
        })?;
        if round > 0 {
            ours.push(own);
            vips.push(other);
        }
    }
    Ok((median(&mut ours), median(&mut vips)))
}

/// A picture with surfaces, edges and a little noise, as photos have them.
fn write_photo(folder: &Path, to: &Path) -> Result<()> {
    let raw = folder.join("photo.ppm");
    let mut pixels = format!("P6\n{WIDTH} {HEIGHT}\n255\n").into_bytes();
    let mut state = 1u32;
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (noise, is_edge) = (state >> 29, (x / 97 + y / 61) % 5 == 0);
            let light = if is_edge { 60 } else { 0 };
            for channel in [x * 170 / WIDTH, y * 170 / HEIGHT, (x + y) * 85 / WIDTH] {
                pixels.push((channel + light + noise).min(255) as u8);
            }
        }
    }
    std::fs::write(&raw, pixels)?;
    let out = format!("{}[Q=90]", to.display());
    let made = Command::new("vips").arg("copy").arg(&raw).arg(out).stdout(Stdio::null()).status();
    ensure!(made.context("vips cannot be started (libvips-tools)")?.success(), "vips cannot make the photo");
    Ok(())
}
