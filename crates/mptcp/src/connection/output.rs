//! What waits to leave a connection: packets, notices for the endpoint, trace records.

use crate::event::{Event, TraceRecord};
use crate::rare_queue::RareQueue;
use crate::subflow::Identity;
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::SubflowView;
use anabranch_wire::Packet;
use core::net::SocketAddr;
use std::collections::VecDeque;

/// Most trace records that wait to be drained; more are dropped.
const MAX_TRACE: usize = 65_536;

/// Something that the endpoint passes on, to the application or to the path manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// For the application.
    Application(Event),
    /// MPTCP is agreed on.
    Established,
    /// A subflow can carry data.
    SubflowEstablished(SubflowId),
    /// A subflow ended; it is gone from the connection.
    SubflowClosed(Identity, CloseReason),
    /// The peer changed a subflow's priority.
    Priority(SubflowId, bool),
    /// The peer announced an address.
    AddressAnnounced(AddressId, SocketAddr),
    /// The peer withdrew an address.
    AddressRemoved(AddressId),
    /// The receive buffer is blocked at this data sequence.
    Blocked(u64),
    /// The receive buffer is blocked as the receiving end sees it; the first missing byte.
    ReceiverBlocked(u64),
    /// A subflow's retransmission timer ran out.
    SubflowTimeout(SubflowId),
    /// The path manager's measurement is due.
    Measure,
    /// An attempt to open the connection.
    Attempt(Attempt),
}

/// What the endpoint hears of attempts to open a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// Another is due.
    Due,
    /// One of several is over; it is gone from the connection.
    Over(Identity),
    /// It had gone for so long without an answer when another was answered.
    Unanswered(Identity, Duration),
    /// It was answered, after this time if that is known.
    Answered(Identity, Option<Duration>),
}

/// What is shared by all connections of an endpoint, so that none has to own it.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Views of the subflows at hand.
    pub views: Vec<SubflowView>,
    /// Of which connection they are, as far as nobody else has changed them.
    pub views_of: Option<ConnectionId>,
    /// How many times views were brought up to date.
    pub changes: u64,
    /// Subflows whose data the scheduler has no other subflow for now.
    pub refused: Vec<SubflowId>,
    /// The packet given last must leave by itself: it is data that had been sent before, or a probe of the path.
    pub resends: bool,
}

/// What the application hears again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Readable,
    Writable,
}

/// What waits to leave.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether `poll_transmit` may find something.
    pub pending: bool,
    /// Packets that are complete, resets most of all.
    pub packets: RareQueue<Packet>,
    /// What the endpoint must pass on first. It has a place of its own, since hardly anything else comes after handshakes.
    first: Option<First>,
    /// What it must pass on then.
    notices: RareQueue<Notice>,
    #[allow(clippy::box_collection, reason = "hardly any connection has one, and each pays for its place")]
    trace: Option<Box<VecDeque<TraceRecord>>>,
    /// The earliest deadline that the endpoint knows of.
    pub armed: Instant,
    /// Whether the endpoint has it in its list of those with output.
    pub listed: bool,
}

impl Output {
    /// A SYN or SYN/ACK waits to be made.
    pub fn new(traces: bool) -> Self {
        Self {
            pending: true,
            packets: RareQueue::default(),
            first: None,
            notices: RareQueue::default(),
            trace: traces.then(Box::default),
            armed: Instant::NEVER,
            listed: false,
        }
    }

    /// The next notice of the connection with this id.
    pub fn poll_notice(&mut self, id: ConnectionId) -> Option<Notice> {
        match self.first.take() {
            Some(First::Readable) => return Some(Notice::Application(Event::Readable(id))),
            Some(First::Writable) => return Some(Notice::Application(Event::Writable(id))),
            None => {}
        }
        self.notices.take_front()
    }

    /// The next notice, if it is that there is something to read, as it is with nearly every segment of data.
    #[inline]
    pub fn poll_readable(&mut self, id: ConnectionId) -> Option<Event> {
        let readable = self.first == Some(First::Readable);
        self.first = self.first.filter(|_| !readable);
        readable.then_some(Event::Readable(id))
    }

    /// Something for the application.
    #[inline]
    pub fn notify(&mut self, event: Event) {
        let first = self.first.is_none() && self.notices.is_empty();
        match event {
            Event::Readable(_) if first => self.first = Some(First::Readable),
            Event::Writable(_) if first => self.first = Some(First::Writable),
            _ => self.tell(Notice::Application(event)),
        }
    }

    /// Something for the path manager, or both.
    #[inline(never)]
    pub fn tell(&mut self, notice: Notice) {
        self.notices.push_back(notice);
    }

    /// Whether there is something to pass on.
    pub fn has_notices(&self) -> bool {
        self.first.is_some() || !self.notices.is_empty()
    }

    /// Whether there is something to pass on besides that there is something to read.
    #[inline]
    pub fn has_notices_but_readable(&self) -> bool {
        self.first == Some(First::Writable) || !self.notices.is_empty()
    }

    /// Whether [`super::Connection::poll_transmit`] may find something.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.pending || !self.packets.is_empty()
    }

    /// Whether records are kept.
    pub fn traces(&self) -> bool {
        self.trace.is_some()
    }

    /// Whether records wait.
    pub fn has_trace(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| !trace.is_empty())
    }

    /// The next record.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        self.trace.as_mut()?.pop_front()
    }

    /// Keeps a record, if there is room and records are kept.
    pub fn record(&mut self, record: TraceRecord) {
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.len() < MAX_TRACE) {
            trace.push_back(record);
        }
    }

    /// Whether nothing is left to be passed on.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && !self.has_notices()
    }
}
