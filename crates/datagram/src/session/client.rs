//! A client: handshakes, probes its paths, renews keys, and starts a new session when the server has lost the old one.

use super::epoch::Epoch;
use super::noise::Initiator;
use super::outbox::Outbox;
use super::path_mtu::PathMtu;
use super::peer::{Heard, Out, Path, Peer, What, stamp};
use crate::datagram::{Datagram, Unreachable};
use crate::format::{HANDSHAKE, Handshake, Message, Outer, hello, read_outer};
use anabranch_policy::datagram::DatagramPolicy;
use anabranch_policy::time::{Duration, Instant};
use core::net::SocketAddr;

/// Probe interval while datagrams of programs are sent or received,
const PROBE: Duration = Duration::from_millis(250);
/// and otherwise. Observed NATs drop an idle UDP flow after 30 s (see RFC 4787, REQ-5).
const PROBE_IDLE: Duration = Duration::from_secs(5);
/// How long after a program's last datagram the shorter interval applies.
const ACTIVE: Duration = Duration::from_secs(5);
/// A path is unusable when a probe is unanswered for this time (three probes) and two round trips.
const UNANSWERED: Duration = Duration::from_millis(750);
/// After this time without any arrival on any path a handshake is tried: the server may have been restarted.
const SILENCE: Duration = Duration::from_secs(2);
/// Delay before the first repetition of the first message; it doubles each time,
const FIRST_REPEAT: Duration = Duration::from_millis(250);
/// up to this.
const LAST_REPEAT: Duration = Duration::from_secs(2);

/// The state of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientState {
    /// No answer so far.
    Beginning,
    /// The server answers over at least one path.
    Connected,
    /// The server has answered before, but does not answer now.
    Lost,
}

/// Counters of programs' datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Datagrams that no path could carry.
    pub unsent: u64,
    /// Duplicates removed.
    pub duplicates: u64,
    /// Datagrams dropped because the program did not read them in time.
    pub untaken: u64,
    /// Datagrams of which not all pieces arrived in time.
    pub unfinished: u64,
}

/// A first message that waits for the server's answer.
struct Hello {
    initiator: Initiator,
    datagram: [u8; HANDSHAKE + 1],
    next: Instant,
    pause: Duration,
}

/// The client's state of a path, beside what both ends keep.
#[derive(Debug, Default)]
struct Lane {
    open: bool,
    outbox: Outbox<()>,
    /// When the first unanswered probe was sent.
    unanswered: Option<Instant>,
}

/// The outboxes of all paths.
#[derive(Debug, Default)]
struct Lanes(Vec<Lane>);

impl Out for Lanes {
    fn push(&mut self, path: u8, write: impl FnOnce(&mut Vec<u8>)) -> Option<usize> {
        self.0.get_mut(usize::from(path)).filter(|lane| lane.open)?.outbox.push((), write)
    }
}

/// A client's session.
pub struct ClientSession {
    key: [u8; 32],
    /// A random number by which the server identifies the client across keys.
    number: u64,
    peer: Peer,
    lanes: Lanes,
    current: Option<Epoch>,
    previous: Option<Epoch>,
    hello: Option<Hello>,
    /// The server's number for this client; it changes when the server has lost the session.
    known_as: Option<u64>,
    heard: Instant,
    active: Instant,
    probe_due: Instant,
    /// Datagrams that failed authentication or were replayed.
    pub rejected: u64,
    /// Completed handshakes.
    pub handshakes: u64,
}

impl ClientSession {
    /// A client with the number `number` and without paths.
    pub fn new(key: [u8; 32], number: u64, policy: Box<dyn DatagramPolicy>, now: Instant) -> Self {
        Self {
            key,
            number,
            peer: Peer::new(policy),
            lanes: Lanes::default(),
            current: None,
            previous: None,
            hello: None,
            known_as: None,
            heard: now,
            active: now,
            probe_due: now,
            rejected: 0,
            handshakes: 0,
        }
    }

    /// Adds or replaces an uplink.
    pub fn open_path(&mut self, number: u8, now: Instant) {
        let Some(path) = self.peer.add_path(number) else { return };
        path.mtu = PathMtu::default();
        let index = usize::from(number);
        if self.lanes.0.len() <= index {
            self.lanes.0.resize_with(index + 1, Lane::default);
        }
        if let Some(lane) = self.lanes.0.get_mut(index) {
            *lane = Lane { open: true, ..Lane::default() };
        }
        self.probe_due = now;
        if let Some(hello) = &mut self.hello {
            (hello.next, hello.pause) = (now, FIRST_REPEAT);
        }
    }

    /// Marks a path as reserve, used only while no other is usable, or clears the mark.
    pub(crate) fn set_reserve(&mut self, number: u8, reserve: bool, now: Instant) {
        if let Some((_, path)) = self.peer.paths_mut().find(|(other, _)| *other == number)
            && path.reserve != reserve
        {
            path.reserve = reserve;
            // The next probe tells the server.
            self.probe_due = now;
        }
    }

    /// Removes an uplink.
    pub fn close_path(&mut self, number: u8, now: Instant) {
        if let Some(lane) = self.lanes.0.get_mut(usize::from(number)) {
            *lane = Lane::default();
        }
        if let Some((_, path)) = self.peer.paths_mut().find(|(other, _)| *other == number) {
            path.usable = false;
            // The probe tells the server, which would send to it until the next.
            self.probe_due = now;
        }
    }

    /// Sends a program's datagram. Returns whether a path accepted it.
    pub fn send(&mut self, now: Instant, datagram: &Datagram) -> bool {
        self.wake(now);
        let Some(epoch) = self.current.as_mut().filter(|epoch| !epoch.is_over(now)) else {
            self.peer.unsent += 1;
            return false;
        };
        self.peer.send(now, epoch, datagram, &mut self.lanes)
    }

    /// Records activity: probes become more frequent.
    fn wake(&mut self, now: Instant) {
        self.active = now;
        self.probe_due = self.probe_due.min(now + PROBE);
    }

    /// Handles a datagram received over a path.
    pub fn handle_datagram(&mut self, now: Instant, number: u8, datagram: &mut [u8]) {
        match read_outer(datagram) {
            Some(Outer::Answer(answer)) => {
                let answer = *answer;
                self.handle_answer(now, &answer);
            }
            Some(Outer::Sealed(header)) if header.path == number => {
                let epochs = self.current.iter_mut().chain(&mut self.previous);
                let epoch = epochs.into_iter().find(|epoch| epoch.id() == header.session && !epoch.is_over(now));
                let heard = epoch.and_then(|epoch| self.peer.open(now, epoch, &header, datagram));
                match heard {
                    Some(heard) => self.handle_heard(now, number, heard),
                    None => self.rejected += 1,
                }
            }
            _ => self.rejected += 1,
        }
    }

    fn handle_answer(&mut self, now: Instant, answer: &Handshake) {
        let Some(hello) = &mut self.hello else { return };
        let Ok((epoch, known_as)) = hello.initiator.finish(answer, now) else {
            self.rejected += 1;
            return;
        };
        if self.known_as.replace(known_as).is_some_and(|before| before != known_as) {
            // Datagrams in flight from the old session are discarded: their counts and sequence numbers would mix with
            // the new ones.
            self.peer.restart();
            self.current = None;
        }
        self.previous = self.current.replace(epoch);
        self.hello = None;
        self.handshakes += 1;
        self.heard = now;
        // The server sends with the new keys once it has received a datagram under them.
        self.probe_due = now;
    }

    fn handle_heard(&mut self, now: Instant, number: u8, heard: Heard) {
        self.heard = now;
        match heard.what {
            What::Data => self.wake(now),
            What::Answer(echo) => {
                let sample = Duration::from_micros(stamp(now).wrapping_sub(echo).into());
                let lane = self.lanes.0.get_mut(usize::from(number));
                lane.into_iter().for_each(|lane| lane.unanswered = None);
                if let Some((_, path)) = self.peer.paths_mut().find(|(other, _)| *other == number) {
                    path.usable = true;
                    path.round_trip = Some(smoothed(path.round_trip, sample));
                }
            }
            // Goodbye from the server: another server may replace it.
            What::Close => self.begin_hello(now),
            What::Size(size) => {
                if let Some(epoch) = &mut self.current {
                    self.peer.answer_size(now, epoch, number, size, &mut self.lanes);
                }
            }
            What::Probe(..) | What::Report(_) | What::Done | What::Unknown => {}
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.previous = self.previous.take().filter(|epoch| !epoch.is_over(now));
        self.current = self.current.take().filter(|epoch| !epoch.is_over(now));
        if self.needs_hello(now) {
            self.begin_hello(now);
        }
        if let Some(hello) = self.hello.as_mut().filter(|hello| hello.next <= now) {
            for lane in self.lanes.0.iter_mut().filter(|lane| lane.open) {
                lane.outbox.push((), |out| out.extend(hello.datagram));
            }
            hello.next = now + hello.pause;
            hello.pause = (hello.pause + hello.pause).min(LAST_REPEAT);
        }
        self.judge_paths(now);
        if self.probe_due <= now {
            self.probe(now);
        }
        if let Some(epoch) = &mut self.current {
            self.peer.probe_sizes(now, epoch, &mut self.lanes);
        }
        if self.peer.report_is_due(now)
            && let (Some(epoch), Some(path)) = (&mut self.current, self.peer.best_path(now))
        {
            self.peer.tell(now, epoch, path, &mut self.lanes, Message::Report);
        }
        self.peer.handle_timeout(now);
    }

    fn needs_hello(&self, now: Instant) -> bool {
        let long_asked = |lane: &Lane| lane.unanswered.is_some_and(|since| since + SILENCE <= now);
        let silent = || self.heard + SILENCE <= now && self.lanes.0.iter().any(long_asked);
        self.hello.is_none() && self.current.as_ref().is_none_or(|epoch| epoch.is_old(now) || silent())
    }

    fn begin_hello(&mut self, now: Instant) {
        if let (None, Ok((initiator, message))) = (&self.hello, Initiator::new(&self.key, self.number)) {
            self.hello = Some(Hello { initiator, datagram: hello(&message), next: now, pause: FIRST_REPEAT });
        }
    }

    fn judge_paths(&mut self, now: Instant) {
        for (number, path) in self.peer.paths_mut() {
            let lane = self.lanes.0.get(usize::from(number));
            if path.usable && lane.is_some_and(|lane| now >= gives_up(lane, path)) {
                path.usable = false;
                self.probe_due = self.probe_due.min(now);
            }
        }
    }

    fn probe(&mut self, now: Instant) {
        let waits = self.lanes.0.iter().any(|lane| lane.unanswered.is_some());
        let often = waits || now.since(self.active) < ACTIVE;
        self.probe_due = now + if often { PROBE } else { PROBE_IDLE };
        let Some(epoch) = &mut self.current else { return };
        for number in 0..self.lanes.0.len() {
            let Some(lane) = self.lanes.0.get_mut(number).filter(|lane| lane.open) else { continue };
            lane.unanswered.get_or_insert(now);
            self.peer.tell(now, epoch, number as u8, &mut self.lanes, Message::Probe);
        }
        // An answer takes one round trip; if none arrives, the next probe follows soon.
        if self.lanes.0.iter().any(|lane| lane.open) {
            self.probe_due = self.probe_due.min(now + PROBE_IDLE);
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        let hello = self.hello.as_ref().map_or(Instant::NEVER, |hello| hello.next);
        let renewal = match (&self.hello, &self.current) {
            (Some(_), _) => Instant::NEVER,
            (None, Some(epoch)) => epoch.renew_at(),
            (None, None) => Instant::ZERO,
        };
        let paths = self
            .peer
            .paths()
            .filter(|(_, path)| path.usable)
            .filter_map(|(number, path)| self.lanes.0.get(usize::from(number)).map(|lane| gives_up(lane, path)));
        let paths = paths.min().unwrap_or(Instant::NEVER);
        hello.min(renewal).min(paths).min(self.probe_due).min(self.peer.poll_timeout())
    }

    /// The next datagram for a program.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.peer.poll_datagram()
    }

    /// The next report of an undelivered datagram.
    pub(crate) fn poll_unreachable(&mut self) -> Option<Unreachable> {
        self.peer.poll_unreachable()
    }

    /// Records that the host refuses datagrams of `size` bytes on a path.
    pub fn too_large(&mut self, number: u8, size: usize, now: Instant) {
        self.peer.too_large(number, size, now);
    }

    /// The largest payload between these addresses that some path carries in one datagram.
    pub fn largest_whole(&self, inside: SocketAddr, outside: SocketAddr) -> usize {
        self.peer.largest_whole(inside, outside)
    }

    /// The datagrams to send over a path.
    pub fn outbox(&mut self, number: u8) -> Option<&mut Outbox<()>> {
        self.lanes.0.get_mut(usize::from(number)).map(|lane| &mut lane.outbox)
    }

    /// Sends a goodbye on all paths.
    pub fn close(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.current {
            self.peer.close(now, epoch, &mut self.lanes);
        }
    }

    /// The state of the session.
    pub fn state(&self) -> ClientState {
        match (&self.known_as, self.peer.paths().any(|(_, path)| path.usable)) {
            (None, _) => ClientState::Beginning,
            (Some(_), true) => ClientState::Connected,
            (Some(_), false) => ClientState::Lost,
        }
    }

    /// All paths.
    #[cfg(test)]
    pub fn paths(&self) -> impl Iterator<Item = (u8, &Path)> {
        self.peer.paths()
    }

    /// A path.
    pub fn path(&self, number: u8) -> Option<&Path> {
        self.peer.path(number)
    }

    /// The counters of programs' datagrams.
    pub fn counts(&self) -> Counts {
        let (unsent, untaken) = (self.peer.unsent, self.peer.untaken);
        Counts { unsent, untaken, duplicates: self.peer.duplicates(), unfinished: self.peer.unfinished() }
    }
}

/// The deadline for an answer, after which the path is unusable.
fn gives_up(lane: &Lane, path: &Path) -> Instant {
    let round_trip = path.round_trip.unwrap_or(Duration::ZERO);
    lane.unanswered.map_or(Instant::NEVER, |since| since + UNANSWERED + round_trip + round_trip)
}

/// Smoothing of RFC 6298, section 2: a weight of 1/8 for each sample.
fn smoothed(before: Option<Duration>, sample: Duration) -> Duration {
    before.map_or(sample, |before| Duration::from_nanos((before.as_nanos() / 8) * 7 + sample.as_nanos() / 8))
}
