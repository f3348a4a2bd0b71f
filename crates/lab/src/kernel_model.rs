//! Linux as settings of the lab: the baseline `linux`, and the kernel's buffer sizes.
//!
//! | Linux (6.18) | here |
//! |---|---|
//! | SO_RCVBUF is doubled; of that the share payload / memory of a segment is offered as window | a fixed buffer of that size |
//! | `tcp_rmem`: begins at half of the second value, grows to the share of the third | an automatic buffer of those sizes |
//! | the window is what is left of the memory, so what waits out of order takes from it | `charge_out_of_order` |
//! | send buffers grow with the windows, up to `tcp_wmem`; the connection's is their sum | the scheduler `linux` has them |
//! | subflows are not coupled | `cubic` or `new_reno` |
//! | CUBIC with RFC 8312's Reno estimate and the first HyStart; slow start counts all that is acknowledged | settings of both |
//! | initial window 10, delayed acknowledgements 40 ms, least RTO 200 ms, PRR, RACK-TLP, no pacing without `fq` | the defaults |

use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::table::Settings;
use anabranch_settings::baseline::{self, Baseline};

/// `tcp_rmem` of the kernel's namespaces, bytes: minimum, default, maximum (defaults of a machine with enough memory).
pub const READ_MEMORY: [u64; 3] = [4_096, 131_072, 6_291_456];
/// `tcp_wmem`, likewise.
pub const WRITE_MEMORY: [u64; 3] = [4_096, 16_384, 4_194_304];
/// Memory of a full segment from a TUN device: its buffer of 2048 bytes plus the kernel's metadata.
const SEGMENT_MEMORY: u64 = 2_304;
/// Payload of a full segment, without and with MPTCP's DSS option.
const PAYLOAD: [u64; 2] = [1_448, 1_424];

fn linux() -> Baseline {
    baseline::embedded("linux").expect("it comes with the program")
}

/// Lines of `[connection]` for a program with this receive buffer (none: automatic) on `paths` paths.
pub fn connection(receive_buffer: Option<u64>, paths: usize) -> String {
    let share = |bytes: u64| bytes * PAYLOAD[usize::from(paths > 1)] / SEGMENT_MEMORY;
    let receive = match receive_buffer {
        Some(bytes) => format!("\"{} B\"", share(2 * bytes)),
        None => format!("{{ initial = \"{} B\", max = \"{} B\" }}", READ_MEMORY[1] / 2, share(READ_MEMORY[2])),
    };
    // The scheduler enforces the limit of each subflow; this is their sum.
    let send = WRITE_MEMORY[2] * paths as u64;
    let mut lines = format!("receive_buffer = {receive}\nsend_buffer = \"{send} B\"\n");
    for (name, value) in linux().connection.iter().filter(|(name, _)| *name != "send_buffer") {
        let bare = value.parse::<bool>().is_ok() || value.parse::<u64>().is_ok();
        let value = if bare { value } else { format!("\"{value}\"") };
        lines.push_str(&format!("{name} = {value}\n"));
    }
    lines
}

/// Scheduler and congestion control, of which the kernel has `cubic` and `new_reno`.
pub fn policies(congestion: &str) -> Combination {
    let mut policies = Combination::default();
    linux().choices.apply(&mut policies);
    if policies.congestion.name != congestion {
        policies.congestion =
            Choice { settings: Settings::new().with("segment_limit", "off"), ..Choice::new(congestion) };
    }
    policies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_sends_as_much_as_the_kernels_memory_lets_it() {
        let scheduler = policies("cubic").scheduler;
        assert_eq!(scheduler.settings.get("largest_buffer"), Some(WRITE_MEMORY[2].to_string().as_str()));
        let lines = connection(None, 2);
        for expected in ["send_buffer = \"8388608 B\"", "charge_out_of_order = true", "delayed_ack = \"40 ms\""] {
            assert!(lines.contains(expected), "{lines}");
        }
    }

    #[test]
    fn both_congestion_controls_of_the_kernel_count_all_that_is_acknowledged() {
        for congestion in ["cubic", "new_reno"] {
            let chosen = policies(congestion).congestion;
            assert_eq!((chosen.name.as_str(), chosen.settings.get("segment_limit")), (congestion, Some("off")));
        }
    }
}
