//! The packets of a stream as seen by an outside observer: which segments were sent on which path and when, and which
//! arrived.

use anabranch_policy::time::Instant;
use anabranch_wire::message::{self, HEADER};
use anabranch_wire::mptcp::{CapableKeys, DataSequence, MptcpOption};
use anabranch_wire::packet::Packet;
use anabranch_wire::tcp::Flags;
use std::collections::BTreeMap;

const NAMES: [&str; 2] = ["A", "C"];
/// Number of recent segments that are searched for an arriving one.
const UNDER_WAY: usize = 4_000;

/// The range of each message in the stream, by its number.
pub type Places = BTreeMap<u32, (u64, u64)>;

/// A data segment.
#[derive(Clone, Debug)]
struct Sent {
    path: usize,
    /// Its sequence number on the subflow, and its timestamp: together they identify it.
    label: (u32, Option<u32>),
    start: u64,
    end: u64,
    at: Instant,
    arrived: Option<Instant>,
}

/// The packets of two paths.
#[derive(Default)]
pub struct Packets {
    sent: Vec<Sent>,
    initial: [u32; 2],
    /// By path: data sequence numbers of mappings, by subflow sequence number.
    mappings: [BTreeMap<u32, u64>; 2],
    bytes: BTreeMap<u64, Vec<u8>>,
    /// The number of the stream's first byte, and the length of the data sent with the keys.
    base: Option<u64>,
    head: u64,
}

impl Packets {
    /// A packet of the sender was sent or has arrived.
    pub fn note(&mut self, now: Instant, path: usize, arrives: bool, packet: &Packet) {
        let segment = &packet.segment;
        if segment.flags.contains(Flags::SYN) {
            self.initial[path] = segment.seq.0;
        }
        let length = segment.payload.len() as u64;
        if length == 0 {
            return;
        }
        let relative = segment.seq.0.wrapping_sub(self.initial[path]);
        let label = (relative, segment.options.timestamps.map(|stamps| stamps.value));
        if arrives {
            let is_it = |sent: &&mut Sent| sent.path == path && sent.label == label && sent.arrived.is_none();
            let found = self.sent.iter_mut().rev().take(UNDER_WAY).filter(is_it).last();
            found.into_iter().for_each(|sent| sent.arrived = Some(now));
            return;
        }
        let is_first = |option: &MptcpOption| {
            matches!(option, MptcpOption::Capable { keys: CapableKeys::BothWithData { .. }, .. })
        };
        if segment.options.mptcp.iter().any(is_first) {
            self.head = length;
            self.bytes.insert(0, segment.payload.to_vec());
            self.sent.push(Sent { path, label, start: 0, end: length, at: now, arrived: None });
            return;
        }
        if let Some(mapping) = segment.options.dss.as_ref().and_then(|dss| dss.mapping)
            && let DataSequence::Long(number) = mapping.data_seq
        {
            // The first mapping follows the first segment.
            self.base.get_or_insert(number.wrapping_sub(self.head));
            self.mappings[path].insert(mapping.subflow_seq, number);
        }
        let mapping = self.mappings[path].range(..=relative).next_back();
        let (Some((at, number)), Some(base)) = (mapping, self.base) else { return };
        let start = number + u64::from(relative - at) - base;
        self.bytes.entry(start).or_insert_with(|| segment.payload.to_vec());
        self.sent.push(Sent { path, label, start, end: start + length, at: now, arrived: None });
    }

    /// The ranges of messages, without those that were not sent at all.
    pub fn places(&self) -> Places {
        let end = self.sent.iter().map(|sent| sent.end).max().unwrap_or(0);
        let mut stream = vec![0; end as usize];
        for (at, bytes) in &self.bytes {
            stream[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
        }
        let (mut places, mut from) = (Places::new(), 0);
        while let Some((at, header)) = message::find(&stream[from..]) {
            let start = from + at;
            let end = start + HEADER + header.length as usize;
            places.insert(header.number, (start as u64, end as u64));
            from = end.min(stream.len());
        }
        places
    }

    /// Why a message was not complete by the limit: the fate of its last piece.
    pub fn cause(&self, places: &Places, number: u32, limit: Instant) -> String {
        let Some(&(start, end)) = places.get(&number) else { return "not started".to_owned() };
        let copies: Vec<&Sent> = self.sent.iter().filter(|sent| sent.start < end && sent.end > start).collect();
        let mut cuts: Vec<u64> = copies.iter().flat_map(|sent| [sent.start, sent.end]).chain([start, end]).collect();
        cuts.retain(|cut| (start..=end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        let mut last: Option<(Instant, Vec<&Sent>)> = None;
        for pair in cuts.windows(2) {
            let mut piece: Vec<&Sent> =
                copies.iter().filter(|sent| sent.start <= pair[0] && sent.end >= pair[1]).copied().collect();
            if piece.is_empty() {
                return "started, and its end withdrawn".to_owned();
            }
            piece.sort_by_key(|sent| sent.at);
            let came = piece.iter().filter_map(|sent| sent.arrived).min().unwrap_or(Instant::NEVER);
            if last.as_ref().is_none_or(|last| came > last.0) {
                last = Some((came, piece));
            }
        }
        match last {
            Some((came, _)) if came <= limit => "waited for an earlier one".to_owned(),
            Some((came, piece)) => story(&piece, came),
            None => "empty".to_owned(),
        }
    }
}

/// Transmissions of a piece, and their fates.
fn story(piece: &[&Sent], came: Instant) -> String {
    let Some(best) = piece.iter().position(|sent| sent.arrived == Some(came)) else {
        return format!("lost for good on {}", NAMES[piece[0].path]);
    };
    let path = NAMES[piece[best].path];
    match (best, piece[0].arrived) {
        (0, _) => format!("sent too late on {path}"),
        (_, Some(_)) => format!("overtaken by a copy on {path}"),
        _ => format!("lost on {}, then {path}", NAMES[piece[0].path]),
    }
}
