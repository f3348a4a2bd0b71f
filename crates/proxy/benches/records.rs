//! What proof and encryption cost: a handshake of both ends, and 64 kB sealed and opened.

use anabranch_proxy::Key;
use anabranch_proxy::noise::{Initiator, Opened, Records, respond};
use bytes::BytesMut;
use divan::Bencher;
use divan::counter::BytesCount;

/// What a socket returns at once.
const READ: usize = 64 * 1024;

fn main() {
    divan::main();
}

fn pair(key: &Key) -> (Records, Records) {
    let (initiator, message) = Initiator::new(key).expect("random numbers");
    let (answer, server) = respond(key, &message).expect("the same key");
    (initiator.finish(&answer).expect("the same key"), server)
}

#[divan::bench]
fn handshake(bencher: Bencher) {
    let key = Key::generate().expect("random numbers");
    bencher.bench(|| pair(&key));
}

#[divan::bench]
fn seal(bencher: Bencher) {
    let (mut client, _) = pair(&Key::generate().expect("random numbers"));
    let plain = vec![7; READ];
    bencher.counter(BytesCount::new(READ)).bench_local(|| {
        let mut sealed = BytesMut::new();
        client.seal(&plain, &mut sealed);
        sealed
    });
}

#[divan::bench]
fn seal_and_open(bencher: Bencher) {
    let (mut client, mut server) = pair(&Key::generate().expect("random numbers"));
    let plain = vec![7; READ];
    bencher.counter(BytesCount::new(READ)).bench_local(|| {
        let mut sealed = BytesMut::new();
        client.seal(&plain, &mut sealed);
        let mut opened = 0;
        while let Ok(Opened::Bytes(bytes)) = server.open(&mut sealed) {
            opened += bytes.len();
        }
        assert_eq!(opened, READ);
    });
}
