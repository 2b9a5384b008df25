//! The recipes of docs/PROXIES.md: the node, nginx and Caddy run with the texts of that page, in which only addresses,
//! ports and paths are replaced.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::served::Served;
use reqwest::{Client, Response};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const HOST: &str = "chat.example.org";
/// Where the page says that the node listens.
const NODE: &str = "127.0.0.1:7117";
/// A test that waits for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first block of code under a heading of the page.
fn recipe(heading: &str) -> String {
    let page = include_str!("../../../docs/PROXIES.md");
    let section = page.split("\n## ").find(|section| section.lines().next() == Some(heading)).expect("a heading");
    let block = section.split("```").nth(1).expect("a block");
    block.split_once('\n').expect("a first line").1.to_owned()
}

/// The same with these texts replaced, each of which must be there.
fn replaced(mut text: String, pairs: &[(&str, &str)]) -> String {
    for (from, to) in pairs {
        assert!(text.contains(from), "{from:?} is not in the recipe:\n{text}");
        text = text.replace(from, to);
    }
    text
}

/// A proxy that runs, and ends with the test.
struct Proxy {
    child: Child,
    address: SocketAddr,
    /// What its certificate is trusted by.
    certificate: String,
    _folder: TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // In order, so that nginx takes its workers along.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Addresses that nobody else listens on: this process has a loopback address of its own.
fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    let [_, top, high, low] = std::process::id().to_be_bytes();
    let own = IpAddr::V4(Ipv4Addr::new(127, 100 + (top & 0x7f), high, low));
    let taken = [(); N].map(|()| TcpListener::bind((own, 0)).expect("a port"));
    taken.map(|listener| listener.local_addr().expect("an address"))
}

/// Starts a proxy, and waits until its log has said all of this.
fn start(command: &mut Command, until: &[&str]) -> Child {
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the proxy is installed");
    let mut log = BufReader::new(child.stderr.take().expect("a log")).lines().map_while(Result::ok);
    let mut said = String::new();
    while !until.iter().all(|text| said.contains(text)) {
        let line = log.next().unwrap_or_else(|| panic!("it did not start: {said}"));
        said.push_str(&line);
        said.push('\n');
    }
    std::thread::spawn(move || log.for_each(drop));
    child
}

fn start_nginx(node: &str) -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
    std::fs::write(place("fullchain.pem"), made.cert.pem()).unwrap();
    std::fs::write(place("privkey.pem"), made.signing_key.serialize_pem()).unwrap();
    let [plain, plain_too, secure, secure_too] = free_addresses().map(|address| address.to_string());
    let site = replaced(
        recipe("nginx"),
        &[
            (NODE, node),
            ("listen 80;", &format!("listen {plain};")),
            ("listen [::]:80;", &format!("listen {plain_too};")),
            ("listen 443 ", &format!("listen {secure} ")),
            ("listen [::]:443 ", &format!("listen {secure_too} ")),
            (&format!("/etc/letsencrypt/live/{HOST}"), &folder.path().display().to_string()),
            // As the recipe says for another port.
            ("Host $host;", "Host $host:$server_port;"),
        ],
    );
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {};\n", place(kind)))
        .concat();
    let pid = place("pid");
    let all = format!(
        "daemon off;\nuser root;\npid {pid};\nerror_log stderr notice;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{site}}}\n"
    );
    std::fs::write(place("nginx.conf"), all).unwrap();
    let mut command = Command::new("nginx");
    command.env("PATH", format!("/usr/sbin:/sbin:{}", std::env::var("PATH").unwrap()));
    command.args(["-e", "stderr", "-p"]).arg(folder.path()).arg("-c").arg(place("nginx.conf"));
    let child = start(&mut command, &["start worker process "]);
    Proxy { child, address: secure.parse().unwrap(), certificate: made.cert.pem(), _folder: folder }
}

fn start_caddy(node: &str) -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    let [plain, secure]: [SocketAddr; 2] = free_addresses();
    // Who issues certificates, and where it listens, is said outside the recipe.
    let here = format!(
        "{{\nadmin off\nlocal_certs\nskip_install_trust\nauto_https disable_redirects\ndefault_bind {}\nhttp_port {}\nhttps_port {}\n}}\n",
        secure.ip(),
        plain.port(),
        secure.port()
    );
    let site = replaced(recipe("Caddy"), &[(NODE, node)]);
    let file = folder.path().join("Caddyfile");
    std::fs::write(&file, format!("{here}{site}")).unwrap();
    let mut command = Command::new("caddy");
    command.env("XDG_DATA_HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path()).env("HOME", folder.path());
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file).stdout(Stdio::null());
    let child = start(&mut command, &["serving initial configuration", "certificate obtained successfully"]);
    let authority = folder.path().join("caddy/pki/authorities/local/root.crt");
    let certificate = std::fs::read_to_string(authority).unwrap();
    Proxy { child, address: secure, certificate, _folder: folder }
}

/// A client at an address of its own, which trusts the proxy.
fn client(proxy: &Proxy, own: [u8; 4]) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = reqwest::Certificate::from_pem(proxy.certificate.as_bytes()).unwrap();
    let client = Client::builder().tls_certs_only([certificate]).resolve(HOST, proxy.address);
    let client = client.redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE);
    client.local_address(IpAddr::from(own)).build().unwrap()
}

/// How many of forty requests were refused because their address asks too often, each with another forwarding header.
async fn refused(client: &Client, url: &str) -> usize {
    let mut refused = 0;
    for number in 0..40 {
        let made_up = format!("198.51.100.{number}");
        let answer = client.get(url).header("x-forwarded-for", made_up).send().await.unwrap();
        refused += usize::from(answer.status() == 429);
    }
    refused
}

/// What the next piece of a stream says, up to the first that contains a text.
async fn read_until(stream: &mut Response, text: &str) {
    let mut said = String::new();
    while !said.contains(text) {
        let piece = tokio::time::timeout(PATIENCE, stream.chunk()).await;
        let piece = piece.unwrap_or_else(|_| panic!("the proxy keeps the stream back: {said:?}"));
        said.push_str(&String::from_utf8_lossy(&piece.unwrap().expect("a stream has no end")));
    }
}

async fn check(served: &Served, proxy: &Proxy) {
    let site = format!("https://{HOST}:{}", proxy.address.port());
    let key = served.key("backend");
    // The page, through HTTPS, whose cookies are for HTTPS only.
    let browser = client(proxy, [127, 0, 0, 10]);
    let page = browser.get(format!("{site}/in")).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("<form"));
    let link = served.home.run(&["link"]).good().out;
    let link = link.trim().rsplit('/').next().unwrap();
    let entered = browser.post(format!("{site}/in/{link}")).header("origin", &site).send().await.unwrap();
    let cookie = entered.headers().get("set-cookie").and_then(|cookie| cookie.to_str().ok()).unwrap_or_default();
    assert!(entered.status() == 303 && cookie.contains("; Secure"), "{entered:?}");
    // A stream, of which each piece arrives at once.
    let mut stream = browser
        .get(format!("{site}/v1/events"))
        .header("x-api-key", &key)
        .header("accept-encoding", "gzip")
        .send()
        .await
        .unwrap();
    assert_eq!((stream.status().as_u16(), stream.headers().get("content-encoding")), (200, None));
    for number in 0..3 {
        let message = json!({ "thread": "t", "body": format!("message {number}") }).to_string();
        let posted = browser
            .post(format!("{site}/v1/messages"))
            .header("x-api-key", &key)
            .header("x-user-id", "alice")
            .header("content-type", "application/json")
            .body(message)
            .send()
            .await
            .unwrap();
        assert_eq!(posted.status(), 201, "{posted:?}");
        read_until(&mut stream, &format!("message {number}")).await;
    }
    // What a client says of its address is replaced by the proxy, and what the proxy says is believed.
    let health = format!("{site}/healthz");
    assert!(refused(&client(proxy, [127, 0, 0, 11]), &health).await > 0, "a client of the proxy chose its address");
    assert_eq!(client(proxy, [127, 0, 0, 12]).get(&health).send().await.unwrap().status(), 200, "others are others");
    let direct = format!("{}/healthz", served.listens_on);
    assert!(refused(&client(proxy, [127, 0, 0, 13]), &direct).await > 0, "a client that is no proxy was believed");
    // More than nginx takes by default, and less than the node does.
    let large = json!({ "messages": vec![json!({ "thread": "t", "body": "x".repeat(60_000) }); 25] }).to_string();
    let posted = browser
        .post(format!("{site}/v1/bulk/messages"))
        .header("x-api-key", &key)
        .header("x-user-id", "alice")
        .header("content-type", "application/json")
        .body(large)
        .send()
        .await
        .unwrap();
    assert_eq!(posted.status(), 200, "{posted:?}");
}

fn check_behind(start: fn(&str) -> Proxy) {
    let home = Home::new();
    home.write("node.toml", replaced(recipe("Settings of the node"), &[(NODE, "127.0.0.1:0")]).as_bytes());
    let words = ["--config", "node.toml", "--listen", "127.0.0.1:0", "--set", "http.address_requests_per_second=1"];
    let served = Served::start(home, &words);
    assert_eq!(served.url, format!("https://{HOST}"));
    let proxy = start(served.listens_on.trim_start_matches("http://"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(check(&served, &proxy));
}

#[test]
fn the_recipe_for_nginx_serves_a_node() {
    check_behind(start_nginx);
}

#[test]
fn the_recipe_for_caddy_serves_a_node() {
    check_behind(start_caddy);
}
