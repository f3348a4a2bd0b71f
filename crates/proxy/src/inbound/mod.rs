//! The client's request, before its bytes are carried: SOCKS5 or HTTP, which the first byte decides.
//!
//! Without input and output: bytes go in, [`Step`]s come out, so that a client may send byte by byte, or more than was
//! asked for. By hand because the same few states serve sockets of the kernel and streams of ours, stop at fixed limits,
//! and keep what the client sent too early.

mod http;
mod socks;
mod step;

pub use step::{Refusal, Step};

use crate::credentials::Credentials;
use crate::failure::Failure;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// Where the conversation stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    First,
    Socks(socks::State),
    Http,
    /// A request that is passed on.
    Passed,
}

/// A conversation with a client.
pub struct Negotiation {
    credentials: Option<Arc<Credentials>>,
    buffer: BytesMut,
    state: State,
}

impl Negotiation {
    /// A client has connected. With `credentials` it must authenticate.
    pub fn new(credentials: Option<Arc<Credentials>>) -> Self {
        Self { credentials, buffer: BytesMut::new(), state: State::First }
    }

    /// Where to put what the client sends.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// What to do next.
    pub fn poll(&mut self) -> Step {
        if self.state == State::First {
            self.state = match self.buffer.first() {
                None => return Step::Read,
                Some(&socks::VERSION) => State::Socks(socks::State::Greeting),
                // Empty lines before a request do not count (RFC 9112, section 2.2).
                Some(first) if first.is_ascii_uppercase() || matches!(first, b'\r' | b'\n') => State::Http,
                Some(_) => return Step::Refuse(Bytes::new(), Refusal::Malformed),
            };
        }
        match self.state {
            State::First => Step::Read,
            State::Socks(ref mut state) => socks::poll(state, &mut self.buffer, self.credentials.as_deref()),
            State::Http | State::Passed => {
                let (step, form) = http::poll(&mut self.buffer, self.credentials.as_deref());
                if form == http::Form::PassedOn {
                    self.state = State::Passed;
                }
                step
            }
        }
    }

    /// The answer to the client when it is connected.
    pub fn accepted(&self) -> Bytes {
        match self.state {
            State::Http => http::accepted(),
            // The server's answer is all.
            State::Passed => Bytes::new(),
            State::First | State::Socks(_) => socks::reply(0),
        }
    }

    /// The answer to the client when it is not.
    pub fn refused(&self, failure: Failure) -> Bytes {
        match self.state {
            State::Http | State::Passed => http::answer(failure.http_status(), "", failure.sentence()),
            State::First | State::Socks(_) => socks::reply(failure.socks_reply()),
        }
    }

    /// What the client sent after its request, before it was asked to.
    pub fn into_early(self) -> Bytes {
        self.buffer.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` byte by byte, or at once; returns the last step and all that was written before it.
    pub(super) fn converse(
        input: &[u8],
        whole: bool,
        credentials: Option<Credentials>,
    ) -> (Negotiation, Step, Vec<u8>) {
        let mut negotiation = Negotiation::new(credentials.map(Arc::new));
        let mut written = Vec::new();
        let mut last = Step::Read;
        for piece in input.chunks(if whole { input.len().max(1) } else { 1 }) {
            negotiation.input().extend_from_slice(piece);
            last = loop {
                match negotiation.poll() {
                    Step::Write(bytes) => written.extend_from_slice(&bytes),
                    other => break other,
                }
            };
            if last != Step::Read {
                break;
            }
        }
        (negotiation, last, written)
    }

    #[test]
    fn the_first_byte_decides_the_protocol() {
        for first in [0, 4, 6, b'c', b' ', 0x16, 0xff] {
            let (_, step, written) = converse(&[first], true, None);
            assert_eq!((step, written), (Step::Refuse(Bytes::new(), Refusal::Malformed), Vec::new()), "{first}");
        }
        assert_eq!(converse(b"", true, None).1, Step::Read);
        for first in ["C", "\r", "\n"] {
            assert_eq!(converse(first.as_bytes(), true, None).1, Step::Read);
        }
        assert_eq!(converse(&[5], true, None).1, Step::Read);
    }

    #[test]
    fn no_input_whatever_makes_it_panic_or_grow() {
        // A small generator of our own: what matters is that it wanders through all states.
        let mut seed: u64 = 7;
        for _ in 0..20_000 {
            let mut input = vec![[5, b'C', b'\r'][(seed >> 40) as usize % 3]];
            for _ in 0..(seed >> 20) % 40 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                input
                    .push([0, 1, 2, 3, 4, 5, b' ', b'\r', b'\n', b':', (seed >> 56) as u8][(seed >> 33) as usize % 11]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let credentials = (seed >> 63 == 0).then(|| Credentials::new("u", "p").expect("short"));
            let whole = converse(&input, true, credentials.clone());
            let bytewise = converse(&input, false, credentials);
            assert_eq!((&whole.1, &whole.2), (&bytewise.1, &bytewise.2), "{input:?}");
        }
    }
}
