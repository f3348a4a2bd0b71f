//! Transfers over paths, with policies, mischief and failures drawn at random: whatever happens, both ends read what the
//! other wrote.
//!
//! `ANABRANCH_TRANSFERS` says how many (40 if it does not), `ANABRANCH_SEED` which ones, and `ANABRANCH_TRANSFER` picks a
//! single one by its number.

mod case;
mod mischief;

use crate::scene::{Hosts, Role, Shared, blocking, pattern};
use case::{Case, Close, End};
use libtest_mimic::{Failed, Trial};
use mischief::befall;
use socket2::Socket;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When a transfer hangs. The slowest take a minute.
const PATIENCE: Duration = Duration::from_secs(150);

/// Cases at the same time: they mostly wait.
const AT_ONCE: usize = 8;

pub fn trials() -> Vec<Trial> {
    vec![Trial::test("random_transfers::both_ends_read_what_the_other_wrote", run)]
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

fn run() -> Result<(), Failed> {
    let seed = number("ANABRANCH_SEED").unwrap_or(1);
    let one = number("ANABRANCH_TRANSFER");
    let next = AtomicU64::new(one.unwrap_or(0));
    let end = one.map_or_else(|| number("ANABRANCH_TRANSFERS").unwrap_or(40), |one| one + 1);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return;
                    }
                    let case = Case::draw(seed, number);
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| transfer(&case))) {
                        let text = panic.downcast_ref::<String>().cloned();
                        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                        let text = text.unwrap_or_default();
                        let again = format!("ANABRANCH_SEED={seed} ANABRANCH_TRANSFER={number}");
                        let failure = format!("{again}: {text}\n{case:?}");
                        eprintln!("{failure}");
                        failures.lock().expect("nobody panicked with it").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panicked with it");
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n\n").into()) }
}

fn transfer(case: &Case) {
    let copy = case.clone();
    case.scene().run(|hosts| async move { perform(copy, hosts).await });
}

async fn perform(case: Case, hosts: Hosts) {
    let config = case.configure(hosts.config());
    let socket = prepared(&case, &hosts);
    let (stream, socket) = match case.role {
        Role::WeOpen => hosts.we_open_to(socket, config).await,
        Role::TheKernelOpens => hosts.the_kernel_opens_with(socket, config).await,
    };
    let troubles = case.failures.clone();
    let trouble = async {
        for (path, failure, after) in troubles {
            tokio::time::sleep(Duration::from_millis(after)).await;
            befall(&hosts, path, failure);
        }
    };
    let stream = Shared::new(stream);
    let work = async {
        tokio::join!(trouble, kernel_end(case.kernel.clone(), case.ours.bytes, socket), our_end(&case, &stream))
    };
    let outcome = tokio::time::timeout(PATIENCE, work).await;
    assert!(outcome.is_ok(), "the transfer hangs: {}", stream.describe());
    drop(stream);
    if case.failures.is_empty() {
        hosts.nothing_lingers().await;
    }
}

/// The kernel's socket, with its buffers.
fn prepared(case: &Case, hosts: &Hosts) -> Socket {
    let socket = crate::kernel::mptcp_socket(hosts.our_address());
    let [receive, send] = case.kernel.buffers;
    if let Some(bytes) = receive {
        socket.set_recv_buffer_size(bytes as usize).expect("an option that sockets have");
    }
    if let Some(bytes) = send {
        socket.set_send_buffer_size(bytes as usize).expect("an option that sockets have");
    }
    socket
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

async fn our_end(case: &Case, stream: &Shared) {
    let end = &case.ours;
    let write = async {
        for chunk in bytes_of("ours", end.bytes).chunks(end.chunk) {
            stream.write_all(chunk).await.expect("we can write");
        }
        stream.close().await.expect("we can close");
    };
    let read = async {
        let (expected, mut place) = (bytes_of("kernel", case.kernel.bytes), 0);
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
