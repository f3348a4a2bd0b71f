//! Explicit congestion notification with the kernel (RFC 3168), in both roles: a middlebox marks, both ends echo and
//! slow down, and one that drops SYNs with the bits of ECN is got around.

use crate::field::{Field, Kernel, field, in_both_families, talk, to_kernel, to_us, until};
use crate::kernel::sysctl;
use crate::middlebox::{Seen, Way};
use anabranch_mptcp::EcnMode;
use anabranch_stack::Stream;
use anabranch_wire::{Ecn, Flags, Packet};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    in_both_families(
        "ecn",
        &[
            ("we_ask_and_marks_are_heeded_both_ways_on_two_paths", we_ask),
            ("the_kernel_asks_and_marks_are_heeded_both_ways", the_kernel_asks),
            ("we_ask_and_a_middlebox_drops_who_asks", |v6| dropped(v6, true)),
            ("the_kernel_asks_and_a_middlebox_drops_who_asks", |v6| dropped(v6, false)),
            ("who_has_switched_it_off_is_asked_in_vain", in_vain),
        ],
    )
}

/// What is sent each way, bytes.
const LENGTH: usize = 1_000_000;

/// One in so many packets that can be marked is.
const MARKED: usize = 40;

/// The kernel has its default, by which it answers who asks.
fn we_ask(v6: bool) {
    field(2, v6, Some(""), |field| async move {
        let mut config = field.config();
        config.tcp.ecn = EcnMode::Request;
        mark_some(&field);
        let (mut stream, kernel) = field.we_open_with(config).await;
        talk(&mut stream, &kernel).await;
        until(|| stream.subflows().len() == 2).await;
        exchange(&mut stream, &kernel).await;
        for path in 0..2 {
            assert_agreed(&field, path, Way::ToKernel);
        }
        assert_heeded(&field);
    });
}

/// We have our default, by which we answer who asks.
fn the_kernel_asks(v6: bool) {
    field(1, v6, None, |field| async move {
        sysctl("ipv4.tcp_ecn", "1");
        mark_some(&field);
        let (mut stream, kernel) = field.the_kernel_opens().await;
        exchange(&mut stream, &kernel).await;
        assert_agreed(&field, 0, Way::ToUs);
        assert_heeded(&field);
    });
}

/// No SYN that asks gets through (RFC 3168, section 6.1.1.1).
fn dropped(v6: bool, we: bool) {
    field(1, v6, None, |field| async move {
        let asks = |packet: &Packet| packet.segment.flags.contains(Flags::SYN | Flags::ECE);
        field.boxes[0].obey(move |_, packet| if asks(&packet) { Vec::new() } else { vec![packet] });
        let (mut stream, kernel) = if we {
            let mut config = field.config();
            config.tcp.ecn = EcnMode::Request;
            field.we_open_with(config).await
        } else {
            sysctl("ipv4.tcp_ecn", "1");
            field.the_kernel_opens().await
        };
        exchange(&mut stream, &kernel).await;
        let dropped = field.boxes[0].seen(|seen| !seen.passed);
        assert!(dropped.iter().all(|seen| asks(&seen.packet)) && !dropped.is_empty());
        assert_eq!(field.boxes[0].seen(|seen| seen.packet.ip.ecn != Ecn::NotCapable).len(), 0);
    });
}

/// Of either end, the other of which asks.
fn in_vain(v6: bool) {
    for we_ask in [true, false] {
        field(1, v6, None, |field| async move {
            let mut config = field.config();
            config.tcp.ecn = if we_ask { EcnMode::Request } else { EcnMode::Off };
            sysctl("ipv4.tcp_ecn", if we_ask { "0" } else { "1" });
            let (mut stream, kernel) = match we_ask {
                true => field.we_open_with(config).await,
                false => field.the_kernel_opens_with(config).await,
            };
            exchange(&mut stream, &kernel).await;
            let syns = field.boxes[0].seen(|seen| seen.packet.segment.flags.contains(Flags::SYN));
            for syn in &syns {
                let flags = syn.packet.segment.flags;
                assert_eq!(flags.contains(Flags::ECE), !flags.contains(Flags::ACK), "{flags:?}");
            }
            assert_eq!(field.boxes[0].seen(|seen| seen.packet.ip.ecn != Ecn::NotCapable).len(), 0);
        });
    }
}

/// Has every middlebox mark some of what can be marked, from now on.
fn mark_some(field: &Field) {
    for middlebox in &field.boxes {
        let mut capable = [0, 0];
        middlebox.obey(move |way, mut packet| {
            if packet.ip.ecn == Ecn::Capable0 {
                let count: &mut usize = &mut capable[usize::from(way == Way::ToUs)];
                *count += 1;
                if count.is_multiple_of(MARKED) {
                    packet.ip.ecn = Ecn::Congestion;
                }
            }
            vec![packet]
        });
    }
}

/// A transfer each way, exact to the byte.
async fn exchange(stream: &mut Stream, kernel: &Kernel) {
    to_kernel(stream, kernel, LENGTH).await;
    to_us(stream, kernel, LENGTH).await;
    talk(stream, kernel).await;
}

/// The SYN asked, the SYN/ACK agreed, and neither could be marked.
fn assert_agreed(field: &Field, path: usize, opener: Way) {
    let syns = field.boxes[path].seen(|seen| seen.packet.segment.flags.contains(Flags::SYN));
    let setup = |seen: &Seen| Flags(seen.packet.segment.flags.0 & (Flags::ECE | Flags::CWR).0);
    assert!(syns.iter().any(|seen| seen.way == opener) && syns.iter().any(|seen| seen.way != opener));
    for syn in &syns {
        let wanted = if syn.way == opener { Flags::ECE | Flags::CWR } else { Flags::ECE };
        assert_eq!(setup(syn), wanted, "path {path}: {:?}", syn.packet.segment);
        assert_eq!(syn.packet.ip.ecn, Ecn::NotCapable);
    }
}

/// On the first path: data could be marked and acknowledgements could not; what was marked either way was echoed, and
/// who heard the echo said that it slowed down.
fn assert_heeded(field: &Field) {
    let middlebox = &field.boxes[0];
    let says = |way, flag| {
        move |seen: &Seen| {
            let flags = seen.packet.segment.flags;
            seen.way == way && flags.contains(flag) && !flags.contains(Flags::SYN)
        }
    };
    for (there, back) in [(Way::ToKernel, Way::ToUs), (Way::ToUs, Way::ToKernel)] {
        let carries = |seen: &Seen| !seen.packet.segment.payload.is_empty();
        let capable = middlebox.seen(|seen| seen.way == there && seen.packet.ip.ecn == Ecn::Capable0);
        assert!(capable.iter().all(carries), "{there:?}: an acknowledgement could be marked");
        let count = middlebox.seen(|seen| seen.way == there && carries(seen)).len();
        assert!(capable.len() >= MARKED && capable.len() * 10 > count * 9, "{there:?}: {} of {count}", capable.len());
        let echoes = middlebox.seen(says(back, Flags::ECE));
        assert!(!echoes.is_empty(), "no mark {there:?} was echoed");
        let reduced = middlebox.seen(says(there, Flags::CWR));
        assert!(!reduced.is_empty(), "nobody slowed down {there:?}");
        assert!(echoes[0].at <= reduced[0].at && reduced.len() <= echoes.len());
    }
}
