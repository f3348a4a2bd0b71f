//! Linux in the lab's words: the engine's settings that mirror what the kernel's ends are set to.
//!
//! | Linux (6.18) | here |
//! |---|---|
//! | SO_RCVBUF is doubled; of that the share payload / memory of a packet may be offered as window | a fixed buffer of that size |
//! | `tcp_rmem`: begins at half of the second value, grows to the third | an automatic buffer of those sizes |
//! | the send buffer grows with the windows, `tcp_wmem` at most | the scheduler's `send_buffer`; a fixed one of the whole |
//! | subflows are not coupled | `cubic` or `new_reno` |
//! | initial window 10, delayed acknowledgements 40 ms, least RTO 200 ms, PRR, RACK-TLP, no pacing without `fq` | the defaults |

use super::cases::Case;
use anabranch_policy::combination::{Choice, Combination};

/// `tcp_rmem` of the kernel's namespaces, bytes: least, first, most (the defaults of a machine with memory enough).
pub const READ_MEMORY: [u64; 3] = [4_096, 131_072, 6_291_456];
/// `tcp_wmem`, likewise.
pub const WRITE_MEMORY: [u64; 3] = [4_096, 16_384, 4_194_304];
/// Share of the receive buffer's memory that can be offered as window: payload of a full segment over what a packet from a
/// TUN device takes.
const WINDOW_SHARE: f64 = 1_448.0 / 2_304.0;
/// What a segment takes in the send buffer's arithmetic over its payload, twice as the kernel has it (`tcp_sndbuf_expand`).
const SEND_WINDOWS: f64 = 2.0 * 4_352.0 / 1_448.0;

/// The lines of `[connection]`.
pub fn connection(case: &Case) -> String {
    let share = |bytes: u64| (bytes as f64 * WINDOW_SHARE) as u64;
    let receive = match case.receive_buffer {
        Some(bytes) => format!("\"{} B\"", share(2 * bytes)),
        None => format!("{{ initial = \"{} B\", max = \"{} B\" }}", READ_MEMORY[1] / 2, share(READ_MEMORY[2])),
    };
    let send = WRITE_MEMORY[2] * case.paths.len() as u64;
    format!("receive_buffer = {receive}\nsend_buffer = \"{send} B\"\n")
}

/// Scheduler and congestion control.
pub fn policies(case: &Case) -> Combination {
    let mut scheduler = Choice::new("linux");
    scheduler.settings.set("send_buffer", format!("{SEND_WINDOWS:.1}"));
    Combination { congestion: Choice::new(case.congestion), scheduler, ..Combination::default() }
}
