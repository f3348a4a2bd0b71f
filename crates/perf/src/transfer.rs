//! Writes, reads and counts the payload.

use super::link::Link;
use super::plan::Plan;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The measuring end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Sender,
    Receiver,
}

/// A stream of the test with its counters.
pub(super) struct Line {
    pub(super) link: Arc<Link>,
    pub(super) stream: u32,
    written: AtomicU64,
    swallowed: AtomicU64,
    /// All bytes are written, or no more can be.
    pub(super) written_out: AtomicBool,
    /// The peer's direction has ended or failed.
    pub(super) swallowed_all: AtomicBool,
    /// The connection failed in either direction.
    pub(super) failed: AtomicBool,
}

impl Line {
    pub(super) fn new(link: Arc<Link>, stream: u32) -> Arc<Self> {
        Arc::new(Self {
            link,
            stream,
            written: AtomicU64::new(0),
            swallowed: AtomicU64::new(0),
            written_out: AtomicBool::new(false),
            swallowed_all: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        })
    }

    /// Bytes accepted by the connection.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes received.
    pub(super) fn swallowed(&self) -> u64 {
        self.swallowed.load(Ordering::Relaxed)
    }

    /// Whether a direction ended before its time, or before its bytes, as seen at this end.
    fn ended_early(&self, end: End, plan: &Plan) -> bool {
        let (over, moved) = match end {
            End::Sender => (&self.written_out, self.written()),
            End::Receiver => (&self.swallowed_all, self.swallowed()),
        };
        let over = over.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
        over && plan.bytes_of(self.stream).is_none_or(|bytes| moved < bytes)
    }
}

/// Incompressible payload.
fn payload(size: u32) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(|_| next()).collect()
}

/// The tasks of a test's streams; dropping this aborts them.
pub(super) struct Transfers {
    pub(super) lines: Vec<Arc<Line>>,
    tasks: Vec<JoinHandle<()>>,
    /// Notified when data arrived or a direction ended.
    pub(super) progress: Arc<Notify>,
    /// Whether the measurement ends before its time.
    stopped: AtomicBool,
}

impl Transfers {
    pub(super) fn new(lines: Vec<Arc<Line>>) -> Self {
        Self { lines, tasks: Vec::new(), progress: Arc::new(Notify::new()), stopped: AtomicBool::new(false) }
    }

    /// Every stream writes until its bytes are sent or the test ends.
    pub(super) fn send(&mut self, plan: &Plan) {
        let payload = payload(plan.write_size);
        for line in &self.lines {
            let (line, payload, limit) = (Arc::clone(line), payload.clone(), plan.bytes_of(line.stream));
            let progress = Arc::clone(&self.progress);
            self.tasks.push(tokio::spawn(async move {
                send(&line, &payload, limit).await;
                line.written_out.store(true, Ordering::Relaxed);
                progress.notify_waiters();
            }));
        }
    }

    /// Every stream reads and discards to its end. A stream that does not send then closes its own direction.
    pub(super) fn receive(&mut self, sends: bool) {
        for line in &self.lines {
            let (line, progress) = (Arc::clone(line), Arc::clone(&self.progress));
            self.tasks.push(tokio::spawn(async move {
                receive(&line, &progress).await;
                if !sends {
                    line.link.shutdown();
                }
                line.swallowed_all.store(true, Ordering::Relaxed);
                progress.notify_waiters();
            }));
        }
    }

    /// Ends the meters where they are; the transfers go on.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.progress.notify_waiters();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether a stream ended early; meaningful only while nobody has aborted the streams.
    pub(super) fn ended_early(&self, end: End, plan: &Plan) -> bool {
        !self.is_stopped() && self.lines.iter().any(|line| line.ended_early(end, plan))
    }

    /// Aborts all streams.
    pub(super) fn abort(&mut self) {
        self.lines.iter().for_each(|line| line.link.abort());
        self.tasks.drain(..).for_each(|task| task.abort());
        self.lines.clear();
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.abort();
    }
}

async fn send(line: &Line, payload: &Bytes, limit: Option<u64>) {
    loop {
        let left = limit.map_or(u64::MAX, |limit| limit - line.written());
        if left == 0 {
            return line.link.shutdown();
        }
        let part = payload.slice(..payload.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        match line.link.write(&part).await {
            Ok(taken) => line.written.fetch_add(taken as u64, Ordering::Relaxed),
            // The meter handles it.
            Err(_) => return line.failed.store(true, Ordering::Relaxed),
        };
        tokio::task::consume_budget().await;
    }
}

async fn receive(line: &Line, progress: &Notify) {
    let mut scratch = line.link.scratch();
    loop {
        match line.link.swallow(&mut scratch).await {
            Ok(0) => return,
            Err(_) => return line.failed.store(true, Ordering::Relaxed),
            Ok(taken) => {
                if line.swallowed.fetch_add(taken as u64, Ordering::Relaxed) == 0 {
                    progress.notify_waiters();
                }
            }
        }
        tokio::task::consume_budget().await;
    }
}
