//! Programs that people use, run inside the namespace, and the files that they carry.

use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Whether there is a program of this name.
pub fn there_is(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]).any(|directory| directory.join(name).is_file())
}

/// A program that runs until this is dropped.
pub struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(words: &[&str]) -> Command {
    let (program, arguments) = words.split_first().expect("a program");
    let mut command = Command::new(program);
    // No proxy of the machine's, no settings of the user's.
    command.args(arguments).stdin(Stdio::null()).env("no_proxy", "").env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command
}

/// Starts a program that listens on a port of the kernel's, and waits until it does.
pub async fn start(words: &[&str], port: u16) -> Background {
    let child = command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let background = Background(child.unwrap_or_else(|error| panic!("{words:?}: {error}")));
    for _ in 0..400 {
        if listens(port) {
            return background;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{words:?} does not listen on {port}");
}

/// Whether a socket of the namespace listens on a port.
fn listens(port: u16) -> bool {
    let listening = |table: &str| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        // sl local_address rem_address st: 0A is LISTEN.
        text.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().unwrap_or_default();
            local.ends_with(&format!(":{port:04X}")) && words.nth(1) == Some("0A")
        })
    };
    listening("tcp") || listening("tcp6")
}

/// Runs a program to its end, whatever that is.
pub async fn output(words: &[&str]) -> Output {
    let mut command = command(words);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it does not panic");
    output.unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// Runs a program that must succeed; returns what it prints.
pub async fn run(words: &[&str]) -> Vec<u8> {
    let output = output(words).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{words:?}: {}: {errors}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    output.stdout
}

/// A directory that is gone at the end.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("anabranch-proxy-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a directory can be made");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file of so many bytes that do not repeat; returns its SHA-256.
    pub fn fill(&self, name: &str, length: usize) -> String {
        let bytes = noise(length);
        std::fs::write(self.0.join(name), &bytes).expect("the file can be written");
        sha256(&bytes)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed stays in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bytes that do not repeat.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state: u64 = 88_172_645_463_325_252;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let mut bytes: Vec<u8> = words.take(length.div_ceil(8)).flatten().collect();
    bytes.truncate(length);
    bytes
}

/// The digest in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Serves a directory over HTTP on a port of all addresses of the kernel's: with its MPTCP, or with plain TCP.
pub async fn web(directory: &Path, port: u16, multipath: bool) -> Background {
    let (port_word, directory) = (port.to_string(), directory.display().to_string());
    let mut words = vec!["python3", "-m", "http.server", &port_word, "--bind", "0.0.0.0", "--directory", &directory];
    if multipath {
        words.splice(0..0, ["mptcpize", "run"]);
    }
    start(&words, port).await
}

/// `curl` of a URL by way of a proxy, e.g. `socks5h`; returns the body.
pub async fn curl(scheme: &str, proxy: SocketAddr, url: &str) -> Vec<u8> {
    let proxy = format!("{scheme}://{proxy}");
    run(&["curl", "--silent", "--show-error", "--max-time", "50", "--proxytunnel", "--proxy", &proxy, url]).await
}
