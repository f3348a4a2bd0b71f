//! The states of TCP.

/// The states of RFC 9293, section 3.3.2; LISTEN belongs to the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A SYN is out.
    SynSent,
    /// A SYN came in and ours is out.
    SynReceived,
    /// Data flows.
    Established,
    /// Our FIN is out.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// The peer's FIN is in.
    CloseWait,
    /// Both FINs are out, ours is not acknowledged.
    Closing,
    /// The peer closed first; our FIN is out.
    LastAck,
    /// Both are closed; late segments are answered.
    TimeWait,
    /// Nothing is left.
    Closed,
}

impl State {
    /// Whether the handshake is not over.
    pub(crate) fn is_opening(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived)
    }
    /// Whether the SYNs have been exchanged.
    pub(crate) fn is_synchronised(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }
    /// Whether data of ours may still be put on it.
    pub(crate) fn can_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }
    /// Whether data of the peer may still come.
    pub(crate) fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}
