//! Output of a connection: packets, notices for the endpoint, trace records.

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

/// Limit of queued trace records; further ones are dropped.
const MAX_TRACE: usize = 65_536;

/// A notice that the endpoint passes to the application or to the path manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// For the application.
    Application(Event),
    /// MPTCP is negotiated.
    Established,
    /// A subflow can carry data.
    SubflowEstablished(SubflowId),
    /// A subflow ended and was removed from the connection.
    SubflowClosed(Identity, CloseReason),
    /// The peer changed a subflow's priority.
    Priority(SubflowId, bool),
    /// The peer announced an address.
    AddressAnnounced(AddressId, SocketAddr),
    /// The peer withdrew an address.
    AddressRemoved(AddressId),
    /// The receive buffer is blocked by a hole at this data sequence.
    Blocked(u64),
    /// Our own receive buffer is blocked by a hole at this data sequence.
    ReceiverBlocked(u64),
    /// The retransmission timer of a subflow expired.
    SubflowTimeout(SubflowId),
    /// A measurement for the path manager is due.
    Measure,
    Attempt(Attempt),
}

/// Notices about attempts to open the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// Another attempt is due.
    Due,
    /// One of several attempts ended and was removed.
    Over(Identity),
    /// An attempt had been unanswered for this long when another was answered.
    Unanswered(Identity, Duration),
    /// An attempt was answered, after this time if that is known.
    Answered(Identity, Option<Duration>),
}

/// Scratch space shared by all connections of an endpoint.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Views of subflows.
    pub views: Vec<SubflowView>,
    /// The connection of these views, while they are valid.
    pub views_of: Option<ConnectionId>,
    /// How often views were updated.
    pub changes: u64,
    /// Subflows for whose data the scheduler has no other subflow at present.
    pub refused: Vec<SubflowId>,
    /// The last packet must not be merged with others: it is a retransmission, or a path MTU probe.
    pub resends: bool,
}

/// Frequent notices for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Readable,
    Writable,
}

/// The output of a connection.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether `poll_transmit` may return a packet.
    pub pending: bool,
    /// Complete packets, mostly resets.
    pub packets: RareQueue<Packet>,
    /// The first notice. It has a field of its own, since there is rarely more than one after handshakes.
    first: Option<First>,
    /// Further notices.
    notices: RareQueue<Notice>,
    #[allow(clippy::box_collection, reason = "hardly any connection has one, and each pays for its place")]
    trace: Option<Box<VecDeque<TraceRecord>>>,
    /// The deadline armed at the endpoint.
    pub armed: Instant,
    /// Whether the endpoint has queued the connection for output.
    pub listed: bool,
}

impl Output {
    /// A SYN or SYN/ACK is due.
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

    /// The next notice if it is that data is readable, as after nearly every data segment.
    #[inline]
    pub fn poll_readable(&mut self, id: ConnectionId) -> Option<Event> {
        let readable = self.first == Some(First::Readable);
        self.first = self.first.filter(|_| !readable);
        readable.then_some(Event::Readable(id))
    }

    /// Queues an event for the application.
    #[inline]
    pub fn notify(&mut self, event: Event) {
        let first = self.first.is_none() && self.notices.is_empty();
        match event {
            Event::Readable(_) if first => self.first = Some(First::Readable),
            Event::Writable(_) if first => self.first = Some(First::Writable),
            _ => self.tell(Notice::Application(event)),
        }
    }

    /// Queues a notice for the path manager, or for both.
    #[inline(never)]
    pub fn tell(&mut self, notice: Notice) {
        self.notices.push_back(notice);
    }

    pub fn has_notices(&self) -> bool {
        self.first.is_some() || !self.notices.is_empty()
    }

    /// Whether there are notices other than that data is readable.
    #[inline]
    pub fn has_notices_but_readable(&self) -> bool {
        self.first == Some(First::Writable) || !self.notices.is_empty()
    }

    /// Whether [`super::Connection::poll_transmit`] may return a packet.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.pending || !self.packets.is_empty()
    }

    /// Whether trace records are kept.
    pub fn traces(&self) -> bool {
        self.trace.is_some()
    }

    pub fn has_trace(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| !trace.is_empty())
    }

    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        self.trace.as_mut()?.pop_front()
    }

    /// Adds a trace record, if records are kept and there is space.
    pub fn record(&mut self, record: TraceRecord) {
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.len() < MAX_TRACE) {
            trace.push_back(record);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && !self.has_notices()
    }
}
