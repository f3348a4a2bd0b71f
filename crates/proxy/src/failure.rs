//! Why a client is not connected, with the codes of SOCKS5 (RFC 1928, section 6) and HTTP (RFC 9110, section 15).

use anabranch_mptcp::CloseCause;
use anabranch_mptcp::OperationError;
use anabranch_stack::ConnectError;
use anabranch_system::is_out_of_descriptors;
use std::io;

/// The answer of our server that has no room: among those that SOCKS5 has not assigned.
pub(crate) const SERVER_FULL: u8 = 255;

/// Why a client is not connected, the least specific first: of several attempts the greatest is reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Failure {
    /// Anything else.
    General,
    /// There is no address here of that family, or a router has no route.
    NetworkUnreachable,
    /// There is no such name, or a router does not reach the host.
    HostUnreachable,
    /// No answer in time.
    TimedOut,
    /// The target refused.
    Refused,
    /// Not allowed here.
    NotAllowed,
    /// This process may open no more files.
    NoDescriptors,
    /// Our server has as many connections as it may have.
    ServerFull,
}

impl Failure {
    /// REP of a SOCKS5 reply.
    pub(crate) fn socks_reply(self) -> u8 {
        match self {
            // SOCKS5 has no code for the last two.
            Self::General | Self::NoDescriptors | Self::ServerFull => 1,
            Self::NotAllowed => 2,
            Self::NetworkUnreachable => 3,
            Self::HostUnreachable => 4,
            Self::Refused => 5,
            // "TTL expired": the only code here that means a timeout.
            Self::TimedOut => 6,
        }
    }

    /// What our server answers.
    pub(crate) fn server_reply(self) -> u8 {
        match self {
            Self::NoDescriptors | Self::ServerFull => SERVER_FULL,
            other => other.socks_reply(),
        }
    }

    /// The inverse of [`Self::server_reply`], which includes [`Self::socks_reply`]; what is unknown is [`Self::General`].
    pub(crate) fn from_socks_reply(reply: u8) -> Self {
        match reply {
            2 => Self::NotAllowed,
            3 => Self::NetworkUnreachable,
            4 => Self::HostUnreachable,
            5 => Self::Refused,
            6 => Self::TimedOut,
            SERVER_FULL => Self::ServerFull,
            _ => Self::General,
        }
    }

    /// Status and reason phrase of an HTTP answer.
    pub(crate) fn http_status(self) -> &'static str {
        match self {
            Self::NotAllowed => "403 Forbidden",
            Self::TimedOut => "504 Gateway Timeout",
            Self::NoDescriptors | Self::ServerFull => "503 Service Unavailable",
            Self::General | Self::NetworkUnreachable | Self::HostUnreachable | Self::Refused => "502 Bad Gateway",
        }
    }

    /// One sentence for messages.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::General => "The connection could not be made.",
            Self::NoDescriptors => "The proxy may open no more files.",
            Self::ServerFull => "The server has as many connections as it may have.",
            Self::NotAllowed => "This destination is not allowed.",
            Self::NetworkUnreachable => "There is no network here that the destination can be reached from.",
            Self::HostUnreachable => "The destination is not known or cannot be reached.",
            Self::Refused => "The destination refused the connection.",
            Self::TimedOut => "The destination did not answer in time.",
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Impossible(OperationError::NoAddress) => Self::NetworkUnreachable,
            ConnectError::Impossible(OperationError::NoPeer) => Self::HostUnreachable,
            ConnectError::Ended(CloseCause::NetworkUnreachable) => Self::NetworkUnreachable,
            ConnectError::Ended(CloseCause::HostUnreachable) => Self::HostUnreachable,
            ConnectError::Ended(CloseCause::Refused | CloseCause::AbortedByPeer) => Self::Refused,
            ConnectError::Ended(CloseCause::TimedOut | CloseCause::UserTimeout) => Self::TimedOut,
            ConnectError::Impossible(_) | ConnectError::Ended(_) | ConnectError::ShutDown => Self::General,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if is_out_of_descriptors(&error) {
            return Self::NoDescriptors;
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Self::Refused,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => Self::NetworkUnreachable,
            io::ErrorKind::HostUnreachable => Self::HostUnreachable,
            _ => Self::General,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Failure; 6] = [
        Failure::General,
        Failure::NetworkUnreachable,
        Failure::HostUnreachable,
        Failure::TimedOut,
        Failure::Refused,
        Failure::NotAllowed,
    ];

    #[test]
    fn each_failure_has_a_reply_of_its_own_and_comes_back_from_it() {
        for failure in ALL {
            assert_eq!(Failure::from_socks_reply(failure.socks_reply()), failure);
            assert_ne!(failure.socks_reply(), 0, "0 means success");
        }
        assert_eq!(Failure::from_socks_reply(99), Failure::General);
        // A program is told what SOCKS5 has a code for.
        assert_eq!(Failure::from_socks_reply(SERVER_FULL), Failure::ServerFull);
        assert_eq!(Failure::ServerFull.socks_reply(), Failure::General.socks_reply());
        assert_eq!(
            Failure::from_socks_reply(Failure::from(io::Error::from_raw_os_error(24)).server_reply()),
            Failure::ServerFull
        );
    }

    #[test]
    fn of_several_attempts_a_refusal_says_more_than_a_missing_address() {
        assert!(Failure::Refused > Failure::NetworkUnreachable);
        assert_eq!(Failure::from(ConnectError::Ended(CloseCause::Refused)), Failure::Refused);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::ConnectionRefused)), Failure::Refused);
        assert_eq!(Failure::from(ConnectError::Impossible(OperationError::NoAddress)), Failure::NetworkUnreachable);
        let ended = |cause| Failure::from(ConnectError::Ended(cause));
        assert_eq!(ended(CloseCause::NetworkUnreachable), Failure::NetworkUnreachable);
        assert_eq!(ended(CloseCause::HostUnreachable), Failure::HostUnreachable);
    }
}
