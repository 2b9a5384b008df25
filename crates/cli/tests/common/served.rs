//! Runs the node and the demo as processes.

use super::Home;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Stdio};

/// A node that serves, and is killed when the test is over.
pub struct Served {
    pub home: Home,
    /// What its links begin with.
    pub url: String,
    /// Where it listens, which is the same unless `public_url` is set.
    pub listens_on: String,
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Served {
    /// Starts on a free port; words that come later say otherwise.
    pub fn start(home: Home, words: &[&str]) -> Served {
        Served::start_with(home, words, &[])
    }

    /// As [`Served::start`], with these variables.
    pub fn start_with(home: Home, words: &[&str], variables: &[(&str, &str)]) -> Served {
        let listen: &[&str] = if words.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let mut command = home.command(&[listen, words].concat());
        let command = command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut log = BufReader::new(child.stderr.take().expect("a log"));
        let mut lines = BufReader::new(child.stdout.take().expect("an output")).lines().map_while(Result::ok);
        let Some(line) = lines.find(|line| line.contains("is running at")) else {
            let mut said = String::new();
            let _ = log.read_to_string(&mut said);
            panic!("the node did not start: {said}");
        };
        let url = line.rsplit(' ').next().expect("a word").to_owned();
        // The rest of what it says must be read, or it would wait for us.
        let mut listens_on = url.clone();
        for line in lines.by_ref().take_while(|line| !line.contains("anteroom help")) {
            if let Some(told) = line.trim().strip_prefix("listens on") {
                listens_on = told.trim().to_owned();
            }
        }
        Served { home, url, listens_on, child, log }
    }

    /// A new API key, made while the node runs.
    pub fn key(&self, role: &str) -> String {
        self.home.json(&["key", "create", role])["key"].as_str().expect("a key").to_owned()
    }

    /// Sends a request as a user called alice.
    pub fn send(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        request(method, &format!("{}{path}", self.url), key, body, None).expect("an answer")
    }

    /// Waits until the log says something.
    pub fn wait_for(&mut self, text: &str) {
        let found = self.log.by_ref().lines().map_while(Result::ok).any(|line| line.contains(text));
        assert!(found, "the log ended without {text:?}");
    }

    /// Waits until it has ended by itself, and answers with its code.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Asks it to stop, and answers with the rest of its log.
    pub fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it is there");
        let mut said = String::new();
        self.log.read_to_string(&mut said).expect("a log");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        said
    }

    /// Kills it, and leaves its home.
    pub fn kill(mut self) -> Home {
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::mem::replace(&mut self.home, Home::new())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends one request, trusting only this certificate if one is given.
pub fn request(
    method: &str,
    url: &str,
    key: &str,
    body: Option<Value>,
    certificate: Option<&[u8]>,
) -> Result<(u16, Value), String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut builder = reqwest::Client::builder();
    if let Some(certificate) = certificate {
        builder = builder.tls_certs_only([reqwest::Certificate::from_pem(certificate).unwrap()]);
    }
    let client = builder.build().unwrap();
    let mut request = client.request(method.parse().unwrap(), url);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let request = request.header("x-api-key", key).header("x-user-id", "alice");
    runtime.block_on(async {
        let answer = request.send().await.map_err(|why| format!("{why:?}"))?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(|why| format!("{why:?}"))?;
        Ok((status, serde_json::from_str(&text).unwrap_or_default()))
    })
}

/// The demo, which ends with the test.
pub struct Demo {
    child: Child,
    link: String,
}

impl Home {
    /// Starts the demo and waits for its link.
    pub fn demo(&self, words: &[&str]) -> Demo {
        let mut command = self.command(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("an output")).lines().map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("sign in")).expect("it says where to sign in");
        std::thread::spawn(move || lines.for_each(drop));
        let link = line.rsplit(' ').next().expect("a word").to_owned();
        Demo { child, link }
    }
}

impl Demo {
    /// Where to sign in, once.
    pub fn link(&mut self) -> String {
        self.link.clone()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
