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

/// Those in which a FIN was sent or received.
const CLOSING: u32 = 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// Length of `struct inet_diag_msg`, and offsets in it.
const HEADER: usize = 72;
const STATE: usize = 1;
const LOCAL_PORT: usize = 4;
const REMOTE_PORT: usize = 6;
const LOCAL_ADDRESS: usize = 8;
const REMOTE_ADDRESS: usize = 24;
const OWNER: usize = 64;
const INODE: usize = 68;

/// Length of a socket's addresses and cookie in a request (`struct inet_diag_sockid`).
const SOCKET_ID: usize = 48;

/// How long subflows are taken for what they were if nothing of them moves.
const LIST_EVERY: Duration = Duration::from_secs(2);

/// A subflow that is asked for by itself costs the kernel little; more than so many moving subflows are listed with
/// all.
const MOST_ALONE: usize = 16;

/// Samples for which a connection is looked at after it moved.
const LOOKS_AFTER_A_MOVE: u8 = 3;

/// Lists in a row after a change: the first may still lack what begins, and a subflow that several samples lack is
/// taken for gone.
const LISTS_AFTER_A_CHANGE: u8 = 3;

/// A subflow as it was listed.
struct Listed {
    token: Token,
    sample: SubflowSample,
    /// Its family, and the addresses, ports, interface and cookie by which the kernel finds it.
    family: u8,
    socket: Vec<u8>,
}

/// A socket of sock_diag, in the namespace of the thread that opened it.
///
/// The kernel fills `tcp_info` of each of its sockets of TCP for a list, MPTCP or not, which is most of what a sample
/// costs. So subflows are listed only after events, and else every two seconds. In between those of connections that
/// move or wait are asked for one by one, unless they are many.
pub struct Sampler {
    requests: Requests,
    /// Bytes that connections had acknowledged when they were first seen; for kernels that do not count them.
    bases: BTreeMap<Token, u64>,
    /// Connections at the last sample, in order of token.
    connections: Vec<(MptcpInfo, Owner)>,
    /// Subflows when they were last listed, in order, and when that was.
    subflows: Vec<Listed>,
    /// Connections that moved lately, with the samples for which they are still looked at.
    lively: BTreeMap<Token, u8>,
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
            lively: BTreeMap::new(),
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
        let begun = connections.iter().map(joins).ne(self.connections.iter().map(joins));
        self.wanted = if begun { LISTS_AFTER_A_CHANGE } else { self.wanted };
        self.enliven(&connections);
        let lively = |listed: &&Listed| self.lively.contains_key(&listed.token);
        if is_old || self.wanted > 0 || self.subflows.iter().filter(lively).count() > MOST_ALONE {
            // A list that fails midway is no list.
            self.listed_at = None;
            self.list_subflows()?;
            self.listed_at = Some(at);
            self.wanted = self.wanted.saturating_sub(1);
        } else {
            self.look_at_the_lively()?;
        }
        self.connections = connections;
        self.forget();
        Ok(HostSample { at, connections: self.joined() })
    }

    /// Finds out which connections move or wait.
    fn enliven(&mut self, connections: &[(MptcpInfo, Owner)]) {
        self.lively.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        for (info, _) in connections.iter().filter(|(info, _)| !info.fallback) {
            let before = self.connections.binary_search_by_key(&info.token, |(info, _)| info.token);
            let still = before.ok().and_then(|at| self.connections.get(at)).is_some_and(|(before, _)| before == info);
            if !still || info.write_seq != info.snd_una {
                self.lively.insert(Token(info.token), LOOKS_AFTER_A_MOVE);
            }
        }
        for listed in self.subflows.iter().filter(|listed| waits(&listed.sample)) {
            self.lively.insert(listed.token, LOOKS_AFTER_A_MOVE);
        }
    }

    /// Samples the subflows of lively connections, each by itself. One that is gone is looked for by the next lists.
    fn look_at_the_lively(&mut self) -> Result<(), RequestError> {
        let Self { requests, subflows, lively, wanted, .. } = self;
        for listed in subflows.iter_mut().filter(|listed| lively.contains_key(&listed.token)) {
            let mut found = None;
            let asked = requests.get(BY_FAMILY, &request_for(listed), |answer| found = read_subflow(answer));
            match (asked, found) {
                (Ok(()), Some((token, sample))) if token == listed.token => listed.sample = sample,
                (Err(RequestError::Io(error)), _) => return Err(RequestError::Io(error)),
                _ => *wanted = LISTS_AFTER_A_CHANGE,
            }
        }
        Ok(())
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
            self.requests.list(BY_FAMILY, &request(family, false), |answer| {
                subflows.extend(read_subflow(answer).map(|(token, sample)| listed(token, sample, answer)));
            })?;
        }
        subflows.sort_unstable_by_key(|listed| (listed.token, listed.sample.endpoints));
        subflows.dedup_by_key(|listed| (listed.token, listed.sample.endpoints));
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
            while subflows.next_if(|listed| listed.token < token).is_some() {}
            let mut own = Vec::new();
            while let Some(listed) = subflows.next_if(|listed| listed.token == token) {
                // The kernel opened joins, but the program owns them.
                own.push(SubflowSample { owner: *owner, ..listed.sample.clone() });
            }
            let base = *self.bases.entry(token).or_insert_with(|| base(info));
            all.push(ConnectionSample {
                token,
                fallback: info.fallback,
                closing: info.closing,
                write_seq: info.write_seq.wrapping_sub(base),
                snd_una: info.snd_una.wrapping_sub(base),
                rcv_nxt: info.rcv_nxt,
                subflows: own,
            });
        }
        all
    }
}

/// A connection with how many subflows it has beside the first.
fn joins((info, _): &(MptcpInfo, Owner)) -> (u32, u8) {
    (info.token, info.joins)
}

fn listed(token: Token, sample: SubflowSample, answer: &[u8]) -> Listed {
    let socket = answer.get(LOCAL_PORT..LOCAL_PORT + SOCKET_ID).unwrap_or_default().to_vec();
    Listed { token, sample, family: u8_at(answer, 0).unwrap_or_default(), socket }
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

/// A request for one subflow.
fn request_for(listed: &Listed) -> Vec<u8> {
    let mut bytes = vec![listed.family, TCP, WANT_INFO, 0];
    bytes.extend(STATES.to_ne_bytes());
    bytes.extend(&listed.socket);
    bytes
}

pub fn read_connection(answer: &[u8]) -> Option<(MptcpInfo, Owner)> {
    let content = answer.get(HEADER..)?;
    let info = read_mptcp_info(attribute(content, INFO)?)?;
    let cgroup = attribute(content, CGROUP).and_then(|value| u64_at(value, 0));
    let (absent, ipv6) = (u32_at(answer, INODE)? == 0, is_ipv6(answer)?);
    let closing = CLOSING & 1_u32.checked_shl(u8_at(answer, STATE)?.into()).unwrap_or_default() != 0;
    let info = MptcpInfo { closing, ..info };
    Some((info, Owner { uid: u32_at(answer, OWNER)?, cgroup, absent, ipv6 }))
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
    let is_ipv6 = is_ipv6(answer)?;
    let address = |address, port| Some(SocketAddr::new(address_at(answer, address, is_ipv6)?, be16_at(answer, port)?));
    let local = address(LOCAL_ADDRESS, LOCAL_PORT)?;
    let endpoints = Endpoints { local, remote: address(REMOTE_ADDRESS, REMOTE_PORT)? };
    Some((Token(block.token), read_tcp_info(info?, endpoints, block)?))
}

/// Whether a socket is of IPv6, perhaps with addresses of IPv4.
fn is_ipv6(answer: &[u8]) -> Option<bool> {
    Some(i32::from(u8_at(answer, 0)?) == nix::libc::AF_INET6)
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
