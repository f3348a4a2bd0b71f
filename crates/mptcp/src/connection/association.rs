//! What is spoken on the subflows, what is known of the peer's MPTCP options, and how far a fallback has come.

/// What is spoken on the subflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// MPTCP was offered; the peer's answer or its third acknowledgement is still to come.
    Negotiating,
    /// MPTCP.
    Multipath,
    /// TCP without any MPTCP option, from the start or since a fallback (RFC 8684, section 3.7).
    Tcp,
}

/// The state of MPTCP's negotiation.
#[derive(Debug)]
pub(super) struct Association {
    /// What is spoken.
    pub protocol: Protocol,
    /// The peer has shown that MPTCP options reach us (client) or that it has our key (server).
    pub confirmed: bool,
    /// DSS options carry checksums (RFC 8684, section 3.3.1).
    pub checksum: bool,
    /// The peer's data sequence numbers were seen with 64 bits: our DATA_ACKs are too (RFC 8684, section 3.3.2).
    pub long_data_ack: bool,
    /// A DSS option of ours was sent: the peer may consider MPTCP confirmed.
    pub dss_sent: bool,
    /// A subflow was added to the first: data in flight need not be contiguous any more.
    pub joined: bool,
    /// The state of a fallback to TCP.
    pub fallback: Fallback,
}

/// A fallback to TCP that the peer has not heard of yet. It takes no memory where there is none.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    untold: Option<Box<Untold>>,
}

#[derive(Debug, Default)]
struct Untold {
    infinite_mapping: InfiniteMapping,
    /// The data sequence number that our MP_FAIL names, until it was heard.
    failed: Option<u64>,
    /// There was an MP_FAIL of ours: the peer says with an infinite mapping how its numbers go on.
    was_failure: bool,
}

/// The infinite mapping that tells the peer of a fallback (RFC 8684, section 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum InfiniteMapping {
    /// There is none to send.
    #[default]
    None,
    /// It goes with the next data.
    Due,
    /// It goes with the data that begins here, each time that is sent.
    At(u64),
}

impl Association {
    /// Before anything was heard of the peer.
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
    /// An infinite mapping goes with the next data (RFC 8684, section 3.7).
    pub fn announce(&mut self) {
        self.untold.get_or_insert_default().infinite_mapping = InfiniteMapping::Due;
    }

    /// Whether the infinite mapping goes with the data that begins at `data_seq`.
    pub fn goes_with(&mut self, data_seq: u64) -> bool {
        self.untold.as_mut().is_some_and(|untold| untold.infinite_mapping.belongs_to(data_seq))
    }

    /// We fell back for a wrong checksum: our MP_FAIL names this data sequence number.
    pub fn fail(&mut self, data_seq: u64) {
        let untold = self.untold.get_or_insert_default();
        (untold.failed, untold.was_failure) = (Some(data_seq), true);
    }

    /// The data sequence number that our MP_FAIL names, until the peer has shown that it knows.
    pub fn unheard(&self) -> Option<u64> {
        self.untold.as_ref()?.failed
    }

    /// Whether we sent MP_FAIL.
    pub fn was_failure(&self) -> bool {
        self.untold.as_ref().is_some_and(|untold| untold.was_failure)
    }

    /// The peer has shown that it knows, or is not waited for any longer.
    pub fn hear(&mut self) {
        self.untold.iter_mut().for_each(|untold| untold.failed = None);
    }
}

impl InfiniteMapping {
    /// Whether it goes with the data that begins at `data_seq`.
    fn belongs_to(&mut self, data_seq: u64) -> bool {
        if *self == Self::Due {
            *self = Self::At(data_seq);
        }
        *self == Self::At(data_seq)
    }
}
