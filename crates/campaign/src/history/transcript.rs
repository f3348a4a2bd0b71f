//! A packet as a line of text: time, direction, path, flags, numbers, length, options.

use super::network::path_of;
use crate::literal::{MILLI, Nanos};
use anabranch_wire::{Flags, Packet};

pub fn line(now: Nanos, from: usize, packet: &Packet) -> String {
    let segment = &packet.segment;
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ACK, '.'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
    ];
    let flags: String = letters.iter().filter(|(flag, _)| segment.flags.contains(*flag)).map(|(_, c)| *c).collect();
    let arrow = if from == 0 { "client >" } else { "< server" };
    let mut text = format!(
        "{:>10.3} {arrow} {}:{}>{}:{} {flags} seq {} ack {} win {} len {}",
        now as f64 / MILLI as f64,
        path_of(packet.ip.source),
        segment.source_port,
        path_of(packet.ip.destination),
        segment.destination_port,
        segment.seq.0,
        segment.ack.0,
        segment.window,
        segment.payload.len()
    );
    let options = &segment.options;
    if let Some(size) = options.maximum_segment_size {
        text += &format!(" mss {size}");
    }
    if let Some(scale) = options.window_scale {
        text += &format!(" scale {scale}");
    }
    if options.sack_permitted {
        text += " sackOK";
    }
    if let Some(stamps) = options.timestamps {
        text += &format!(" ts {}/{}", stamps.value, stamps.echo);
    }
    for block in options.sack.as_slice() {
        text += &format!(" sack {}-{}", block.start.0, block.end.0);
    }
    if let Some(dss) = &options.dss {
        text += &format!(" {dss:?}");
    }
    for option in &options.mptcp {
        text += &format!(" {option:?}");
    }
    text
}
