//! A real Chromium, driven through its own driver.

use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long anything on a page may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one page is looked at before we see whether it is still there.
const TURN: Duration = Duration::from_secs(2);

/// Another page has taken the place of the one that was marked.
const HAS_LEFT: &str = "document.documentElement.dataset.left === undefined && document.readyState !== 'loading'";

const AXE: &str = include_str!("../vendor/axe.min.js");

/// The driver, which ends with the test.
pub(crate) struct Driver {
    child: Child,
    url: String,
}

impl Driver {
    /// Starts on a free port.
    pub(crate) fn start() -> Driver {
        let mut command = Command::new("chromedriver");
        let command = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("chromedriver is here: `cargo xtask test` installs it");
        let mut lines = BufReader::new(child.stdout.take().expect("an output")).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("started successfully on port")).expect("it says its port");
        let port: String = line.chars().filter(char::is_ascii_digit).collect();
        // The rest of what it says must be read, or it would wait for us.
        std::thread::spawn(move || lines.for_each(drop));
        Driver { child, url: format!("http://127.0.0.1:{port}") }
    }

    /// A browser with nothing in it, of this size.
    pub(crate) async fn browser(&self, width: u32, height: u32) -> Browser {
        let profile = tempfile::tempdir().expect("a folder");
        let profile_argument = format!("--user-data-dir={}", profile.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            &profile_argument,
        ];
        let options = json!({ "goog:chromeOptions": { "args": arguments, "binary": "/usr/bin/chromium" } });
        let Value::Object(capabilities) = options else { panic!("an object") };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let client = builder.capabilities(capabilities).connect(&self.url).await.expect("a browser");
        client.set_window_size(width, height).await.expect("a size");
        Browser { client, _profile: profile }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Something that the driver knows and its library does not: where it is asked, and for what.
#[derive(Debug)]
struct Special(&'static str, Value);

impl WebDriverCompatibleCommand for Special {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.0))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.1.to_string()))
    }
}

/// A window.
pub(crate) struct Browser {
    client: Client,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) async fn goto(&self, url: &str) {
        self.client.goto(url).await.expect("a page");
    }

    /// From now on somebody is there who makes passkeys and uses them.
    pub(crate) async fn have_passkeys(&self) {
        let options = json!({
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true, "isUserVerified": true, "isUserConsenting": true,
        });
        self.client.issue_cmd(Special("webauthn/authenticator", options)).await.expect("an authenticator");
    }

    /// Takes the line away, or gives it back.
    pub(crate) async fn be_offline(&self, offline: bool) {
        let conditions = json!({ "network_conditions": {
            "offline": offline, "latency": 0, "download_throughput": -1, "upload_throughput": -1,
        } });
        self.client.issue_cmd(Special("chromium/network_conditions", conditions)).await.expect("no line");
    }

    /// From now on it is night.
    pub(crate) async fn be_dark(&self) {
        let features = json!([{ "name": "prefers-color-scheme", "value": "dark" }]);
        let order = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": features } });
        self.client.issue_cmd(Special("goog/cdp/execute", order)).await.expect("the dark");
    }

    /// Nothing is wider than the window.
    pub(crate) async fn fits(&self) {
        let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(self.run(overflow).await, 0, "{} is wider than its window", self.url().await);
    }

    pub(crate) async fn url(&self) -> String {
        self.client.current_url().await.expect("an address").to_string()
    }

    /// Waits for an element.
    pub(crate) async fn see(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        match found {
            Ok(found) => found,
            Err(why) => panic!("no {css} on {}: {why}\n{}", self.url().await, self.text().await),
        }
    }

    pub(crate) async fn click(&self, css: &str) {
        self.see(css).await.click().await.unwrap_or_else(|why| panic!("{css}: {why}"));
    }

    /// Clicks on what leads to another page, and waits for that page.
    pub(crate) async fn leave(&self, css: &str) {
        self.see(css).await;
        self.run("document.documentElement.dataset.left = '1'").await;
        self.click(css).await;
        self.until(HAS_LEFT).await;
    }

    /// Sends a form that leads to another page, and waits for that page.
    pub(crate) async fn submit(&self, css: &str) {
        self.see(css).await;
        self.run(&format!(
            "document.documentElement.dataset.left = '1'; document.querySelector({css:?}).requestSubmit()"
        ))
        .await;
        self.until(HAS_LEFT).await;
    }

    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let field = self.see(css).await;
        field.clear().await.expect("it can be cleared");
        field.send_keys(text).await.unwrap_or_else(|why| panic!("{css}: {why}"));
    }

    /// Everything that can be read on the page.
    pub(crate) async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.expect("a script that runs")
    }

    /// Runs a script that says itself when it is done.
    pub(crate) async fn run_later(&self, script: &str) -> Value {
        self.client.execute_async(script, Vec::new()).await.expect("a script that ends")
    }

    /// Waits until an expression holds, looking whenever something on the page changes. Says after how many
    /// milliseconds.
    pub(crate) async fn until(&self, expression: &str) -> f64 {
        let script = format!(
            "const done = arguments[arguments.length - 1], began = performance.now();
             let watcher;
             const look = () => {{
               if (!({expression})) return false;
               watcher?.disconnect();
               done(performance.now() - began);
               return true;
             }};
             if (look()) return;
             watcher = new MutationObserver(look);
             watcher.observe(document, {{ subtree: true, childList: true, characterData: true, attributes: true }});
             setTimeout(() => done(null), {});",
            TURN.as_millis()
        );
        for _ in 0..PATIENCE.as_millis() / TURN.as_millis() {
            // A page that is left takes its script with it; the next one is looked at anew.
            let waited = self.client.execute_async(&script, Vec::new()).await;
            if let Some(waited) = waited.ok().and_then(|waited| waited.as_f64()) {
                return waited;
            }
        }
        panic!("never {expression} on {}:\n{}", self.url().await, self.text().await);
    }

    /// Waits until the page says something.
    pub(crate) async fn reads(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    /// Keeps a picture of the window in the target folder.
    pub(crate) async fn picture(&self, name: &str) {
        let target = Path::new(env!("CARGO_BIN_EXE_anteroom")).ancestors().nth(2).expect("a target folder");
        let folder: PathBuf = target.join("screenshots");
        std::fs::create_dir_all(&folder).expect("a folder");
        let bytes = self.client.screenshot().await.expect("a picture");
        std::fs::write(folder.join(format!("{name}.png")), bytes).expect("it can be written");
    }

    /// Checks the page for barriers to people who see, hear or point otherwise.
    pub(crate) async fn is_accessible(&self) {
        self.client.execute(AXE, Vec::new()).await.expect("axe");
        let script = "const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ['violations'] }).then((found) => done(found.violations.map((one) =>
              `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(' | ')}`)));";
        let found = self.client.execute_async(script, Vec::new()).await.expect("axe answers");
        assert_eq!(found, json!([]), "on {}", self.url().await);
    }

    pub(crate) async fn close(self) {
        let _ = self.client.close().await;
    }
}
