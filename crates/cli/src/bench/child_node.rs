//! Runs the node as a child process.

use crate::bench::BenchOptions;
use crate::bench::event_generator;
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// In what Linux tells programs about processor time.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running node. The process and its data folder are removed on drop.
pub(crate) struct ChildNode {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    _folder: tempfile::TempDir,
}

impl ChildNode {
    /// Starts it with these settings.
    pub(crate) fn start(options: &BenchOptions, settings: &[&str]) -> Result<ChildNode> {
        ChildNode::start_with(options, settings, &[])
    }

    /// As [`ChildNode::start`], with these variables.
    pub(crate) fn start_with(
        options: &BenchOptions,
        settings: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<ChildNode> {
        let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
        let program = std::env::current_exe().context("this program has no path")?;
        let child = Command::new(program)
            .args(["--json", "--listen", "127.0.0.1:0"])
            .args(["--set", "http.key_requests_per_second=10000000"])
            .args(["--set", "http.connections_per_address_max=20000"])
            .args(settings.iter().flat_map(|setting| ["--set", setting]))
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .context("the node did not start")?;
        let token = String::new();
        let mut node = ChildNode { child, address: SocketAddr::from(([0; 4], 0)), token, _folder: folder };
        let output = node.child.stdout.take().context("the node has no output")?;
        let mut said = String::new();
        for line in BufReader::new(output).lines() {
            said += &line?;
            let Ok(running) = serde_json::from_str::<serde_json::Value>(&said) else { continue };
            let url = running["url"].as_str().context("the node printed no URL")?;
            node.address = url.trim_start_matches("http://").parse()?;
            let token = node._folder.path().join("data").join("operator.token");
            let token = std::fs::read_to_string(token).context("the node has no token")?;
            node.token = token.lines().nth(1).context("the node's token is missing")?.to_owned();
            return Ok(node);
        }
        bail!("the node ended unexpectedly: {said}")
    }

    /// The most memory that the node has had at a time.
    pub(crate) fn peak_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in the status")?;
        Ok(line.split_whitespace().next().context("no number")?.parse::<f64>()? / 1024.0)
    }

    /// How long the node has computed, without the programs that it started.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(") ").next().context("no fields")?.split(' ').collect();
        let ticks = |at: usize| fields.get(at).context("no time").and_then(|text| Ok(text.parse::<f64>()?));
        Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    }

    /// Anonymous resident memory of the node.
    pub(crate) fn anonymous_kib(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("no RssAnon in the status")?;
        Ok(line.split_whitespace().next().context("no number")?.parse()?)
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for ChildNode {
    fn drop(&mut self) {
        // After a clean stop these do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
