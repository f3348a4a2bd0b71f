//! MP_PRIO in both directions: it is understood, and data moves.

use crate::field::{Field, Heard, Kernel, field, in_both_families, talk, to_kernel, to_us, until};
use crate::kernel::{counter, ip, release};
use crate::middlebox::Way;
use crate::pair::{ours, theirs};
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::PathAction;
use anabranch_stack::Stream;
use libtest_mimic::Trial;
use std::net::IpAddr;

/// Enough to use every path.
const MUCH: usize = 400_000;

pub fn trials() -> Vec<Trial> {
    in_both_families(
        "priority",
        &[
            ("the_kernel_obeys_ours_when_we_opened", |v6| the_kernel_obeys_ours(v6, true)),
            ("the_kernel_obeys_ours_when_it_opened", |v6| the_kernel_obeys_ours(v6, false)),
            ("we_obey_the_kernels_when_it_opened", |v6| we_obey_the_kernels(v6, false)),
            ("we_obey_the_kernels_when_we_opened", |v6| we_obey_the_kernels(v6, true)),
            ("the_initial_subflow_can_be_the_backup", the_initial_subflow),
            ("the_kernel_can_make_the_initial_subflow_the_backup", the_kernels_initial_subflow),
        ],
    )
}

/// The kernel's endpoint becomes a backup, or is none any more. By address: 5.15 knows none by its id ("missing family").
fn change(endpoint: IpAddr, word: &str) {
    ip(&format!("mptcp endpoint change {endpoint} {word}"));
}

/// How much the kernel may still send on a subflow that has become a backup: 5.15 goes on to the end of its burst, wherever that was
/// begun.
fn rest_of_burst(way: Way) -> usize {
    if way == Way::ToUs && release() < (6, 1) { 1 << 16 } else { 0 }
}

/// A connection with a subflow on each of two paths; returns the second's id. Joins go to what was announced, so that paths
/// are addresses on both sides.
async fn two_paths(field: &Field, we: bool) -> (Stream, Kernel, SubflowId) {
    two_paths_with(field, we, field.config()).await
}

/// The same with settings of ours.
pub async fn two_paths_with(field: &Field, we: bool, mut config: ConnectionConfig) -> (Stream, Kernel, SubflowId) {
    ip("mptcp limits set subflows 1 add_addr_accepted 1");
    ip(&format!("mptcp endpoint add {} id 5 {}", theirs(1, field.v6), if we { "signal" } else { "subflow" }));
    // So that the kernel joins what we announce, and not our initial address.
    config.deny_join_initial = !we;
    let (mut stream, kernel) = match we {
        true => field.we_open_with(config).await,
        false => field.the_kernel_opens_with(config).await,
    };
    talk(&mut stream, &kernel).await;
    if we {
        field.hear(|heard| matches!(heard, Heard::Announced(..))).await;
        field.join(&stream, 2, 5);
    } else {
        field.order(PathAction::Announce { connection: stream.id(), local: AddressId(2) });
    }
    let on_second = |heard: &Heard| matches!(heard, Heard::Open(SubflowId(1..), local, ..) if local.0 == 2);
    let Heard::Open(subflow, ..) = field.hear(on_second).await else { unreachable!("only that fits") };
    (stream, kernel, subflow)
}

/// Payload on the second path in a transfer this way.
pub async fn on_second_path(field: &Field, stream: &mut Stream, kernel: &Kernel, way: Way) -> usize {
    let of_second = |seen: &crate::middlebox::Seen| {
        let (source, destination) = (seen.packet.ip.source, seen.packet.ip.destination);
        seen.way == way && (source == ours(1, field.v6) || destination == ours(1, field.v6))
    };
    let bytes = || field.boxes[1].seen(of_second).iter().map(|seen| seen.packet.segment.payload.len()).sum::<usize>();
    let before = bytes();
    match way {
        Way::ToKernel => to_kernel(stream, kernel, MUCH).await,
        Way::ToUs => to_us(stream, kernel, MUCH).await,
    }
    bytes() - before
}

fn the_kernel_obeys_ours(v6: bool, we: bool) {
    field(2, v6, None, |field| async move {
        let (mut stream, kernel, subflow) = two_paths(&field, we).await;
        let connection = stream.id();
        assert!(on_second_path(&field, &mut stream, &kernel, Way::ToUs).await > 0);
        field.order(PathAction::SetBackup { connection, subflow, backup: true });
        until(|| counter("MPPrioRx") == 1).await;
        for way in [Way::ToUs, Way::ToKernel] {
            assert!(on_second_path(&field, &mut stream, &kernel, way).await <= rest_of_burst(way), "{way:?}");
        }
        field.order(PathAction::SetBackup { connection, subflow, backup: false });
        until(|| counter("MPPrioRx") == 2).await;
        for way in [Way::ToUs, Way::ToKernel] {
            assert!(on_second_path(&field, &mut stream, &kernel, way).await > 0, "{way:?}");
        }
    });
}

fn we_obey_the_kernels(v6: bool, we: bool) {
    field(2, v6, None, |field| async move {
        let (mut stream, kernel, subflow) = two_paths(&field, we).await;
        assert!(on_second_path(&field, &mut stream, &kernel, Way::ToKernel).await > 0);
        for (word, backup) in [("backup", true), ("nobackup", false)] {
            change(theirs(1, v6), word);
            let news = move |heard: &Heard| *heard == Heard::Priority(subflow, backup);
            field.hear(news).await;
            for way in [Way::ToUs, Way::ToKernel] {
                let bytes = on_second_path(&field, &mut stream, &kernel, way).await;
                assert_eq!(bytes <= rest_of_burst(way), backup, "{bytes} bytes {way:?} when it says {word}");
            }
        }
    });
}

/// MP_PRIO is sent per subflow, and the first one is no exception.
fn the_initial_subflow(v6: bool) {
    field(2, v6, None, |field| async move {
        let (mut stream, kernel, _) = two_paths(&field, true).await;
        let connection = stream.id();
        field.order(PathAction::SetBackup { connection, subflow: SubflowId(0), backup: true });
        until(|| counter("MPPrioRx") == 1).await;
        for way in [Way::ToUs, Way::ToKernel] {
            let before = field.carried(0, way);
            let rest = rest_of_burst(way);
            assert!(on_second_path(&field, &mut stream, &kernel, way).await >= MUCH - rest, "{way:?}");
            assert!(field.carried(0, way) <= before + rest, "{way:?}");
        }
    });
}

/// The same from the kernel, which speaks of its own endpoints.
fn the_kernels_initial_subflow(v6: bool) {
    field(2, v6, None, |field| async move {
        ip(&format!("mptcp endpoint add {} id 9 subflow", theirs(0, v6)));
        let (mut stream, kernel, _) = two_paths(&field, true).await;
        change(theirs(0, v6), "backup");
        field.hear(|heard| *heard == Heard::Priority(SubflowId(0), true)).await;
        for way in [Way::ToUs, Way::ToKernel] {
            let before = field.carried(0, way);
            let rest = rest_of_burst(way);
            assert!(on_second_path(&field, &mut stream, &kernel, way).await >= MUCH - rest, "{way:?}");
            assert!(field.carried(0, way) <= before + rest, "{way:?}");
        }
    });
}
