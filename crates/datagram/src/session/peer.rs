//! The state and operations of both ends once there are keys: sealing datagrams for the paths that the policy chooses,
//! opening arrivals, counting them, and reporting to the peer.

use super::arrivals::Arrivals;
use super::assembly::{Assembly, Part};
use super::epoch::Epoch;
use super::path_mtu::{LARGEST, PathMtu};
use super::receiving::Receiving;
use super::sending::Sending;
use crate::datagram::{Datagram, Unreachable};
use crate::format::{
    Data, HEADER, Header, Message, Piece, TAG, Told, before_payload, read_message, write_data, write_message,
};
use anabranch_policy::datagram::{DatagramPolicy, Decision, MAX_PATHS, Outgoing, PathView};
use anabranch_policy::time::{Duration, Instant};
use core::hash::BuildHasher as _;
use core::net::SocketAddr;
use foldhash::fast::FixedState;
use std::collections::VecDeque;

/// Interval between reports to the peer while datagrams arrive.
const REPORT: Duration = Duration::from_millis(25);
/// A path without measurements counts as slower than all others by this much.
const UNKNOWN: Duration = Duration::from_millis(10);
/// Most unread datagrams.
const MOST_ARRIVED: usize = 4_096;
/// Most unread reports of undelivered datagrams.
const MOST_UNREACHABLE: usize = 256;
/// Bytes of the outer UDP and IPv4 headers, for policies.
const OUTSIDE: usize = 28;

/// Output of sealed datagrams for a path.
pub trait Out {
    /// Appends a datagram; `write` appends its bytes. Returns its length, or `None` if it cannot be sent.
    fn push(&mut self, path: u8, write: impl FnOnce(&mut Vec<u8>)) -> Option<usize>;
}

/// The state of one path at one end.
#[derive(Debug, Default)]
pub struct Path {
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    pub(crate) mtu: PathMtu,
    /// Whether datagrams sent over it are assumed to arrive.
    pub usable: bool,
    /// Whether it is used only while no other path is usable.
    pub reserve: bool,
    /// The smoothed round-trip time, once measured.
    pub round_trip: Option<Duration>,
    /// When a program's datagram last arrived over it.
    data_came: Option<Instant>,
}

/// The result of opening a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// Whether its counter is the highest of its path.
    pub highest: bool,
    pub what: What,
}

/// The message of an authentic datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Data,
    /// A probe to answer: its time stamp by the peer's clock, and the paths that the peer can use.
    Probe(u32, u32),
    /// The answer to a probe, with the probe's time stamp by our clock.
    Answer(u32),
    Report(u32),
    Close,
    /// A probe of this size was received; to be answered.
    Size(u16),
    /// For a program, or the answer to a size probe: nothing left to do.
    Done,
    /// Authentic, but with an unknown encoding.
    Unknown,
}

/// The state of the session with the other end.
#[derive(Debug)]
pub struct Peer {
    policy: Box<dyn DatagramPolicy>,
    paths: Vec<Option<Path>>,
    views: Vec<PathView>,
    sequence: u32,
    arrivals: Arrivals<Part>,
    /// Datagrams and pieces that are in order, before reassembly.
    parts: VecDeque<Part>,
    assembly: Assembly,
    arrived: VecDeque<Datagram>,
    unreachable: VecDeque<Unreachable>,
    /// The first delay measured for datagrams that we send; others are relative to it.
    reference: Option<u32>,
    report_due: Instant,
    /// Datagrams that no path could carry.
    pub unsent: u64,
    /// Datagrams dropped because they were not read in time.
    pub untaken: u64,
}

/// Bytes that sealing adds to a payload between these addresses.
fn around(inside: SocketAddr, outside: SocketAddr, is_piece: bool) -> usize {
    HEADER + TAG + before_payload(inside, outside, is_piece)
}

/// A clock in microseconds, modulo 2^32.
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
            parts: VecDeque::new(),
            assembly: Assembly::default(),
            arrived: VecDeque::new(),
            unreachable: VecDeque::new(),
            reference: None,
            report_due: Instant::NEVER,
            unsent: 0,
            untaken: 0,
        }
    }

    /// Handles a peer that has lost its state: measurements based on its counts are reset.
    pub fn restart(&mut self) {
        self.arrivals = Arrivals::default();
        self.assembly.restart();
        self.reference = None;
        for path in self.paths.iter_mut().flatten() {
            path.sending.restart();
            path.receiving = Receiving::default();
        }
    }

    /// Adds the path with this number, and returns it.
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

    /// The path with this number.
    pub fn path(&self, number: u8) -> Option<&Path> {
        self.paths.get(usize::from(number))?.as_ref()
    }

    /// The paths, in order of their numbers.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = (u8, &mut Path)> {
        (0..).zip(&mut self.paths).filter_map(|(number, path)| Some((number, path.as_mut()?)))
    }

    /// The paths, in order of their numbers.
    pub fn paths(&self) -> impl Iterator<Item = (u8, &Path)> {
        (0..).zip(&self.paths).filter_map(|(number, path)| Some((number, path.as_ref()?)))
    }

    /// Sends a program's datagram over the paths that the policy chooses. Returns whether any path accepted it.
    pub fn send(&mut self, now: Instant, epoch: &mut Epoch, datagram: &Datagram, out: &mut impl Out) -> bool {
        self.look(now);
        let &Datagram { kind, inside, outside, ref payload } = datagram;
        let sealed = payload.len() + around(inside, outside, false);
        let flow = FixedState::default().hash_one((inside, outside));
        let decision = self.policy.choose(now, &Outgoing { length: sealed + OUTSIDE, flow }, &self.views);
        let data = Data { kind, inside, outside, sequence: self.sequence, copies: false, hold: 0, piece: None };
        let taken = if decision.paths.iter().all(|number| self.carried(number) >= sealed) {
            let taken = self.send_one(now, epoch, decision, (&data, payload), out);
            self.sequence = self.sequence.wrapping_add(taken.into());
            taken
        } else {
            self.send_pieces(now, epoch, flow, (&data, payload), out)
        };
        self.unsent += u64::from(!taken);
        taken
    }

    /// The largest sealed datagram that a path carries, in bytes.
    fn carried(&self, number: u8) -> usize {
        self.path(number).map_or(0, |path| path.mtu.carried())
    }

    /// Sends a datagram over the paths that the policy has chosen for it. Returns whether any accepted it.
    fn send_one(
        &mut self,
        now: Instant,
        epoch: &mut Epoch,
        decision: Decision,
        (data, payload): (&Data, &[u8]),
        out: &mut impl Out,
    ) -> bool {
        let hold = u8::try_from(decision.hold.as_millis()).unwrap_or(u8::MAX);
        let data = Data { copies: decision.paths.len() > 1, hold, ..*data };
        let mut taken = false;
        for number in decision.paths.iter() {
            let sealed = self.seal(now, epoch, number, out, |out| write_data(stamp(now), &data, payload, out));
            if let Some(Some(path)) = self.paths.get_mut(usize::from(number)).filter(|_| sealed) {
                path.sending.is_owed();
            }
            taken |= sealed;
        }
        taken
    }

    /// Whether reserve paths are used: no other is usable.
    fn uses_reserve(&self) -> bool {
        !self.paths.iter().flatten().any(|path| path.usable && !path.reserve)
    }

    /// Sends a datagram in pieces that fit every path in use. Returns whether all pieces were sent.
    fn send_pieces(
        &mut self,
        now: Instant,
        epoch: &mut Epoch,
        flow: u64,
        (data, payload): (&Data, &[u8]),
        out: &mut impl Out,
    ) -> bool {
        let around = around(data.inside, data.outside, true);
        let sizes = self.views.iter().map(|view| self.carried(view.path));
        let Some(room) = sizes.min().and_then(|size| size.checked_sub(around)).filter(|room| *room > 0) else {
            return false;
        };
        let Ok(count) = u8::try_from(payload.len().div_ceil(room)) else { return false };
        let mut all = true;
        // Pieces of almost equal length: a short last piece costs as much as a full one.
        let length = payload.len().div_ceil(count.max(1).into()).max(1);
        for (index, payload) in (0..count).zip(payload.chunks(length)) {
            let outgoing = Outgoing { length: payload.len() + around + OUTSIDE, flow };
            let decision = self.policy.choose(now, &outgoing, &self.views);
            let data = Data { sequence: self.sequence, piece: Some(Piece { index, count }), ..*data };
            all &= self.send_one(now, epoch, decision, (&data, payload), out);
            self.sequence = self.sequence.wrapping_add(1);
        }
        all
    }

    /// The largest payload between these addresses that some path carries, or may carry while its MTU is unknown, in
    /// one datagram.
    pub fn largest_whole(&self, inside: SocketAddr, outside: SocketAddr) -> usize {
        let any = self.paths.iter().flatten().any(|path| path.usable);
        let used = self.paths.iter().flatten().filter(|path| path.usable || !any);
        let carried = used.map(|path| if path.mtu.is_settled() { path.mtu.carried() } else { LARGEST });
        carried.max().unwrap_or(LARGEST).saturating_sub(around(inside, outside, false))
    }

    /// Sends size probes that are due.
    pub fn probe_sizes(&mut self, now: Instant, epoch: &mut Epoch, out: &mut impl Out) {
        for number in 0..self.paths.len() {
            let Some(Some(path)) = self.paths.get_mut(number) else { continue };
            let Some(size) = path.mtu.poll_probe(now, path.usable, path.round_trip) else { continue };
            let counter = path.sending.take_counter();
            let message = Message::Size(size as u16);
            let write = |out: &mut Vec<u8>| write_message(stamp(now), &message, out);
            let length = out.push(number as u8, |out| epoch.seal(number as u8, counter, out, write));
            if let Some(length) = length {
                path.sending.asked(length, now);
            }
        }
    }

    /// Answers a size probe on its path.
    pub fn answer_size(&mut self, now: Instant, epoch: &mut Epoch, number: u8, size: u16, out: &mut impl Out) {
        self.seal(now, epoch, number, out, |out| write_message(stamp(now), &Message::SizeAnswer(size), out));
    }

    /// Records that the host refuses datagrams of this size on a path.
    pub fn too_large(&mut self, number: u8, size: usize, now: Instant) {
        if let Some(Some(path)) = self.paths.get_mut(usize::from(number)) {
            path.mtu.too_large(size, now);
        }
    }

    /// Tells the peer that a datagram was not delivered. Returns whether the message was sent.
    pub fn tell_unreachable(
        &mut self,
        now: Instant,
        epoch: &mut Epoch,
        unreachable: Unreachable,
        out: &mut impl Out,
    ) -> bool {
        // Any path is better than none, as for data.
        let any = || self.paths().map(|(number, _)| number).next();
        let Some(number) = self.best_path(now).or_else(any) else { return false };
        self.seal(now, epoch, number, out, |out| write_message(stamp(now), &Message::Unreachable(unreachable), out))
    }

    /// Updates the views of the usable paths, or of all paths if none is known to be usable.
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

    /// Seals a message for a path. Returns whether it was sent.
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
            path.mtu.used(length, now);
        }
        length.is_some()
    }

    /// Sends a probe, an answer or a report that includes our report on the paths.
    pub fn tell(
        &mut self,
        now: Instant,
        epoch: &mut Epoch,
        number: u8,
        out: &mut impl Out,
        message: impl FnOnce(Told) -> Message<'static>,
    ) {
        // The peer does not use paths missing from the report.
        let reserve = self.uses_reserve();
        let used = self.paths().filter(|(_, path)| path.usable && (reserve || !path.reserve));
        let usable = used.fold(0, |bits, (number, _)| bits | 1_u32 << number);
        let counts = self.paths_mut().filter_map(|(number, path)| path.receiving.tell(number)).collect();
        let message = message(Told { usable, counts });
        self.report_due = Instant::NEVER;
        self.seal(now, epoch, number, out, |out| write_message(stamp(now), &message, out));
    }

    /// Sends a goodbye on all paths.
    pub fn close(&mut self, now: Instant, epoch: &mut Epoch, out: &mut impl Out) {
        let numbers: Vec<u8> = self.paths().map(|(number, _)| number).collect();
        for number in numbers {
            self.seal(now, epoch, number, out, |out| write_message(stamp(now), &Message::Close, out));
        }
    }

    /// Opens a datagram and does what both ends do with it; `None` if it is not authentic.
    pub fn open(&mut self, now: Instant, epoch: &mut Epoch, header: &Header, datagram: &mut [u8]) -> Option<Heard> {
        let length = datagram.len();
        let (plain, highest) = epoch.open(header, datagram)?;
        let path = self.add_path(header.path)?;
        let Some((sent, message)) = read_message(plain) else {
            return Some(Heard { highest, what: What::Unknown });
        };
        path.mtu.begin(now);
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
            Message::Size(size) => What::Size(size),
            Message::SizeAnswer(size) => {
                path.mtu.answered(size.into(), now);
                What::Done
            }
            Message::Unreachable(unreachable) => {
                if self.unreachable.len() < MOST_UNREACHABLE {
                    self.unreachable.push_back(unreachable);
                }
                What::Done
            }
        };
        Some(Heard { highest, what })
    }

    fn arrive(&mut self, now: Instant, data: &Data, payload: &[u8]) {
        let &Data { sequence, copies, hold, .. } = data;
        let hold = Duration::from_millis(hold.into());
        self.arrivals.arrive(now, (sequence, copies, hold), Part::new(data, payload), &mut self.parts);
        self.assemble(now);
    }

    fn assemble(&mut self, now: Instant) {
        while let Some(part) = self.parts.pop_front() {
            self.arrived.extend(self.assembly.take(now, part));
        }
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
                if path.sending.loses_much() {
                    path.mtu.suspect(now);
                }
            }
        }
    }

    /// The best path for a report: one over which the peer sends now is most likely to work.
    pub fn best_path(&self, now: Instant) -> Option<u8> {
        let paths = self.paths().filter(|(_, path)| path.usable);
        let recent = |path: &Path| path.data_came.is_some_and(|at| now.since(at) < REPORT * 2);
        let worth = |path: &Path| (path.sending.is_overdue(now), !recent(path), path.round_trip, path.sending.base());
        paths.min_by_key(|(_, path)| worth(path)).map(|(number, _)| number)
    }

    /// Whether a report is due.
    pub fn report_is_due(&self, now: Instant) -> bool {
        self.report_due <= now
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        let sizes = self.paths.iter().flatten().map(|path| path.mtu.poll_timeout()).min();
        self.report_due.min(self.arrivals.poll_timeout()).min(sizes.unwrap_or(Instant::NEVER))
    }

    /// Passes on datagrams delayed long enough. A report for which no path was usable is dropped: the next probe has
    /// the same content.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.report_due <= now {
            self.report_due = Instant::NEVER;
        }
        self.arrivals.handle_timeout(now, &mut self.parts);
        self.assemble(now);
        self.assembly.handle_timeout(now);
    }

    /// The next datagram received.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.arrived.pop_front()
    }

    /// The next report of an undelivered datagram.
    pub fn poll_unreachable(&mut self) -> Option<Unreachable> {
        self.unreachable.pop_front()
    }

    /// Datagrams of which not all pieces arrived.
    pub fn unfinished(&self) -> u64 {
        self.assembly.unfinished
    }

    /// Duplicates removed.
    pub fn duplicates(&self) -> u64 {
        self.arrivals.duplicates
    }
}
