//! Contents of radio frames: a frame carries an index, and its contents are kept here until the sender knows the fate
//! of the frame.

use crate::pool::PacketId;
use anabranch_wire::ospf::Packet;
use core::net::Ipv6Addr;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreightId(u32);

/// Contents of a frame.
#[derive(Clone, Debug)]
pub(crate) enum Freight {
    /// A packet of the pool, not yet received.
    Packet(PacketId),
    /// A packet of a router, for all receivers.
    Control(Control),
    /// Received or dropped.
    Gone,
}

/// A packet of a router.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) packet: Arc<Packet>,
    /// Its link-local source address.
    pub(crate) source: Ipv6Addr,
    /// For the trace hash.
    pub(crate) digest: u64,
}

/// The contents of all frames in the queues of the radios or on the air.
#[derive(Debug, Default)]
pub(crate) struct Warehouse {
    places: Vec<Freight>,
    free: Vec<u32>,
}

impl Warehouse {
    pub(crate) fn store(&mut self, freight: Freight) -> FreightId {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = freight;
                FreightId(place)
            }
            None => {
                self.places.push(freight);
                FreightId(self.places.len() as u32 - 1)
            }
        }
    }
    /// A receiver takes the contents of a frame: a packet of the pool once, one of a router any number of times.
    pub(crate) fn receive(&mut self, id: FreightId) -> Freight {
        match &self.places[id.0 as usize] {
            Freight::Control(control) => Freight::Control(control.clone()),
            Freight::Packet(_) | Freight::Gone => self.take(id),
        }
    }
    fn take(&mut self, id: FreightId) -> Freight {
        core::mem::replace(&mut self.places[id.0 as usize], Freight::Gone)
    }
    /// The sender is done with the frame; returns contents that nobody has received.
    pub(crate) fn release(&mut self, id: FreightId) -> Freight {
        self.free.push(id.0);
        self.take(id)
    }
    /// Number of frames.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
