//! What the literal peer and the network do in a history, as a set: each is counted by the histories in which it was
//! sent, and in which it reached an engine whose connection had not ended.

use super::lie::Lie;

macro_rules! behaviours {
    ($($(#[$doc:meta])* $behaviour:ident $name:literal;)*) => {
        /// Something that Linux or the engine hardly ever does, or a network rarely.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Behaviour { $($(#[$doc])* $behaviour),* }
        const NAMES: &[&str] = &[$($name),*];
    };
}

behaviours! {
    NoCapable "SYN without MP_CAPABLE";
    NoScale "SYN without window scale";
    NoMss "SYN without MSS";
    StampsOnSome "timestamps on some subflows only";
    SackOnSome "SACK on some subflows only";
    NoStamps "no timestamps on the first subflow";
    NoSack "no SACK on the first subflow";
    DenyJoin "flag C: no joins to the first address";
    ChecksumRequired "flag A: checksums";
    KeysWithData "MP_CAPABLE with data";
    EqualTokens "the key of the other side";
    WrappingNumbers "subflow numbers that wrap";
    Join "join";
    JoinUnannounced "join from an unannounced address";
    JoinFirstAddress "second subflow from the first address";
    JoinUnknownToken "join with an unknown token";
    JoinRefused "refused join";
    Announce "ADD_ADDR";
    Withdraw "REMOVE_ADDR";
    Priority "MP_PRIO";
    ShortNumber "data sequence number of 4 octets";
    MixedNumbers "both of 4 and of 8 octets";
    ShortAck "DATA_ACK of 4 octets";
    MixedAcks "DATA_ACKs of both lengths";
    MappingOfSeveral "mapping of several segments";
    UnderEarlierMapping "data whose mapping came earlier";
    AcrossMappings "end of one mapping and data of the next";
    MappedAgain "the same data mapped again on its subflow";
    MappedElsewhere "the same data mapped again on another subflow";
    MappedOtherwise "overlapping mappings with other bounds";
    Checksum "mapping with checksum";
    DataFinOnData "DATA_FIN on data";
    DataFinAlone "DATA_FIN by itself";
    FinFirst "FIN before DATA_FIN";
    FinTogether "FIN together with DATA_FIN";
    FinAfter "FIN after DATA_FIN";
    Reset "reset";
    ResetReason "reset with MP_TCPRST";
    FastCloseReset "MP_FASTCLOSE on a reset";
    FastCloseAck "MP_FASTCLOSE on an acknowledgement";
    InfiniteMapping "infinite mapping";
    Fail "MP_FAIL";
    CutOtherwise "retransmission with other bounds";
    OneOctet "segment of one octet";
    WindowLeft "window that moves left";
    WindowShut "window of zero";
    ProbeOldNumber "probe with an old number";
    StrippedSyn "options lost from SYN or SYN/ACK";
    StrippedThird "options lost from the third ACK";
    StrippedData "options lost from the first data on";
    StrippedMidway "options lost midway";
    Changed "payload changed on the way";
    SynOvertaken "SYN or SYN/ACK that comes again late";
    ThirdOvertaken "third ACK that is overtaken or comes again";
    KeysOvertaken "data that overtakes the keys";
    DataOvertaken "data that is overtaken";
    FinOvertaken "FIN that is overtaken or comes again";
    DataFinOvertaken "DATA_FIN that is overtaken or comes again";
    AnnounceOvertaken "ADD_ADDR that is overtaken or comes again";
    AddressLost "an address goes down";
    TwoWithOneKey "two clients with one key";
}

/// A set of behaviours and lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Set(u128);

impl Set {
    pub fn add(&mut self, behaviour: Behaviour) {
        self.0 |= 1 << behaviour as u32;
    }

    pub fn add_if(&mut self, condition: bool, behaviour: Behaviour) {
        self.0 |= u128::from(condition) << behaviour as u32;
    }

    pub fn add_lie(&mut self, lie: Lie) {
        let place = Lie::NAMES.iter().position(|(_, known)| *known == lie).unwrap_or_default();
        self.0 |= 1 << (NAMES.len() + place);
    }

    pub fn add_all(&mut self, others: Self) {
        self.0 |= others.0;
    }

    pub fn contains(self, behaviour: Behaviour) -> bool {
        self.0 & 1 << behaviour as u32 != 0
    }
}

/// What was sent in a history, and what of it reached an engine that had something to lose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    pub sent: Set,
    pub arrived: Set,
}

/// Numbers of histories by behaviour.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    sent: Vec<u64>,
    arrived: Vec<u64>,
}

impl Counts {
    /// Counts one history.
    pub fn count(&mut self, seen: Seen) {
        let all = NAMES.len() + Lie::NAMES.len();
        for (counts, set) in [(&mut self.sent, seen.sent), (&mut self.arrived, seen.arrived)] {
            counts.resize(all, 0);
            for (place, count) in counts.iter_mut().enumerate() {
                *count += u64::from(set.0 >> place & 1 == 1);
            }
        }
    }

    /// Name, histories in which it was sent, and in which it arrived.
    pub fn rows(&self) -> impl Iterator<Item = (String, u64, u64)> {
        let lies = Lie::NAMES.iter().map(|(name, _)| format!("lie: {name}"));
        let names = NAMES.iter().map(|name| (*name).to_owned()).chain(lies);
        let at = |counts: &[u64], place: usize| counts.get(place).copied().unwrap_or_default();
        names.enumerate().map(move |(place, name)| (name, at(&self.sent, place), at(&self.arrived, place)))
    }
}
