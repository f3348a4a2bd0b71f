//! One TCP connection of the literal peer, with the variables and states of RFC 9293, sections 3.3.1 and 3.3.2. All
//! numbers are relative to the initial ones: SYN is 0, the first octet is 1.

use super::time::{NEVER, Nanos};
use anabranch_wire::mptcp::MptcpOption;
use anabranch_wire::tcp::{SackBlock, SackBlocks};
use anabranch_wire::{Segment, SeqNumber};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// The states of RFC 9293, section 3.3.2, but LISTEN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Initial,
    JoinedByUs,
    JoinedByPeer,
}

/// A mapping of ours: octets of the subflow from `start` on are those of the stream from `offset` on.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub start: u32,
    pub length: u32,
    pub offset: u64,
    /// Whether it ends with DATA_FIN.
    pub fin: bool,
    /// Sent with the keys until those are confirmed.
    pub with_keys: bool,
    /// Whether it has been sent.
    pub told: bool,
}

impl Map {
    pub const fn end(&self) -> u32 {
        self.start + self.length
    }
}

/// A mapping of the peer's.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    pub start: u32,
    pub length: u32,
    pub offset: u64,
    /// The length field, which includes a DATA_FIN.
    pub length_field: u16,
    pub checksum: Option<u16>,
}

/// Contents of an acknowledgement without data.
#[derive(Clone, Debug)]
pub enum Signal {
    /// An option without DSS.
    Alone(MptcpOption),
    /// An option with the DATA_ACK.
    Beside(MptcpOption),
    /// DATA_FIN.
    DataFin,
    /// Nothing, with an old sequence number.
    Probe,
}

/// Negotiated options and their state.
#[derive(Debug, Default)]
pub struct Agreed {
    pub send_shift: u8,
    pub recv_shift: u8,
    pub stamps: bool,
    pub recent: u32,
    pub sack: bool,
    pub nonce: u32,
    pub peer_nonce: u32,
}

/// The peer's mappings.
#[derive(Debug, Default)]
pub struct PeerMappings {
    pub heard: Vec<Heard>,
    /// Octets of an incomplete mapping, with checksums.
    pub held: Vec<u8>,
    /// Consecutive segments without a mapping.
    pub unmapped: u32,
}

/// Pending segments, and timers.
#[derive(Debug)]
pub struct Due {
    pub ack_now: bool,
    pub ack_at: Nanos,
    pub unacknowledged: u32,
    pub signals: VecDeque<Signal>,
    pub resend_now: bool,
    /// The end of the data sent when the timer expired.
    pub recover: u32,
    pub resend_at: Nanos,
    pub tries: u32,
    /// Timeouts since the last segment of the peer.
    pub silent: u32,
    pub linger_at: Nanos,
}

impl Due {
    const NOTHING: Self = Self {
        ack_now: false,
        ack_at: NEVER,
        unacknowledged: 0,
        signals: VecDeque::new(),
        resend_now: false,
        recover: 0,
        resend_at: NEVER,
        tries: 0,
        silent: 0,
        linger_at: NEVER,
    };
}

/// A subflow.
#[derive(Debug)]
pub struct Flow {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub local_id: u8,
    pub kind: Kind,
    pub state: State,
    pub backup: bool,
    // Send sequence space.
    pub iss: SeqNumber,
    pub una: u32,
    pub nxt: u32,
    pub window: u64,
    pub wl1: u32,
    pub wl2: u32,
    pub mss: usize,
    /// Octets assigned to this subflow, from number 1 on.
    pub bytes: Vec<u8>,
    pub maps: Vec<Map>,
    /// The number of our FIN, once it is determined.
    pub fin: Option<u32>,
    /// One octet may be sent regardless of the window.
    pub force: bool,
    // Receive sequence space.
    pub irs: SeqNumber,
    pub rcv_nxt: u32,
    pub early: BTreeMap<u32, Bytes>,
    pub fin_at: Option<u32>,
    pub mappings: PeerMappings,
    pub options: Agreed,
    /// Data may be sent: the handshake of a join has four segments.
    pub usable: bool,
    pub due: Due,
}

impl Flow {
    pub fn new(local: SocketAddr, remote: SocketAddr, local_id: u8, kind: Kind, iss: SeqNumber) -> Self {
        Self {
            local,
            remote,
            local_id,
            kind,
            state: if kind == Kind::JoinedByPeer { State::SynReceived } else { State::SynSent },
            backup: false,
            iss,
            una: 0,
            nxt: 0,
            window: 0,
            wl1: 0,
            wl2: 0,
            mss: 536,
            bytes: Vec::new(),
            maps: Vec::new(),
            fin: None,
            force: false,
            irs: SeqNumber(0),
            rcv_nxt: 0,
            early: BTreeMap::new(),
            fin_at: None,
            usable: false,
            options: Agreed::default(),
            mappings: PeerMappings::default(),
            due: Due::NOTHING,
        }
    }

    /// The number after the last octet assigned to this subflow.
    pub fn end(&self) -> u32 {
        1 + self.bytes.len() as u32
    }

    /// Whether new data may be assigned to it.
    pub fn may_send(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait) && self.usable && self.fin.is_none()
    }

    /// Whether its handshake is complete and it is not closed.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::TimeWait | State::Closed)
    }

    /// Whether the peer may still send on it.
    pub fn may_receive(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// Whether anything is unacknowledged.
    pub fn outstanding(&self) -> bool {
        self.una < self.nxt
    }

    pub fn map_at(&self, number: u32) -> Option<usize> {
        let after = self.maps.partition_point(|map| map.start <= number);
        after.checked_sub(1).filter(|index| number < self.maps[*index].end())
    }

    pub fn heard_at(&self, number: u32) -> Option<Heard> {
        self.mappings.heard.iter().find(|heard| heard.start <= number && number < heard.start + heard.length).copied()
    }

    /// The first mapping of a number counts (RFC 8684, section 3.3.1: it must not change).
    pub fn hear(&mut self, heard: Heard) {
        if heard.length > 0
            && !self.mappings.heard.iter().any(|known| known.start == heard.start && known.length >= heard.length)
        {
            let behind = self.rcv_nxt;
            self.mappings.heard.retain(|known| known.start + known.length > behind);
            self.mappings.heard.push(heard);
            // If there are too many, the farthest is dropped: that of the next octet must be known.
            if self.mappings.heard.len() > 2_048
                && let Some(farthest) =
                    (0..self.mappings.heard.len()).max_by_key(|place| self.mappings.heard[*place].start)
            {
                self.mappings.heard.swap_remove(farthest);
            }
        }
    }

    /// The octets from one number to another.
    pub fn slice(&self, from: u32, to: u32) -> Bytes {
        Bytes::copy_from_slice(&self.bytes[from as usize - 1..to as usize - 1])
    }

    /// A sequence number of the peer, relative; negative if before the SYN.
    pub fn relative(&self, seq: SeqNumber) -> i64 {
        i64::from(self.rcv_nxt) + i64::from(seq.distance(self.irs + self.rcv_nxt))
    }

    /// SACK blocks of out-of-order data.
    pub fn blocks(&self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (start, bytes) in &self.early {
            let end = start + bytes.len() as u32;
            match ranges.last_mut().filter(|(_, last)| *last >= *start) {
                Some((_, last)) => *last = end.max(*last),
                None => ranges.push((*start, end)),
            }
        }
        for (start, end) in ranges.into_iter().take(most) {
            blocks.push(SackBlock { start: self.irs + start, end: self.irs + end });
        }
        blocks
    }

    /// Stores out-of-order data; existing octets are kept.
    pub fn keep(&mut self, start: u32, bytes: Bytes) {
        let longer = self.early.get(&start).is_none_or(|known| known.len() < bytes.len());
        if !bytes.is_empty() && longer && (self.early.len() < 2_048 || start == self.rcv_nxt) {
            self.early.insert(start, bytes);
        }
    }

    /// The state after sending our FIN.
    pub fn sent_fin(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// Negotiates the options of a SYN or SYN/ACK that both sides must send.
    pub fn agree(&mut self, segment: &Segment, stamps: bool, sack: bool, scale: Option<u8>) {
        let offered = &segment.options;
        self.irs = segment.seq;
        self.rcv_nxt = 1;
        self.mss = usize::from(offered.maximum_segment_size.unwrap_or(536));
        self.options.stamps = stamps && offered.timestamps.is_some();
        self.options.recent = offered.timestamps.map_or(0, |stamps| stamps.value);
        self.options.sack = sack && offered.sack_permitted;
        if let (Some(ours), Some(theirs)) = (scale, offered.window_scale) {
            (self.options.recv_shift, self.options.send_shift) = (ours, theirs);
        }
        self.window = u64::from(segment.window);
    }
}
