//! A second implementation of RFC 8684 and RFC 9293, written from their texts, for one connection at a time. It shares
//! only the wire formats with the engine. It is slow and simple, and where the RFCs leave a choice it takes a
//! configured or random one.
#![allow(missing_docs)]

mod action;
mod addresses;
mod arrives;
pub mod choices;
mod close;
pub mod data_level;
mod handshake;
pub mod keys;
mod receive;
mod signals;
mod stream;
pub mod tcp;
mod time;
mod transmit;

use crate::luck::Luck;
use crate::settings::Settings;
pub use action::Action;
use action::Announced;
use anabranch_wire::Packet;
use bytes::Bytes;
use choices::Choice;
use data_level::DataLevel;
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use tcp::{Flow, State};
pub use time::{MILLI, NEVER, Nanos};

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Both streams are complete at both ends.
    Finished,
    /// We aborted.
    Aborted,
    /// The peer aborted, or reset the last subflow.
    Reset,
    /// We aborted; the reason.
    GaveUp(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Not decided.
    Opening,
    /// MPTCP.
    Multipath,
    /// TCP: offsets in the streams are numbers on the only subflow less one.
    Plain,
}

/// Keys and values of both sides.
#[derive(Debug, Default)]
pub struct Secrets {
    pub key: u64,
    pub first: u64,
    pub token: u32,
    pub peer_key: u64,
    pub peer_first: u64,
    pub peer_token: u32,
    /// The peer is known to have the keys.
    pub confirmed: bool,
}

impl Secrets {
    fn of(key: u64) -> Self {
        let first = keys::initial_data_sequence(key).wrapping_add(1);
        Self { key, first, token: keys::token(key), ..Self::default() }
    }
}

/// When to open a subflow again if there is none, and the number of attempts.
#[derive(Debug)]
struct Rejoin {
    at: Nanos,
    count: u32,
}

/// The literal peer.
pub struct Peer {
    style: Settings,
    luck: Luck,
    now: Nanos,
    client: bool,
    /// By path.
    addresses: Vec<IpAddr>,
    /// Paths on which our address is down.
    away: BTreeSet<usize>,
    port: u16,
    /// The peer's address of the initial subflow.
    initial_remote: Option<SocketAddr>,
    protocol: Protocol,
    checksum: bool,
    secrets: Secrets,
    /// A DSS has arrived.
    heard_dss: bool,
    /// The peer accepts no joins to its first address.
    peer_denies: bool,
    flows: Vec<Flow>,
    data: DataLevel,
    /// Data sent so far is not the stream in order, so the connection could not continue as plain TCP.
    crooked: bool,
    /// The infinite mapping begins at the first number on the first subflow, and is sent until the second is
    /// acknowledged.
    infinite: Option<(u32, u32)>,
    /// Offset of a peer's number in plain TCP, less the number.
    shift: i64,
    known: Vec<SocketAddr>,
    announced: Vec<Announced>,
    rejoin: Rejoin,
    /// How often data was mapped again without need.
    agains: u32,
    next_port: u16,
    end: Option<End>,
    out: VecDeque<Packet>,
}

impl Peer {
    /// A host with one address on each path.
    pub fn new(style: Settings, seed: u64, addresses: Vec<IpAddr>, client: bool) -> Self {
        let mut luck = Luck::new(seed);
        let key = luck.number();
        let secrets = Secrets::of(key);
        let buffer = u64::from(style.value(Choice::Buffer as usize));
        Self {
            style,
            luck,
            now: 0,
            client,
            addresses,
            away: BTreeSet::new(),
            port: 4_433,
            initial_remote: None,
            protocol: Protocol::Opening,
            checksum: false,
            secrets,
            heard_dss: false,
            peer_denies: false,
            flows: Vec::new(),
            data: DataLevel::new(buffer),
            crooked: false,
            infinite: None,
            shift: -1,
            known: Vec::new(),
            announced: Vec::new(),
            rejoin: Rejoin { at: NEVER, count: 0 },
            agains: 0,
            next_port: 20_000,
            end: None,
            out: VecDeque::new(),
        }
    }

    /// The same host with the key of another.
    #[must_use]
    pub fn with_key_of(mut self, other: &Self) -> Self {
        self.secrets = Secrets::of(other.secrets.key);
        self
    }

    fn choice(&self, choice: Choice) -> u32 {
        self.style.value(choice as usize)
    }

    /// The timeout in nanoseconds, doubled with each attempt.
    fn timeout(&self, tries: u32) -> Nanos {
        let first = u64::from(self.choice(Choice::Timeout)) * MILLI;
        (first << tries.min(6)).min(20_000 * MILLI)
    }

    /// A packet has arrived.
    pub fn handle(&mut self, now: Nanos, packet: &Packet) {
        self.now = now;
        let ends = |flow: &Flow| (flow.local.ip(), flow.remote.ip()) == (packet.ip.destination, packet.ip.source);
        let ports = (packet.segment.destination_port, packet.segment.source_port);
        let ours = |flow: &Flow| flow.state != State::Closed && (flow.local.port(), flow.remote.port()) == ports;
        match self.flows.iter().position(|flow| ends(flow) && ours(flow)) {
            Some(index) => self.segment_arrives(index, &packet.segment),
            None => self.stranger(packet),
        }
        self.drive();
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.out.pop_front()
    }

    /// The earliest timer.
    pub fn poll_timeout(&self) -> Nanos {
        let flows = self.flows.iter().map(|flow| flow.due.resend_at.min(flow.due.ack_at).min(flow.due.linger_at));
        let announced = self.announced.iter().map(|announced| announced.again_at);
        let own = [self.data.resend_at, self.data.probe_at, self.rejoin.at];
        flows.chain(announced).chain(own).min().unwrap_or(NEVER)
    }

    /// A timer is due.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.now = now;
        for index in 0..self.flows.len() {
            self.flow_timers(index);
        }
        self.data_timers();
        self.announce_again();
        self.rejoin();
        self.drive();
    }

    /// The application writes.
    pub fn write(&mut self, now: Nanos, bytes: &[u8]) {
        self.now = now;
        if !self.data.closed && self.end.is_none() {
            self.data.stream.extend_from_slice(bytes);
            self.drive();
        }
    }

    /// The application closes its direction.
    pub fn close(&mut self, now: Nanos) {
        self.now = now;
        self.data.close();
        self.drive();
    }

    /// The application reads in-order data.
    pub fn read(&mut self, now: Nanos, most: u64) -> Option<Bytes> {
        self.now = now;
        let mut bytes = self.data.unread.pop_front()?;
        if bytes.len() as u64 > most {
            let rest = bytes.split_off(most as usize);
            self.data.unread.push_front(rest);
        }
        self.data.unread_length -= bytes.len() as u64;
        self.tell_of_window();
        self.drive();
        Some(bytes)
    }

    /// Whether all data of the peer has been read.
    pub fn at_end(&self) -> bool {
        self.data.fin_taken && self.data.unread.is_empty()
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<End> {
        self.end
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether a connection was opened by either side.
    pub fn has_begun(&self) -> bool {
        !self.flows.is_empty()
    }

    /// Whether no state of the connection is left.
    pub fn is_gone(&self) -> bool {
        (self.end.is_some() || self.flows.is_empty()) && self.flows.iter().all(|flow| flow.state == State::Closed)
    }

    /// Its state as text for users.
    pub fn describe(&self) -> String {
        let data = &self.data;
        let mut text = format!(
            "literal: {:?} {:?} {:?} una {} nxt {} of {} edge {} rcv_nxt {} early {} unread {} fin at {:?} taken {}",
            self.protocol,
            self.end,
            data.state,
            data.una,
            data.nxt,
            data.length(),
            data.edge,
            data.rcv_nxt,
            data.early.len(),
            data.unread_length,
            data.fin_at,
            data.fin_taken
        );
        for flow in &self.flows {
            text += &format!(
                "\n  {} > {}: {:?} {:?} una {} nxt {} end {} fin {:?} window {} rcv_nxt {} early {} tries {} usable {}",
                flow.local,
                flow.remote,
                flow.kind,
                flow.state,
                flow.una,
                flow.nxt,
                flow.end(),
                flow.fin,
                flow.window,
                flow.rcv_nxt,
                flow.early.len(),
                flow.due.tries,
                flow.usable
            );
        }
        text
    }

    /// Does everything that follows from an input.
    fn drive(&mut self) {
        self.take_end_of_stream();
        self.fill();
        self.end_stream();
        self.close_flows();
        for index in 0..self.flows.len() {
            self.transmit(index);
        }
        self.arm_data_timers();
        self.record_end();
        self.wants_a_subflow();
    }
}
