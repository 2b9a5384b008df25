//! Git servers of others: the real `git http-backend` behind a few lines of HTTP, on any address of this machine, and those
//! who do not behave.

use super::git_work::run_git;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What a server does with every request.
#[derive(Clone, Debug)]
pub enum Manner {
    /// Answers as git does.
    Honest,
    /// Sends whoever asks to another place, with the same path.
    Redirects(String),
    /// Takes requests and never answers.
    Silent,
    /// Answers refs as git does, and fetches with rubbish.
    Lies,
    /// Has no such repository.
    Absent,
    /// Has the smart protocol for whoever asks first, and plain files for git.
    Dumb,
}

/// A server with one repository, called `repository`.
pub struct GitServer {
    pub address: SocketAddr,
    folder: TempDir,
    manner: Arc<Mutex<Manner>>,
    is_over: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
    asked: Receiver<()>,
}

impl GitServer {
    /// Listens on a free port of an address.
    pub fn start(ip: &str) -> GitServer {
        let folder = tempfile::tempdir().unwrap();
        let (is_good, said) = run_git(folder.path(), &["init", "--quiet", "--bare", "repository"]);
        assert!(is_good, "{said}");
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (manner, is_over) = (Arc::new(Mutex::new(Manner::Honest)), Arc::new(AtomicBool::new(false)));
        let (requests, (sender, asked)) = (Arc::new(AtomicUsize::new(0)), channel());
        let (root, shared) = (folder.path().to_owned(), (manner.clone(), is_over.clone(), requests.clone()));
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (manner, is_over, requests) = &shared;
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                requests.fetch_add(1, Ordering::SeqCst);
                let manner = manner.lock().unwrap().clone();
                let (root, sender) = (root.clone(), sender.clone());
                std::thread::spawn(move || answer(connection, &root, manner, &sender));
            }
        });
        GitServer { address, folder, manner, is_over, requests, asked }
    }

    pub fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    pub fn url(&self) -> String {
        format!("http://{}/repository", self.address)
    }

    /// How often somebody has connected.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Waits until somebody has asked for something.
    pub fn wait_until_asked(&self) {
        self.asked.recv().unwrap();
    }

    /// Brings a commit of a working copy here, under a name.
    pub fn take(&self, from: &Path, commit: &str, name: &str) {
        let to = self.folder.path().join("repository");
        let (is_good, said) =
            run_git(from, &["push", "--quiet", &to.display().to_string(), &format!("{commit}:{name}")]);
        assert!(is_good, "{said}");
        // What servers of plain files need.
        assert!(run_git(&to, &["update-server-info"]).0);
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(mut connection: TcpStream, root: &PathBuf, manner: Manner, asked: &Sender<()>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let Some((method, target)) = lines.first().and_then(|line| line.split_once(' ')) else { return };
    let _ = asked.send(());
    let target = target.split(' ').next().unwrap_or_default();
    let header = |name: &str| {
        let found =
            lines.iter().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
        found.map_or(String::new(), |(_, value)| value.to_owned())
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let said = match manner {
        Manner::Silent => {
            // Until the other side has enough of it.
            let _ = reader.read(&mut [0]);
            return;
        }
        Manner::Redirects(to) => {
            format!("HTTP/1.1 302 Found\r\nLocation: {to}{target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .into_bytes()
        }
        Manner::Absent => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        Manner::Lies if method == "POST" => {
            let kind = "application/x-git-upload-pack-result";
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n000dpackfile\n0009\x01PACKrubbish"
            )
            .into_bytes()
        }
        Manner::Dumb if header("user-agent") == "anteroom" => {
            let path = target.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
            match std::fs::read(root.join(path)) {
                Ok(file) => [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec(), file].concat(),
                Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            }
        }
        Manner::Honest | Manner::Lies | Manner::Dumb => backend(root, method, target, &header, body),
    };
    let _ = connection.write_all(&said);
}

/// What `git http-backend` answers.
fn backend(root: &PathBuf, method: &str, target: &str, header: &dyn Fn(&str) -> String, body: Vec<u8>) -> Vec<u8> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&body).unwrap();
    let said = child.wait_with_output().unwrap().stdout;
    let head = said.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(said.len(), |at| at);
    let text = String::from_utf8_lossy(&said[..head]).into_owned();
    let status = text.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    [format!("HTTP/1.1 {status}\r\nConnection: close\r\n").into_bytes(), said].concat()
}
