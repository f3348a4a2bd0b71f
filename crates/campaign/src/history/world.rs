//! Plays a history, and checks the invariants after every step.

use super::engine::{EngineSide, PORT};
use super::lie::Sent;
use super::network::{self, Network, address};
use super::opposite::{Ending, Side};
use super::transcript;
use super::{History, Op};
use crate::literal::{MILLI, Nanos, Peer};
use anabranch_wire::{Flags, MptcpOption, Packet, Segment};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::OnceLock;

/// Limit of packets of one side at one time.
const MOST_AT_ONCE: u32 = 3_000;
/// Limit of steps of a history.
const MOST_STEPS: u64 = 2_000_000;
/// Limit of packets in a second with nothing but bare acknowledgements, in addition to two for each packet of the
/// second before.
const MOST_BARE: u32 = 400;
/// Limit of packets in a second in which no octet is read, in addition to one per four octets that wait to be read:
/// each may be sent on eight subflows, in segments of 60 octets, which are acknowledged.
const MOST_IDLE: u32 = 6_000;

/// The model of one application.
#[derive(Default)]
pub struct Application {
    /// Octets accepted from it.
    pub written: u64,
    /// Octets that it still has to write.
    pub waiting: u64,
    /// It closes once nothing is left to write.
    pub closing: bool,
    pub closed: bool,
    pub aborted: bool,
    /// It does not read without an event.
    pub paused: bool,
    pub read: u64,
}

/// Packets sent in a second.
#[derive(Default)]
struct Second {
    number: u64,
    packets: u32,
    before: u32,
    substance: bool,
    read: u64,
}

/// A history in progress.
pub struct World {
    /// The client and the server.
    pub sides: [Box<dyn Side>; 2],
    pub apps: [Application; 2],
    pub now: Nanos,
    pub network: Network,
    /// A line for each packet, if recorded.
    pub lines: Option<Vec<String>>,
    /// The side of the literal peer, if any.
    liar: Option<usize>,
    /// What the other side may read.
    sent: Sent,
    /// The side that read data that nobody wrote.
    pub misread: Option<usize>,
    /// The sides at which MP_FAIL or an infinite mapping has arrived.
    pub told_of_fallback: [bool; 2],
    /// A side lost an address, and with it all its subflows.
    pub cut: bool,
    /// Octets are changed in transit.
    changes: bool,
    /// Mappings have checksums while MPTCP is used.
    checksums: bool,
    v6: bool,
    steps: u64,
    at_once: u32,
    second: Second,
    wire: Vec<u8>,
}

/// The data that a side writes: octets depend on their offset.
pub(super) fn pattern(side: usize) -> &'static Bytes {
    static PATTERNS: OnceLock<[Bytes; 2]> = OnceLock::new();
    let make = |side: u64| {
        (0..300_000_u64).map(move |at| (at.wrapping_mul(2_654_435_761).wrapping_add(side * 77) >> 13) as u8)
    };
    &PATTERNS.get_or_init(|| [make(0).collect(), make(1).collect()])[side]
}

impl World {
    /// Both sides and the paths; the client has sent its SYN.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn new(history: &History, record: bool) -> Result<Self, String> {
        let side = |which: usize| -> Box<dyn Side> {
            let paths = 0..history.delays.len();
            let addresses = paths.map(|path| address(history.v6, which, path)).collect::<Vec<_>>();
            let (settings, seed) = (&history.sides[which], history.seed ^ (which as u64) << 32);
            if history.kind.is_literal(which) {
                Box::new(Peer::new(settings.clone(), seed, addresses, which == 0))
            } else {
                Box::new(EngineSide::new(settings, seed, &addresses, which == 0))
            }
        };
        let mut world = Self {
            sides: [side(0), side(1)],
            apps: Default::default(),
            now: 0,
            network: Network::new(history.seed, &history.delays, history.strip, history.fates.clone()),
            lines: record.then(Vec::new),
            liar: (0..2).find(|side| history.kind.is_literal(*side)),
            sent: history.sent(),
            misread: None,
            told_of_fallback: [false; 2],
            cut: false,
            changes: false,
            checksums: history.checksums(),
            v6: history.v6,
            steps: 0,
            at_once: 0,
            second: Second::default(),
            wire: Vec::new(),
        };
        world.liar.into_iter().for_each(|side| world.network.observe(side));
        let remote = SocketAddr::new(address(history.v6, 1, 0), PORT);
        world.sides[0].connect(0, remote);
        world.settle()?;
        Ok(world)
    }

    /// Plays the events.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn play(&mut self, history: &History) -> Result<(), String> {
        for (due, op) in &history.ops {
            let due = u64::from(*due) * MILLI;
            while self.step(due)? {}
            self.note(&format!("{op:?}"));
            self.act(*op)?;
            self.settle()?;
        }
        Ok(())
    }

    /// Removes impairments, restores addresses and readers; both sides close after writing everything.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn heal(&mut self) -> Result<(), String> {
        self.note("calm, all read and close");
        self.network.calm();
        for (side, path) in self.network.away() {
            self.bring_back(side, path);
        }
        for app in &mut self.apps {
            (app.paused, app.closing) = (false, true);
        }
        self.settle()
    }

    fn note(&mut self, text: &str) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.3} -- {text}", self.now as f64 / MILLI as f64));
        }
    }

    fn act(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Write(side, length) if !self.apps[side].closing => {
                let room = 290_000 - (self.apps[side].written + self.apps[side].waiting).min(290_000);
                self.apps[side].waiting += u64::from(length).min(room);
            }
            // For the third host of twins only.
            Op::Write(..) | Op::Answer(..) => {}
            Op::Pause(side) => self.apps[side].paused = true,
            Op::Read(side, length) => {
                if let Some(bytes) = self.sides[side].read(self.now, u64::from(length)) {
                    self.compare(side, &bytes)?;
                }
            }
            Op::Resume(side) => self.apps[side].paused = false,
            Op::Close(side) => self.apps[side].closing = true,
            Op::Abort(side) => self.abort(side),
            Op::Weather(path, weather) => {
                let path = path % self.network.weather.len();
                self.network.weather[path] = weather;
            }
            Op::Strip(side) => self.network.strip[side] = true,
            Op::Act(side, action) => self.sides[side].act(self.now, action),
            Op::Lie(lie, count) => self.network.lie = self.liar.map(|side| (side, lie, count)),
            Op::Change(side, count) => (self.network.changes[side], self.changes) = (count, true),
            Op::Down(side, path) => self.take_away(side, path),
            Op::Up(side, path) => self.bring_back(side, usize::from(path) % self.network.weather.len()),
        }
        Ok(())
    }

    /// A side loses an address. Without another subflow its connection may fail.
    fn take_away(&mut self, side: usize, path: u8) {
        let path = path % self.network.weather.len() as u8;
        if !self.network.take_away(side, usize::from(path)) {
            return;
        }
        let (ours, theirs) =
            (self.sides[side].lives_beside(Some(path), None), self.sides[1 - side].lives_beside(None, Some(path)));
        self.cut |= !(ours && theirs);
        self.sides[side].address_down(self.now, path);
    }

    fn bring_back(&mut self, side: usize, path: usize) {
        if self.network.bring_back(side, path) {
            self.sides[side].address_up(self.now, path as u8, address(self.v6, side, path));
        }
    }

    /// An application aborts, if it still has a connection.
    pub fn abort(&mut self, side: usize) {
        if self.sides[side].is_open() && self.sides[side].ending().is_none() {
            self.sides[side].abort(self.now);
            self.apps[side].aborted = true;
        }
    }

    /// Processes the next event up to `end`; returns whether there was one.
    ///
    /// # Errors
    /// Names the property that does not hold.
    pub fn step(&mut self, end: Nanos) -> Result<bool, String> {
        let arrival = self.network.next();
        let timers = [self.sides[0].poll_timeout(), self.sides[1].poll_timeout()];
        let next = arrival.min(timers[0]).min(timers[1]);
        if next > end || next == Nanos::MAX {
            self.now = self.now.max(end);
            return Ok(false);
        }
        self.steps += 1;
        self.at_once = if next <= self.now { self.at_once + 1 } else { 0 };
        if self.steps > MOST_STEPS || self.at_once > 2 * MOST_AT_ONCE {
            return Err(format!("no end: {} steps, {} of them now", self.steps, self.at_once));
        }
        self.now = self.now.max(next);
        if arrival <= self.now {
            let has_ended = [0, 1].map(|side| self.sides[side].ending().is_some());
            if let Some((to, packet)) = self.network.take(has_ended) {
                self.told_of_fallback[to] |= tells_of_fallback(&packet.segment);
                self.sides[to].handle(self.now, packet);
            }
        } else {
            for (side, due) in timers.into_iter().enumerate() {
                if due <= self.now {
                    self.sides[side].handle_timeout(self.now);
                }
            }
        }
        self.settle()?;
        Ok(true)
    }

    /// Drains the outputs of both sides, and lets the applications read and write.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn settle(&mut self) -> Result<(), String> {
        for side in [0, 1] {
            loop {
                let mut burst = 0;
                while let Some(packet) = self.sides[side].poll_transmit(self.now) {
                    burst += 1;
                    if burst > MOST_AT_ONCE {
                        return Err(format!("side {side} sends without end"));
                    }
                    self.dispatch(side, packet)?;
                }
                let busy = self.read(side)? | self.write(side);
                if !busy && burst == 0 {
                    break;
                }
            }
            self.sides[side].check(self.apps[side].read).map_err(|why| format!("side {side}: {why}"))?;
        }
        Ok(())
    }

    fn dispatch(&mut self, from: usize, packet: Packet) -> Result<(), String> {
        self.wire.clear();
        packet.emit(&mut self.wire).map_err(|error| format!("side {from}: {error}: {packet:?}"))?;
        self.count(&packet)?;
        let path = network::path_of(packet.ip.destination);
        if packet.ip.destination != address(self.v6, 1 - from, path) {
            return Err(format!("side {from} sends to {}, which nobody has", packet.ip.destination));
        }
        let line = self.lines.is_some().then(|| transcript::line(self.now, from, &packet));
        let word = self.network.send(self.now, from, packet);
        if let (Some(lines), Some(line)) = (&mut self.lines, line) {
            lines.push(format!("{line} {word}").trim_end().to_owned());
        }
        Ok(())
    }

    /// No packet storms: the number of packets in a second without progress is limited.
    fn count(&mut self, packet: &Packet) -> Result<(), String> {
        let number = self.now / (1_000 * MILLI);
        let read = self.apps[0].read + self.apps[1].read;
        if self.second.number != number {
            let before = if self.second.number + 1 == number { self.second.packets } else { 0 };
            self.second = Second { number, packets: 0, before, substance: false, read };
        }
        self.second.packets += 1;
        let control = packet.segment.flags.intersects(Flags(Flags::SYN.0 | Flags::FIN.0));
        self.second.substance |= control || !packet.segment.payload.is_empty() || read > self.second.read;
        // An accepted forged segment makes both ends acknowledge data that the other does not know.
        let bare = MOST_BARE + 2 * (self.second.before + self.network.forged);
        let unread = self.apps.iter().map(|app| app.written).sum::<u64>().saturating_sub(read);
        let most = if self.second.substance { MOST_IDLE + (unread / 4) as u32 } else { bare };
        if self.second.packets > most && read == self.second.read {
            return Err(format!("a storm: {} packets in second {number} for nothing", self.second.packets));
        }
        Ok(())
    }

    fn read(&mut self, side: usize) -> Result<bool, String> {
        if self.apps[side].paused {
            return Ok(false);
        }
        let mut busy = false;
        while let Some(bytes) = self.sides[side].read(self.now, u64::MAX) {
            self.compare(side, &bytes)?;
            busy = true;
        }
        Ok(busy)
    }

    /// Compares data that an application read with what the other wrote.
    fn compare(&mut self, side: usize, bytes: &Bytes) -> Result<(), String> {
        let (from, to) = (self.apps[side].read, self.apps[side].read + bytes.len() as u64);
        let sent = if self.liar == Some(1 - side) { self.sent } else { Sent::AsWritten };
        if sent == Sent::Anything {
            self.apps[side].read = to;
            return Ok(());
        }
        if to > self.apps[1 - side].written {
            self.misread = Some(side);
            return Err(format!("side {side} read {to} bytes of {} written", self.apps[1 - side].written));
        }
        // With checksums changed mappings are refused; in plain TCP, also after a fallback, changes go unnoticed.
        let unnoticed = self.changes && (!self.checksums || self.sides[side].is_plain());
        let is_right = |(written, read): (&u8, &u8)| {
            written == read || sent == Sent::Overlaid || (unnoticed && *read == network::changed(*written))
        };
        let written = &pattern(1 - side)[from as usize..to as usize];
        if !written.iter().zip(bytes).all(is_right) {
            self.misread = Some(side);
            return Err(format!("side {side} read wrong bytes between {from} and {to}"));
        }
        self.apps[side].read = to;
        Ok(())
    }

    fn write(&mut self, side: usize) -> bool {
        let app = &mut self.apps[side];
        if app.closed || app.aborted || !self.sides[side].is_open() || self.sides[side].ending().is_some() {
            return false;
        }
        if app.waiting > 0 {
            let (from, to) = (app.written, app.written + app.waiting.min(20_000));
            let taken = self.sides[side].write(self.now, &pattern(side).slice(from as usize..to as usize)) as u64;
            app.written += taken;
            app.waiting -= taken;
            return taken > 0;
        }
        if app.closing {
            app.closed = true;
            self.sides[side].close(self.now);
            return true;
        }
        false
    }

    /// Whether both applications know the end; a server without a connection counts as well.
    pub fn is_over(&self) -> bool {
        self.sides[0].ending().is_some() && (self.sides[1].ending().is_some() || !self.sides[1].is_open())
    }

    /// Steps until the end or the time limit.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn run_to_end(&mut self, span: Nanos) -> Result<(), String> {
        let end = self.now.saturating_add(span);
        while !self.is_over() && self.step(end)? {}
        Ok(())
    }

    /// Lets time pass until no event is left.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn run_out(&mut self, span: Nanos) -> Result<(), String> {
        let end = self.now.saturating_add(span);
        while !self.sides.iter().all(|side| side.is_gone()) && self.step(end)? {}
        Ok(())
    }

    /// The states of both sides as text for users.
    pub fn describe(&self) -> String {
        let mut text = format!("at {:.3} s", self.now as f64 / 1e9);
        for (side, app) in self.sides.iter().zip(&self.apps) {
            text += &format!(
                "\nwritten {} waiting {} closed {} aborted {} read {} end {}; {}",
                app.written,
                app.waiting,
                app.closed,
                app.aborted,
                app.read,
                side.at_end(),
                side.describe(self.now)
            );
        }
        text
    }

    /// Whether a side finished with all data of the other.
    pub fn is_whole(&self, side: usize) -> bool {
        let (app, peer) = (&self.apps[side], &self.apps[1 - side]);
        self.sides[side].ending() == Some(Ending::Finished)
            && app.read == peer.written
            && peer.waiting == 0
            && peer.closed
            && app.closed
            && self.sides[side].at_end()
    }
}

/// Whether a segment has MP_FAIL or an infinite mapping.
fn tells_of_fallback(segment: &Segment) -> bool {
    let mapping = segment.options.dss.as_ref().filter(|dss| !dss.data_fin).and_then(|dss| dss.mapping.as_ref());
    let fails = segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::Fail { .. }));
    fails || mapping.is_some_and(|mapping| mapping.length == 0)
}
