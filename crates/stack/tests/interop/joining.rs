//! Further subflows: opened by either side, in both roles, and refused for every reason.

use crate::field::{Field, Heard, field, in_both_families, talk, to_kernel, to_us, until};
use crate::kernel::{counter, ip, sysctl};
use crate::middlebox::Way;
use crate::pair::{ours, theirs};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use anabranch_wire::{Flags, MptcpOption, Packet};
use libtest_mimic::Trial;

/// Enough to use every path.
const MUCH: usize = 400_000;

pub fn trials() -> Vec<Trial> {
    in_both_families(
        "joining",
        &[
            ("we_open_and_join", we_open_and_join),
            ("we_open_and_the_kernel_joins_an_address_that_we_announce", the_kernel_joins_what_a_client_announces),
            ("the_kernel_opens_and_joins_from_its_endpoint", the_kernel_joins_from_its_endpoint),
            ("the_kernel_opens_and_we_join_a_port_that_it_announces", we_join_a_port_that_a_client_announces),
            ("a_join_as_backup_is_one_on_both_sides", a_backup_from_the_start),
            (
                "a_join_of_the_kernels_outlives_reordering_of_what_we_send_first",
                what_we_send_first_on_a_join_is_reordered,
            ),
            ("a_join_beyond_the_kernels_limit_is_refused_and_the_connection_goes_on", beyond_the_kernels_limit),
            ("a_join_beyond_our_limit_is_refused_and_the_connection_goes_on", beyond_our_limit),
            ("the_kernel_refuses_a_wrong_token", the_kernel_refuses_a_wrong_token),
            ("we_refuse_a_wrong_token", we_refuse_a_wrong_token),
            ("the_kernel_refuses_a_wrong_proof", the_kernel_refuses_a_wrong_proof),
            ("we_refuse_a_wrong_proof_in_a_syn_ack", we_refuse_a_wrong_proof_in_a_syn_ack),
            ("we_refuse_a_wrong_proof_in_a_third_ack", we_refuse_a_wrong_proof_in_a_third_ack),
            ("we_do_not_join_an_address_that_the_kernel_denies", we_obey_flag_c),
            ("the_kernel_does_not_join_an_address_that_we_deny", the_kernel_obeys_flag_c),
            ("a_port_without_a_listener_resets_a_join_and_the_connection_goes_on", no_listener),
        ],
    )
}

/// Both paths carry data both ways.
async fn assert_both_paths_are_used(
    field: &Field,
    stream: &mut anabranch_stack::Stream,
    kernel: &crate::field::Kernel,
) {
    to_kernel(stream, kernel, MUCH).await;
    to_us(stream, kernel, MUCH).await;
    for path in [0, 1] {
        for way in [Way::ToKernel, Way::ToUs] {
            let bytes = field.carried(path, way);
            // More than what was said before; how much more is the schedulers' affair.
            assert!(bytes > 1_000, "{bytes} bytes {way:?} on path {path}");
        }
    }
}

/// The connection lives on its first subflow, after a join came to nothing.
async fn assert_it_goes_on(stream: &mut anabranch_stack::Stream, kernel: &crate::field::Kernel) {
    talk(stream, kernel).await;
    let subflows: Vec<SubflowId> = stream.subflows().iter().map(|view| view.id).collect();
    assert_eq!(subflows, [SubflowId(0)]);
}

fn we_open_and_join(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        let subflow = field.joined().await;
        assert_eq!(
            field.heard(|heard| matches!(heard, Heard::Open(id, ..) if *id == subflow)),
            [Heard::Open(subflow, AddressId(2), AddressId(0), false)]
        );
        until(|| counter("MPJoinAckRx") == 1).await;
        assert_eq!((counter("MPJoinSynRx"), counter("MPJoinAckHMacFailure")), (1, 0));
        assert_both_paths_are_used(&field, &mut stream, &kernel).await;
    });
}

fn the_kernel_joins_what_a_client_announces(v6: bool) {
    field(2, v6, Some("path_manager.announce=both path_manager.subflows=0"), |field| async move {
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        field.joined().await;
        until(|| counter("MPJoinSynAckRx") == 1).await;
        assert_eq!((counter("MPJoinSynAckHMacFailure"), counter("MPJoinSynRx")), (0, 0));
        assert_both_paths_are_used(&field, &mut stream, &kernel).await;
    });
}

fn the_kernel_joins_from_its_endpoint(v6: bool) {
    field(2, v6, Some("path_manager.announce=never"), |field| async move {
        ip(&format!("mptcp endpoint add {} id 5 subflow", theirs(1, v6)));
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        let subflow = field.joined().await;
        // It is one of the kernel's second address, to our first: both go over the first path.
        assert_eq!(
            field.heard(|heard| matches!(heard, Heard::Open(id, ..) if *id == subflow)),
            [Heard::Open(subflow, AddressId(1), AddressId(5), false)]
        );
        to_kernel(&mut stream, &kernel, MUCH).await;
        to_us(&mut stream, &kernel, MUCH).await;
        let from_second = |seen: &crate::middlebox::Seen| {
            seen.packet.ip.source == theirs(1, v6) && !seen.packet.segment.payload.is_empty()
        };
        assert!(!field.boxes[0].seen(from_second).is_empty(), "the kernel uses its join");
    });
}

/// The kernel resets a join on which anything comes before the first byte.
fn what_we_send_first_on_a_join_is_reordered(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        let mut held = Vec::new();
        field.boxes[1].obey(move |way, packet: Packet| {
            if way == Way::ToUs || packet.segment.flags.contains(Flags::SYN) || held.len() > 3 {
                return vec![packet];
            }
            held.push(packet);
            if held.len() < 3 {
                return Vec::new();
            }
            let reversed = held.iter().rev().cloned().collect();
            held.push(held[0].clone());
            reversed
        });
        let (mut stream, kernel) = field.the_kernel_opens().await;
        to_kernel(&mut stream, &kernel, 4 * MUCH).await;
        assert!(reasons(&field).is_empty());
        assert_both_paths_are_used(&field, &mut stream, &kernel).await;
    });
}

/// A client of the kernel's accepts joins at a port that it announced, and at none else.
fn we_join_a_port_that_a_client_announces(v6: bool) {
    // With IPv6, a port and timestamps the kernel finds no room for its ADD_ADDR.
    field(2, v6, None, |field| async move {
        if v6 {
            sysctl("ipv4.tcp_timestamps", "0");
        }
        ip(&format!("mptcp endpoint add {} id 5 signal port 99", theirs(1, v6)));
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        let announced = field.hear(|heard| matches!(heard, Heard::Announced(..))).await;
        assert_eq!(announced, Heard::Announced(AddressId(5), (theirs(1, v6), 99).into()));
        field.join(&stream, 2, 5);
        field.joined().await;
        until(|| counter("MPJoinPortAckRx") == 1).await;
        assert_both_paths_are_used(&field, &mut stream, &kernel).await;
    });
}

fn a_backup_from_the_start(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        ip(&format!("mptcp endpoint add {} id 5 subflow backup", theirs(1, v6)));
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        let joined = field.hear(|heard| matches!(heard, Heard::Open(SubflowId(1..), ..))).await;
        assert!(matches!(joined, Heard::Open(_, _, _, true)), "{joined:?}");
        let before = field.boxes[1].seen(|seen| !seen.packet.segment.payload.is_empty()).len();
        to_kernel(&mut stream, &kernel, MUCH).await;
        to_us(&mut stream, &kernel, MUCH).await;
        let backups = stream.subflows().iter().filter(|view| view.backup).map(|view| view.id).collect::<Vec<_>>();
        assert!(!backups.is_empty());
        assert_eq!(field.boxes[1].seen(|seen| !seen.packet.segment.payload.is_empty()).len(), before);
    });
}

fn beyond_the_kernels_limit(v6: bool) {
    field(2, v6, None, |field| async move {
        ip("mptcp limits set subflows 0 add_addr_accepted 0");
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        field.join(&stream, 2, 0);
        // It answers the SYN and refuses the third segment, so it may have been open for a moment.
        let closed = field.hear(|heard| matches!(heard, Heard::Closed(..))).await;
        assert_eq!(closed, Heard::Closed(SubflowId(1), CloseReason::ProtocolError));
        let prohibited = MptcpOption::TcpReset { transient: false, flags: 0, reason: 3 };
        assert_eq!(field.with_option(Way::ToUs, |option| *option == prohibited).len(), 1);
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}

fn beyond_our_limit(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        let mut config = field.config();
        config.max_subflows = 1;
        let (mut stream, kernel) = field.the_kernel_opens_with(config).await;
        talk(&mut stream, &kernel).await;
        // Our announcement made it join.
        refused(&field, 3).await;
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}

/// Waits until we have refused a join of the kernel's for this reason.
async fn refused(field: &Field, reason: u8) {
    let option = MptcpOption::TcpReset { transient: false, flags: 0, reason };
    until(|| !field.with_option(Way::ToKernel, |sent| *sent == option).is_empty()).await;
    assert_eq!(field.stack.counters().endpoint.refused_joins, 1);
}

/// Changes the token of joins that go this way.
fn spoil_tokens(field: &Field, spoilt: Way) {
    for middlebox in &field.boxes {
        middlebox.obey(move |way, mut packet: Packet| {
            for option in &mut packet.segment.options.mptcp {
                if let (MptcpOption::JoinSyn { token, .. }, true) = (option, way == spoilt) {
                    *token ^= 1;
                }
            }
            vec![packet]
        });
    }
}

fn the_kernel_refuses_a_wrong_token(v6: bool) {
    field(2, v6, None, |field| async move {
        spoil_tokens(&field, Way::ToKernel);
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        field.join(&stream, 2, 0);
        field.hear(|heard| matches!(heard, Heard::Closed(SubflowId(1), _))).await;
        assert_eq!(counter("MPJoinNoTokenFound"), 1);
        assert_eq!(reasons(&field), [1], "an error in MPTCP");
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}

fn we_refuse_a_wrong_token(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        spoil_tokens(&field, Way::ToUs);
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        refused(&field, 1).await;
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}

/// The reasons of the kernel's resets.
fn reasons(field: &Field) -> Vec<u8> {
    let reason = |option: &MptcpOption| match option {
        MptcpOption::TcpReset { reason, .. } => Some(*reason),
        _ => None,
    };
    let resets = field.with_option(Way::ToUs, |option| reason(option).is_some());
    resets.iter().flat_map(|seen| seen.packet.segment.options.mptcp.iter().filter_map(reason)).collect()
}

/// Changes the proofs of the joins that go this way.
fn spoil_proofs(field: &Field, spoilt: Way) {
    for middlebox in &field.boxes {
        middlebox.obey(move |way, mut packet: Packet| {
            for option in packet.segment.options.mptcp.iter_mut().filter(|_| way == spoilt) {
                match option {
                    MptcpOption::JoinSynAck { truncated_hmac, .. } => *truncated_hmac ^= 1,
                    MptcpOption::JoinAck { hmac } => hmac[0] ^= 1,
                    _ => {}
                }
            }
            vec![packet]
        });
    }
}

fn the_kernel_refuses_a_wrong_proof(v6: bool) {
    field(2, v6, None, |field| async move {
        spoil_proofs(&field, Way::ToKernel);
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        field.join(&stream, 2, 0);
        field.hear(|heard| matches!(heard, Heard::Closed(SubflowId(1), _))).await;
        assert_eq!(counter("MPJoinAckHMacFailure"), 1);
        assert_eq!(reasons(&field), [1], "an error in MPTCP");
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}

fn we_refuse_a_wrong_proof_in_a_syn_ack(v6: bool) {
    field(2, v6, None, |field| async move {
        spoil_proofs(&field, Way::ToUs);
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        field.join(&stream, 2, 0);
        let closed = field.hear(|heard| matches!(heard, Heard::Closed(..))).await;
        assert_eq!(closed, Heard::Closed(SubflowId(1), CloseReason::ProtocolError));
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}

fn we_refuse_a_wrong_proof_in_a_third_ack(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        spoil_proofs(&field, Way::ToUs);
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        let closed = field.hear(|heard| matches!(heard, Heard::Closed(..))).await;
        assert_eq!(closed, Heard::Closed(SubflowId(1), CloseReason::ProtocolError));
        let reset =
            |seen: &crate::middlebox::Seen| seen.way == Way::ToKernel && seen.packet.segment.flags.contains(Flags::RST);
        field.boxes[1].wait(1, reset).await;
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}

fn we_obey_flag_c(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        sysctl("mptcp.allow_join_initial_addr_port", "0");
        ip(&format!("mptcp endpoint add {} id 5 signal", theirs(1, v6)));
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        field.joined().await;
        to_kernel(&mut stream, &kernel, MUCH).await;
        let to_initial = |option: &MptcpOption| matches!(option, MptcpOption::JoinSyn { .. });
        let joins = field.with_option(Way::ToKernel, to_initial);
        assert!(joins.iter().all(|seen| seen.packet.ip.destination == theirs(1, v6)), "{joins:?}");
    });
}

fn the_kernel_obeys_flag_c(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        ip(&format!("mptcp endpoint add {} id 5 subflow", theirs(1, v6)));
        let mut config = field.config();
        config.deny_join_initial = true;
        let (mut stream, kernel) = field.the_kernel_opens_with(config).await;
        talk(&mut stream, &kernel).await;
        // What we announce it joins.
        field.joined().await;
        to_us(&mut stream, &kernel, MUCH).await;
        let joins = field.with_option(Way::ToUs, |option| matches!(option, MptcpOption::JoinSyn { .. }));
        assert!(joins.iter().all(|seen| seen.packet.ip.destination == ours(1, v6)), "{joins:?}");
    });
}

/// A client of the kernel's listens nowhere: a join to its port is reset.
fn no_listener(v6: bool) {
    field(2, v6, None, |field| async move {
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        field.join(&stream, 2, 0);
        field.hear(|heard| matches!(heard, Heard::Closed(SubflowId(1), _))).await;
        assert_it_goes_on(&mut stream, &kernel).await;
    });
}
