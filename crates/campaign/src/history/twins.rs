//! Two clients with the same key open connections to one listener: it sees equal tokens and first data sequence
//! numbers. The connections must not affect each other (RFC 8684, sections 3.1 and 3.2).

use super::engine::{PORT, listener};
use super::network::{Weather, address, path_of};
use super::world::pattern;
use super::{History, Kind, Op, transcript};
use crate::literal::{Action, End, MILLI, Nanos, Peer};
use crate::luck::Luck;
use anabranch_mptcp::{CloseCause, Endpoint, Event};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;
use anabranch_wire::Packet;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The server, and the two clients: their indices in the addresses of a path.
const HOSTS: [usize; 3] = [1, 0, 2];
const SERVER: usize = 0;
/// Limit of octets written by one application.
const MOST_OCTETS: usize = 290_000;
/// Time limit after the last event.
const SPAN: Nanos = 400_000 * MILLI;
/// Limit of steps.
const MOST_STEPS: u32 = 300_000;

/// Octets written and read by a client and by the server's connection to it.
#[derive(Default)]
struct Twin {
    id: Option<ConnectionId>,
    /// Octets to write, by the client and by the server.
    length: [usize; 2],
    /// Octets read, by the client and by the server.
    read: [usize; 2],
    /// Octets that the server has passed to the engine.
    given: usize,
    /// The server has closed its direction.
    closed: bool,
    cause: Option<CloseCause>,
}

/// A history of twins in progress.
pub struct Scene {
    luck: Luck,
    now: Nanos,
    server: Endpoint,
    clients: [Peer; 2],
    twins: [Twin; 2],
    v6: bool,
    delays: Vec<Nanos>,
    weather: Vec<Weather>,
    /// All events are done: applications close after writing everything.
    closing: bool,
    in_flight: BTreeMap<(Nanos, u32), (usize, Packet)>,
    count: u32,
    steps: u32,
    /// A line for each packet, if recorded.
    pub lines: Option<Vec<String>>,
}

impl History {
    /// The history of twins for a seed. Sides 0 and 1 are the two clients.
    pub fn draw_twins(seed: u64) -> Self {
        let mut luck = Luck::new(seed ^ 0x0074_7769);
        let mut history = Self::draw(Kind::Twins, seed);
        for settings in &mut history.sides {
            for name in ["multipath", "same_key", "refuses"] {
                settings.set_plain(name);
            }
        }
        history.v6 = luck.one_in(3);
        (history.strip, history.fates) = ([false; 2], Vec::new());
        history.ops.clear();
        for which in [0, 1] {
            history.ops.push((0, Op::Write(which, luck.between(1, 20_000) as u32)));
            history.ops.push((0, Op::Answer(which, luck.between(1, 20_000) as u32)));
        }
        for path in 0..history.delays.len() {
            let late = luck.pick(&[0, 25, 25, 100]);
            let weather = Weather {
                loss: luck.pick(&[0, 21, 21, 60]),
                twice: luck.pick(&[0, 0, 30]),
                late,
                late_by: 100,
                down: false,
            };
            history.ops.push((0, Op::Weather(path, weather)));
        }
        let mut at = 0;
        for _ in 0..luck.between(0, 15) {
            at += luck.between(1, 400) as u32;
            history.ops.push((at, draw_op(&mut luck)));
        }
        history
    }
}

fn draw_op(luck: &mut Luck) -> Op {
    let (which, number) = (luck.below(2) as usize, luck.below(4) as u8);
    let action = match luck.below(10) {
        0..4 => Action::Join(number),
        4 | 5 => Action::Announce(number),
        6 => Action::Withdraw(number),
        7 => Action::Priority(number),
        8 => Action::Again,
        _ => return Op::Answer(which, luck.between(1, 3_000) as u32),
    };
    Op::Act(which, action)
}

impl Scene {
    /// Before the first packet.
    pub fn new(history: &History, record: bool) -> Self {
        let (v6, seed) = (history.v6, history.seed);
        let paths = 0..history.delays.len();
        let addresses = |host: usize| paths.clone().map(|path| address(v6, HOSTS[host], path)).collect::<Vec<IpAddr>>();
        let [one, other] = history.sides.clone();
        let one = Peer::new(one, seed, addresses(1), true);
        let other = Peer::new(other, !seed, addresses(2), true).with_key_of(&one);
        Self {
            luck: Luck::new(seed),
            now: 0,
            server: listener(seed, &addresses(SERVER)),
            clients: [one, other],
            twins: Default::default(),
            v6,
            delays: history.delays.iter().map(|micros| u64::from(*micros) * 1_000).collect(),
            weather: vec![Weather::default(); history.delays.len()],
            closing: false,
            in_flight: BTreeMap::new(),
            count: 0,
            steps: 0,
            lines: record.then(Vec::new),
        }
    }

    /// Octets that were read.
    pub fn octets(&self) -> u64 {
        self.twins.iter().flat_map(|twin| twin.read).sum::<usize>() as u64
    }

    /// Plays the history to its end.
    ///
    /// # Errors
    /// Names the property that does not hold.
    pub fn play(&mut self, history: &History) -> Result<(), String> {
        let remote = SocketAddr::new(address(self.v6, HOSTS[SERVER], 0), PORT);
        self.clients.iter_mut().for_each(|client| client.connect(0, remote));
        self.settle()?;
        for (due, op) in &history.ops {
            while self.step(u64::from(*due) * MILLI)? {}
            self.note(&format!("{op:?}"));
            self.act(*op)?;
            self.settle()?;
        }
        self.note("calm, all close");
        self.weather.fill(Weather::default());
        self.closing = true;
        self.clients.iter_mut().for_each(|client| client.close(self.now));
        self.settle()?;
        let end = self.now + SPAN;
        while !self.is_over() {
            if !self.step(end)? {
                return Err(format!("no end: {}", self.describe()));
            }
        }
        self.judge()
    }

    fn act(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Write(which, length) => {
                let from = self.twins[which].length[0];
                let to = (from + length as usize).min(MOST_OCTETS);
                self.twins[which].length[0] = to;
                self.clients[which].write(self.now, &pattern(which)[from..to]);
            }
            Op::Answer(which, length) => {
                let most = &mut self.twins[which].length[1];
                *most = (*most + length as usize).min(MOST_OCTETS);
            }
            Op::Act(which, action) => self.clients[which].act(self.now, action),
            Op::Weather(path, weather) => {
                let path = path % self.weather.len();
                self.weather[path] = weather;
            }
            other => return Err(format!("twins know no {other:?}")),
        }
        Ok(())
    }

    fn note(&mut self, text: &str) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.3} -- {text}", self.now as f64 / MILLI as f64));
        }
    }

    /// Processes the next event up to `end`; returns whether there was one.
    fn step(&mut self, end: Nanos) -> Result<bool, String> {
        let arrival = self.in_flight.first_key_value().map_or(Nanos::MAX, |((due, _), _)| *due);
        let server = self.server.poll_timeout().as_nanos();
        let timers = [server, self.clients[0].poll_timeout(), self.clients[1].poll_timeout()];
        let next = timers.into_iter().fold(arrival, Nanos::min).max(self.now);
        if next > end || next == Nanos::MAX {
            self.now = self.now.max(end);
            return Ok(false);
        }
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(format!("no end after {} steps: {}", self.steps, self.describe()));
        }
        self.now = next;
        if arrival <= self.now {
            if let Some((_, (to, packet))) = self.in_flight.pop_first() {
                match to {
                    SERVER => self.server.handle_packet(Instant::from_nanos(self.now), packet),
                    client => self.clients[client - 1].handle(self.now, &packet),
                }
            }
        } else if server <= self.now {
            self.server.handle_timeout(Instant::from_nanos(self.now));
        }
        let due = self.clients.iter_mut().filter(|client| client.poll_timeout() <= self.now);
        due.for_each(|client| client.handle_timeout(self.now));
        self.settle()?;
        Ok(true)
    }

    /// Drains all outputs, and lets the applications write, read and close.
    fn settle(&mut self) -> Result<(), String> {
        let now = Instant::from_nanos(self.now);
        loop {
            let before = (self.count, self.twins[0].read, self.twins[1].read, self.twins[0].given, self.twins[1].given);
            while let Some(packet) = self.server.poll_transmit(now) {
                self.send(SERVER, packet);
            }
            self.hear()?;
            for which in [0, 1] {
                while let Some(packet) = self.clients[which].poll_transmit() {
                    self.send(1 + which, packet);
                }
                self.work(which)?;
            }
            if before == (self.count, self.twins[0].read, self.twins[1].read, self.twins[0].given, self.twins[1].given)
            {
                return Ok(());
            }
        }
    }

    /// Runs the applications of a client and of the connection to it.
    fn work(&mut self, which: usize) -> Result<(), String> {
        let (twin, client) = (&mut self.twins[which], &mut self.clients[which]);
        while let Some(bytes) = client.read(self.now, u64::MAX) {
            compare(which, 1 - which, &mut twin.read[0], &bytes)?;
        }
        let Some(id) = twin.id else { return Ok(()) };
        let now = Instant::from_nanos(self.now);
        while let Some(bytes) = self.server.read(now, id, usize::MAX) {
            compare(which, which, &mut twin.read[1], &bytes)?;
        }
        if twin.given < twin.length[1] {
            let bytes = pattern(1 - which).slice(twin.given..twin.length[1]);
            twin.given += self.server.write(now, id, bytes).unwrap_or(0);
        }
        if self.closing && !twin.closed && twin.given == twin.length[1] {
            twin.closed = true;
            let _ = self.server.close(now, id);
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<(), String> {
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Accepted { connection, remote, .. } => {
                    let twin = &mut self.twins[usize::from(remote.ip() == address(self.v6, HOSTS[2], 0))];
                    if twin.id.replace(connection).is_some() {
                        return Err("a connection was accepted twice".into());
                    }
                }
                Event::Closed(id, cause) => {
                    let ours = self.twins.iter_mut().find(|twin| twin.id == Some(id));
                    ours.into_iter().for_each(|twin| twin.cause = Some(cause));
                }
                _ => {}
            }
        }
        while self.server.poll_trace().is_some() {}
        Ok(())
    }

    /// Sends a packet, unless it is lost.
    fn send(&mut self, from: usize, packet: Packet) {
        self.count += 1;
        let path = path_of(packet.ip.destination);
        let is_at = |host: &usize| *host != from && address(self.v6, HOSTS[*host], path) == packet.ip.destination;
        let to = (0..HOSTS.len()).find(is_at);
        let weather = self.weather[path.min(self.weather.len() - 1)];
        let lost = weather.down || self.luck.parts(weather.loss) || to.is_none();
        if let Some(lines) = &mut self.lines {
            let line = transcript::line(self.now, usize::from(from == SERVER), &packet);
            let twin = if from == SERVER { to.unwrap_or_default() } else { from };
            lines.push(format!("{line} twin {twin}{}", if lost { " lost" } else { "" }));
        }
        let Some(to) = to.filter(|_| !lost) else { return };
        let due = self.now + self.delays[path.min(self.delays.len() - 1)];
        let late_by = u64::from(weather.late_by) * MILLI;
        if self.luck.parts(weather.twice) {
            let later = self.luck.below(late_by);
            self.in_flight.insert((due + later, self.count), (to, packet.clone()));
            self.count += 1;
        }
        let later = if self.luck.parts(weather.late) { self.luck.below(late_by) } else { 0 };
        self.in_flight.insert((due + later, self.count), (to, packet));
    }

    fn is_over(&self) -> bool {
        self.clients.iter().all(|client| client.ended().is_some()) && self.twins.iter().all(|twin| twin.cause.is_some())
    }

    fn judge(&self) -> Result<(), String> {
        let whole =
            |twin: &Twin| twin.cause == Some(CloseCause::Finished) && twin.read == [twin.length[1], twin.length[0]];
        let ended = self.clients.iter().all(|client| client.ended() == Some(End::Finished));
        if ended && self.twins.iter().all(whole) { Ok(()) } else { Err(self.describe()) }
    }

    fn describe(&self) -> String {
        let mut text = format!("at {:.3} s", self.now as f64 / 1e9);
        for (twin, client) in self.twins.iter().zip(&self.clients) {
            text += &format!("\n{:?} of {:?} read, {:?}; {}", twin.read, twin.length, twin.cause, client.describe());
        }
        text
    }
}

/// Compares data read with what the client's twin, or the server, wrote.
fn compare(which: usize, wrote: usize, read: &mut usize, bytes: &[u8]) -> Result<(), String> {
    let to = *read + bytes.len();
    if pattern(wrote).get(*read..to) != Some(bytes) {
        return Err(format!("wrong octets between {read} and {to} on the connection of twin {which}"));
    }
    *read = to;
    Ok(())
}
