//! The web page: a page of 50 messages as HTML and as JSON, the size of the first page load, and the time from sending a
//! message in one browser to its display in another.

mod webdriver;

use self::webdriver::{Driver, Window};
use super::event_generator;
use super::http::{MakeRequest, fetch, run_load};
use super::{BenchOptions, figure, print_figures};
use crate::app::app;
use crate::clock::SystemClock;
use crate::random::random_bytes;
use crate::{home_space, welcome_thread};
use anyhow::{Context as _, Result};
use http::{Method, Request, header};
use http_body_util::Full;
use hyper::body::Bytes;
use node::commands::{Caller, CallerKind, CommandRequest, NameOrId, NewMessage, UserCommand, message_content};
use node::fetch::hunter::NoSources;
use node::{Node, NodeOptions};
use server::{Limits, ServerOptions, ServerState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const THREADS: usize = 20;
const MESSAGES: usize = 60;
const CONNECTIONS: usize = 16;

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let time = Duration::from_secs(if options.quick { 2 } else { 10 });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let node = Node::start(
        event_generator::open_store(folder.path())?,
        Arc::new(SystemClock),
        Arc::new(NoSources),
        NodeOptions::default(),
    );
    prepare(&node)?;
    let limits = Limits { user_per_second: 10_000_000, address_per_second: 10_000_000, ..Limits::default() };
    let state = ServerState::new(node.clone(), ServerOptions { limits, ..ServerOptions::default() }, "bench");
    let server = runtime.block_on(server::serve(app(&state), SocketAddr::from(([127, 0, 0, 1], 0))))?;
    let link = || state.operator_link().map_err(|why| anyhow::anyhow!(why.detail));
    let cookie = runtime.block_on(sign_in(server.address, &link()?))?;
    let make = |path: &'static str| -> Arc<MakeRequest> {
        let cookie = cookie.clone();
        Arc::new(move |connection, number| {
            get(&path.replace("{}", &format!("thread-{}", (connection + number) % THREADS)), &cookie)
        })
    };
    let (json, html) = (make("/v1/threads/{}/messages?limit=50"), make("/s/home/t/{}"));
    let load =
        |make: &Arc<MakeRequest>, time| runtime.block_on(run_load(server.address, CONNECTIONS, time, make.clone()));
    for warm in [&json, &html] {
        load(warm, time / 4)?;
    }
    let (as_json, as_html) = (load(&json, time)?, load(&html, time)?);
    let first_page = runtime.block_on(measure_first_page(server.address, &cookie))?;
    let posts = if options.quick { 5 } else { 30 };
    let base = format!("http://{}", server.address);
    let mut times = runtime.block_on(measure_delivery(&base, [link()?, link()?], posts))?;
    times.sort_by(f64::total_cmp);
    runtime.block_on(server.stop());
    node.stop();
    print_figures(
        "web",
        &[
            figure(
                "page_ratio_json",
                as_json.per_s / as_html.per_s,
                "time for a page of 50 messages as HTML, relative to JSON",
            ),
            figure("pages_per_s", as_html.per_s, "pages of 50 messages as HTML"),
            figure("json_per_s", as_json.per_s, "the same as JSON"),
            figure(
                "first_page_kb",
                first_page as f64 / 1000.0,
                "first page load with style sheet, script and icon, not compressed",
            ),
            figure("live_ms", times[times.len() / 2], "from sending in one browser to display in another, median"),
            figure("live_max_ms", times[times.len() - 1], "the same, maximum"),
        ],
    )
}

/// Creates threads with ordinary messages.
fn prepare(node: &Node) -> Result<()> {
    let failed = |failure: crate::failure::Failure| anyhow::anyhow!("{failure:?}");
    home_space::create_home_space(node).map_err(failed)?;
    welcome_thread::create_welcome_thread(node).map_err(failed)?;
    let (space, _) = node.snapshot()?.hosted_spaces()?.into_iter().next().context("a space")?;
    for number in 0..THREADS * MESSAGES {
        let text = format!("message {number} says something *ordinary*, to @user-{}", number % 7);
        let new = NewMessage {
            thread: Some(NameOrId::Chosen(format!("thread-{}", number % THREADS))),
            chosen: None,
            content: message_content(text.into(), None)?,
            reply_to: None,
            mentions: Vec::new(),
            attachments: Vec::new(),
        };
        let user = Some(format!("user-{}", number % 11));
        let caller = Caller { kind: CallerKind::Operator, user, audit_name: "bench".to_owned() };
        let random = random_bytes().map_err(failed)?;
        let request = CommandRequest {
            space,
            caller,
            idempotency: None,
            expected: None,
            command: UserCommand::Post(new),
            random,
        };
        node.ask(request).context("a message was not posted")?;
    }
    Ok(())
}

fn get(path: &str, cookie: &str) -> Result<Request<Full<Bytes>>> {
    let request = Request::builder().uri(path).header(header::HOST, "localhost").header(header::COOKIE, cookie);
    Ok(request.body(Full::default())?)
}

/// Signs in with a link and returns the session cookie.
async fn sign_in(address: SocketAddr, link: &str) -> Result<String> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(link)
        .header(header::HOST, "localhost")
        .header("sec-fetch-site", "same-origin")
        .body(Full::default())?;
    let response = super::http::connect(address).await?.send_request(request).await?;
    let cookie = response.headers().get(header::SET_COOKIE).context("a cookie")?.to_str()?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

/// The bytes that a browser with an empty cache fetches: the page and its assets.
async fn measure_first_page(address: SocketAddr, cookie: &str) -> Result<usize> {
    let page = fetch(address, get("/s/home/t/thread-0", cookie)?).await?;
    let text = String::from_utf8_lossy(&page).into_owned();
    let mut bytes = page.len();
    for part in text.split('"').filter(|part| part.starts_with("/assets/")) {
        bytes += fetch(address, get(part, cookie)?).await?.len();
    }
    Ok(bytes)
}

/// Sends in one browser and waits for the message in another. Both use the same clock.
async fn measure_delivery(base: &str, links: [String; 2], posts: usize) -> Result<Vec<f64>> {
    let driver = Driver::start()?;
    let (writer, reader) = (driver.window().await?, driver.window().await?);
    for (window, link) in [&writer, &reader].into_iter().zip(&links) {
        open_thread(window, base, link).await?;
    }
    let mut times = Vec::new();
    for number in 0..posts {
        let text = format!("ping {number}!");
        let is_shown = format!("document.querySelector('#messages').innerText.includes('{text}')");
        let send = format!(
            "const box = document.getElementById('text'); box.value = '{text}';
             const at = performance.timeOrigin + performance.now();
             document.getElementById('compose').requestSubmit(); return at;"
        );
        let (seen, sent) = tokio::join!(reader.run_until(&is_shown), writer.run(&send));
        let (seen, sent) =
            (seen?.as_f64().context("the message was never displayed")?, sent?.as_f64().context("a time")?);
        times.push(seen - sent);
    }
    writer.close().await;
    reader.close().await;
    Ok(times)
}

async fn open_thread(window: &Window, base: &str, link: &str) -> Result<()> {
    window.goto(&format!("{base}{link}")).await?;
    window.run("document.querySelector('main form').requestSubmit()").await?;
    window.run_until("document.getElementById('threads')").await?;
    window.goto(&format!("{base}/s/home/t/thread-1")).await?;
    window.run_until("document.documentElement.classList.contains('script')").await?;
    Ok(())
}
