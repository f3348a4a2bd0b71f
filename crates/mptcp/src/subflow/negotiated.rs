//! Options negotiated in the handshake.

use anabranch_wire::Segment;

/// Option space that MPTCP uses on data segments, in bytes: a DSS with 8-byte fields (RFC 8684, section 3.3).
pub const MAPPING_SPACE: u32 = 28;

/// Whether the peer sends MPTCP options on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signals {
    /// No DSS so far.
    Never,
    /// The peer sends them.
    Present,
    /// There were some, but none on the last segment.
    Gone,
}

/// Options negotiated in the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Negotiated {
    /// The peer's maximum segment size option, or 536 (RFC 9293, section 3.7.1).
    pub peer_mss: u16,
    /// Shift of our window.
    pub receive_scale: u8,
    /// Shift of the peer's window.
    pub send_scale: u8,
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: Notification,
}

/// The result of the negotiation of ECN in the SYNs (RFC 3168, section 6.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notification {
    Off,
    /// The peer may send ECN-capable segments, whose marks we echo. Our segments are not ECN-capable, since we
    /// retransmitted a SYN without ECN.
    EchoOnly,
    /// Both ends send ECN-capable segments, echo marks and react to echoes.
    On,
}

impl Notification {
    /// Whether our new data is ECN-capable and we react to echoes.
    pub fn marks(self) -> bool {
        self == Self::On
    }
    /// Whether we echo marks on the peer's data.
    pub fn echoes(self) -> bool {
        self != Self::Off
    }
}

impl Signals {
    /// The state after another segment; `signalled` says whether the peer has ever sent an MPTCP option here.
    pub fn after(self, signalled: bool, segment: &Segment) -> Self {
        let has_dss = segment.options.dss.is_some();
        let bare = !has_dss && segment.options.mptcp.is_empty();
        match self {
            _ if signalled && bare => Self::Gone,
            Self::Gone if !has_dss => Self::Gone,
            _ if signalled => Self::Present,
            _ => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::MptcpOption;
    use anabranch_wire::mptcp::Dss;

    #[test]
    fn signals_are_gone_with_a_bare_segment_and_back_with_the_next_dss_only() {
        let (bare, mut dss, mut other) = (Segment::default(), Segment::default(), Segment::default());
        dss.options.dss = Some(Dss::default());
        other.options.mptcp.push(MptcpOption::Priority { backup: true });
        use Signals::*;
        for before in [Never, Present, Gone] {
            assert_eq!(before.after(true, &bare), Gone);
            assert_eq!(before.after(true, &dss), Present);
        }
        // Another option passes where data may still lose its mapping.
        assert_eq!([Never, Present, Gone].map(|before| before.after(true, &other)), [Present, Present, Gone]);
        assert_eq!([Never, Gone].map(|before| before.after(false, &bare)), [Never, Gone]);
    }

    #[test]
    fn marks_are_set_by_who_agreed_and_echoed_also_by_who_only_asked() {
        let of = |agreed: Notification| (agreed.marks(), agreed.echoes());
        assert_eq!(of(Notification::Off), (false, false));
        assert_eq!(of(Notification::EchoOnly), (false, true));
        assert_eq!(of(Notification::On), (true, true));
    }
}
