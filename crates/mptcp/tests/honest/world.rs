//! Runs one case, and checks the invariants after every step.

use super::case::{Aim, Case, Op};
use super::network::Network;
use super::strangers;
use super::watch;
use crate::pair::{self, PORT, Pair};
use anabranch_mptcp::OperationError;
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{CloseCause, Endpoint, EndpointConfig, Event};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::SubflowState;
use bytes::Bytes;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Most packets of one host, and most steps, at one instant: more counts as an endless loop.
const MOST_AT_ONCE: usize = 5_000;
/// Most steps of one case.
const MOST_STEPS: u64 = 1_500_000;
/// The server's limit of connections.
pub const MAX_CONNECTIONS: usize = 16;

/// The model of one host's application.
#[derive(Default)]
pub struct Application {
    /// Its connection.
    pub id: Option<ConnectionId>,
    /// Bytes accepted by the engine.
    pub written: u64,
    /// Bytes waiting for room in the send buffer.
    pub waiting: u64,
    /// It closed its direction.
    pub closed: bool,
    /// It will close once nothing waits.
    pub closing: bool,
    /// It aborted, or asked the engine to.
    pub aborted: bool,
    /// How its connection ended.
    pub cause: Option<CloseCause>,
    /// It continues as plain TCP.
    pub fell_back: bool,
    /// The end of the peer's stream was reported.
    pub end_seen: bool,
    /// Bytes read that differ from those written.
    pub wrong: u64,
    /// A write was cut short, and [`Event::Writable`] has not followed yet.
    blocked: bool,
    checked: usize,
    events: usize,
}

/// A case in progress.
pub struct World<'a> {
    /// The case.
    pub case: &'a Case,
    /// The hosts.
    pub pair: Pair,
    /// The paths.
    pub network: Rc<RefCell<Network>>,
    /// The applications.
    pub apps: [Application; 2],
    /// Why an end with an error is allowed.
    pub excuse: Option<&'static str>,
    /// Time with losses.
    pub bad_time: Duration,
    steps: u64,
    at_once: usize,
    moment: Instant,
}

fn connection_of(event: Event) -> ConnectionId {
    match event {
        Event::Asked { .. } => unreachable!("these hosts hold no SYNs"),
        Event::Accepted { connection, .. } => connection,
        Event::Connected(id)
        | Event::Readable(id)
        | Event::Writable(id)
        | Event::EndOfStream(id)
        | Event::Closed(id, _)
        | Event::FellBack(id, _)
        | Event::SubflowEstablished(id, _)
        | Event::SubflowClosed(id, ..) => id,
    }
}

/// The byte at a position of a host's stream.
fn byte(host: usize, at: u64) -> u8 {
    (at.wrapping_mul(2_654_435_761).wrapping_add(host as u64 * 77) >> 13) as u8
}

impl<'a> World<'a> {
    /// The hosts, the paths, and a SYN in flight.
    pub fn new(case: &'a Case) -> Result<Self, String> {
        let network = Rc::new(RefCell::new(Network::new(case.seed, case.delays.len())));
        let mut pair = Pair::with_path_managers(0, ["full_mesh", "full_mesh"]);
        for (host, side) in case.sides.iter().enumerate() {
            let mut seed = [host as u8; 32];
            seed[1..9].copy_from_slice(&case.seed.to_le_bytes());
            let manager = table::build(path_manager::TABLE, side.manager, &Settings::new()).unwrap();
            let config = EndpointConfig {
                seed,
                max_connections: MAX_CONNECTIONS,
                max_half_open: case.max_half_open,
                ..EndpointConfig::default()
            };
            pair.hosts[host] = Endpoint::new(config, manager);
        }
        pair.delay = case.delays.iter().map(|micros| Duration::from_micros(u64::from(*micros))).collect();
        pair.keep = false;
        pair.burst_limit = MOST_AT_ONCE;
        let luck = network.clone();
        pair.judge = Box::new(move |from, _, packet| luck.borrow_mut().judge(from, packet));
        let mut world = Self {
            case,
            pair,
            network,
            apps: Default::default(),
            excuse: None,
            bad_time: Duration::ZERO,
            steps: 0,
            at_once: 0,
            moment: Instant::ZERO,
        };
        world.open();
        world.observe()?;
        Ok(world)
    }

    fn open(&mut self) {
        let (case, now) = (self.case, self.pair.now);
        for path in 0..case.delays.len() {
            for host in 0..2 {
                self.pair.hosts[host].handle_address_up(now, AddressId(1 + path as u8), self.address(host, path));
            }
        }
        let [client, server] = &case.sides;
        {
            let mut network = self.network.borrow_mut();
            network.weather.fill(case.weather);
            network.strip = case.strip;
            network.mangles = client.multipath && server.multipath && (client.checksum || server.checksum);
        }
        self.pair.hosts[1].listen(PORT, server.config()).unwrap();
        let remote = SocketAddr::new(self.address(1, 0), PORT);
        let local = Some(self.address(0, 0));
        self.apps[0].id = Some(self.pair.hosts[0].connect(now, local, remote, client.config()).unwrap());
        self.pair.settle();
    }

    /// The address of a host on a path.
    pub fn address(&self, host: usize, path: usize) -> IpAddr {
        if self.case.v6 { pair::address_v6(host, path) } else { pair::address(host, path) }
    }

    /// Runs the script.
    pub fn play(&mut self) -> Result<(), String> {
        for (op, pause) in &self.case.script {
            self.act(*op);
            self.observe()?;
            if let Op::Jump(seconds) = op {
                self.pass(Duration::from_secs(u64::from(*seconds)))?;
            }
            self.pass(Duration::from_millis(u64::from(*pause)))?;
        }
        Ok(())
    }

    /// Advances time.
    fn pass(&mut self, span: Duration) -> Result<(), String> {
        if !self.network.borrow().is_calm() {
            self.bad_time += span;
        }
        let end = self.pair.now + span;
        while self.step(end)? {}
        Ok(())
    }

    fn step(&mut self, end: Instant) -> Result<bool, String> {
        let more = self.pair.step(end);
        self.steps += 1;
        self.at_once = if self.pair.now == self.moment { self.at_once + 1 } else { 0 };
        self.moment = self.pair.now;
        if self.steps > MOST_STEPS || self.at_once > MOST_AT_ONCE {
            return Err(format!("no end: {} steps, {} of them now at {:?}", self.steps, self.at_once, self.moment));
        }
        self.observe()?;
        Ok(more)
    }

    /// Steps until both applications were told of the end, or `limit` has passed.
    pub fn run_to_end(&mut self, limit: Duration) -> Result<(), String> {
        let end = self.pair.now + limit;
        while !self.is_over() && self.step(end)? {}
        Ok(())
    }

    /// Whether both applications were told of the end; a server that never accepted a connection counts.
    pub fn is_over(&self) -> bool {
        self.apps[0].cause.is_some() && (self.apps[1].cause.is_some() || self.apps[1].id.is_none())
    }

    /// Advances time until all remaining state is gone.
    pub fn run_out(&mut self, span: Duration) -> Result<(), String> {
        let end = self.pair.now + span;
        while self.step(end)? {}
        Ok(())
    }

    /// Calm paths, all addresses, all readers reading; both sides close when all data is written.
    pub fn heal(&mut self) -> Result<(), String> {
        self.act(Op::Calm);
        for host in 0..2 {
            for path in 0..self.case.delays.len() {
                self.act(Op::AddressUp(host, path));
            }
            self.act(Op::Resume(host));
            self.apps[host].closing = true;
        }
        self.observe()
    }

    fn act(&mut self, op: Op) {
        let now = self.pair.now;
        let paths = self.case.delays.len();
        match op {
            Op::Write(host, length) => {
                if !self.apps[host].closing && self.apps[host].cause.is_none() {
                    self.apps[host].waiting += u64::from(length);
                }
            }
            Op::Pause(host) => self.pair.reading[host] = false,
            Op::Read(host, length) => self.read(host, usize::from(length)),
            Op::Resume(host) => {
                self.pair.reading[host] = true;
                self.apps[host].id.into_iter().for_each(|id| self.pair.read(host, id));
            }
            Op::Close(host) => self.apps[host].closing = true,
            Op::Abort(host) => self.abort(host),
            Op::Discard(host) => self.discard(host),
            Op::AddressDown(host, path) => self.address_down(host, path % paths),
            Op::AddressUp(host, path) => {
                let path = path % paths;
                if core::mem::take(&mut self.network.borrow_mut().down[host][path]) {
                    let address = self.address(host, path);
                    self.pair.hosts[host].handle_address_up(now, AddressId(1 + path as u8), address);
                }
            }
            Op::Path(path, weather) => self.network.borrow_mut().weather[path % paths] = weather,
            Op::Calm => self.network.borrow_mut().weather.fill(Default::default()),
            Op::Reset(host, aim) => {
                if aim == Aim::Exact {
                    self.excuse = Some("a reset at the right place");
                }
                let reset = strangers::reset(&self.network.borrow(), host, aim);
                reset.into_iter().for_each(|reset| self.pair.inject(host, reset));
            }
            Op::Garbage(host, seed) => {
                let garbage = strangers::garbage(&self.network.borrow(), host, seed);
                garbage.into_iter().for_each(|garbage| self.pair.inject(host, garbage));
            }
            Op::Flood(count) => {
                for port in 0..count {
                    let syn = strangers::syn(self.address(0, 0), self.address(1, 0), 1_000 + u16::from(port));
                    self.pair.inject(1, syn);
                }
            }
            Op::Old(back) => {
                let old = self.network.borrow().history.get(usize::from(back)).cloned();
                old.into_iter().for_each(|(to, packet)| self.pair.inject(to, packet));
            }
            Op::Jump(_) => {} // time passes in `play`
        }
        self.pair.settle();
    }

    fn read(&mut self, host: usize, length: usize) {
        let Some(id) = self.apps[host].id else { return };
        if let Some(bytes) = self.pair.hosts[host].read(self.pair.now, id, length) {
            self.pair.received[host].extend_from_slice(&bytes);
        }
    }

    /// Aborts the connection, if there is one.
    pub fn abort(&mut self, host: usize) {
        let Some(id) = self.apps[host].id.filter(|_| self.apps[host].cause.is_none()) else { return };
        if self.pair.hosts[host].abort(self.pair.now, id).is_ok() {
            self.excuse = Some("an application aborted");
            self.apps[host].aborted = true;
        }
        self.pair.settle();
    }

    fn discard(&mut self, host: usize) {
        let app = &mut self.apps[host];
        let Some(id) = app.id.filter(|_| app.cause.is_none()) else { return };
        if self.pair.hosts[host].discard(self.pair.now, id).is_ok() {
            self.excuse = Some("an application discarded what would come");
            (app.waiting, app.closing, app.closed, app.aborted) = (0, true, true, true);
        }
    }

    fn address_down(&mut self, host: usize, path: usize) {
        if core::mem::replace(&mut self.network.borrow_mut().down[host][path], true) {
            return;
        }
        let id = AddressId(1 + path as u8);
        // The peer's ID of the initial subflow's address is 0.
        let leads_there = |remote: AddressId| remote == id || (path == 0 && remote == AddressId(0));
        let elsewhere = (0..2).all(|side| {
            let Some(connection) = self.apps[side].id else { return false };
            let mut views = self.pair.hosts[side].subflow_views(self.pair.now, connection).into_iter();
            self.pair.hosts[side].protocol(connection) == Some(Protocol::Multipath)
                && views.any(|v| {
                    let lost = if side == host { v.local_address == id } else { leads_there(v.remote_address) };
                    v.state == SubflowState::Established && !lost
                })
        });
        if !elsewhere {
            self.excuse = Some("the only address went");
        }
        self.pair.hosts[host].handle_address_down(self.pair.now, id);
    }

    /// Handles events, runs the applications, and checks the invariants.
    pub fn observe(&mut self) -> Result<(), String> {
        loop {
            let mut busy = false;
            for host in 0..2 {
                busy |= self.hear(host)?;
                busy |= self.write_on(host)?;
            }
            if !busy {
                break;
            }
            self.pair.settle();
        }
        for host in 0..2 {
            let id = self.apps[host].id;
            let protocol = id.and_then(|id| self.pair.hosts[host].protocol(id));
            self.apps[host].fell_back |= protocol == Some(Protocol::Tcp);
            self.check_bytes(host)?;
            watch::check(self, host)?;
        }
        Ok(())
    }

    fn hear(&mut self, host: usize) -> Result<bool, String> {
        let from = self.apps[host].events;
        let news: Vec<Event> = self.pair.events[host][from..].to_vec();
        self.apps[host].events += news.len();
        for event in &news {
            self.hear_one(host, *event).map_err(|complaint| format!("host {host}: {complaint}"))?;
        }
        Ok(!news.is_empty())
    }

    fn hear_one(&mut self, host: usize, event: Event) -> Result<(), String> {
        let app = &mut self.apps[host];
        let stranger = host == 1 && app.id.is_some_and(|id| id != connection_of(event));
        if stranger && !matches!(event, Event::Accepted { .. }) {
            return Ok(()); // a handshake that never came to its end
        }
        if app.cause.is_some() && !matches!(event, Event::SubflowClosed(..)) {
            return Err(format!("{event:?} after the end"));
        }
        match event {
            Event::Accepted { connection, .. } if host == 1 && app.id.is_none() => app.id = Some(connection),
            Event::Accepted { .. } => return Err("a second connection was accepted".into()),
            Event::Writable(_) => app.blocked = false,
            Event::EndOfStream(_) if app.end_seen => return Err("the stream ended twice".into()),
            Event::EndOfStream(_) => app.end_seen = true,
            Event::Closed(id, cause) if app.id == Some(id) => app.cause = Some(cause),
            Event::Closed(..) if host == 1 => {} // likewise
            Event::Closed(..) => return Err("an unknown connection ended".into()),
            Event::FellBack(id, _) => app.fell_back |= app.id.is_none_or(|known| known == id),
            Event::Asked { .. } => return Err("a SYN waits".into()),
            Event::Connected(_) | Event::Readable(_) => {}
            Event::SubflowEstablished(..) | Event::SubflowClosed(..) => {}
        }
        Ok(())
    }

    /// Writes waiting data, unless the last write was cut short and no event has followed; then closes.
    fn write_on(&mut self, host: usize) -> Result<bool, String> {
        let now = self.pair.now;
        let app = &mut self.apps[host];
        let Some(id) = app.id.filter(|_| app.cause.is_none() && !app.closed && !app.blocked) else { return Ok(false) };
        if app.waiting > 0 {
            let end = app.written + app.waiting.min(20_000);
            let data: Bytes = (app.written..end).map(|at| byte(host, at)).collect();
            let offered = data.len() as u64;
            let taken = match self.pair.hosts[host].write(now, id, data) {
                Ok(taken) => taken as u64,
                // The connection has ended, and the application still has data to read.
                Err(OperationError::Ended(_)) => 0,
                Err(error) => return Err(error.to_string()),
            };
            app.written += taken;
            app.waiting -= taken;
            app.blocked = taken < offered;
            return Ok(true);
        }
        if app.closing {
            app.closed = true;
            self.pair.hosts[host].close(now, id).map_err(|error| error.to_string())?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Data read is a prefix of data written.
    fn check_bytes(&mut self, host: usize) -> Result<(), String> {
        let received = &self.pair.received[host];
        let written = self.apps[1 - host].written;
        if received.len() as u64 > written {
            return Err(format!("host {host} read {} bytes of {written} written", received.len()));
        }
        let app = &mut self.apps[host];
        for (at, byte_read) in received.iter().enumerate().skip(app.checked) {
            if *byte_read == byte(1 - host, at as u64) {
                continue;
            }
            app.wrong += 1;
            // After a fallback to plain TCP a middlebox that corrects TCP's checksum is undetected.
            if !app.fell_back || app.wrong > self.network.borrow().mangled[host] {
                return Err(format!("host {host} read a wrong byte at {at}"));
            }
        }
        app.checked = received.len();
        Ok(())
    }
}
