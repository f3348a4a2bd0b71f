//! Both ends of an encrypted datagram session in the lab: the same state machines as on real networks, without sockets.
//!
//! Keys come from the operating system, so bytes differ between runs; lengths and times do not, and only these are in
//! the trace hash.

use anabranch_datagram::session::{ClientSession, ServerSessions, Whereabouts};
use anabranch_datagram::{Datagram, Kind};
use anabranch_policy::combination::Choice;
use anabranch_policy::datagram::{DatagramPolicy, MAX_PATHS};
use anabranch_policy::time::Instant;
use anabranch_settings::contender::build_datagram;
use anabranch_sim::datagrams::Carrier;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The shared key.
const KEY: [u8; 32] = [0x5a; 32];
/// Identifier of the client.
const CLIENT: u64 = 1;
/// Address of the client's programs, with one port per flow,
const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FIRST_PORT: u16 = 10_000;
/// and of their peers.
const OUTSIDE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

/// Both ends of a session over `paths` paths: the client's with its policy, and the server's, which makes one of the choice
/// for each client.
///
/// # Errors
/// None here; where there are no sessions, that as text.
pub fn ends(policy: Box<dyn DatagramPolicy>, choice: Choice, paths: usize) -> Result<[Box<dyn Carrier>; 2], String> {
    Ok([client(policy, paths), server(choice)])
}

/// The client's end with `paths` paths.
fn client(policy: Box<dyn DatagramPolicy>, paths: usize) -> Box<dyn Carrier> {
    let mut session = ClientSession::new(KEY, CLIENT, policy, Instant::ZERO);
    let paths = paths.min(MAX_PATHS);
    (0..paths).for_each(|path| session.open_path(path as u8, Instant::ZERO));
    Box::new(Client { session, paths, waiting: VecDeque::new() })
}

/// The server's end. The policy is already validated.
fn server(policy: Choice) -> Box<dyn Carrier> {
    let policy = Arc::new(move || build_datagram(&policy).expect("the choice was checked"));
    let mut drawn = 0;
    let draw = move || {
        drawn += 1;
        drawn
    };
    Box::new(Server { session: ServerSessions::new(vec![KEY.into()], policy, 1, draw), waiting: VecDeque::new() })
}

fn datagram(flow: u16, payload: Bytes) -> Datagram {
    let inside = SocketAddr::new(INSIDE.into(), FIRST_PORT.wrapping_add(flow));
    Datagram { kind: Kind::Udp, inside, outside: OUTSIDE, payload }
}

fn flow(datagram: Datagram) -> (u16, Bytes) {
    (datagram.inside.port().wrapping_sub(FIRST_PORT), datagram.payload)
}

struct Client {
    session: ClientSession,
    paths: usize,
    waiting: VecDeque<(usize, Bytes)>,
}

impl Carrier for Client {
    fn send(&mut self, now: Instant, flow: u16, payload: Bytes) -> bool {
        self.session.send(now, &datagram(flow, payload))
    }
    fn handle_packet(&mut self, now: Instant, path: usize, packet: &[u8]) {
        self.session.handle_datagram(now, path as u8, &mut packet.to_vec());
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }
    fn poll_transmit(&mut self) -> Option<(usize, Bytes)> {
        for path in 0..self.paths {
            let waiting = &mut self.waiting;
            if let Some(outbox) = self.session.outbox(path as u8) {
                outbox.drain(1, |batch| waiting.push_back((path, Bytes::copy_from_slice(batch.bytes))));
            }
        }
        self.waiting.pop_front()
    }
    fn poll_datagram(&mut self) -> Option<(u16, Bytes)> {
        self.session.poll_datagram().map(flow)
    }
    fn poll_timeout(&self) -> Instant {
        self.session.poll_timeout()
    }
}

struct Server {
    session: ServerSessions,
    waiting: VecDeque<(usize, Bytes)>,
}

/// Source address of a path of the client: the server identifies paths by the content of datagrams, and replies to this
/// address.
fn address(path: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), FIRST_PORT.wrapping_add(path as u16))
}

fn path(address: SocketAddr) -> usize {
    address.port().wrapping_sub(FIRST_PORT).into()
}

impl Carrier for Server {
    fn send(&mut self, now: Instant, flow: u16, payload: Bytes) -> bool {
        self.session.send(now, CLIENT, &datagram(flow, payload))
    }
    fn handle_packet(&mut self, now: Instant, path: usize, packet: &[u8]) {
        let from = Whereabouts { client: address(path), ours: None };
        self.session.handle_datagram(now, from, &mut packet.to_vec());
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }
    fn poll_transmit(&mut self) -> Option<(usize, Bytes)> {
        let waiting = &mut self.waiting;
        let outbox = self.session.outbox();
        outbox.drain(1, |batch| waiting.push_back((path(batch.to.client), Bytes::copy_from_slice(batch.bytes))));
        self.waiting.pop_front()
    }
    fn poll_datagram(&mut self) -> Option<(u16, Bytes)> {
        self.session.poll_datagram().map(|(_, datagram)| flow(datagram))
    }
    fn poll_timeout(&self) -> Instant {
        self.session.poll_timeout()
    }
}
