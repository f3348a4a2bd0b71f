//! Failures of a path during a transfer.

use crate::fallback::strip;
use crate::kernel::ip;
use crate::middlebox::{Middlebox, Way};
use crate::scene::Hosts;
use anabranch_policy::ids::AddressId;
use anabranch_wire::{Flags, Packet, Segment, SeqNumber};
use bytes::Bytes;

/// What goes wrong with a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Nothing passes any more.
    BlackHole,
    /// Nothing passes for so many milliseconds.
    Outage(u64),
    /// The kernel's device is gone, and ours with it.
    DeviceGone,
    /// Our stack hears that the address is gone.
    AddressGone,
    /// The kernel's address is gone.
    KernelAddressGone,
    /// A subflow that sends something meets resets.
    Resets,
    /// The same, and no SYN passes any more.
    ResetsForGood,
    /// MPTCP options disappear.
    Stripped,
}

/// Something goes wrong with a path.
pub fn befall(hosts: &Hosts, path: usize, failure: Failure) {
    let middlebox = &hosts.middleboxes[path];
    match failure {
        Failure::BlackHole => middlebox.swallow(),
        Failure::Outage(milliseconds) => {
            middlebox.swallow();
            let middlebox = middlebox.clone();
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
                middlebox.pass();
            });
        }
        Failure::DeviceGone => middlebox.remove_device(),
        Failure::AddressGone => hosts.stack.address_down(AddressId(path as u8 + 1)),
        Failure::Resets => reset_all(middlebox, true),
        Failure::ResetsForGood => reset_all(middlebox, false),
        Failure::KernelAddressGone => {
            let length = if hosts.v6 { 64 } else { 24 };
            ip(&format!("addr del {}/{length} dev path{path}", hosts.kernel_ip(path as u8)));
        }
        Failure::Stripped => middlebox.obey(|_, packet| vec![strip(packet)]),
    }
}

/// Answers the next packet of each direction with a reset to its sender. New subflows may come after it, or may not.
fn reset_all(middlebox: &Middlebox, others: bool) {
    let inventor = middlebox.clone();
    let mut answered = Vec::new();
    middlebox.obey(move |way, packet| {
        if !answered.contains(&way) && packet.segment.flags.contains(Flags::ACK) {
            answered.push(way);
            inventor.invent(opposite(way), reset_from_receiver(&packet));
        }
        let passes = others || !packet.segment.flags.contains(Flags::SYN);
        passes.then_some(packet).into_iter().collect()
    });
}

fn opposite(way: Way) -> Way {
    match way {
        Way::ToUs => Way::ToKernel,
        Way::ToKernel => Way::ToUs,
    }
}

/// A reset that the sender of `packet` believes to come from its peer.
pub fn reset_from_receiver(packet: &Packet) -> Packet {
    let mut reset = packet.clone();
    std::mem::swap(&mut reset.ip.source, &mut reset.ip.destination);
    reset.segment = Segment {
        source_port: packet.segment.destination_port,
        destination_port: packet.segment.source_port,
        seq: packet.segment.ack,
        ack: SeqNumber(0),
        flags: Flags::RST,
        payload: Bytes::new(),
        ..Segment::default()
    };
    reset
}
