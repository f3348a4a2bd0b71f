//! Samples of all MPTCP connections in the namespace by sock_diag (linux/inet_diag.h): connections as sockets of
//! protocol 262, their subflows as sockets of TCP with a block of MPTCP, joined by our token.

use crate::attributes::{Attributes, address_at, attribute, attributes, be16_at, u8_at, u32_at, u64_at};
use crate::netlink::{RequestError, Requests};
use crate::tcp_info::{MptcpInfo, SubflowBlock, read_mptcp_info, read_tcp_info};
use anabranch_policy::time::{Duration, Instant};
use anabranch_steering::sample::{ConnectionSample, Endpoints, HostSample, Owner, SubflowSample, TcpState, Token};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

/// The message's type (SOCK_DIAG_BY_FAMILY).
const BY_FAMILY: u16 = 20;

const FAMILIES: [u8; 2] = [nix::libc::AF_INET as u8, nix::libc::AF_INET6 as u8];

/// Protocols. Numbers above 255 are given in an attribute of the request.
const TCP: u8 = 6;
const MPTCP: u32 = 262;
const REQUEST_PROTOCOL: u16 = 3;

/// Bit of the extension INET_DIAG_INFO in a request, and its attribute.
const WANT_INFO: u8 = 1 << 1;
const INFO: u16 = 2;

/// Further attributes.
const ULP_INFO: u16 = 19;
const CGROUP: u16 = 21;

/// Attributes of the block of a socket's upper layer.
const ULP_MPTCP: u16 = 3;
const BLOCK_TOKEN: u16 = 2;
const BLOCK_FLAGS: u16 = 8;
const BLOCK_REMOTE_ID: u16 = 9;
const BLOCK_LOCAL_ID: u16 = 10;

/// States of sockets that are wanted, as bits: all but SYN-RECEIVED, which are not yet sockets, TIME-WAIT, CLOSED and
/// LISTEN.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// Length of `struct inet_diag_msg`, and offsets in it.
const HEADER: usize = 72;
const LOCAL_PORT: usize = 4;
const REMOTE_PORT: usize = 6;
const LOCAL_ADDRESS: usize = 8;
const REMOTE_ADDRESS: usize = 24;
const OWNER: usize = 64;

/// Length of a socket's addresses and cookie in a request (`struct inet_diag_sockid`).
const SOCKET_ID: usize = 48;

/// How long subflows are taken for what they were if nothing of them moves.
const LIST_EVERY: Duration = Duration::from_secs(2);

/// Lists in a row after a change: the first may still lack what begins, and a subflow that several samples lack is
/// taken for gone.
const LISTS_AFTER_A_CHANGE: u8 = 3;

/// A socket of sock_diag, in the namespace of the thread that opened it.
///
/// The kernel fills `tcp_info` of each of its sockets of TCP for a list, MPTCP or not, which is most of what a sample
/// costs. So subflows are listed only while a connection moves or waits, and else every two seconds.
pub struct Sampler {
    requests: Requests,
    /// Bytes that connections had acknowledged when they were first seen; for kernels that do not count them.
    bases: BTreeMap<Token, u64>,
    /// Connections at the last sample, in order of token.
    connections: Vec<(MptcpInfo, Owner)>,
    /// Subflows when they were last listed, in order, and when that was.
    subflows: Vec<(Token, SubflowSample)>,
    listed_at: Option<Instant>,
    /// Samples that list subflows whatever else.
    wanted: u8,
    lists: u64,
}

impl Sampler {
    /// # Errors
    /// The kernel has no sock_diag.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            requests: Requests::open(NETLINK_SOCK_DIAG)?,
            bases: BTreeMap::new(),
            connections: Vec::new(),
            subflows: Vec::new(),
            listed_at: None,
            wanted: 0,
            lists: 0,
        })
    }

    /// The next samples list subflows, whether or not anything moves: something that connections do not tell has
    /// happened.
    pub fn refresh(&mut self) {
        self.wanted = LISTS_AFTER_A_CHANGE;
    }

    /// How often subflows were listed.
    pub fn lists(&self) -> u64 {
        self.lists
    }

    /// Samples all connections. Subflows whose token is no connection's are left out: theirs has just begun or ended.
    /// Those of a host where nothing moves may be up to two seconds old.
    ///
    /// # Errors
    /// [`RequestError`]: without CAP_NET_ADMIN blocks of MPTCP are missing, not refused; the result is then empty of
    /// subflows.
    pub fn sample(&mut self, at: Instant) -> Result<HostSample, RequestError> {
        let connections = self.list_connections()?;
        let is_old = self.listed_at.is_none_or(|listed| at.since(listed) >= LIST_EVERY);
        if moves(&self.connections, &connections) || self.subflows.iter().any(|(_, one)| waits(one)) {
            self.wanted = LISTS_AFTER_A_CHANGE;
        }
        if is_old || self.wanted > 0 {
            // A list that fails midway is no list.
            self.listed_at = None;
            self.list_subflows()?;
            self.listed_at = Some(at);
            self.wanted = self.wanted.saturating_sub(1);
        }
        self.connections = connections;
        self.forget();
        Ok(HostSample { at, connections: self.joined() })
    }

    /// All connections, in order of token.
    fn list_connections(&mut self) -> Result<Vec<(MptcpInfo, Owner)>, RequestError> {
        let mut connections: Vec<(MptcpInfo, Owner)> = Vec::with_capacity(self.connections.len());
        for family in FAMILIES {
            self.requests
                .list(BY_FAMILY, &request(family, true), |answer| connections.extend(read_connection(answer)))?;
        }
        connections.sort_unstable_by_key(|(info, _)| info.token);
        // A socket may be listed twice if the list changes meanwhile.
        connections.dedup_by_key(|(info, _)| info.token);
        Ok(connections)
    }

    fn list_subflows(&mut self) -> Result<(), RequestError> {
        let subflows = &mut self.subflows;
        subflows.clear();
        for family in FAMILIES {
            self.requests.list(BY_FAMILY, &request(family, false), |answer| subflows.extend(read_subflow(answer)))?;
        }
        subflows.sort_unstable_by_key(|(token, subflow)| (*token, subflow.endpoints));
        subflows.dedup_by_key(|(token, subflow)| (*token, subflow.endpoints));
        self.lists += 1;
        Ok(())
    }

    /// Forgets connections that are gone.
    fn forget(&mut self) {
        let connections = &self.connections;
        if self.bases.len() > connections.len() {
            self.bases.retain(|token, _| connections.binary_search_by_key(&token.0, |(info, _)| info.token).is_ok());
        }
    }

    /// Connections with their subflows; both are sorted.
    fn joined(&mut self) -> Vec<ConnectionSample> {
        let mut subflows = self.subflows.iter().peekable();
        let mut all = Vec::with_capacity(self.connections.len());
        for (info, owner) in &self.connections {
            let token = Token(info.token);
            while subflows.next_if(|(other, _)| *other < token).is_some() {}
            let mut own = Vec::new();
            while let Some((_, subflow)) = subflows.next_if(|(other, _)| *other == token) {
                // The kernel opened joins, but the program owns them.
                own.push(SubflowSample { owner: *owner, ..subflow.clone() });
            }
            let base = *self.bases.entry(token).or_insert_with(|| base(info));
            all.push(ConnectionSample {
                token,
                fallback: info.fallback,
                write_seq: info.write_seq.wrapping_sub(base),
                snd_una: info.snd_una.wrapping_sub(base),
                rcv_nxt: info.rcv_nxt,
                subflows: own,
            });
        }
        all
    }
}

/// Whether connections have changed or have data outstanding. Those that fell back to TCP are not steered.
fn moves(before: &[(MptcpInfo, Owner)], now: &[(MptcpInfo, Owner)]) -> bool {
    let steered = |(info, _): &(MptcpInfo, Owner)| (!info.fallback).then_some(*info);
    before.iter().filter_map(steered).ne(now.iter().filter_map(steered))
        || now.iter().filter_map(steered).any(|info| info.write_seq != info.snd_una)
}

/// Whether a subflow waits for an answer: a copy of data that another subflow has delivered may be outstanding on it.
/// That of one which closes does not count; on a dead path it lasts for minutes.
fn waits(subflow: &SubflowSample) -> bool {
    match subflow.state {
        TcpState::Opening => true,
        TcpState::Established => subflow.segments.unacked > 0,
        TcpState::Closing => false,
    }
}

/// The sequence number of the first byte, or where it is not known the first one seen.
fn base(info: &MptcpInfo) -> u64 {
    info.snd_una.wrapping_sub(info.bytes_acked.unwrap_or_default())
}

/// A request for sockets of a family (`struct inet_diag_req_v2`).
fn request(family: u8, connections: bool) -> Vec<u8> {
    let mut bytes = vec![family, TCP, WANT_INFO, 0];
    bytes.extend(STATES.to_ne_bytes());
    bytes.resize(bytes.len() + SOCKET_ID, 0);
    if connections {
        let mut attributes = Attributes::default();
        attributes.put_u32(REQUEST_PROTOCOL, MPTCP);
        bytes.extend(attributes.bytes());
    }
    bytes
}

pub fn read_connection(answer: &[u8]) -> Option<(MptcpInfo, Owner)> {
    let content = answer.get(HEADER..)?;
    let info = read_mptcp_info(attribute(content, INFO)?)?;
    let cgroup = attribute(content, CGROUP).and_then(|value| u64_at(value, 0));
    Some((info, Owner { uid: u32_at(answer, OWNER)?, cgroup }))
}

/// Reads a socket of TCP; `None` if it is no subflow.
pub fn read_subflow(answer: &[u8]) -> Option<(Token, SubflowSample)> {
    let (mut info, mut ulp) = (None, None);
    for (kind, value) in attributes(answer.get(HEADER..)?) {
        match kind {
            INFO => info = Some(value),
            ULP_INFO => ulp = attribute(value, ULP_MPTCP),
            _ => {}
        }
    }
    let block = read_block(ulp?);
    let is_ipv6 = i32::from(u8_at(answer, 0)?) == nix::libc::AF_INET6;
    let address = |address, port| Some(SocketAddr::new(address_at(answer, address, is_ipv6)?, be16_at(answer, port)?));
    let local = address(LOCAL_ADDRESS, LOCAL_PORT)?;
    let endpoints = Endpoints { local, remote: address(REMOTE_ADDRESS, REMOTE_PORT)? };
    Some((Token(block.token), read_tcp_info(info?, endpoints, block)?))
}

fn read_block(value: &[u8]) -> SubflowBlock {
    let mut block = SubflowBlock::default();
    for (kind, value) in attributes(value) {
        match kind {
            BLOCK_TOKEN => block.token = u32_at(value, 0).unwrap_or_default(),
            BLOCK_FLAGS => block.flags = u32_at(value, 0).unwrap_or_default(),
            BLOCK_REMOTE_ID => block.remote_id = u8_at(value, 0).unwrap_or_default(),
            BLOCK_LOCAL_ID => block.local_id = u8_at(value, 0).unwrap_or_default(),
            _ => {}
        }
    }
    block
}
