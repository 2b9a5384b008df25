//! `git http-backend` behind nginx and fcgiwrap, as one would set it up by hand.

use crate::bench::hosting::git;
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the two programs may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// The two programs. They end with it.
pub(super) struct Backend {
    programs: Vec<Child>,
    address: SocketAddr,
    repositories: PathBuf,
}

impl Backend {
    pub(super) fn start(folder: &Path) -> Result<Backend> {
        let repositories = folder.join("backend");
        std::fs::create_dir_all(&repositories)?;
        let socket = folder.join("fcgi.sock");
        let wrap = Command::new("fcgiwrap")
            .args(["-c", "2", "-s"])
            .arg(format!("unix:{}", socket.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // It starts others, which end with it.
            .process_group(0)
            .spawn()
            .context("fcgiwrap cannot be started; `cargo xtask bench git` installs it")?;
        let mut backend = Backend { programs: vec![wrap], address: free_address()?, repositories };
        let configuration = folder.join("nginx.conf");
        std::fs::write(&configuration, backend.configuration(folder, &socket)?)?;
        let nginx = Command::new("nginx")
            .arg("-c")
            .arg(&configuration)
            .args(["-g", "daemon off; master_process off;", "-e", "stderr"])
            .env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("nginx cannot be started; `cargo xtask bench git` installs it")?;
        backend.programs.push(nginx);
        let begun = Instant::now();
        while TcpStream::connect(backend.address).is_err() || !socket.exists() {
            ensure!(begun.elapsed() < PATIENCE, "nginx did not start");
            std::thread::yield_now();
        }
        Ok(backend)
    }

    fn configuration(&self, folder: &Path, socket: &Path) -> Result<String> {
        let program = git(folder, &["--exec-path"])?;
        let (folder, address) = (folder.display(), self.address);
        let (root, socket) = (self.repositories.display(), socket.display());
        Ok(format!(
            "pid {folder}/nginx.pid;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 0;
    server {{
        listen {address};
        location / {{
            fastcgi_pass unix:{socket};
            fastcgi_buffering off;
            fastcgi_request_buffering off;
            fastcgi_param SCRIPT_FILENAME {program}/git-http-backend;
            fastcgi_param GIT_HTTP_EXPORT_ALL 1;
            fastcgi_param GIT_PROJECT_ROOT {root};
            fastcgi_param PATH_INFO $uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param REMOTE_USER somebody;
            fastcgi_param REMOTE_ADDR $remote_addr;
            fastcgi_param GIT_PROTOCOL $http_git_protocol;
            fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
        }}
    }}
}}
"
        ))
    }

    /// A new repository: where it is pushed to.
    pub(super) fn create(&self, name: &str) -> Result<String> {
        let folder = self.repositories.join(format!("{name}.git"));
        std::fs::create_dir_all(&folder)?;
        git(&folder, &["init", "--quiet", "--bare", "--initial-branch=main"])?;
        // What we do with every push, too.
        git(&folder, &["config", "transfer.fsckObjects", "true"])?;
        ensure!(folder.join("HEAD").exists(), "the repository was not made");
        Ok(format!("http://{}/{name}.git", self.address))
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = kill_process_group(Pid::from_child(program), Signal::KILL);
            let _ = program.wait();
        }
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
