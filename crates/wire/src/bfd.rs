//! Control packets of Bidirectional Forwarding Detection (RFC 5880, section 4.1), without authentication.

use crate::error::ParseError;
use crate::reader::Reader;

/// UDP port of single-hop sessions (RFC 5881, section 4).
pub const PORT: u16 = 3784;

/// Bytes of a packet without authentication.
pub const LENGTH: usize = 24;

const VERSION: u8 = 1;

/// Flags of the second byte, below the state.
const POLL: u8 = 0x20;
const FINAL: u8 = 0x10;
const AUTHENTICATION: u8 = 0x04;
const MULTIPOINT: u8 = 0x01;

/// State of a session (section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Held down by its administrator.
    AdminDown,
    /// Nothing is heard, or the peer is about to begin.
    Down,
    /// The peer is heard, and does not hear this end yet.
    Init,
    /// Both ends hear each other.
    Up,
}

impl State {
    const ALL: [Self; 4] = [Self::AdminDown, Self::Down, Self::Init, Self::Up];

    /// Its name, as others show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AdminDown => "admin down",
            Self::Down => "down",
            Self::Init => "init",
            Self::Up => "up",
        }
    }
}

/// Why a session last went down (section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Diagnostic(pub u8);

impl Diagnostic {
    /// It never did.
    pub const NONE: Self = Self(0);
    /// Nothing was received for the detection time.
    pub const EXPIRED: Self = Self(1);
    /// The peer said that it is down.
    pub const NEIGHBOR_DOWN: Self = Self(3);
}

/// A control packet. Intervals are in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlPacket {
    /// Why the sender's session last went down, 0 to 31.
    pub diagnostic: Diagnostic,
    /// State of the sender's session.
    pub state: State,
    /// The sender asks for a packet with `is_final`.
    pub poll: bool,
    /// The answer to a packet with `poll`.
    pub is_final: bool,
    /// Missing packets, in intervals, after which the session is down; not 0.
    pub detect_multiplier: u8,
    /// The sender's number of the session; not 0.
    pub my_discriminator: u32,
    /// The receiver's number of the session; 0 if unknown.
    pub your_discriminator: u32,
    /// Least interval in which the sender would like to send.
    pub desired_min_tx: u32,
    /// Least interval in which the sender can receive.
    pub required_min_rx: u32,
    /// The same for echo packets; 0: it takes none.
    pub required_min_echo_rx: u32,
}

impl ControlPacket {
    /// Parses the payload of a UDP packet by the checks of section 6.8.6.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] and [`ParseError::BadLength`]; [`ParseError::Unsupported`] for another version, for
    /// authentication and for multipoint; [`ParseError::BadValue`] for numbers that must not be 0.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let [first, second, detect_multiplier, length] = reader.array().ok_or(ParseError::Truncated)?;
        if first >> 5 != VERSION || second & (AUTHENTICATION | MULTIPOINT) != 0 {
            return Err(ParseError::Unsupported);
        }
        if usize::from(length) < LENGTH || usize::from(length) > bytes.len() {
            return Err(ParseError::BadLength);
        }
        let mut number = || reader.u32().ok_or(ParseError::Truncated);
        let packet = Self {
            diagnostic: Diagnostic(first & 0x1f),
            state: State::ALL.get(usize::from(second >> 6)).copied().ok_or(ParseError::BadValue)?,
            poll: second & POLL != 0,
            is_final: second & FINAL != 0,
            detect_multiplier,
            my_discriminator: number()?,
            your_discriminator: number()?,
            desired_min_tx: number()?,
            required_min_rx: number()?,
            required_min_echo_rx: number()?,
        };
        let unknown = packet.your_discriminator == 0 && !matches!(packet.state, State::Down | State::AdminDown);
        if packet.detect_multiplier == 0 || packet.my_discriminator == 0 || unknown {
            return Err(ParseError::BadValue);
        }
        Ok(packet)
    }

    /// Its bytes.
    pub fn emit(&self) -> [u8; LENGTH] {
        let state = match self.state {
            State::AdminDown => 0,
            State::Down => 1,
            State::Init => 2,
            State::Up => 3,
        };
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let second = state << 6 | flag(self.poll, POLL) | flag(self.is_final, FINAL);
        let mut bytes = [0; LENGTH];
        let head = [VERSION << 5 | self.diagnostic.0 & 0x1f, second, self.detect_multiplier, LENGTH as u8];
        let numbers = [
            self.my_discriminator,
            self.your_discriminator,
            self.desired_min_tx,
            self.required_min_rx,
            self.required_min_echo_rx,
        ];
        let words = core::iter::once(head).chain(numbers.map(u32::to_be_bytes));
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKET: ControlPacket = ControlPacket {
        diagnostic: Diagnostic::EXPIRED,
        state: State::Down,
        poll: true,
        is_final: false,
        detect_multiplier: 3,
        my_discriminator: 0x0102_0304,
        your_discriminator: 0,
        desired_min_tx: 1_000_000,
        required_min_rx: 100_000,
        required_min_echo_rx: 0,
    };

    /// By the figure of section 4.1.
    const BYTES: [u8; LENGTH] =
        [0x21, 0x60, 3, 24, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 1, 0x86, 0xa0, 0, 0, 0, 0];

    #[test]
    fn a_packet_has_the_bytes_of_the_figure() {
        assert_eq!(PACKET.emit(), BYTES);
        assert_eq!(ControlPacket::parse(&BYTES), Ok(PACKET));
    }

    #[test]
    fn what_must_be_discarded_is_an_error() {
        let changed = |at: usize, value: u8| {
            let mut bytes = BYTES;
            bytes[at] = value;
            ControlPacket::parse(&bytes)
        };
        assert_eq!(changed(0, 0x41), Err(ParseError::Unsupported), "version");
        assert_eq!(changed(1, 0x61), Err(ParseError::Unsupported), "multipoint");
        assert_eq!(changed(1, 0x64), Err(ParseError::Unsupported), "authentication");
        assert_eq!(changed(2, 0), Err(ParseError::BadValue), "detect multiplier");
        assert_eq!(changed(3, 23), Err(ParseError::BadLength), "length");
        assert_eq!(changed(3, 25), Err(ParseError::BadLength), "length");
        assert_eq!(changed(1, 0xe0), Err(ParseError::BadValue), "up, and does not know the session");
        assert_eq!(changed(1, 0x20).map(|packet| packet.state), Ok(State::AdminDown));
        let mut anonymous = BYTES;
        anonymous[4..8].fill(0);
        assert_eq!(ControlPacket::parse(&anonymous), Err(ParseError::BadValue));
        assert_eq!(ControlPacket::parse(&BYTES[..23]), Err(ParseError::BadLength));
        // What follows the length is no part of it.
        assert_eq!(ControlPacket::parse(&[&BYTES[..], &[7; 3]].concat()), Ok(PACKET));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused_and_what_is_parsed_is_emitted_again(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(packet) = ControlPacket::parse(&bytes) {
                prop_assert_eq!(ControlPacket::parse(&packet.emit()), Ok(packet));
            }
        }
    }
}
