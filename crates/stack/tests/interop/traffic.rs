//! Bytes both ways on a connection with the kernel, compared as they arrive.

use crate::scene::{Shared, blocking, pattern};
use anabranch_stack::Stream;
use socket2::Socket;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

/// When an end stops sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Close {
    /// After its last byte.
    AfterWriting,
    /// After the end of the peer's stream.
    AfterReading,
}

/// One end's traffic.
#[derive(Clone, Debug)]
pub struct End {
    /// Bytes to send.
    pub bytes: usize,
    /// Bytes of a write.
    pub chunk: usize,
    /// A pause after each read, microseconds.
    pub pause: u64,
    /// When it closes.
    pub close: Close,
}

impl End {
    /// So many bytes, in large chunks, without pauses.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, chunk: 64 * 1024, pause: 0, close: Close::AfterWriting }
    }
}

/// Moves bytes both ways until both ends have read to the end what the other wrote. Ends that hang are described after
/// `patience`.
pub async fn exchange(stream: Stream, socket: Socket, ours: &End, kernel: &End, patience: Duration) {
    let stream = Shared::new(stream);
    let (up, down) = (ours.bytes, kernel.bytes);
    let work = async { tokio::join!(kernel_end(kernel.clone(), up, socket), our_end(ours, down, &stream)) };
    let outcome = tokio::time::timeout(patience, work).await;
    assert!(outcome.is_ok(), "the transfer hangs: {}", stream.describe());
}

/// What the kernel sends, and what we do.
fn bytes_of(role: &str, length: usize) -> Vec<u8> {
    let mut bytes = pattern(length);
    bytes.iter_mut().for_each(|byte| *byte ^= role.as_bytes()[0]);
    bytes
}

async fn kernel_end(end: End, expected: usize, socket: Socket) {
    let (to_write, second) = (end.clone(), socket.try_clone().expect("a descriptor"));
    let write = move |mut socket: Socket| {
        for chunk in bytes_of("kernel", to_write.bytes).chunks(to_write.chunk) {
            socket.write_all(chunk).expect("the kernel can write");
        }
        socket.shutdown(Shutdown::Write).expect("the kernel can close");
    };
    let pause = Duration::from_micros(end.pause);
    let read = move |mut socket: Socket| {
        let (expected, mut place) = (bytes_of("ours", expected), 0);
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let length = socket.read(&mut buffer).unwrap_or_else(|error| panic!("the kernel reads {place}: {error}"));
            if length == 0 {
                assert_eq!(place, expected.len(), "the kernel read less than we wrote");
                return;
            }
            let same = expected.get(place..place + length).is_some_and(|part| part == &buffer[..length]);
            assert!(same, "the kernel read something else than we wrote, at {place}");
            place += length;
            std::thread::sleep(pause);
        }
    };
    match end.close {
        Close::AfterWriting => {
            tokio::join!(blocking(move || write(socket)), blocking(move || read(second)));
        }
        Close::AfterReading => {
            blocking(move || {
                read(second);
                write(socket);
            })
            .await;
        }
    }
}

async fn our_end(end: &End, expected: usize, stream: &Shared) {
    let write = async {
        for chunk in bytes_of("ours", end.bytes).chunks(end.chunk) {
            stream.write_all(chunk).await.expect("we can write");
        }
        stream.close().await.expect("we can close");
    };
    let read = async {
        let (expected, mut place) = (bytes_of("kernel", expected), 0);
        loop {
            let read = stream.read(256 * 1024).await;
            let part = read.unwrap_or_else(|error| panic!("we read {place}: {error}"));
            if part.is_empty() {
                assert_eq!(place, expected.len(), "we read less than the kernel wrote");
                return;
            }
            let same = expected.get(place..place + part.len()).is_some_and(|expected| part == expected);
            assert!(same, "we read something else than the kernel wrote, at {place}");
            place += part.len();
            if end.pause > 0 {
                tokio::time::sleep(Duration::from_micros(end.pause)).await;
            }
        }
    };
    match end.close {
        Close::AfterWriting => {
            tokio::join!(write, read);
        }
        Close::AfterReading => {
            read.await;
            write.await;
        }
    }
}
