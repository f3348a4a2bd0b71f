//! Choices that RFC 8684 and RFC 9293 leave open, and those of the literal peer.

use crate::settings::settings;

settings! {
    /// A choice of the literal peer; [`CHOICES`] has the values.
    Choice, CHOICES;
    /// Speaks MPTCP.
    Multipath "multipath" [1, 0];
    /// Requires DSS checksums.
    Checksum "checksum" [0, 1];
    /// Flag C of MP_CAPABLE: no joins to the initial address.
    DenyJoin "deny_join" [0, 1];
    /// A mapping covers 0 one segment, 1 several and is sent with the first only, 2 several and is sent with each.
    Mapping "mapping" [0, 1, 2];
    /// Octets of data sequence numbers: 0 always 8, 1 always 4, 2 either.
    ShortNumbers "short_numbers" [0, 1, 2];
    /// Octets of DATA_ACKs, likewise.
    ShortAcks "short_acks" [0, 1, 2];
    /// A segment may contain the end of one mapping and the start of the next.
    Across "across" [0, 1];
    /// How often data in flight is mapped again, on any subflow: never, or once in this many turns.
    Again "again" [0, 40, 8];
    /// Data refused at data level: 0 is not acknowledged on the subflow either, 1 is.
    Refused "refused" [0, 1];
    /// Out-of-order data of a subflow is 1 kept, 0 dropped.
    KeepEarly "keep_early" [1, 0];
    /// Receive buffer, bytes.
    Buffer "buffer" [65_536, 1_000, 4_000, 16_000, 262_144, 1_048_576];
    /// The window may shrink (RFC 9293, section 3.8.6, SHLD-14): never, or once in this many segments.
    Shrink "shrink" [0, 30];
    /// The MSS option; 0: none.
    Mss "mss" [1_460, 0, 536, 100, 216, 1_200, 8_960];
    /// Largest payload sent; 1: random from one byte on.
    Segment "segment" [65_535, 1, 100, 700];
    /// Window scale; 99: none.
    Scale "scale" [7, 99, 0, 1, 3, 10, 14];
    /// Timestamps: 0 on all subflows, 1 on none, 2 not on joined ones, 3 on joined ones only.
    Timestamps "timestamps" [0, 1, 2, 3];
    /// SACK, likewise.
    Sack "sack" [0, 1, 2, 3];
    /// Delay of acknowledgements, milliseconds (RFC 9293, section 3.8.6.3: below 500).
    AckDelay "ack_delay" [0, 40, 200, 450];
    /// Retransmission timeout in milliseconds, doubled each time.
    Timeout "timeout" [1_000, 400, 700, 2_500];
    /// Limit of segments in flight on a subflow.
    Burst "burst" [10, 1, 2, 4, 30];
    /// A zero window is probed with 0 an old number, 1 a new octet (RFC 9293, section 3.8.6.1).
    Probe "probe" [0, 1];
    /// DATA_FIN: 0 with the last data if there is any, 1 by itself on one subflow, 2 by itself on all.
    DataFin "data_fin" [0, 1, 2];
    /// FIN of subflows: 0 after the exchange of DATA_FINs, 1 when ours is acknowledged (appendix D), 2 together with
    /// it.
    Fin "fin" [0, 1, 2];
    /// Initial sequence numbers: 0 anywhere, 1 just before the wrap.
    Initial "initial" [0, 1];
    /// Fast close: 0 on a reset (option R), 1 on an acknowledgement (option A).
    FastClose "fast_close" [0, 1];
    /// Joins addresses that are announced.
    Joins "joins" [0, 1];
    /// Refuses joins.
    Refuses "refuses" [0, 1];
    /// A window update is sent on 0 one subflow, 1 all.
    Updates "updates" [0, 1];
    /// Retransmissions are resegmented.
    Recut "recut" [0, 1];
    /// A client's key is 0 its own, 1 the server's: both tokens are equal.
    SameKey "same_key" [0, 1];
}
