//! `stream send`: reads a stream from standard input and sends it as messages.

use super::channel::Channel;
use super::connection::{self, Opened};
use super::emission::{Emission, Plan};
use super::input::{Input, Next};
use super::options::SendOptions;
use super::paths::{End, Paths};
use super::policy;
use crate::console::remark;
use crate::ending::{asked_to_end, block_on};
use anabranch_media::cut::{Cutter, Piece};
use anabranch_mptcp::MessageOptions;
use anabranch_settings::diagnostic::Diagnostic;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until, timeout};

/// Polling interval of paths: counters of a subflow are lost when it closes.
const LOOK: Duration = Duration::from_millis(100);
/// Interval of lines of `--live`.
const LINE: Duration = Duration::from_secs(1);
/// Time at the end of the stream within which the receiver must take something of what is left.
const LAST: Duration = Duration::from_secs(10);

/// Time after which a receiver does not end the stream for want of a key any more.
const REFUSED: Duration = Duration::from_secs(10);
const GONE: &str = "the receiver is gone";

/// How a stream ended.
enum Ending {
    /// With its source.
    Ended,
    /// The program was told to end.
    Asked,
    /// Invalid input.
    Wrong(String),
    /// A connection error.
    Broken(String),
}

/// Sends a stream; returns whether it was sent completely or ended on request.
pub fn send(options: &SendOptions) -> Result<bool, Diagnostic> {
    if io::stdin().is_terminal() && !options.end.stack.dry_run {
        let message = "standard input is a terminal: put a file or a program before it, e.g. \
                       `ffmpeg -re -i video.mp4 -c copy -f mpegts - | anabranch stream send HOST:PORT`";
        return Err(Diagnostic::plain(message));
    }
    block_on(async {
        let Some(mut opened) = connection::open(&options.end, options.to.as_deref()).await? else { return Ok(true) };
        let outcome = run(options, &mut opened).await;
        opened.detach().await?;
        outcome
    })
}

async fn run(options: &SendOptions, opened: &mut Opened) -> Result<bool, Diagnostic> {
    let input = Input::start(io::stdin(), Cutter::new(options.input.format()))
        .map_err(|error| Diagnostic::plain(format!("cannot read standard input: {error}")))?;
    // Invalid input is reported before connecting.
    tokio::select! {
        () = input.begun() => {}
        () = asked_to_end() => return Ok(true),
    }
    let first = input.next().await;
    match &first {
        Next::Wrong(error) => return Err(Diagnostic::plain(format!("standard input: {error}"))),
        Next::Broken(error) => return Err(Diagnostic::plain(format!("cannot read standard input: {error}"))),
        Next::Piece(..) | Next::End => {}
    }
    let Some(channel) = opened.meet(&options.end, true).await? else { return Ok(true) };
    if !options.end.json {
        let messages = channel.messages();
        remark(&format!("sending to {} over {}", opened.peer(messages), messages.protocol().0.to_uppercase()));
    }
    let stack = options.end.stack()?;
    let patience = policy::abandons(&stack.policy).then(|| options.end.latency());
    let mut sender = Sender {
        emission: Emission::new(patience, channel.began()),
        paths: Paths::new(End::Sender),
        channel,
        looked: Instant::now(),
        told: Instant::now(),
        live: options.end.live,
        unproved: options.end.unencrypted.then(Instant::now),
    };
    let ending = tokio::select! {
        ending = sender.run(&input, first) => ending,
        () = asked_to_end() => Ending::Asked,
    };
    sender.look();
    let report = sender.emission.report(sender.channel.messages().protocol(), input.found(), sender.paths.report());
    if options.end.json {
        remark(&serde_json::to_string(&report).unwrap_or_else(|error| error.to_string()));
    } else {
        remark(report.text().trim_end());
    }
    match ending {
        Ending::Ended => Ok(true),
        Ending::Asked => {
            // Signals the end to the receiver.
            sender.channel.close().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(true)
        }
        Ending::Wrong(message) => Err(Diagnostic::plain(format!("standard input: {message}"))),
        Ending::Broken(reason) => {
            remark(&format!("error: the stream was interrupted: {reason}"));
            Ok(false)
        }
    }
}

/// The stages of a sent stream.
struct Sender {
    emission: Emission,
    paths: Paths,
    channel: Channel,
    looked: Instant,
    told: Instant,
    live: bool,
    /// When a stream without encryption began: a receiver that has a key ends it at once.
    unproved: Option<Instant>,
}

impl Sender {
    async fn run(&mut self, input: &Input, first: Next) -> Ending {
        let mut next = first;
        loop {
            match next {
                Next::Piece(piece, came) => {
                    if let Err(error) = self.piece(piece, came).await {
                        return self.broken(&error);
                    }
                }
                Next::End => return self.finish().await,
                Next::Wrong(error) => return Ending::Wrong(error.to_string()),
                Next::Broken(error) => return Ending::Wrong(error.to_string()),
            }
            next = match self.wait_for(input.next()).await {
                Ok(next) => next,
                Err(error) => return self.broken(&error),
            };
        }
    }

    /// Waits for a future; fails if the receiver is gone meanwhile.
    async fn wait_for<T>(&mut self, future: impl Future<Output = T>) -> io::Result<T> {
        tokio::pin!(future);
        loop {
            tokio::select! {
                biased;
                done = &mut future => return Ok(done),
                error = self.channel.messages().gone() => return Err(error),
                () = sleep(LOOK) => self.tick(),
            }
        }
    }

    fn broken(&self, error: &io::Error) -> Ending {
        let mut reason = explain(error);
        if reason == GONE && self.unproved.is_some_and(|began| began.elapsed() < REFUSED) {
            reason.push_str("; if it was started with --key FILE, give the key here too instead of --unencrypted");
        }
        Ending::Broken(reason)
    }

    /// Ends the stream, and waits for as long as the receiver takes what is left of it.
    async fn finish(&mut self) -> Ending {
        if let Err(error) = self.channel.finish().await {
            return self.broken(&error);
        }
        let (mut left, mut since) = (self.channel.messages().unacknowledged(), Instant::now());
        loop {
            match timeout(LOOK, self.channel.closed_by_peer()).await {
                Ok(Ok(())) => return Ending::Ended,
                Ok(Err(error)) => return self.broken(&error),
                Err(_) => self.tick(),
            }
            let now = self.channel.messages().unacknowledged();
            if now < left {
                (left, since) = (now, Instant::now());
            }
            if since.elapsed() >= LAST {
                return match left {
                    // A receiver of bare bytes need not close, and the kernel sends on after the end of the program.
                    None | Some(0) => Ending::Ended,
                    Some(left) => Ending::Broken(format!("the receiver takes nothing more, and {left} bytes are left")),
                };
            }
        }
    }

    fn look(&mut self) {
        self.paths.look(self.channel.messages());
        if let Some(stats) = self.channel.messages().stats() {
            self.emission.count(&stats);
        }
    }

    async fn piece(&mut self, piece: Piece, came: Instant) -> io::Result<()> {
        if let Plan::Send { at, play_out } = self.emission.plan(&piece, came, Instant::now()) {
            self.wait_for(sleep_until(at.into())).await?;
            let nanos = u64::try_from(play_out.as_nanos()).unwrap_or(u64::MAX);
            let play_out = anabranch_policy::time::Duration::from_nanos(nanos);
            let options = MessageOptions { importance: piece.importance, play_out, lifetime: None };
            let (picture, length) = (piece.picture, piece.bytes.len());
            self.channel.write(piece.bytes, &options).await?;
            self.emission.sent(picture, length, Instant::now());
        }
        self.tick();
        Ok(())
    }

    /// Reads the counters, and prints the line of `--live`, when it is time.
    fn tick(&mut self) {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.look();
        }
        if self.live && self.told.elapsed() >= LINE {
            self.told = Instant::now();
            remark(&self.emission.line(&self.paths.report()));
        }
    }
}

/// Text of an error.
fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => GONE.to_owned(),
        _ => error.to_string(),
    }
}
