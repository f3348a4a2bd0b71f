//! Carries bytes in both directions between a socket, or a stream in its place, and a multipath stream, until both
//! directions have ended.
//!
//! Each direction holds a fixed number of bytes at most: what cannot be written is not read, so that a slow reader slows
//! down the writer. The end of one direction is passed on while the other goes on; a reset on one side resets the other.
//! An idle connection holds no buffer.

use super::counters::Outcome;
use super::far::{Far, is_tampered};
use super::near::{Near, PIECES};
use anabranch_stack::Slots;
use bytes::{Buf as _, Bytes};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Bytes taken from the stream before they are written to the socket.
const GATHERED: usize = 128 * 1024;
/// Limit of reads in a turn.
const TURN: usize = 16;

/// From the socket to the stream.
struct Up {
    pending: Bytes,
    state: UpState,
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UpState {
    Open,
    /// The socket has ended; what is pending is the last.
    Ending,
    Ended,
}

/// From the stream to the socket.
#[derive(Default)]
struct Down {
    pending: VecDeque<Bytes>,
    waiting: usize,
    /// The stream has ended.
    ended: bool,
    /// The end has been passed on to the socket.
    shut: bool,
    bytes: u64,
}

/// A connection that is being carried. The future returns how it ended, and the bytes from and to the socket.
pub(super) struct Relay<N: Near> {
    socket: N,
    far: Far,
    up: Up,
    down: Down,
    slots: Slots,
    idle: Pin<Box<Sleep>>,
    idle_limit: Duration,
    /// Data moved since the idle limit was last checked.
    active: bool,
    over: bool,
    /// The socket is the target's, not the client's.
    socket_is_target: bool,
}

/// Which of the two ends a relay's socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SocketIs {
    Client,
    Target,
}

impl<N: Near> Relay<N> {
    /// Carries bytes between `socket` and `far`, after `early`, which the socket has sent already. Ends when nothing
    /// has moved for `idle_limit`, or at most double that.
    pub(super) fn new(
        socket: N,
        socket_is: SocketIs,
        mut far: Far,
        early: Bytes,
        slots: Slots,
        idle_limit: Duration,
    ) -> Self {
        let bytes = early.len() as u64;
        let pending = if early.is_empty() { early } else { far.wrap(early) };
        Self {
            socket,
            far,
            up: Up { pending, state: UpState::Open, bytes },
            down: Down::default(),
            slots,
            idle: Box::pin(sleep(idle_limit)),
            idle_limit,
            active: false,
            over: false,
            socket_is_target: socket_is == SocketIs::Target,
        }
    }

    /// Bytes to be sent to the socket before all others.
    pub(super) fn push_down(&mut self, bytes: Bytes) {
        self.down.push(bytes);
    }

    /// Ends it, whatever is left.
    pub(super) fn stop(&mut self) -> (Outcome, u64, u64) {
        self.end(Outcome::Stopped)
    }

    fn by_socket(&self) -> Outcome {
        if self.socket_is_target { Outcome::ResetByTarget } else { Outcome::ResetByClient }
    }

    fn by_stream(&self, error: &io::Error) -> Outcome {
        match error {
            error if is_tampered(error) => Outcome::Tampered,
            _ if self.socket_is_target => Outcome::ResetByClient,
            _ => Outcome::ResetByTarget,
        }
    }

    /// Moves what can be moved to the stream; ready when this direction has ended.
    fn poll_up(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Outcome>> {
        for _ in 0..TURN {
            if !self.up.pending.is_empty() {
                let before = self.up.pending.len();
                let written = self.far.poll_write(context, &mut self.up.pending);
                self.active |= self.up.pending.len() < before;
                ready!(written).map_err(|error| self.by_stream(&error))?;
                self.up.pending = Bytes::new();
            }
            match self.up.state {
                UpState::Open => ready!(self.poll_read_socket(context)).map_err(|_| self.by_socket())?,
                UpState::Ending => {
                    ready!(self.far.poll_shutdown(context)).map_err(|error| self.by_stream(&error))?;
                    self.up.state = UpState::Ended;
                }
                UpState::Ended => return Poll::Ready(Ok(())),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once from the socket.
    fn poll_read_socket(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (read, bytes) = ready!(self.socket.poll_read(context, &mut self.far, &self.slots))?;
        if read == 0 {
            self.up.pending = self.far.wrap_end();
            self.up.state = UpState::Ending;
        } else {
            self.up.bytes += read as u64;
            self.up.pending = bytes;
        }
        self.active = true;
        Poll::Ready(Ok(()))
    }

    /// Moves what can be moved to the socket; ready when this direction has ended.
    fn poll_down(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Outcome>> {
        for _ in 0..TURN {
            if self.down.shut {
                return Poll::Ready(Ok(()));
            }
            self.gather(context).map_err(|error| self.by_stream(&error))?;
            if self.down.pending.is_empty() {
                if !self.down.ended {
                    // An idle connection holds no buffer.
                    self.down.pending = VecDeque::new();
                    return Poll::Pending;
                }
                ready!(self.socket.poll_shutdown(context)).map_err(|_| self.by_socket())?;
                self.down.shut = true;
                continue;
            }
            ready!(self.poll_write_socket(context)).map_err(|_| self.by_socket())?;
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes from the stream what is there, as far as there is room.
    fn gather(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.down.ended && self.down.waiting < GATHERED && self.down.pending.len() < PIECES {
            match self.far.poll_read_bytes(context)? {
                Poll::Ready(bytes) if bytes.is_empty() => self.down.ended = true,
                Poll::Ready(bytes) => self.down.push(bytes),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Writes once to the socket.
    fn poll_write_socket(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = ready!(self.socket.poll_write(context, &self.down.pending))?;
        self.down.written(written);
        self.active = true;
        Poll::Ready(Ok(()))
    }

    /// Whether the connection has been idle for too long; otherwise to be polled again when it may have been.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.idle.as_mut().poll(context));
            if !std::mem::take(&mut self.active) {
                return Poll::Ready(());
            }
            self.idle.as_mut().reset(Instant::now() + self.idle_limit);
        }
    }

    /// The stream was reset after reading from it had ended.
    fn poll_lost(&self, context: &mut Context<'_>) -> Poll<()> {
        if !self.down.ended {
            return Poll::Pending;
        }
        match ready!(self.far.stream().poll_closed(context)) {
            anabranch_mptcp::CloseCause::Finished => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    fn end(&mut self, outcome: Outcome) -> (Outcome, u64, u64) {
        self.over = true;
        if outcome != Outcome::Finished {
            self.reset();
        }
        (outcome, self.up.bytes, self.down.bytes)
    }

    /// Resets both sides, so that neither takes a truncated stream for a complete one.
    fn reset(&self) {
        self.far.stream().abort();
        self.socket.reset();
    }
}

impl Down {
    fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.waiting += bytes.len();
        self.pending.push_back(bytes);
    }

    fn written(&mut self, mut count: usize) {
        self.bytes += count as u64;
        self.waiting -= count;
        while let Some(first) = self.pending.front_mut() {
            if count < first.len() {
                first.advance(count);
                break;
            }
            count -= first.len();
            self.pending.pop_front();
        }
    }
}

impl<N: Near> Future for Relay<N> {
    type Output = (Outcome, u64, u64);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let up = this.poll_up(context);
        let down = this.poll_down(context);
        let outcome = match (up, down) {
            (Poll::Ready(Err(outcome)), _) | (_, Poll::Ready(Err(outcome))) => outcome,
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Outcome::Finished,
            _ if this.poll_lost(context).is_ready() => {
                if this.socket_is_target {
                    Outcome::ResetByClient
                } else {
                    Outcome::ResetByTarget
                }
            }
            _ => {
                ready!(this.poll_idle(context));
                Outcome::Idle
            }
        };
        Poll::Ready(this.end(outcome))
    }
}

impl<N: Near> Drop for Relay<N> {
    fn drop(&mut self) {
        if !self.over {
            self.reset();
        }
    }
}
