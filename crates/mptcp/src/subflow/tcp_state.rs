//! The states of TCP (RFC 9293, section 3.3.2).

/// A state of RFC 9293, section 3.3.2. LISTEN belongs to the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Our SYN is sent.
    SynSent,
    /// The peer's SYN was received, and ours is sent.
    SynReceived,
    /// Data is transferred.
    Established,
    /// Our FIN is sent.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// The peer's FIN was received.
    CloseWait,
    /// Both FINs are sent, ours is not acknowledged.
    Closing,
    /// Our FIN followed the peer's.
    LastAck,
    /// Both directions are closed. Late segments are answered.
    TimeWait,
    Closed,
}

impl State {
    /// The handshake is not complete.
    pub(crate) fn is_opening(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived)
    }
    /// The SYNs have been exchanged.
    pub(crate) fn is_synchronised(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }
    /// We may send data.
    pub(crate) fn can_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }
    /// The peer may send data.
    pub(crate) fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}
