//! Peers that fall back in mid-stream, over a path that loses and reorders (RFC 8684, section 3.7). They send data again
//! at data level, and cut what they retransmit as they like.

use super::peer::{Peer, options};
use crate::pair::luck::Luck;
use crate::pair::{config, pattern};
use anabranch_mptcp::{BufferSize, ConnectionConfig, Event};
use anabranch_wire::mptcp::{DataSequence, Dss, Mapping, dss_checksum};
use anabranch_wire::{Flags, MptcpOption, TcpOptions};

/// Part of the subflow: its beginning there, its beginning in the stream, its length.
#[derive(Clone, Copy)]
struct Chunk {
    at: u32,
    offset: u64,
    length: u32,
}

/// The peer, and its subflow as it sees it.
struct Sender {
    peer: Peer,
    luck: Luck,
    stream: Vec<u8>,
    /// Where it falls back in the stream.
    until: u64,
    /// How much of the stream is on the subflow.
    assigned: u64,
    /// The bytes of the subflow, from 1 on.
    bytes: Vec<u8>,
    chunks: Vec<Chunk>,
    /// Where plain TCP begins on the subflow.
    plain: Option<u32>,
    acknowledged: u32,
}

impl Sender {
    fn new(seed: u64) -> Self {
        let mut luck = Luck(seed);
        let receive_buffer = BufferSize::Fixed(luck.pick(&[3_000, 200_000]));
        let mut peer = Peer::connected(ConnectionConfig { checksum: luck.one_in(2), receive_buffer, ..config() });
        let stream = pattern(100 + luck.below(2_000) as usize);
        let first = 1 + luck.below(30);
        peer.send_data(0, 0, &stream[..first as usize]);
        if luck.one_in(2) {
            peer.write(b"hello");
            peer.acknowledge(0, 5);
        }
        Self {
            until: first + luck.below(stream.len() as u64 - first),
            bytes: stream[..first as usize].to_vec(),
            chunks: vec![Chunk { at: 1, offset: 0, length: first as u32 }],
            assigned: first,
            plain: None,
            acknowledged: 1 + first as u32,
            peer,
            luck,
            stream,
        }
    }

    fn end(&self) -> u32 {
        1 + self.bytes.len() as u32
    }

    /// Puts more on the subflow: new data, data again, or, as plain TCP, all that is left.
    fn assign(&mut self) {
        let (new, left) = (self.assigned < self.until, self.luck.one_in(3));
        if !new && !left {
            self.plain = Some(self.end());
            self.bytes.extend_from_slice(&self.stream[self.assigned as usize..]);
            return;
        }
        let again = !new || self.luck.one_in(4);
        let offset = if again { self.luck.below(self.assigned) } else { self.assigned };
        let most = if again { self.assigned } else { self.until } - offset;
        let length = 1 + self.luck.below(most.min(120));
        self.assigned = self.assigned.max(offset + length);
        self.chunks.push(Chunk { at: self.end(), offset, length: length as u32 });
        self.bytes.extend_from_slice(&self.stream[offset as usize..(offset + length) as usize]);
    }

    /// The mapping of a chunk, or the infinite one.
    fn dss(&self, Chunk { at, offset, length }: Chunk) -> Dss {
        let number = self.peer.number(offset);
        let bytes = &self.bytes[at as usize - 1..(at + length) as usize - 1];
        let sum = || if length == 0 { 0 } else { dss_checksum(number, at, length as u16, [bytes]) };
        let checksum = self.peer.checksum.then(sum);
        let data_seq = DataSequence::Long(number);
        Dss { mapping: Some(Mapping { data_seq, subflow_seq: at, length: length as u16, checksum }), ..Dss::default() }
    }

    /// The DSS of a segment; none if it needs two. The mapping of what was acknowledged is known.
    fn dss_of(&mut self, from: u32, to: u32, begin: u32) -> Option<Option<Dss>> {
        if from >= begin {
            let last = Chunk { at: begin, offset: self.until, length: 0 };
            return Some((from == begin).then(|| self.dss(last)));
        }
        let covers = |chunk: &&Chunk| chunk.at < to && chunk.at + chunk.length > from;
        let chunks: Vec<Chunk> = self.chunks.iter().filter(covers).copied().collect();
        let unknown: Vec<&Chunk> = chunks.iter().filter(|chunk| self.acknowledged <= chunk.at).collect();
        match unknown.as_slice() {
            [] if self.luck.one_in(2) => Some(None),
            [] => Some(chunks.last().map(|chunk| self.dss(*chunk))),
            [chunk] => Some(Some(self.dss(**chunk))),
            _ => None,
        }
    }

    /// Sends a part of what is on the subflow, or MP_FAIL.
    fn send(&mut self) {
        let (end, begin) = (self.end(), self.plain.unwrap_or(self.end()));
        if self.plain.is_some() && self.luck.one_in(40) {
            let data_seq = self.peer.remote.initial_data_seq.wrapping_add(1);
            let fail = options(vec![MptcpOption::Fail { data_seq }]);
            return self.peer.send_at(0, begin.max(self.acknowledged), Flags::ACK, fail, &[]);
        }
        let ahead = self.luck.below(u64::from(end - self.acknowledged).min(400)) as u32;
        let back = self.luck.below(20) as u32;
        let from = if self.luck.one_in(3) {
            (self.acknowledged - back.min(self.acknowledged - 1)).min(end)
        } else {
            self.acknowledged + ahead
        };
        let to = (from + 1 + self.luck.below(90) as u32).min(if from < begin { begin } else { end });
        let ends = self.plain.is_some() && to == end;
        if from >= to && !ends {
            return;
        }
        if let Some(dss) = self.dss_of(from, to, begin) {
            let payload = self.bytes[from as usize - 1..to as usize - 1].to_vec();
            let flags = if ends { Flags::ACK | Flags::FIN } else { Flags::ACK };
            self.peer.send_at(0, from, flags, TcpOptions { dss, ..TcpOptions::default() }, &payload);
        }
    }

    /// Reads the acknowledgements. Returns whether the FIN is acknowledged.
    fn hear(&mut self) -> bool {
        for packet in self.peer.take() {
            assert!(!packet.segment.flags.contains(Flags::RST), "{packet:?}");
            let number = packet.segment.ack - self.peer.flows[0].peer_initial;
            self.acknowledged = self.acknowledged.max(number);
        }
        self.acknowledged > self.end()
    }
}

#[test]
fn whenever_the_peer_falls_back_and_whatever_is_lost_each_byte_is_read_once() {
    for seed in 0..300 {
        let mut sender = Sender::new(seed);
        for _ in 0..40_000 {
            if sender.hear() {
                break;
            }
            if sender.plain.is_none() && sender.luck.one_in(3) {
                sender.assign();
            }
            sender.send();
            assert!(sender.stream.starts_with(&sender.peer.received), "seed {seed}");
        }
        assert_eq!(sender.peer.received.len(), sender.stream.len(), "seed {seed}");
        let end = Event::EndOfStream(sender.peer.id());
        assert!(sender.peer.events.contains(&end), "seed {seed}");
    }
}
