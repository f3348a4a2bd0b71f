//! Names the behaviours in the packets of the literal peer.

use super::behaviour::{Behaviour, Set};
use super::landmark::Landmark;
use super::lie::Lie;
use crate::literal::keys;
use anabranch_wire::mptcp::{CapableKeys, DataAck, DataSequence, Dss, MptcpOption};
use anabranch_wire::{Flags, Packet, Segment};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// MP_TCPRST: administratively prohibited.
const REASON_PROHIBITED: u8 = 3;

/// Segments whose order matters.
const OVERTAKEN: [(Landmark, Behaviour); 8] = [
    (Landmark::Syn, Behaviour::SynOvertaken),
    (Landmark::JoinSyn, Behaviour::SynOvertaken),
    (Landmark::Keys, Behaviour::ThirdOvertaken),
    (Landmark::JoinAck, Behaviour::ThirdOvertaken),
    (Landmark::Data, Behaviour::DataOvertaken),
    (Landmark::Fin, Behaviour::FinOvertaken),
    (Landmark::DataFin, Behaviour::DataFinOvertaken),
    (Landmark::Announce, Behaviour::AnnounceOvertaken),
];

/// Both ports and the local address of a subflow.
type Key = (IpAddr, u16, u16);

/// What a subflow has sent.
#[derive(Default)]
struct Flow {
    stamps: bool,
    sack: bool,
    /// The number after the last octet sent.
    end: u32,
    /// Ends of the segments with payload, by their beginnings.
    cuts: BTreeMap<u32, u32>,
    /// The latest packet of it that has arrived.
    arrived: u64,
}

/// A packet in flight: its behaviours, and what is needed to see whether others overtake it.
#[derive(Clone, Copy, Default)]
pub struct Tag {
    pub set: Set,
    serial: u64,
}

impl Tag {
    /// That of a packet that lies.
    pub fn of_lie(lie: Lie) -> Self {
        let mut tag = Self::default();
        tag.set.add_lie(lie);
        tag
    }
}

/// The literal peer, as the network sees it.
#[derive(Default)]
pub struct Observer {
    flows: BTreeMap<Key, Flow>,
    first: Option<Key>,
    announced: BTreeSet<IpAddr>,
    /// The engine's key.
    other_key: Option<u64>,
    lengths: Lengths,
    /// Lengths of mappings and their places, by the lower half of their data sequence number.
    maps: BTreeMap<u32, (u32, Key, u32)>,
    scale: u8,
    edge: Option<u32>,
    dss: bool,
    data_fin: bool,
    /// The keys have arrived.
    keyed: bool,
    serial: u64,
}

/// Lengths of numbers seen so far.
#[derive(Default)]
struct Lengths {
    short_number: bool,
    long_number: bool,
    short_ack: bool,
    long_ack: bool,
}

fn key_of(packet: &Packet) -> Key {
    (packet.ip.source, packet.segment.source_port, packet.segment.destination_port)
}

impl Observer {
    /// A packet of the engine: its key.
    pub fn hear(&mut self, packet: &Packet) {
        for option in &packet.segment.options.mptcp {
            if let MptcpOption::Capable { keys, .. } = option {
                self.other_key = match keys {
                    CapableKeys::None => self.other_key,
                    CapableKeys::Receiver(key) => Some(*key),
                    CapableKeys::Both { sender, .. } | CapableKeys::BothWithData { sender, .. } => Some(*sender),
                };
            }
        }
    }

    /// A packet as the peer sends it.
    pub fn look(&mut self, packet: &Packet) -> Tag {
        let (key, segment) = (key_of(packet), &packet.segment);
        let mut set = Set::default();
        if segment.flags.contains(Flags::SYN) {
            self.look_at_syn(key, segment, &mut set);
        }
        self.look_at_options(key, segment, &mut set);
        if let Some(dss) = &segment.options.dss {
            self.look_at_dss(key, segment, dss, &mut set);
        }
        self.look_at_text(key, segment, &mut set);
        self.look_at_end(segment, &mut set);
        self.serial += 1;
        Tag { set, serial: self.serial }
    }

    fn look_at_syn(&mut self, key: Key, segment: &Segment, set: &mut Set) {
        let options = &segment.options;
        let (stamps, sack) = (options.timestamps.is_some(), options.sack_permitted);
        let first = *self.first.get_or_insert(key);
        let flow = self.flows.entry(key).or_default();
        (flow.stamps, flow.sack, flow.end) = (stamps, sack, segment.seq.0.wrapping_add(1));
        set.add_if(options.window_scale.is_none(), Behaviour::NoScale);
        set.add_if(options.maximum_segment_size.is_none(), Behaviour::NoMss);
        self.scale = options.window_scale.unwrap_or(0);
        if key == first {
            set.add_if(options.mptcp.is_empty(), Behaviour::NoCapable);
            set.add_if(!stamps, Behaviour::NoStamps);
            set.add_if(!sack, Behaviour::NoSack);
        } else if let Some(initial) = self.flows.get(&first) {
            set.add_if(initial.stamps != stamps, Behaviour::StampsOnSome);
            set.add_if(initial.sack != sack, Behaviour::SackOnSome);
        }
    }

    fn look_at_options(&mut self, key: Key, segment: &Segment, set: &mut Set) {
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Capable { flags, keys, .. } => {
                    set.add_if(flags.deny_join_initial, Behaviour::DenyJoin);
                    set.add_if(flags.checksum_required, Behaviour::ChecksumRequired);
                    set.add_if(matches!(keys, CapableKeys::BothWithData { .. }), Behaviour::KeysWithData);
                    let equal = matches!(keys, CapableKeys::Both { sender, receiver } if sender == receiver);
                    set.add_if(equal, Behaviour::EqualTokens);
                }
                MptcpOption::JoinSyn { token, .. } => {
                    let known = self.other_key.map(keys::token) == Some(*token);
                    let first = self.first.is_some_and(|first| first.0 == key.0);
                    set.add(if known { Behaviour::Join } else { Behaviour::JoinUnknownToken });
                    set.add_if(known && first, Behaviour::JoinFirstAddress);
                    set.add_if(known && !first && !self.announced.contains(&key.0), Behaviour::JoinUnannounced);
                }
                MptcpOption::AddAddress { address, truncated_hmac: Some(_), .. } => {
                    self.announced.insert(*address);
                    set.add(Behaviour::Announce);
                }
                MptcpOption::RemoveAddress { .. } => set.add(Behaviour::Withdraw),
                MptcpOption::Priority { .. } => set.add(Behaviour::Priority),
                MptcpOption::Fail { .. } => set.add(Behaviour::Fail),
                MptcpOption::FastClose { .. } => {
                    let reset = segment.flags.contains(Flags::RST);
                    set.add(if reset { Behaviour::FastCloseReset } else { Behaviour::FastCloseAck });
                }
                MptcpOption::TcpReset { reason, .. } => {
                    set.add(Behaviour::ResetReason);
                    set.add_if(*reason == REASON_PROHIBITED, Behaviour::JoinRefused);
                }
                _ => {}
            }
        }
    }

    fn look_at_dss(&mut self, key: Key, segment: &Segment, dss: &Dss, set: &mut Set) {
        self.dss = true;
        if let Some(ack) = dss.data_ack {
            let lower = match ack {
                DataAck::Short(number) => number,
                DataAck::Long(number) => number as u32,
            };
            let short = matches!(ack, DataAck::Short(_));
            self.lengths.short_ack |= short;
            self.lengths.long_ack |= !short;
            set.add_if(short, Behaviour::ShortAck);
            set.add_if(self.lengths.short_ack && self.lengths.long_ack, Behaviour::MixedAcks);
            let edge = lower.wrapping_add(u32::from(segment.window) << self.scale);
            let before = self.edge.replace(edge);
            set.add_if(before.is_some_and(|before| (edge.wrapping_sub(before) as i32) < 0), Behaviour::WindowLeft);
        }
        let Some(mapping) = &dss.mapping else {
            set.add_if(!segment.payload.is_empty(), Behaviour::UnderEarlierMapping);
            return;
        };
        let short = matches!(mapping.data_seq, DataSequence::Short(_));
        self.lengths.short_number |= short;
        self.lengths.long_number |= !short;
        set.add_if(short, Behaviour::ShortNumber);
        set.add_if(self.lengths.short_number && self.lengths.long_number, Behaviour::MixedNumbers);
        set.add_if(mapping.checksum.is_some(), Behaviour::Checksum);
        set.add_if(mapping.length == 0 && !dss.data_fin, Behaviour::InfiniteMapping);
        let length = u32::from(mapping.length).saturating_sub(u32::from(dss.data_fin));
        if dss.data_fin {
            set.add(if length > 0 { Behaviour::DataFinOnData } else { Behaviour::DataFinAlone });
        }
        if length > 0 && !segment.payload.is_empty() {
            set.add_if((segment.payload.len() as u32) < length, Behaviour::MappingOfSeveral);
            set.add_if(segment.payload.len() as u32 > length, Behaviour::AcrossMappings);
            let lower = match mapping.data_seq {
                DataSequence::Short(number) => number,
                DataSequence::Long(number) => number as u32,
            };
            self.look_at_mapping(lower, length, (key, mapping.subflow_seq), set);
        }
    }

    /// A mapping by the lower half of its number.
    fn look_at_mapping(&mut self, start: u32, length: u32, place: (Key, u32), set: &mut Set) {
        let (key, subflow_seq) = place;
        if let Some((known, other, number)) = self.maps.get(&start).filter(|(known, ..)| *known == length) {
            let again = *known == length && (*other, *number) != place;
            set.add_if(again && *other == key, Behaviour::MappedAgain);
            set.add_if(again && *other != key, Behaviour::MappedElsewhere);
            return;
        }
        let before = self.maps.range(..=start).next_back();
        let behind = self.maps.range(start..).next();
        let overlaps = before.is_some_and(|(from, (length, ..))| start - from < *length)
            || behind.is_some_and(|(from, _)| from - start < length);
        set.add_if(overlaps, Behaviour::MappedOtherwise);
        self.maps.insert(start, (length, key, subflow_seq));
    }

    fn look_at_text(&mut self, key: Key, segment: &Segment, set: &mut Set) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let start = segment.seq.0;
        let end = start.wrapping_add(segment.payload.len() as u32);
        let control = segment.flags.intersects(Flags(Flags::SYN.0 | Flags::RST.0 | Flags::FIN.0));
        set.add_if(!control && segment.window == 0, Behaviour::WindowShut);
        let old = (start.wrapping_sub(flow.end) as i32) < 0;
        if segment.payload.is_empty() {
            set.add_if(!control && old && start.wrapping_add(1) == flow.end, Behaviour::ProbeOldNumber);
        } else {
            set.add_if(segment.payload.len() == 1, Behaviour::OneOctet);
            let known = flow.cuts.insert(start, end);
            set.add_if(old && known != Some(end), Behaviour::CutOtherwise);
            set.add_if(end < start, Behaviour::WrappingNumbers);
        }
        if (end.wrapping_sub(flow.end) as i32) > 0 {
            flow.end = end;
        }
    }

    fn look_at_end(&mut self, segment: &Segment, set: &mut Set) {
        let data_fin = segment.options.dss.as_ref().is_some_and(|dss| dss.data_fin);
        set.add_if(segment.flags.contains(Flags::RST), Behaviour::Reset);
        if segment.flags.contains(Flags::FIN) && self.dss {
            set.add_if(!self.data_fin && !data_fin, Behaviour::FinFirst);
            set.add_if(!self.data_fin && data_fin, Behaviour::FinTogether);
            set.add_if(self.data_fin, Behaviour::FinAfter);
        }
        self.data_fin |= data_fin;
    }

    /// A packet whose options are removed.
    pub fn strip(&self, packet: &Packet, tag: &mut Tag) {
        let options = &packet.segment.options;
        if options.dss.is_none() && options.mptcp.is_empty() {
            return;
        }
        let third = [Landmark::Keys, Landmark::JoinAck].iter().any(|landmark| landmark.is(&packet.segment));
        tag.set.add(match third {
            _ if packet.segment.flags.contains(Flags::SYN) => Behaviour::StrippedSyn,
            true => Behaviour::StrippedThird,
            false if !self.keyed => Behaviour::StrippedData,
            false => Behaviour::StrippedMidway,
        });
    }

    /// A packet arrives: gives all behaviours that it has.
    pub fn arrive(&mut self, packet: &Packet, tag: Tag) -> Set {
        let (mut set, segment) = (tag.set, &packet.segment);
        let keys = Landmark::Keys.is(segment);
        if let Some(flow) = self.flows.get_mut(&key_of(packet)) {
            // Sent before one that has arrived, or the same again.
            let late = tag.serial > 0 && tag.serial <= flow.arrived;
            flow.arrived = flow.arrived.max(tag.serial);
            for (landmark, behaviour) in OVERTAKEN {
                set.add_if(late && landmark.is(segment), behaviour);
            }
            let data = !segment.payload.is_empty() && segment.options.dss.is_some();
            set.add_if(data && !keys && !self.keyed, Behaviour::KeysOvertaken);
        }
        self.keyed |= keys || segment.flags.contains(Flags::SYN | Flags::ACK);
        set
    }
}
