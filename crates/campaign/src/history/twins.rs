//! Two clients that chose the same key open connections to one listener: their tokens and first data sequence numbers are the
//! same for it. Neither connection may hear of the other (RFC 8684, sections 3.1 and 3.2).

use super::engine::{PORT, listener};
use super::network::{address, path_of};
use super::world::pattern;
use crate::literal::choices::{CHOICES, Choice};
use crate::literal::{Action, End, MILLI, Nanos, Peer};
use crate::luck::Luck;
use crate::settings::Settings;
use anabranch_mptcp::{CloseCause, Endpoint, Event};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;
use anabranch_wire::Packet;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The server, and the two clients: where they are in the addresses of a path.
const HOSTS: [usize; 3] = [1, 0, 2];
const SERVER: usize = 0;
/// Longest time.
const SPAN: Nanos = 400_000 * MILLI;
/// Most that is done.
const MOST_STEPS: u32 = 300_000;

/// What a client and the server's connection with it have written and read.
#[derive(Default)]
struct Twin {
    id: Option<ConnectionId>,
    /// To be written, by the client and by the server.
    length: [usize; 2],
    /// Read, by the client and by the server.
    read: [usize; 2],
    /// Given to the server.
    given: usize,
    cause: Option<CloseCause>,
}

struct Scene {
    luck: Luck,
    now: Nanos,
    server: Endpoint,
    clients: [Peer; 2],
    twins: [Twin; 2],
    v6: bool,
    delay: Nanos,
    in_flight: BTreeMap<(Nanos, u32), (usize, Packet)>,
    count: u32,
}

/// Plays what follows from a seed.
///
/// # Errors
/// Says what does not hold.
pub fn play(seed: u64) -> Result<(), String> {
    let mut scene = Scene::new(seed);
    for client in &mut scene.clients {
        client.connect(0, SocketAddr::new(address(scene.v6, HOSTS[SERVER], 0), PORT));
    }
    let mut next_act = 0;
    for _ in 0..MOST_STEPS {
        scene.settle()?;
        if scene.is_over() {
            return scene.judge();
        }
        if next_act <= scene.now && scene.now < 3_000 * MILLI {
            next_act = scene.now + scene.luck.between(1, 400) * MILLI;
            scene.act();
            continue;
        }
        if !scene.step() {
            break;
        }
    }
    Err(format!("no end: {}", scene.describe()))
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mut luck = Luck::new(seed ^ 0x0074_7769);
        let (v6, paths) = (luck.one_in(3), luck.between(1, 3) as usize);
        let addresses = |host: usize| (0..paths).map(|path| address(v6, HOSTS[host], path)).collect::<Vec<IpAddr>>();
        let mut settings = [(); 2].map(|()| Settings::random(CHOICES, &mut luck));
        for name in ["multipath", "same_key", "refuses"] {
            let place = CHOICES.iter().position(|(known, _)| *known == name).unwrap_or(Choice::Multipath as usize);
            settings.iter_mut().for_each(|settings| settings.make_plain(place));
        }
        let [one, other] = settings;
        let one = Peer::new(one, seed, addresses(1), true);
        let other = Peer::new(other, !seed, addresses(2), true).with_key_of(&one);
        let twins = [(); 2].map(|()| Twin {
            length: [luck.between(1, 20_000) as usize, luck.between(1, 20_000) as usize],
            ..Twin::default()
        });
        let delay = luck.pick(&[1, 10, 60]) * MILLI;
        let server = listener(seed, &addresses(SERVER));
        let in_flight = BTreeMap::new();
        Self { luck, now: 0, server, clients: [one, other], twins, v6, delay, in_flight, count: 0 }
    }

    /// A client does something of its own accord.
    fn act(&mut self) {
        let number = self.luck.below(4) as u8;
        let actions = [Action::Join(number), Action::Join(number), Action::Announce(number), Action::Withdraw(number)];
        let action = self.luck.pick(&actions);
        let which = self.luck.below(2) as usize;
        self.clients[which].act(self.now, action);
    }

    fn step(&mut self) -> bool {
        let arrival = self.in_flight.first_key_value().map_or(Nanos::MAX, |((due, _), _)| *due);
        let server = self.server.poll_timeout().as_nanos();
        let timers = [server, self.clients[0].poll_timeout(), self.clients[1].poll_timeout()];
        let next = timers.into_iter().fold(arrival, Nanos::min).max(self.now);
        if next > SPAN {
            return false;
        }
        self.now = next;
        if arrival <= self.now {
            if let Some((_, (to, packet))) = self.in_flight.pop_first() {
                match to {
                    SERVER => self.server.handle_packet(Instant::from_nanos(self.now), packet),
                    client => self.clients[client - 1].handle(self.now, &packet),
                }
            }
            return true;
        }
        if server <= self.now {
            self.server.handle_timeout(Instant::from_nanos(self.now));
        }
        let due = self.clients.iter_mut().filter(|client| client.poll_timeout() <= self.now);
        due.for_each(|client| client.handle_timeout(self.now));
        true
    }

    /// Drains everybody, and lets the applications write, read and close.
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

    /// The applications of a client and of the connection with it.
    fn work(&mut self, which: usize) -> Result<(), String> {
        let (twin, client) = (&mut self.twins[which], &mut self.clients[which]);
        if twin.given == 0 {
            client.write(self.now, &pattern(which)[..twin.length[0]]);
            client.close(self.now);
            twin.given = 1;
        }
        while let Some(bytes) = client.read(self.now, u64::MAX) {
            compare(which, 1 - which, &mut twin.read[0], &bytes)?;
        }
        let Some(id) = twin.id else { return Ok(()) };
        let now = Instant::from_nanos(self.now);
        while let Some(bytes) = self.server.read(now, id, usize::MAX) {
            compare(which, which, &mut twin.read[1], &bytes)?;
        }
        let from = twin.given - 1;
        if from < twin.length[1] {
            let taken = self.server.write(now, id, pattern(1 - which).slice(from..twin.length[1])).unwrap_or(0);
            twin.given += taken;
            if twin.given > twin.length[1] {
                let _ = self.server.close(now, id);
            }
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

    /// A packet is on its way, unless it is lost; for three seconds one in twelve is.
    fn send(&mut self, from: usize, packet: Packet) {
        self.count += 1;
        if self.now < 3_000 * MILLI && self.luck.one_in(12) {
            return;
        }
        let path = path_of(packet.ip.destination);
        let is_at = |host: &usize| *host != from && address(self.v6, HOSTS[*host], path) == packet.ip.destination;
        if let Some(to) = (0..HOSTS.len()).find(is_at) {
            let later = if self.luck.one_in(10) { self.luck.below(100 * MILLI) } else { 0 };
            self.in_flight.insert((self.now + self.delay + later, self.count), (to, packet));
        }
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

/// Compares what was read with what the client's twin, or the server, wrote.
fn compare(which: usize, wrote: usize, read: &mut usize, bytes: &[u8]) -> Result<(), String> {
    let to = *read + bytes.len();
    if pattern(wrote).get(*read..to) != Some(bytes) {
        return Err(format!("wrong octets between {read} and {to} on the connection of twin {which}"));
    }
    *read = to;
    Ok(())
}
