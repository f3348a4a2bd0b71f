//! ADD_ADDR and REMOVE_ADDR between our stack and the kernel, both ways and in both roles, also when echoes are lost.

use crate::field::{Field, Heard, Kernel, PORT, field, in_both_families, links, talk, to_kernel, to_us, until};
use crate::kernel::{counter, ip, mptcp_listener, sysctl};
use crate::middlebox::{Middlebox, Way};
use crate::pair::{ours, theirs};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::PathAction;
use anabranch_stack::Stream;
use anabranch_wire::{MptcpOption, Packet};
use libtest_mimic::Trial;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

/// Enough to use every path.
const MUCH: usize = 400_000;

pub fn trials() -> Vec<Trial> {
    in_both_families(
        "addresses",
        &[
            ("what_a_kernel_server_announces_is_echoed_and_joined", |v6| the_kernel_announces(v6, true)),
            ("what_a_kernel_client_announces_is_echoed", |v6| the_kernel_announces(v6, false)),
            ("what_we_announce_as_a_server_is_echoed_and_joined", |v6| we_announce(v6, false)),
            ("what_we_announce_as_a_client_is_echoed_and_joined", |v6| we_announce(v6, true)),
            ("the_kernel_repeats_what_seems_not_echoed_and_gets_another_echo", our_echo_is_lost),
            ("we_repeat_what_seems_not_echoed_and_the_kernel_echoes_again", the_kernels_echo_is_lost),
            ("both_stop_after_four_announcements", no_echo_ever),
            ("the_kernel_withdraws_an_address", |v6| the_kernel_withdraws(v6, 5)),
            ("the_kernel_withdraws_its_initial_address", |v6| the_kernel_withdraws(v6, 0)),
            ("we_withdraw_an_address", |v6| we_withdraw(v6, 2)),
            ("we_withdraw_our_initial_address", |v6| we_withdraw(v6, 1)),
            ("an_address_behind_a_translator_is_joined_under_its_public_name", behind_a_translator),
            ("an_address_of_the_other_family_is_joined", the_other_family),
        ],
    )
}

fn is_announcement(option: &MptcpOption) -> bool {
    matches!(option, MptcpOption::AddAddress { truncated_hmac: Some(_), .. })
}

fn is_echo(option: &MptcpOption) -> bool {
    matches!(option, MptcpOption::AddAddress { truncated_hmac: None, .. })
}

/// A server announces as soon as the connection is open, a client not before it has heard a DSS.
async fn assert_it_is_said_in_time(field: &Field, way: Way, server: bool) {
    let said = || field.with_option(way, is_announcement).len();
    if server {
        return until(|| said() > 0).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(said(), 0, "nobody has said anything yet");
}

/// After an echo an announcement is not repeated, however long its timeout. On a busy machine it may have been before.
async fn assert_it_is_said_no_more(field: &Field, way: Way) {
    tokio::time::sleep(Duration::from_millis(50)).await;
    let before = field.with_option(way, is_announcement).len();
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    assert_eq!(field.with_option(way, is_announcement).len(), before);
}

fn the_kernel_announces(v6: bool, we: bool) {
    field(2, v6, Some("path_manager.announce=never"), |field| async move {
        ip(&format!("mptcp endpoint add {} id 5 signal", theirs(1, v6)));
        let (mut stream, kernel) = field.open(we).await;
        assert_it_is_said_in_time(&field, Way::ToUs, we).await;
        talk(&mut stream, &kernel).await;
        let announced = field.hear(|heard| matches!(heard, Heard::Announced(..))).await;
        let Heard::Announced(AddressId(5), address) = announced else { panic!("{announced:?}") };
        assert_eq!(address.ip(), theirs(1, v6));
        until(|| counter("EchoAdd") == 1).await;
        if we {
            assert_eq!(address.port(), PORT, "that of the connection");
            field.joined().await;
        }
        assert_it_is_said_no_more(&field, Way::ToUs).await;
        assert!(!field.with_option(Way::ToKernel, is_echo).is_empty());
        talk(&mut stream, &kernel).await;
    });
}

fn we_announce(v6: bool, we: bool) {
    field(2, v6, Some("path_manager.announce=both path_manager.subflows=0"), |field| async move {
        let (mut stream, kernel) = field.open(we).await;
        assert_it_is_said_in_time(&field, Way::ToKernel, !we).await;
        talk(&mut stream, &kernel).await;
        until(|| counter("AddAddr") == 1).await;
        let joined = field.hear(|heard| matches!(heard, Heard::Open(SubflowId(1..), ..))).await;
        assert!(matches!(joined, Heard::Open(_, AddressId(2), ..)), "{joined:?}");
        until(|| field.with_option(Way::ToUs, is_echo).len() == 1).await;
        assert_it_is_said_no_more(&field, Way::ToKernel).await;
        to_us(&mut stream, &kernel, MUCH).await;
        assert!(field.carried(1, Way::ToUs) > 1_000);
    });
}

/// Loses the first echoes that go this way.
fn lose_echoes(field: &Field, lost: Way, mut count: u32) {
    field.boxes[0].obey(move |way, packet: Packet| {
        let loses = way == lost && count > 0 && packet.segment.options.mptcp.iter().any(is_echo);
        count -= u32::from(loses);
        if loses { Vec::new() } else { vec![packet] }
    });
}

/// Has the kernel repeat announcements after a second at most. Older ones, e.g. 6.1, wait for two minutes otherwise.
fn soon_repeated() {
    sysctl("mptcp.add_addr_timeout", "1");
}

fn our_echo_is_lost(v6: bool) {
    field(2, v6, Some("path_manager.announce=never path_manager.subflows=0"), |field| async move {
        ip(&format!("mptcp endpoint add {} id 5 signal", theirs(1, v6)));
        soon_repeated();
        lose_echoes(&field, Way::ToKernel, 1);
        let (mut stream, kernel) = field.we_open().await;
        talk(&mut stream, &kernel).await;
        until(|| counter("EchoAdd") == 1).await;
        assert!(field.with_option(Way::ToUs, is_announcement).len() >= 2);
        assert!(field.with_option(Way::ToKernel, is_echo).len() >= 2);
        assert_it_is_said_no_more(&field, Way::ToUs).await;
        assert_eq!(field.heard(|heard| matches!(heard, Heard::Announced(..))).len(), 1, "it is no news");
    });
}

fn the_kernels_echo_is_lost(v6: bool) {
    field(2, v6, Some("path_manager.announce=server"), |field| async move {
        lose_echoes(&field, Way::ToUs, 1);
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        until(|| field.with_option(Way::ToUs, is_echo).len() >= 2).await;
        assert!(field.with_option(Way::ToKernel, is_announcement).len() >= 2);
        assert_it_is_said_no_more(&field, Way::ToKernel).await;
        talk(&mut stream, &kernel).await;
    });
}

fn no_echo_ever(v6: bool) {
    for (we, way) in [(true, Way::ToUs), (false, Way::ToKernel)] {
        field(2, v6, Some("path_manager.announce=server path_manager.subflows=0"), |field| async move {
            if we {
                ip(&format!("mptcp endpoint add {} id 5 signal", theirs(1, v6)));
            }
            ip("mptcp limits set subflows 0 add_addr_accepted 8");
            soon_repeated();
            let echoes = if way == Way::ToUs { Way::ToKernel } else { Way::ToUs };
            lose_echoes(&field, echoes, u32::MAX);
            let (mut stream, kernel) = field.open(we).await;
            talk(&mut stream, &kernel).await;
            until(|| field.with_option(way, is_announcement).len() == 4).await;
            let times: Vec<_> = field.with_option(way, is_announcement).iter().map(|seen| seen.at).collect();
            // A fifth would come after twice the last wait.
            tokio::time::sleep((times[3] - times[2]) * 5 / 2).await;
            assert_eq!(field.with_option(way, is_announcement).len(), 4);
            talk(&mut stream, &kernel).await;
        });
    }
}

/// A connection that we opened, with a subflow from each of our addresses to each of the kernel's.
async fn full_mesh(field: &Field) -> (Stream, Kernel) {
    ip(&format!("mptcp endpoint add {} id 5 signal", theirs(1, field.v6)));
    let (mut stream, kernel) = field.we_open().await;
    talk(&mut stream, &kernel).await;
    until(|| field.heard(|heard| matches!(heard, Heard::Open(..))).len() == 4).await;
    (stream, kernel)
}

fn the_kernel_withdraws(v6: bool, id: u8) {
    field(2, v6, Some(""), |field| async move {
        let (mut stream, kernel) = full_mesh(&field).await;
        if id == 0 {
            ip(&format!("mptcp endpoint delete id 0 {}", theirs(0, v6)));
        } else {
            ip(&format!("mptcp endpoint delete id {id}"));
        }
        field.hear(|heard| *heard == Heard::Removed(AddressId(id))).await;
        // Nothing is left to or from the address, on either side.
        until(|| stream.subflows().iter().all(|view| view.remote_address != AddressId(id))).await;
        assert_eq!(stream.subflows().len(), 2);
        to_kernel(&mut stream, &kernel, MUCH).await;
        to_us(&mut stream, &kernel, MUCH).await;
    });
}

/// The peers' addresses and ports of the kernel's established TCP connections, subflows included.
fn established() -> Vec<String> {
    let output = Command::new("ss").args(["-Htn", "state", "established"]).output().expect("ss is there where ip is");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.split_whitespace().last().map(str::to_owned)).collect()
}

fn we_withdraw(v6: bool, id: u8) {
    field(2, v6, Some(""), |field| async move {
        let (mut stream, kernel) = full_mesh(&field).await;
        field.stack.address_down(AddressId(id));
        until(|| counter("RmAddr") == 1).await;
        // It drops what it had with the address.
        let gone = ours(id - 1, v6).to_string();
        until(|| !established().iter().any(|peer| peer.contains(&gone))).await;
        let wire_id = if id == 1 { 0 } else { id };
        let withdrawal = MptcpOption::RemoveAddress { address_ids: vec![wire_id] };
        assert_eq!(field.with_option(Way::ToKernel, |option| *option == withdrawal).len(), 1);
        assert_eq!(stream.subflows().len(), 2);
        to_kernel(&mut stream, &kernel, MUCH).await;
        to_us(&mut stream, &kernel, MUCH).await;
    });
}

/// A router before us: the kernel knows our second address as another, which ends in 77.
fn behind_a_translator(v6: bool) {
    field(1, v6, None, |field| async move {
        let private = ours(1, v6);
        let public: IpAddr = if v6 { "fd00:1::77".parse() } else { "10.0.1.77".parse() }.expect("an address");
        let second = Middlebox::attach(&field.stack, 1, v6, &links(), 1);
        field.stack.address_up_as(second.device, AddressId(2), private, public).expect("the device is there");
        second.obey(move |way, mut packet: Packet| {
            let (place, from, to) = match way {
                Way::ToUs => (&mut packet.ip.destination, public, private),
                Way::ToKernel => (&mut packet.ip.source, private, public),
            };
            if *place == from {
                *place = to;
            }
            vec![packet]
        });
        let (mut stream, kernel) = field.the_kernel_opens().await;
        talk(&mut stream, &kernel).await;
        field.order(PathAction::Announce { connection: stream.id(), local: AddressId(2) });
        field.joined().await;
        until(|| counter("MPJoinSynAckRx") == 1).await;
        to_us(&mut stream, &kernel, MUCH).await;
        let to_public = second.seen(|seen| seen.way == Way::ToUs && seen.packet.ip.destination == public);
        assert!(to_public.iter().any(|seen| !seen.packet.segment.payload.is_empty()), "it carries data");
    });
}

fn the_other_family(v6: bool) {
    field(1, v6, Some(""), |field| async move {
        let second = Middlebox::attach(&field.stack, 1, !v6, &links(), 1);
        ip(&format!("mptcp endpoint add {} id 5 signal", theirs(1, !v6)));
        // A socket of both families.
        let listener = mptcp_listener(true, PORT);
        let kept = listener.try_clone().expect("a descriptor more");
        let socket = crate::kernel::accept(listener, |socket| socket);
        let address = SocketAddr::new(theirs(0, v6), PORT);
        let mut stream = field.stack.connect(None, address, field.config()).await.expect("the kernel accepts");
        let kernel = Kernel::new(socket.done().await, Some(kept));
        talk(&mut stream, &kernel).await;
        field.joined().await;
        to_kernel(&mut stream, &kernel, MUCH).await;
        let data = |seen: &crate::middlebox::Seen| !seen.packet.segment.payload.is_empty();
        assert!(!second.seen(data).is_empty(), "it carries data");
    });
}
