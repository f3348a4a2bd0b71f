//! The bridge to ffmpeg: finds it on demand, decodes with it, and describes failures in one sentence.
//!
//! No shell is involved, nothing is written to disk, and a run that takes too long is ended.

use crate::lossy::Received;
use crate::matroska::Matroska;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The environment variable with the path of the program, if it is not the `ffmpeg` on the path.
pub const VARIABLE: &str = "ANABRANCH_FFMPEG";

/// The oldest version that was verified to decode the clip to the same pixels.
pub(crate) const OLDEST: u32 = 5;

/// Default time limit of a run.
const PATIENCE: Duration = Duration::from_secs(300);

/// Why ffmpeg failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FfmpegError {
    /// It cannot be started.
    #[error("ffmpeg is not there ({program}: {reason}): install version {OLDEST} or newer, or name it in {VARIABLE}")]
    Missing {
        /// The program that was tried.
        program: String,
        /// The error of the system.
        reason: String,
    },
    /// It is older than version 5.
    #[error("ffmpeg {0} is too old: version {OLDEST} or newer is needed")]
    TooOld(String),
    /// It is another program.
    #[error("{0} does not answer as ffmpeg does")]
    Other(String),
    /// It did not end in time.
    #[error("ffmpeg did not end within {} s and was stopped", .0.as_secs())]
    Late(Duration),
    /// It reported an error.
    #[error("ffmpeg failed: {0}")]
    Failed(String),
    /// It decoded another number of frames: indices would be shifted, and every score wrong.
    #[error("ffmpeg gave {got} frames where there are {expected}")]
    Frames {
        /// Frames decoded.
        got: usize,
        /// Frames expected.
        expected: usize,
    },
}

/// A program whose version was checked.
#[derive(Clone, Debug)]
pub struct Ffmpeg {
    program: PathBuf,
    version: String,
    patience: Duration,
}

impl Ffmpeg {
    /// The program in [`VARIABLE`], or else the `ffmpeg` on the path.
    ///
    /// # Errors
    /// If it is missing, another program, or too old.
    pub fn find() -> Result<Self, FfmpegError> {
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        Self::at(Path::new(&named.unwrap_or_else(|| OsString::from("ffmpeg"))))
    }

    /// A given program.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn at(program: &Path) -> Result<Self, FfmpegError> {
        let name = program.display().to_string();
        let mut command = Command::new(program);
        command.args(["-hide_banner", "-version"]);
        let run = Run::start(&mut command, Vec::new(), 4096)
            .map_err(|error| FfmpegError::Missing { program: name.clone(), reason: error.to_string() })?;
        let mut answer = Vec::new();
        // It may be another program, so the length of its answer is limited.
        let ended = run.finish(Duration::from_secs(20), |piece| {
            answer.extend_from_slice(piece);
            answer.len() < 1 << 16
        });
        match ended {
            Ok(()) | Err(FfmpegError::Failed(_)) => {}
            Err(other) => return Err(other),
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let version = answer.strip_prefix("ffmpeg version ").and_then(|rest| rest.split_whitespace().next());
        let version = version.ok_or(FfmpegError::Other(name))?.to_owned();
        // Builds from the repository have no comparable number; they are new.
        match version.trim_start_matches('n').split('.').next().and_then(|major| major.parse::<u32>().ok()) {
            Some(major) if major < OLDEST => Err(FfmpegError::TooOld(version)),
            _ => Ok(Self { program: program.to_owned(), version, patience: PATIENCE }),
        }
    }

    /// Its version as reported.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The same program with a time limit.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Decodes a stream as received and shows it frame by frame: planes Y, U, V at 4:2:0, with the index in display
    /// order. A missing frame is replaced by the frame shown before it, at the start by the first. If nothing decodable
    /// arrived, every frame is grey.
    ///
    /// # Errors
    /// If ffmpeg fails, takes too long, or does not return as many frames as there are.
    pub fn decode(&self, received: &Received, mut show: impl FnMut(usize, &[u8])) -> Result<(), FfmpegError> {
        let size = frame_bytes(received.size);
        let grey = vec![128; size];
        if received.pictures == 0 {
            (0..received.frames).for_each(|index| show(index, &grey));
            return Ok(());
        }
        // One time unit is one frame: the filter fills the gaps, and repeats the last frame at the end.
        let filter = "fps=fps=source_fps:start_time=0,tpad=stop=-1:stop_mode=clone";
        let input = ["-f", "ivf", "-i", "pipe:0"].map(OsStr::new);
        match self.frames(&input, received.ivf.clone(), filter, received.frames, size, &mut show) {
            // Nothing that arrived can be decoded.
            Err(FfmpegError::Frames { got: 0, .. }) => (0..received.frames).for_each(|index| show(index, &grey)),
            other => return other,
        }
        Ok(())
    }

    /// Decodes an IVF file with millisecond times and shows the luma of each picture that the decoder returns, with its
    /// time. A picture that cannot be decoded is left out.
    ///
    /// # Errors
    /// If ffmpeg fails or takes too long.
    pub fn pictures(&self, ivf: Vec<u8>, mut show: impl FnMut(u64, &[u8])) -> Result<(), FfmpegError> {
        let mut command = self.decoder();
        command.args(["-f", "ivf", "-i", "pipe:0", "-map", "0:v:0", "-vf", "format=yuv420p,extractplanes=y"]);
        // Otherwise times would be rounded to the assumed frame rate.
        command.args(["-fps_mode", "passthrough", "-enc_time_base", "1:1000"]);
        command.args(["-c:v", "rawvideo", "-f", "matroska", "pipe:1"]);
        let run = self.start(&mut command, ivf, 1 << 16)?;
        let mut reader = Matroska::default();
        run.finish(self.patience, |piece| {
            reader.feed(piece, &mut show);
            true
        })
    }

    /// Decodes a whole elementary stream without losses.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_whole(
        &self,
        stream: &[u8],
        size: (u32, u32),
        frames: usize,
        mut show: impl FnMut(usize, &[u8]),
    ) -> Result<(), FfmpegError> {
        let input = ["-i", "pipe:0"].map(OsStr::new);
        // One more is requested, so that too many are detected.
        match self.frames(&input, stream.to_vec(), "null", frames + 1, frame_bytes(size), &mut show) {
            Err(FfmpegError::Frames { got, .. }) if got == frames => Ok(()),
            Err(FfmpegError::Frames { got, .. }) => Err(FfmpegError::Frames { got, expected: frames }),
            Ok(()) => Err(FfmpegError::Frames { got: frames + 1, expected: frames }),
            Err(other) => Err(other),
        }
    }

    /// Decodes the first frames of a file with this filter, which scales them to this size.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub(crate) fn decode_file(
        &self,
        file: &Path,
        filter: &str,
        size: (u32, u32),
        frames: usize,
        mut show: impl FnMut(usize, &[u8]),
    ) -> Result<(), FfmpegError> {
        let name = file.as_os_str();
        self.frames(&["-i".as_ref(), name], Vec::new(), filter, frames, frame_bytes(size), &mut show)
    }

    /// Encodes the pictures of a file with these arguments to a format that needs no output file, and returns its
    /// bytes.
    ///
    /// # Errors
    /// If the program cannot be started, fails or takes too long.
    pub(crate) fn code_file(&self, file: &Path, arguments: &[&str], format: &str) -> Result<Vec<u8>, FfmpegError> {
        let mut command = Command::new(&self.program);
        command.args(["-hide_banner", "-nostdin", "-loglevel", "fatal", "-i"]).arg(file).args(["-map", "0:v:0"]);
        command.args(arguments).args(["-f", format, "pipe:1"]);
        let run = self.start(&mut command, Vec::new(), 1 << 20)?;
        let mut coded = Vec::new();
        run.finish(self.patience, |piece| {
            coded.extend_from_slice(piece);
            true
        })?;
        Ok(coded)
    }

    /// Common arguments of commands that decode.
    fn decoder(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-hide_banner", "-nostdin", "-loglevel", "fatal", "-threads", "1", "-flags", "+bitexact"]);
        // Otherwise a stream without its first frame would be shifted to the start.
        command.arg("-copyts");
        command
    }

    fn start(&self, command: &mut Command, input: Vec<u8>, piece: usize) -> Result<Run, FfmpegError> {
        Run::start(command, input, piece).map_err(|error| FfmpegError::Missing {
            program: self.program.display().to_string(),
            reason: error.to_string(),
        })
    }

    fn frames(
        &self,
        input: &[&OsStr],
        bytes: Vec<u8>,
        filter: &str,
        expected: usize,
        size: usize,
        show: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), FfmpegError> {
        let mut command = self.decoder();
        command.args(input).args(["-map", "0:v:0", "-vf", filter, "-fps_mode", "passthrough"]);
        command.args(["-frames:v", &expected.to_string(), "-pix_fmt", "yuv420p", "-f", "rawvideo", "pipe:1"]);
        let run = self.start(&mut command, bytes, size)?;
        let mut got = 0;
        let mut part: Vec<u8> = Vec::with_capacity(size);
        let ended = run.finish(self.patience, |mut piece| {
            while !piece.is_empty() {
                let (taken, rest) = piece.split_at(piece.len().min(size - part.len()));
                part.extend_from_slice(taken);
                piece = rest;
                if part.len() == size {
                    if got < expected {
                        show(got, &part);
                    }
                    got += 1;
                    part.clear();
                }
            }
            got <= expected
        });
        match ended {
            // It skipped undecodable data, which the number of frames shows better.
            Err(FfmpegError::Failed(_)) if got > 0 && got != expected => Err(FfmpegError::Frames { got, expected }),
            Err(error) => Err(error),
            Ok(()) if got == expected => Ok(()),
            Ok(()) => Err(FfmpegError::Frames { got, expected }),
        }
    }
}

/// Bytes of a frame at 4:2:0.
fn frame_bytes((width, height): (u32, u32)) -> usize {
    let (width, height) = (width as usize, height as usize);
    width * height + 2 * width.div_ceil(2) * height.div_ceil(2)
}

/// A running program: one thread writes its input, one reads its output, one its messages.
struct Run {
    child: Child,
    output: Receiver<Vec<u8>>,
    complaint: thread::JoinHandle<String>,
}

impl Run {
    fn start(command: &mut Command, input: Vec<u8>, piece: usize) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // If it stops reading early, it has all requested frames, or it failed.
            thread::spawn(move || drop(stdin.write_all(&input)));
        }
        let (sender, output) = sync_channel(8);
        if let Some(mut stdout) = child.stdout.take() {
            let mut buffer = vec![0; piece.max(1 << 16)];
            thread::spawn(move || {
                while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                    if sender.send(buffer[..length].to_vec()).is_err() {
                        return;
                    }
                }
            });
        }
        let stderr = child.stderr.take();
        let complaint = thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = stderr.by_ref().take(1 << 16).read_to_end(&mut text);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            text.lines().last().unwrap_or_default().chars().take(200).collect()
        });
        Ok(Self { child, output, complaint })
    }

    /// Passes on its output until it ends, `take` stops, or the time limit.
    fn finish(mut self, patience: Duration, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), FfmpegError> {
        let until = Instant::now() + patience;
        let mut enough = false;
        loop {
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(piece) if take(&piece) => {}
                Ok(_) => {
                    enough = true;
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.stop();
                    return Err(FfmpegError::Late(patience));
                }
            }
        }
        if enough {
            self.stop();
            return Ok(());
        }
        // Its output is closed; it ends soon after.
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    let complaint = self.complaint.join().unwrap_or_default();
                    let reason = if complaint.is_empty() { status.to_string() } else { complaint };
                    return Err(FfmpegError::Failed(reason));
                }
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(FfmpegError::Failed(error.to_string())),
            }
        }
        self.stop();
        Err(FfmpegError::Late(patience))
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_one_clear_sentence() {
        let error = Ffmpeg::at(Path::new("/nowhere/ffmpeg")).expect_err("it is not there").to_string();
        assert!(error.starts_with("ffmpeg is not there (/nowhere/ffmpeg: "), "{error}");
        assert!(error.ends_with("install version 5 or newer, or name it in ANABRANCH_FFMPEG"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_is_too_old_or_something_else_is_one_clear_sentence() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("anabranch-media-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a folder");
        let program = |name: &str, says: &str| {
            let path = directory.join(name);
            std::fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made a program");
            Ffmpeg::at(&path)
        };
        let old = program("old", "ffmpeg version 4.4.2-0ubuntu Copyright").expect_err("too old");
        assert_eq!(old.to_string(), "ffmpeg 4.4.2-0ubuntu is too old: version 5 or newer is needed");
        assert!(
            program("other", "hello").expect_err("no ffmpeg").to_string().ends_with("does not answer as ffmpeg does")
        );
        for (name, says) in
            [("new", "ffmpeg version n9.0.2-17-g2a571b6 Copyright"), ("git", "ffmpeg version N-112-gab Copyright")]
        {
            assert!(program(name, says).is_ok(), "{says}");
        }
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
