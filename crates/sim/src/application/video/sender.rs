//! Writes the frames of a schedule, each as a message, at their times.

use super::message::{Schedule, payload};
use anabranch_mptcp::{Endpoint, MessageOptions};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;

/// A live source. Frames that the connection does not accept wait here, in order.
#[derive(Clone, Debug)]
pub(crate) struct VideoSender {
    schedule: Schedule,
    start: Option<Instant>,
    next: usize,
    /// Payload bytes written.
    written: u64,
    /// The send buffer is full; an event will report room.
    blocked: bool,
    /// The connection has been closed or has failed.
    over: bool,
}

impl VideoSender {
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self { schedule, start: None, next: 0, written: 0, blocked: false, over: false }
    }
    pub(crate) fn written(&self) -> u64 {
        self.written
    }
    /// Whether everything has been written and the connection closed.
    pub(crate) fn is_finished(&self) -> bool {
        self.over
    }
    pub(crate) fn timer(&self) -> Instant {
        match (self.start, self.schedule.get(self.next)) {
            (Some(start), Some(frame)) if !self.over && !self.blocked => start + frame.at,
            _ => Instant::NEVER,
        }
    }
    /// The connection is established: the stream begins.
    pub(crate) fn open(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        self.start = Some(now);
        self.write(now, endpoint, id);
    }
    /// Writes the frames that are due while there is room in the send buffer; closes after the last.
    pub(crate) fn write(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        let Some(start) = self.start.filter(|_| !self.over) else { return };
        self.blocked = false;
        while let Some(frame) = self.schedule.get(self.next).filter(|frame| start + frame.at <= now) {
            let number = self.next as u32;
            let options =
                MessageOptions { importance: frame.importance, play_out: frame.play_out, lifetime: frame.lifetime };
            match endpoint.write_message(now, id, payload(number, frame.bytes), &options) {
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.blocked = true;
                    return;
                }
                Err(_) => {
                    self.over = true;
                    return;
                }
            }
            self.written += u64::from(frame.bytes);
            self.next += 1;
        }
        if self.next == self.schedule.len() {
            self.end(now, endpoint, id);
        }
    }
    /// Stops writing.
    pub(crate) fn end(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if core::mem::replace(&mut self.over, true) {
            return;
        }
        // The connection may have ended already.
        let _ = endpoint.close(now, id);
    }
}
