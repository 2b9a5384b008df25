//! A minimal WebDriver client: opens pages in Chromium and runs scripts there.

use super::super::http::connect;
use anyhow::{Context as _, Result, bail, ensure};
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// How often to run the script again when the page was replaced or nothing happened.
const ATTEMPTS_MAX: usize = 10;

/// A chromedriver process, ended on drop.
pub(super) struct Driver {
    child: Child,
    address: SocketAddr,
}

impl Driver {
    pub(super) fn start() -> Result<Driver> {
        let mut command = Command::new("chromedriver");
        let command = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start chromedriver: install chromium and chromium-driver")?;
        let output = child.stdout.take().context("an output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("started successfully on port")).context("a port")?;
        let port: String = line.chars().filter(char::is_ascii_digit).collect();
        Ok(Driver { child, address: SocketAddr::from(([127, 0, 0, 1], port.parse()?)) })
    }

    /// Opens a window with an empty profile.
    pub(super) async fn window(&self) -> Result<Window> {
        let arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"];
        let quiet = ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"];
        let arguments = [arguments.as_slice(), &quiet].concat();
        let options = json!({ "args": arguments });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let made = send_command(self.address, Method::POST, "/session", &wanted).await?;
        let session = made["sessionId"].as_str().context("a session")?.to_owned();
        Ok(Window { address: self.address, session })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) struct Window {
    address: SocketAddr,
    session: String,
}

impl Window {
    async fn command(&self, what: &str, body: &Value) -> Result<Value> {
        send_command(self.address, Method::POST, &format!("/session/{}/{what}", self.session), body).await
    }

    pub(super) async fn goto(&self, url: &str) -> Result<()> {
        self.command("url", &json!({ "url": url })).await.map(drop)
    }

    pub(super) async fn run(&self, script: &str) -> Result<Value> {
        self.command("execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// Waits until the expression is true, and returns the time in milliseconds.
    pub(super) async fn run_until(&self, expression: &str) -> Result<Value> {
        let script = format!(
            "const done = arguments[arguments.length - 1]; let watcher;
             const look = () => {{
               if (!({expression})) return false;
               watcher?.disconnect();
               done(performance.timeOrigin + performance.now());
               return true;
             }};
             if (look()) return;
             watcher = new MutationObserver(look);
             watcher.observe(document, {{ subtree: true, childList: true, characterData: true, attributes: true }});
             setTimeout(() => done(null), 3000);"
        );
        for _ in 0..ATTEMPTS_MAX {
            match self.command("execute/async", &json!({ "script": script, "args": [] })).await {
                Ok(Value::Null) | Err(_) => {}
                Ok(value) => return Ok(value),
            }
        }
        bail!("timeout while waiting for {expression}")
    }

    pub(super) async fn close(self) {
        let _ = send_command(self.address, Method::DELETE, &format!("/session/{}", self.session), &json!({})).await;
    }
}

async fn send_command(address: SocketAddr, method: Method, path: &str, body: &Value) -> Result<Value> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let response = connect(address).await?.send_request(request).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    let mut answer: Value = serde_json::from_slice(&bytes)?;
    ensure!(status.is_success(), "the browser answered {}", answer["value"]["message"]);
    Ok(answer["value"].take())
}
