//! What the proxy reads from programs, clients and users: SOCKS5 and HTTP CONNECT, requests on the way to the server,
//! records, and rules. No bytes make a reader panic; how they are cut does not matter; what is read means the same again.

#![no_main]

use anabranch_proxy::inbound::{Negotiation, Refusal, Step};
use anabranch_proxy::noise::{Initiator, Opened, Records, Tampered, respond};
use anabranch_proxy::{Credentials, Failure, Key, PriorityRule, Rule, Target};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

/// A refusal is a line and a sentence.
const LONGEST_ANSWER: usize = 1_000;

static KEY: LazyLock<Key> = LazyLock::new(|| Key::generate().expect("random numbers"));

fuzz_target!(|data: &[u8]| {
    let Some((&[what, cut], rest)) = data.split_first_chunk() else { return };
    match what % 8 {
        0..=4 => client(rest, cut, what >= 128),
        5 => request(rest),
        6 => rules(&String::from_utf8_lossy(rest)),
        _ => records(rest, cut, what >= 128),
    }
});

/// What a conversation comes to: the last step, what was written to the client, and what goes to the target first: what the
/// client sent early, behind the request that is passed on if there is one.
type End = (Step, Vec<u8>, Vec<u8>);

/// A client of the proxy: whole, in pieces or byte by byte it gets the same answer.
fn client(input: &[u8], cut: u8, ask: bool) {
    let credentials = || ask.then(|| Arc::new(Credentials::new("user", "pass word").expect("both are short")));
    let ends = [input.len(), usize::from(cut), 1].map(|piece| converse(input, piece.max(1), credentials()));
    let (step, written, early) = &ends[0];
    for (other, wrote, later) in &ends[1..] {
        assert_eq!((step, written), (other, wrote));
        // What the client has sent by then depends on the pieces, and nothing of it is lost.
        assert!(early.starts_with(later) || matches!(step, Step::Refuse(..) | Step::Read));
    }
    match step {
        Step::Read => assert!(input.len() < 16 * 1024),
        Step::Write(_) => unreachable!("the conversation goes on after these"),
        Step::Connect(target) => {
            assert!(input.ends_with(early) || behind_head(early).is_some_and(|rest| input.ends_with(rest)));
            means_the_same(target);
        }
        Step::Refuse(answer, refusal) => {
            assert!(answer.len() < LONGEST_ANSWER);
            assert!(ask || *refusal != Refusal::Unauthorized);
        }
    }
}

/// What follows the head of a request that is passed on: in origin form, the last of its connection, and without a password.
fn behind_head(first: &[u8]) -> Option<&[u8]> {
    const END: &[u8] = b"\r\nConnection: close\r\n\r\n";
    let at = first.windows(END.len()).position(|octets| octets == END)?;
    let (head, rest) = first.split_at(at + END.len());
    let has = |what: &[u8]| head.windows(what.len()).any(|octets| octets.eq_ignore_ascii_case(what));
    (has(b" HTTP/1.") && has(b"\r\nHost: ") && !has(b"\nproxy-authorization:")).then_some(rest)
}

fn converse(input: &[u8], piece: usize, credentials: Option<Arc<Credentials>>) -> End {
    let mut negotiation = Negotiation::new(credentials);
    let (mut written, mut last) = (Vec::new(), Step::Read);
    for piece in input.chunks(piece) {
        negotiation.input().extend_from_slice(piece);
        last = loop {
            match negotiation.poll() {
                Step::Write(bytes) => written.extend_from_slice(&bytes),
                other => break other,
            }
            assert!(written.len() <= 4, "SOCKS5 has two answers of two bytes before the last");
        };
        if last != Step::Read {
            break;
        }
    }
    assert!(!negotiation.refused(Failure::TimedOut).is_empty());
    // Of a request that is passed on the server's answer is all.
    let passed_on = negotiation.accepted().is_empty();
    let first = negotiation.into_early().to_vec();
    assert!(!passed_on || (matches!(last, Step::Connect(_)) && behind_head(&first).is_some()));
    (last, written, first)
}

/// A request as a server of ours reads it.
fn request(input: &[u8]) {
    let Ok(Some((target, length))) = Target::decode(input) else { return };
    for beginning in 0..length {
        assert_eq!(Target::decode(&input[..beginning]), Ok(None));
    }
    means_the_same(&target);
}

/// A target survives the wire and the page.
fn means_the_same(target: &Target) {
    let mut bytes = Vec::new();
    target.encode(&mut bytes);
    assert_eq!(Target::decode(&bytes), Ok(Some((target.clone(), bytes.len()))));
    assert_eq!(target.to_string().parse().as_ref(), Ok(target));
}

fn rules(text: &str) {
    let _ = text.parse::<PriorityRule>();
    let _ = text.parse::<Rule>();
    if let Ok(target) = text.parse() {
        means_the_same(&target);
    }
}

/// Records that somebody on the way cuts, changes, repeats or leaves out: only the beginning of what was sealed is opened.
fn records(input: &[u8], cut: u8, whole: bool) {
    let Some((message, plain)) = input.split_at_checked(48) else { return };
    assert!(respond(&KEY, message.try_into().expect("48 bytes")).is_err(), "nobody guesses the key");
    let (initiator, message) = Initiator::new(&KEY).expect("random numbers");
    let (answer, mut server) = respond(&KEY, &message).expect("the same key");
    let mut client = initiator.finish(&answer).expect("the same key");
    // As many bytes as the first says are sealed at once, and so on.
    let (mut sealed, mut sent, mut rest) = (BytesMut::new(), Vec::new(), plain);
    while let Some((&length, after)) = rest.split_first() {
        let (now, after) = after.split_at(usize::from(length).min(after.len()));
        client.seal(now, &mut sealed);
        sent.extend_from_slice(now);
        rest = after;
    }
    client.seal_end(&mut sealed);
    let mut wire = sealed.to_vec();
    if !whole {
        damage(&mut wire, plain, cut);
    }
    let (opened, end) = open(&mut server, &wire, usize::from(cut).max(1));
    assert!(sent.starts_with(&opened));
    if wire[..] == sealed[..] {
        assert_eq!((opened, end), (sent, Ok(true)));
    } else if end == Ok(true) {
        // What follows the end is not looked at.
        assert!(wire.starts_with(&sealed) && opened == sent);
    }
}

fn damage(wire: &mut Vec<u8>, how: &[u8], which: u8) {
    let at = how.iter().fold(usize::from(which), |sum, &byte| sum * 31 % 65_521 + usize::from(byte)) % wire.len();
    match which % 4 {
        0 => wire[at] ^= which | 1,
        1 => wire.truncate(at),
        2 => _ = wire.remove(at),
        _ => wire.extend_from_within(at..),
    }
}

/// What is opened, and whether the stream was ended.
fn open(records: &mut Records, wire: &[u8], piece: usize) -> (Vec<u8>, Result<bool, Tampered>) {
    let (mut input, mut opened) = (BytesMut::new(), Vec::new());
    for piece in wire.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            match records.open(&mut input) {
                Ok(Opened::Bytes(bytes)) => opened.extend_from_slice(&bytes),
                Ok(Opened::More) => break,
                Ok(Opened::End) => return (opened, Ok(true)),
                Err(tampered) => return (opened, Err(tampered)),
            }
        }
    }
    (opened, Ok(false))
}
