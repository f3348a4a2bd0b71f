//! SOCKS5 (RFC 1928) with CONNECT, without authentication or with a name and a password (RFC 1929).

use super::step::{Refusal, Step};
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::target::{Target, TargetError};
use bytes::{Buf as _, Bytes, BytesMut};

/// VER of SOCKS5.
pub(super) const VERSION: u8 = 5;
/// VER of the negotiation of RFC 1929.
const PASSWORD_VERSION: u8 = 1;

const NO_AUTHENTICATION: u8 = 0;
const USERNAME_PASSWORD: u8 = 2;
const NO_ACCEPTABLE_METHODS: u8 = 0xff;

const CONNECT: u8 = 1;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;

/// What is expected of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Its methods of authentication.
    Greeting,
    /// Name and password.
    Password,
    /// What it wants.
    Request,
}

/// A reply with this REP. BND.ADDR and BND.PORT are zero: a connection over several paths has no single
/// local address.
pub(super) fn reply(code: u8) -> Bytes {
    Bytes::copy_from_slice(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0])
}

/// The next step; takes from `buffer` what it has understood.
pub(super) fn poll(state: &mut State, buffer: &mut BytesMut, credentials: Option<&Credentials>) -> Step {
    match state {
        State::Greeting => greeting(state, buffer, credentials.is_some()),
        State::Password => match credentials {
            Some(credentials) => password(state, buffer, credentials),
            None => Step::Refuse(Bytes::new(), Refusal::Malformed),
        },
        State::Request => request(buffer),
    }
}

fn greeting(state: &mut State, buffer: &mut BytesMut, authenticate: bool) -> Step {
    let &[_, count, ref rest @ ..] = &buffer[..] else { return Step::Read };
    let Some(methods) = rest.get(..usize::from(count)) else { return Step::Read };
    let method = if authenticate { USERNAME_PASSWORD } else { NO_AUTHENTICATION };
    if !methods.contains(&method) {
        let refusal = if authenticate { Refusal::Unauthorized } else { Refusal::Unsupported };
        return Step::Refuse(Bytes::from_static(&[VERSION, NO_ACCEPTABLE_METHODS]), refusal);
    }
    *state = if authenticate { State::Password } else { State::Request };
    buffer.advance(2 + usize::from(count));
    Step::Write(Bytes::copy_from_slice(&[VERSION, method]))
}

/// Two strings with their lengths before them (RFC 1929, section 2).
fn password(state: &mut State, buffer: &mut BytesMut, credentials: &Credentials) -> Step {
    match buffer.first() {
        None => return Step::Read,
        Some(&PASSWORD_VERSION) => {}
        Some(_) => return Step::Refuse(Bytes::new(), Refusal::Malformed),
    }
    let Some((user, after)) = counted(&buffer[1..]) else { return Step::Read };
    let Some((password, after)) = counted(after) else { return Step::Read };
    if !credentials.are(user, password) {
        return Step::Refuse(Bytes::from_static(&[PASSWORD_VERSION, 1]), Refusal::Unauthorized);
    }
    let length = buffer.len() - after.len();
    buffer.advance(length);
    *state = State::Request;
    Step::Write(Bytes::from_static(&[PASSWORD_VERSION, 0]))
}

fn counted(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = input.split_first()?;
    rest.split_at_checked(usize::from(length))
}

fn request(buffer: &mut BytesMut) -> Step {
    match buffer.first() {
        None => return Step::Read,
        Some(&VERSION) => {}
        Some(_) => return Step::Refuse(Bytes::new(), Refusal::Malformed),
    }
    match buffer.get(1) {
        None => return Step::Read,
        Some(&CONNECT) => {}
        Some(_) => return Step::Refuse(reply(COMMAND_NOT_SUPPORTED), Refusal::Unsupported),
    }
    match Target::decode(buffer.get(3..).unwrap_or_default()) {
        Ok(None) => Step::Read,
        Ok(Some((target, length))) => {
            buffer.advance(3 + length);
            Step::Connect(target)
        }
        Err(TargetError::AddressType) => Step::Refuse(reply(ADDRESS_TYPE_NOT_SUPPORTED), Refusal::Unsupported),
        Err(TargetError::Host | TargetError::Port) => {
            Step::Refuse(reply(Failure::HostUnreachable.socks_reply()), Refusal::Malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::converse;
    use super::*;

    /// The example of every description: no authentication, CONNECT to 192.0.2.1:80.
    const PLAIN: &[u8] = &[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80];

    #[test]
    fn a_connection_is_asked_for_in_one_piece_or_byte_by_byte() {
        for whole in [true, false] {
            let (negotiation, step, written) = converse(PLAIN, whole, None);
            assert_eq!(step, Step::Connect("192.0.2.1:80".parse().expect("a target")));
            assert_eq!(written, [5, 0]);
            assert_eq!(&negotiation.accepted()[..], [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
            assert_eq!(negotiation.refused(Failure::Refused)[1], 5);
        }
    }

    #[test]
    fn what_the_client_sends_too_early_is_kept() {
        let input = [PLAIN, b"GET /"].concat();
        let (negotiation, step, _) = converse(&input, true, None);
        assert!(matches!(step, Step::Connect(_)));
        assert_eq!(&negotiation.into_early()[..], b"GET /");
    }

    #[test]
    fn names_and_ipv6_addresses_are_targets() {
        let name = [&[5, 1, 0, 5, 1, 0, 3, 11][..], b"example.org", &[1, 187]].concat();
        assert_eq!(converse(&name, false, None).1, Step::Connect("example.org:443".parse().expect("a target")));
        let mut v6 = vec![5, 2, 0, 2, 5, 1, 0, 4, 0x20, 1, 0xd, 0xb8];
        v6.extend_from_slice(&[0; 11]);
        v6.extend_from_slice(&[1, 0, 22]);
        assert_eq!(converse(&v6, false, None).1, Step::Connect("[2001:db8::1]:22".parse().expect("a target")));
    }

    #[test]
    fn a_password_is_asked_for_and_checked() {
        let credentials = || Some(Credentials::new("fred", "secret").expect("short"));
        let greeting = [5, 2, 0, 2];
        let right = [&greeting[..], b"\x01\x04fred\x06secret", &PLAIN[3..]].concat();
        for whole in [true, false] {
            let (_, step, written) = converse(&right, whole, credentials());
            assert_eq!(step, Step::Connect("192.0.2.1:80".parse().expect("a target")));
            assert_eq!(written, [5, 2, 1, 0]);
        }
        let wrong = [&greeting[..], b"\x01\x04fred\x06secreT", &PLAIN[3..]].concat();
        let (_, step, _) = converse(&wrong, false, credentials());
        assert_eq!(step, Step::Refuse(Bytes::from_static(&[1, 1]), Refusal::Unauthorized));
        let (_, step, _) = converse(PLAIN, true, credentials());
        assert_eq!(step, Step::Refuse(Bytes::from_static(&[5, 0xff]), Refusal::Unauthorized));
    }

    #[test]
    fn what_is_not_offered_gets_the_reply_for_it() {
        let reply_to = |request: &[u8]| match converse(&[&[5, 1, 0], request].concat(), false, None).1 {
            Step::Refuse(bytes, refusal) => (bytes.get(1).copied(), refusal),
            step => panic!("{step:?}"),
        };
        assert_eq!(reply_to(&[5, 2]), (Some(7), Refusal::Unsupported), "BIND");
        assert_eq!(reply_to(&[5, 3]), (Some(7), Refusal::Unsupported), "UDP ASSOCIATE");
        assert_eq!(reply_to(&[5, 1, 0, 9]), (Some(8), Refusal::Unsupported), "a type of address");
        assert_eq!(reply_to(&[5, 1, 0, 3, 1, b'/', 0, 80]), (Some(4), Refusal::Malformed), "no name");
        assert_eq!(reply_to(&[4]), (None, Refusal::Malformed), "another version");
        let (_, step, _) = converse(&[5, 1, 1], true, None);
        assert_eq!(step, Step::Refuse(Bytes::from_static(&[5, 0xff]), Refusal::Unsupported), "GSSAPI only");
    }

    #[test]
    fn the_longest_greeting_is_read() {
        let mut input = vec![5, 255];
        input.extend((0..255).rev());
        assert_eq!(converse(&input, false, None).2, [5, 0]);
    }
}
