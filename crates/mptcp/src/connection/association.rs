//! The protocol of a connection, what is known of the peer's MPTCP options, and the progress of a fallback.

use anabranch_wire::SeqNumber;

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// MPTCP was offered; the peer's answer or its third ACK is missing.
    Negotiating,
    /// MPTCP.
    Multipath,
    /// TCP without MPTCP options, from the start or after a fallback (RFC 8684, section 3.7).
    Tcp,
}

/// State of the negotiation of MPTCP.
#[derive(Debug)]
pub(super) struct Association {
    pub protocol: Protocol,
    /// The peer has shown that MPTCP options arrive (client), or that it has our key (server).
    pub confirmed: bool,
    /// DSS options carry checksums (RFC 8684, section 3.3.1).
    pub checksum: bool,
    /// The peer's data sequence numbers had 64 bits, so our DATA_ACKs have too (RFC 8684, section 3.3.2).
    pub long_data_ack: bool,
    /// We have sent a DSS option: the peer may consider MPTCP confirmed.
    pub dss_sent: bool,
    /// Another subflow was added, so data in flight need not be contiguous.
    pub joined: bool,
    pub fallback: Fallback,
}

/// A fallback that the peer may not know of. An empty one takes no memory.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    untold: Option<Box<Untold>>,
}

#[derive(Debug, Default)]
struct Untold {
    infinite_mapping: InfiniteMapping,
    /// The data sequence number of our MP_FAIL, until the peer has answered, and how often it is still sent.
    failed: Option<(u64, u8)>,
    /// We sent MP_FAIL: the infinite mapping of the peer tells how its numbers continue.
    was_failure: bool,
    /// The number of the subflow with which plain TCP began, if something before it was missing then.
    behind_hole: Option<SeqNumber>,
    /// The MP_FAIL that answers data of a peer that we cannot hear any more, and how often it is still sent.
    blind: Option<(u64, u8)>,
}

/// How often MP_FAIL is sent. The answer may never come: nothing arrives from the peer, its options are stripped, or it has
/// no space for MP_FAIL beside a DATA_FIN that it repeats (Linux with checksums and timestamps).
const FAILURES: u8 = 8;

/// The infinite mapping that announces a fallback to the peer (RFC 8684, section 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum InfiniteMapping {
    #[default]
    None,
    /// It is on the next data.
    Due,
    /// It is on the data that begins here, including its retransmissions.
    At(u64),
}

impl Association {
    /// The state before the handshake.
    pub fn new(protocol: Protocol, checksum: bool) -> Self {
        Self {
            protocol,
            confirmed: false,
            checksum,
            long_data_ack: false,
            dss_sent: false,
            joined: false,
            fallback: Fallback::default(),
        }
    }
}

impl Fallback {
    /// Puts an infinite mapping on the next data (RFC 8684, section 3.7).
    pub fn announce(&mut self) {
        self.untold.get_or_insert_default().infinite_mapping = InfiniteMapping::Due;
    }

    /// Whether the infinite mapping is on the data that begins at `data_seq`.
    pub fn goes_with(&mut self, data_seq: u64) -> bool {
        self.untold.as_mut().is_some_and(|untold| untold.infinite_mapping.belongs_to(data_seq))
    }

    /// We fell back after a checksum failure: our MP_FAIL has this data sequence number.
    pub fn fail(&mut self, data_seq: u64) {
        let untold = self.untold.get_or_insert_default();
        (untold.failed, untold.was_failure) = (Some((data_seq, FAILURES)), true);
    }

    /// We fell back since no option of the peer arrives, and it has had DATA_ACKs of ours: without data of ours that
    /// could carry the infinite mapping, MP_FAIL with this data sequence number tells it.
    pub fn fail_blindly(&mut self, data_seq: u64) {
        let untold = self.untold.get_or_insert_default();
        (untold.blind, untold.was_failure) = (Some((data_seq, FAILURES)), true);
    }

    /// The data sequence number of the MP_FAIL that is due with the next acknowledgement to a peer whose options do not
    /// arrive, unless the infinite mapping is on its way.
    pub fn take_blind_failure(&mut self) -> Option<u64> {
        let untold = self.untold.as_mut().filter(|untold| untold.infinite_mapping == InfiniteMapping::Due)?;
        let (data_seq, left) = untold.blind?;
        untold.blind = (left > 1).then_some((data_seq, left - 1));
        Some(data_seq)
    }

    /// The data sequence number of our MP_FAIL, until the peer has answered.
    pub fn unheard(&self) -> Option<u64> {
        self.untold.as_ref()?.failed.map(|(data_seq, _)| data_seq)
    }

    /// Whether our MP_FAIL was not sent yet.
    pub fn is_unsaid(&self) -> bool {
        self.untold.as_ref().is_some_and(|untold| matches!(untold.failed, Some((_, FAILURES))))
    }

    /// The data sequence number of our MP_FAIL, to be sent now, unless the peer has answered or it was sent often enough.
    pub fn take_failure(&mut self) -> Option<u64> {
        let (data_seq, left) = self.untold.as_mut()?.failed.as_mut().filter(|(_, left)| *left > 0)?;
        *left -= 1;
        Some(*data_seq)
    }

    /// Whether the peer has not answered our MP_FAIL, and it may be sent again.
    pub fn may_fail_again(&self) -> bool {
        self.untold.as_ref().is_some_and(|untold| untold.failed.is_some_and(|(_, left)| left > 0))
    }

    /// Whether a peer that has not answered our MP_FAIL learns of the fallback by nothing else: no infinite mapping goes
    /// with data or FIN. Such a peer would take FIN for the end of the subflow and not of the stream.
    pub fn is_told_by_failure_alone(&self) -> bool {
        let untold = self.untold.as_ref();
        untold.is_some_and(|untold| untold.failed.is_some() && untold.infinite_mapping == InfiniteMapping::None)
    }

    /// Plain TCP began with the segment that begins here, and something before it is missing, which may have been sent
    /// with mappings. None when it has come.
    pub fn begin_behind_hole(&mut self, seq: Option<SeqNumber>) {
        self.untold.get_or_insert_default().behind_hole = seq;
    }

    /// Where plain TCP began, if that was behind a hole which is still there.
    pub fn behind_hole(&self) -> Option<SeqNumber> {
        self.untold.as_ref()?.behind_hole
    }

    /// Whether we sent MP_FAIL.
    pub fn was_failure(&self) -> bool {
        self.untold.as_ref().is_some_and(|untold| untold.was_failure)
    }

    /// Whether mappings of the peer count in plain TCP.
    pub fn heeds_mappings(&self) -> bool {
        self.untold.as_ref().is_some_and(|untold| untold.was_failure || untold.behind_hole.is_some())
    }

    /// The peer has answered, or we no longer wait for it.
    pub fn hear(&mut self) {
        self.untold.iter_mut().for_each(|untold| untold.failed = None);
    }

    /// An option of the peer arrived after our fallback.
    pub fn hear_option(&mut self) {
        self.untold.iter_mut().for_each(|untold| untold.blind = None);
    }
}

impl InfiniteMapping {
    /// Whether it is on the data that begins at `data_seq`.
    fn belongs_to(&mut self, data_seq: u64) -> bool {
        if *self == Self::Due {
            *self = Self::At(data_seq);
        }
        *self == Self::At(data_seq)
    }
}
