//! What the handshake agreed on.

use anabranch_wire::Segment;

/// Bytes of option space that MPTCP takes on data segments: DSS with 8-byte fields (RFC 8684, section 3.3).
pub const MAPPING_SPACE: u32 = 28;

/// What has come in on a subflow of MPTCP's options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signals {
    /// No DSS so far.
    Never,
    /// They come.
    Present,
    /// They came, and the last segment had none.
    Gone,
}

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Negotiated {
    /// The peer's maximum segment size option, or 536 (RFC 9293, section 3.7.1).
    pub peer_mss: u16,
    /// Shift of the windows that we send.
    pub receive_scale: u8,
    /// Shift of the windows that we get.
    pub send_scale: u8,
    /// Timestamps on every segment.
    pub timestamps: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Explicit congestion notification.
    pub ecn: Notification,
}

/// What the SYNs agreed on about explicit congestion notification (RFC 3168, section 6.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notification {
    /// Nothing.
    Off,
    /// The peer may send ECN-capable segments, and their marks are echoed. Ours are not ECN-capable, since a SYN of ours
    /// was sent again without ECN.
    EchoOnly,
    /// Both ends send ECN-capable segments, echo marks and heed echoes.
    On,
}

impl Notification {
    /// Whether our new data is ECN-capable, and echoes of the peer count.
    pub fn marks(self) -> bool {
        self == Self::On
    }
    /// Whether marks on the peer's data are echoed.
    pub fn echoes(self) -> bool {
        self != Self::Off
    }
}

impl Signals {
    /// After one more segment; `signalled` says whether the peer has ever shown an MPTCP option here.
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
