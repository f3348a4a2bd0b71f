//! Datagrams that a tunnel receives from anyone: no bytes make its reader panic, and what it accepts means the same again.

#![no_main]

use anabranch_wire::encapsulation::{self, Receiver};
use anabranch_wire::{Ecn, Packet};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    for receiver in [Receiver::Server, Receiver::Client] {
        for ecn in [Ecn::NotCapable, Ecn::Capable0, Ecn::Congestion] {
            let Ok((place, packet)) = encapsulation::parse(&bytes, receiver, ecn) else { continue };
            let mut again = Vec::new();
            match &packet {
                Some(packet) => assert_eq!(encapsulation::emit(packet, &mut again), Ok(place)),
                None => encapsulation::emit_keepalive(place, &mut again),
            }
            let read: Result<(_, Option<Packet>), _> = encapsulation::parse(&again.into(), receiver, ecn);
            assert_eq!(read, Ok((place, packet)));
        }
    }
});
