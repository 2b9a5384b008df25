//! `git http-backend` behind nginx and fcgiwrap, as one would set it up by hand.

use crate::bench::hosting::git;
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the two programs may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// The two programs. They end with it.
pub(crate) struct Backend {
    programs: Vec<Child>,
    /// Where it listens, on one port of each host.
    addresses: Vec<SocketAddr>,
    repositories: PathBuf,
    access_log: PathBuf,
}

impl Backend {
    /// Listens on these addresses of this machine.
    pub(crate) fn start(folder: &Path, hosts: &[Ipv4Addr]) -> Result<Backend> {
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
            .context("fcgiwrap cannot be started; `cargo xtask bench` installs it")?;
        let first = *hosts.first().context("no address")?;
        let port = TcpListener::bind((first, 0))?.local_addr()?.port();
        let addresses = hosts.iter().map(|host| SocketAddr::from((*host, port))).collect();
        let access_log = folder.join("access.log");
        let mut backend = Backend { programs: vec![wrap], addresses, repositories, access_log };
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
            .context("nginx cannot be started; `cargo xtask bench` installs it")?;
        backend.programs.push(nginx);
        let begun = Instant::now();
        while TcpStream::connect((first, port)).is_err() || !socket.exists() {
            ensure!(begun.elapsed() < PATIENCE, "nginx did not start");
            std::thread::yield_now();
        }
        Ok(backend)
    }

    fn configuration(&self, folder: &Path, socket: &Path) -> Result<String> {
        let program = git(folder, &["--exec-path"])?;
        let listen: String = self.addresses.iter().map(|address| format!("        listen {address};\n")).collect();
        let (folder, access_log) = (folder.display(), self.access_log.display());
        let (root, socket) = (self.repositories.display(), socket.display());
        Ok(format!(
            "pid {folder}/nginx.pid;
events {{ }}
http {{
    log_format visits '$msec $server_addr $http_user_agent';
    access_log {access_log} visits;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 0;
    server {{
{listen}        location / {{
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
    pub(crate) fn create(&self, name: &str) -> Result<String> {
        let folder = self.repositories.join(format!("{name}.git"));
        std::fs::create_dir_all(&folder)?;
        git(&folder, &["init", "--quiet", "--bare", "--initial-branch=main"])?;
        // What we do with every push, too.
        git(&folder, &["config", "transfer.fsckObjects", "true"])?;
        ensure!(folder.join("HEAD").exists(), "the repository was not made");
        let first = self.addresses.first().context("no address")?;
        Ok(format!("http://{first}/{name}.git"))
    }

    /// Where a repository is on one of the hosts.
    pub(crate) fn url_at(&self, host: Ipv4Addr, name: &str) -> String {
        let port = self.addresses.first().map_or(0, SocketAddr::port);
        format!("http://{host}:{port}/{name}.git")
    }

    /// When a node has begun to ask each host, in seconds.
    pub(crate) fn visits(&self) -> Result<BTreeMap<String, Vec<f64>>> {
        let mut visits: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for line in std::fs::read_to_string(&self.access_log)?.lines() {
            let mut words = line.split(' ');
            let (Some(at), Some(host), Some(agent)) = (words.next(), words.next(), words.next()) else { continue };
            // Git itself comes under another name.
            if agent.starts_with("anteroom/") {
                visits.entry(host.to_owned()).or_default().push(at.parse()?);
            }
        }
        Ok(visits)
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
