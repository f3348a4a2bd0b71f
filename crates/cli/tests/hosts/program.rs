//! The program under test, and what it prints.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};

pub fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(arguments);
    command
}

/// Runs what is appended as the user nobody, beside a TUN device that is open to all users, as it usually is. Options of setpriv may
/// go before the program.
pub fn as_nobody() -> Command {
    let script = "mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200 && \
                  exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]);
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard error of a rejected command, which must be one line.
pub fn complaint(output: &Output) -> String {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}{}", text(&output.stdout));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors
}

/// A new temporary directory of a test.
pub fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It does not exist on the first run.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the test's directory can be made");
    directory
}

/// Runs a program that must succeed; returns its output.
pub fn command(program: &str, words: &str) -> String {
    let output = Command::new(program).args(words.split_whitespace()).output().expect("the program is there");
    assert!(output.status.success(), "{program} {words}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs `ip WORDS` in the calling thread's namespace.
pub fn ip(words: &str) {
    command("ip", words);
}

/// A program that is killed on drop.
pub struct Running {
    pub child: Child,
    output: BufReader<ChildStdout>,
    /// Its standard error, if the command pipes it.
    pub errors: Option<BufReader<ChildStderr>>,
}

impl Running {
    pub fn new(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        let errors = child.stderr.take().map(BufReader::new);
        Self { child, output, errors }
    }

    /// Starts a Python script and waits until it is ready.
    pub fn python(script: &str) -> Self {
        let mut running = Self::new(Command::new("python3").args(["-c", script]));
        assert_eq!(running.line(), "ready");
        running
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        command("kill", &format!("-{signal} {}", self.child.id()));
    }

    /// The next line of its output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it can be read");
        assert!(!line.is_empty(), "it has ended");
        line.trim().to_owned()
    }

    /// Waits for an event with these words on its standard error, at most a minute from the one before.
    pub fn hear(&mut self, words: &str) {
        let errors = self.errors.as_mut().expect("it was asked for");
        let mut heard = String::new();
        loop {
            let mut line = String::new();
            if errors.buffer().is_empty() {
                let mut said = [PollFd::new(errors.get_ref().as_fd(), PollFlags::POLLIN)];
                let count = poll(&mut said, PollTimeout::from(60_000_u16)).expect("it can be waited for");
                assert!(count > 0, "'{words}' was not said in a minute, but: {heard}");
            }
            errors.read_line(&mut line).expect("it can be read");
            assert!(!line.is_empty(), "'{words}' was not said, but: {heard}");
            if line.contains(words) {
                return;
            }
            heard += &line;
        }
    }

    /// Ends it by a signal, TERM with success; returns the rest of its output.
    pub fn end_by(self, signal: &str) -> String {
        self.signal(signal);
        let (status, rest) = self.end();
        assert_eq!(status.success(), signal == "TERM", "{status}: {rest}");
        rest
    }

    /// Waits for its exit; returns the rest of its output.
    pub fn end(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it can be read");
        (self.child.wait().expect("it ends"), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has exited unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
