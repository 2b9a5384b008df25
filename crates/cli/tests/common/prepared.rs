//! Programs of others that `cargo xtask test` prepares in the target folder.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A file or folder that was prepared.
pub fn prepared(path: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_anteroom")).ancestors().nth(2).unwrap();
    let path = target.join(path);
    assert!(path.exists(), "{} is missing; `cargo xtask test` installs it", path.display());
    path
}

pub fn python(program: &str) -> PathBuf {
    prepared("python/bin").join(program)
}

/// A file beside the tests.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Runs a program that has to succeed, and says what it printed.
pub fn run(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{command:?}\n{out}{err}");
    out.into_owned()
}

/// An S3-compatible server on a free port, which keeps what it is given in memory.
pub struct S3Server {
    pub url: String,
    child: Child,
}

impl S3Server {
    /// Starts one with a bucket.
    pub fn start(bucket: &str) -> S3Server {
        let mut command = Command::new(python("moto_server"));
        let command = command.args(["-H", "127.0.0.1", "-p", "0"]).env("PYTHONUNBUFFERED", "1");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a log")).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("Running on http")).expect("it says where it runs");
        std::thread::spawn(move || lines.for_each(drop));
        let url = line.rsplit(' ').next().expect("a word").trim_end_matches('/').to_owned();
        let server = S3Server { url, child };
        let made = super::served::request("PUT", &format!("{}/{bucket}", server.url), "", None, None);
        assert_eq!(made.expect("an answer").0, 200);
        server
    }

    /// How many objects a bucket has.
    pub fn count(&self, bucket: &str) -> usize {
        super::browsing::get(&format!("{}/{bucket}?list-type=2", self.url)).text().matches("<Key>").count()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
