//! What both ends do with datagrams and paths, once there are keys: seal what the policy sends where, open, count, and tell the
//! other end what came.

use super::arrivals::Arrivals;
use super::epoch::Epoch;
use super::receiving::Receiving;
use super::sending::Sending;
use crate::datagram::Datagram;
use crate::format::{Data, Header, Message, Told, read_message, write_data, write_message};
use anabranch_policy::datagram::{DatagramPolicy, MAX_PATHS, Outgoing, PathView};
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use core::hash::BuildHasher as _;
use foldhash::fast::FixedState;
use std::collections::VecDeque;

/// While datagrams come, the other end is told of them this often.
const REPORT: Duration = Duration::from_millis(25);
/// A path of which nothing is known yet counts as slower than all others by this much.
const UNKNOWN: Duration = Duration::from_millis(10);
/// Most datagrams that wait for whoever takes them.
const MOST_ARRIVED: usize = 4_096;
/// What sealing adds to a payload, and the headers of UDP and IPv4 outside, for policies.
const AROUND: usize = 34 + 23 + 28;

/// Where sealed datagrams of a path go.
pub trait Out {
    /// Adds one of what `write` adds; gives its length, or nothing if it cannot be sent.
    fn push(&mut self, path: u8, write: impl FnOnce(&mut Vec<u8>)) -> Option<usize>;
}

/// One path at one end.
#[derive(Debug, Default)]
pub struct Path {
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    /// Whether something that is sent over it arrives, as far as is known.
    pub usable: bool,
    /// Whether it is used only while no other is usable.
    pub reserve: bool,
    /// The smoothed round trip, once there is one.
    pub round_trip: Option<Duration>,
    /// When a program's datagram came over it.
    data_came: Option<Instant>,
}

/// What came of a datagram that was good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// Whether its counter is the highest of its path.
    pub highest: bool,
    pub what: What,
}

/// What a good datagram was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Data,
    /// It was sent at this time of the peer's clock and wants an answer; the paths that are usable for the peer.
    Probe(u32, u32),
    /// To a probe that was sent at this time of our clock.
    Answer(u32),
    Report(u32),
    Close,
    /// Sealed with the right keys, and of no form that is known.
    Unknown,
}

/// The other end.
#[derive(Debug)]
pub struct Peer {
    policy: Box<dyn DatagramPolicy>,
    paths: Vec<Option<Path>>,
    views: Vec<PathView>,
    sequence: u32,
    arrivals: Arrivals,
    arrived: VecDeque<Datagram>,
    /// What delays of what we send are counted from.
    reference: Option<u32>,
    report_due: Instant,
    /// Datagrams that no path could carry.
    pub unsent: u64,
    /// Datagrams that nobody took in time.
    pub untaken: u64,
}

/// Microseconds of a clock, modulo 2^32.
pub fn stamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

impl Peer {
    pub fn new(policy: Box<dyn DatagramPolicy>) -> Self {
        Self {
            policy,
            paths: Vec::new(),
            views: Vec::new(),
            sequence: 0,
            arrivals: Arrivals::default(),
            arrived: VecDeque::new(),
            reference: None,
            report_due: Instant::NEVER,
            unsent: 0,
            untaken: 0,
        }
    }

    /// The other end has forgotten us: what was measured with its counts is void.
    pub fn restart(&mut self) {
        self.arrivals = Arrivals::default();
        self.reference = None;
        for path in self.paths.iter_mut().flatten() {
            path.sending.restart();
            path.receiving = Receiving::default();
        }
    }

    /// The path of this number, which is there from now on.
    pub fn add_path(&mut self, number: u8) -> Option<&mut Path> {
        let index = usize::from(number);
        if index >= MAX_PATHS {
            return None;
        }
        if self.paths.len() <= index {
            self.paths.resize_with(index + 1, || None);
        }
        self.paths.get_mut(index).map(|path| path.get_or_insert_default())
    }

    /// The path of this number.
    pub fn path(&self, number: u8) -> Option<&Path> {
        self.paths.get(usize::from(number))?.as_ref()
    }

    /// The paths in order.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = (u8, &mut Path)> {
        (0..).zip(&mut self.paths).filter_map(|(number, path)| Some((number, path.as_mut()?)))
    }

    /// The paths in order.
    pub fn paths(&self) -> impl Iterator<Item = (u8, &Path)> {
        (0..).zip(&self.paths).filter_map(|(number, path)| Some((number, path.as_ref()?)))
    }

    /// Sends a program's datagram as the policy has it; whether any path takes it.
    pub fn send(&mut self, now: Instant, epoch: &mut Epoch, datagram: &Datagram, out: &mut impl Out) -> bool {
        self.look(now);
        let length = datagram.payload.len() + AROUND;
        let flow = FixedState::default().hash_one((datagram.inside, datagram.outside));
        let decision = self.policy.choose(now, &Outgoing { length, flow }, &self.views);
        let (sequence, copies) = (self.sequence, decision.paths.len() > 1);
        let hold = u8::try_from(decision.hold.as_millis()).unwrap_or(u8::MAX);
        let mut taken = false;
        for number in decision.paths.iter() {
            let sealed = self.seal(now, epoch, number, out, |out| {
                write_data(stamp(now), datagram, sequence, copies, hold, out);
            });
            if let Some(Some(path)) = self.paths.get_mut(usize::from(number)).filter(|_| sealed) {
                path.sending.is_owed();
            }
            taken |= sealed;
        }
        if taken {
            self.sequence = self.sequence.wrapping_add(1);
        } else {
            self.unsent += 1;
        }
        taken
    }

    /// Whether the paths in reserve are used: no other is usable.
    fn uses_reserve(&self) -> bool {
        !self.paths.iter().flatten().any(|path| path.usable && !path.reserve)
    }

    /// Makes the views of the usable paths anew, or of all, if none is known to be usable: better there than nowhere.
    fn look(&mut self, now: Instant) {
        let any = self.paths.iter().flatten().any(|path| path.usable);
        let reserve = self.uses_reserve();
        let used = |path: &&Path| (path.usable && (reserve || !path.reserve)) || !any;
        let bases = self.paths.iter().flatten().filter(used).filter_map(|path| path.sending.base());
        let (least, most) = bases.fold((i64::MAX, i64::MIN), |(least, most), base| (least.min(base), most.max(base)));
        let micros = |from: i64| Duration::from_micros(from.saturating_sub(least).unsigned_abs());
        let unknown = if most < least { Duration::ZERO } else { micros(most) + UNKNOWN };
        let paths = (0..).zip(&self.paths).filter_map(|(number, path)| Some((number, path.as_ref()?)));
        self.views.clear();
        self.views.extend(paths.filter(|(_, path)| used(path)).map(|(number, path)| PathView {
            round_trip: path.round_trip,
            overdue: path.sending.is_overdue(now),
            ..path.sending.view(number, path.sending.base().map_or(unknown, micros))
        }));
    }

    /// Seals anything for a path; whether it is on its way.
    fn seal(
        &mut self,
        now: Instant,
        epoch: &mut Epoch,
        number: u8,
        out: &mut impl Out,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let Some(Some(path)) = self.paths.get_mut(usize::from(number)) else { return false };
        let counter = path.sending.take_counter();
        let length = out.push(number, |out| epoch.seal(number, counter, out, write));
        if let Some(length) = length {
            path.sending.sent(length, now);
        }
        length.is_some()
    }

    /// Sends a probe, an answer or a report, made of what is told of the paths.
    pub fn tell(
        &mut self,
        now: Instant,
        epoch: &mut Epoch,
        number: u8,
        out: &mut impl Out,
        message: impl FnOnce(Told) -> Message<'static>,
    ) {
        // The other end leaves alone what is not told of.
        let reserve = self.uses_reserve();
        let used = self.paths().filter(|(_, path)| path.usable && (reserve || !path.reserve));
        let usable = used.fold(0, |bits, (number, _)| bits | 1_u32 << number);
        let counts = self.paths_mut().filter_map(|(number, path)| path.receiving.tell(number)).collect();
        let message = message(Told { usable, counts });
        self.report_due = Instant::NEVER;
        self.seal(now, epoch, number, out, |out| write_message(stamp(now), &message, out));
    }

    /// Says on all paths that this end is gone.
    pub fn close(&mut self, now: Instant, epoch: &mut Epoch, out: &mut impl Out) {
        let numbers: Vec<u8> = self.paths().map(|(number, _)| number).collect();
        for number in numbers {
            self.seal(now, epoch, number, out, |out| write_message(stamp(now), &Message::Close, out));
        }
    }

    /// Opens a datagram and does what both ends do with it; nothing if it is not good.
    pub fn open(&mut self, now: Instant, epoch: &mut Epoch, header: &Header, datagram: &mut [u8]) -> Option<Heard> {
        let length = datagram.len();
        let (plain, highest) = epoch.open(header, datagram)?;
        let path = self.add_path(header.path)?;
        let Some((sent, message)) = read_message(plain) else {
            return Some(Heard { highest, what: What::Unknown });
        };
        path.receiving.arrived(header.counter, highest, length, stamp(now).wrapping_sub(sent));
        let what = match message {
            Message::Data(data, payload) => {
                path.data_came = Some(now);
                self.report_due = self.report_due.min(now + REPORT);
                self.arrive(now, &data, payload);
                What::Data
            }
            Message::Probe(told) => {
                self.told(&told, sent, now);
                What::Probe(sent, told.usable)
            }
            Message::Answer(echo, told) => {
                self.told(&told, sent, now);
                What::Answer(echo)
            }
            Message::Report(told) => {
                self.told(&told, sent, now);
                What::Report(told.usable)
            }
            Message::Close => What::Close,
        };
        Some(Heard { highest, what })
    }

    fn arrive(&mut self, now: Instant, data: &Data, payload: &[u8]) {
        let &Data { kind, inside, outside, sequence, copies, hold } = data;
        let datagram = Datagram { kind, inside, outside, payload: Bytes::copy_from_slice(payload) };
        let hold = Duration::from_millis(hold.into());
        self.arrivals.arrive(now, (sequence, copies, hold), datagram, &mut self.arrived);
        while self.arrived.len() > MOST_ARRIVED {
            self.arrived.pop_front();
            self.untaken += 1;
        }
    }

    fn told(&mut self, told: &Told, sent: u32, now: Instant) {
        for count in &told.counts {
            let reference = *self.reference.get_or_insert(count.delay);
            if let Some(Some(path)) = self.paths.get_mut(usize::from(count.path)) {
                path.sending.told(count, sent, reference, now);
            }
        }
    }

    /// The path over which a report is best sent: one over which the peer sends now works, as far as can be known.
    pub fn best_path(&self, now: Instant) -> Option<u8> {
        let paths = self.paths().filter(|(_, path)| path.usable);
        let recent = |path: &Path| path.data_came.is_some_and(|at| now.since(at) < REPORT * 2);
        let worth = |path: &Path| (path.sending.is_overdue(now), !recent(path), path.round_trip, path.sending.base());
        paths.min_by_key(|(_, path)| worth(path)).map(|(number, _)| number)
    }

    /// Whether the other end is to be told now of what came.
    pub fn report_is_due(&self, now: Instant) -> bool {
        self.report_due <= now
    }

    /// When something is to be done.
    pub fn poll_timeout(&self) -> Instant {
        self.report_due.min(self.arrivals.poll_timeout())
    }

    /// Passes on what was held back for long enough. A report for which there was no usable path is not sent any more: the next probe
    /// tells the same.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.report_due <= now {
            self.report_due = Instant::NEVER;
        }
        self.arrivals.handle_timeout(now, &mut self.arrived);
    }

    /// A datagram that came.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.arrived.pop_front()
    }

    /// Copies that were removed.
    pub fn duplicates(&self) -> u64 {
        self.arrivals.duplicates
    }
}
