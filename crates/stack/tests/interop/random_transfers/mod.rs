//! Transfers over paths, with policies, mischief and failures drawn at random: whatever happens, both ends read what the
//! other wrote.
//!
//! `ANABRANCH_TRANSFERS` says how many (40 if it does not), `ANABRANCH_SEED` which ones, and `ANABRANCH_TRANSFER` picks a
//! single one by its number.

mod case;

use crate::mischief::befall;
use crate::scene::Hosts;
use crate::traffic::exchange;
use case::Case;
use libtest_mimic::{Failed, Trial};
use socket2::Socket;
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
    let (stream, socket) = hosts.open_with(case.role, socket, config).await;
    let troubles = case.failures.clone();
    let trouble = async {
        for (path, failure, after) in troubles {
            tokio::time::sleep(Duration::from_millis(after)).await;
            befall(&hosts, path, failure);
        }
    };
    tokio::join!(trouble, exchange(stream, socket, &case.ours, &case.kernel, PATIENCE));
    if case.failures.is_empty() {
        hosts.nothing_lingers().await;
    }
}

/// The kernel's socket, with its buffers.
fn prepared(case: &Case, hosts: &Hosts) -> Socket {
    let socket = crate::kernel::mptcp_socket(hosts.our_address());
    let [receive, send] = case.buffers[0];
    if let Some(bytes) = receive {
        socket.set_recv_buffer_size(bytes as usize).expect("an option that sockets have");
    }
    if let Some(bytes) = send {
        socket.set_send_buffer_size(bytes as usize).expect("an option that sockets have");
    }
    socket
}
