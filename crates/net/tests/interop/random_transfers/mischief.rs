//! What befalls a path in mid-transfer.

use super::case::Failure;
use crate::middlebox::{Middlebox, Way};
use crate::scene::Hosts;
use anabranch_policy::ids::AddressId;
use anabranch_wire::{Flags, Packet, Segment, SeqNumber};
use bytes::Bytes;

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
        Failure::Resets => reset_all(middlebox),
        Failure::Stripped => middlebox.obey(|_, mut packet| {
            packet.segment.options.mptcp.clear();
            packet.segment.options.dss = None;
            vec![packet]
        }),
    }
}

/// Answers each packet that acknowledges something with a reset to both ends, for one packet of each direction.
fn reset_all(middlebox: &Middlebox) {
    let inventor = middlebox.clone();
    let mut left = 2;
    middlebox.obey(move |way, packet| {
        if left > 0 && packet.segment.flags.contains(Flags::ACK) {
            left -= 1;
            inventor.invent(opposite(way), reset_from_receiver(&packet));
        }
        vec![packet]
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
