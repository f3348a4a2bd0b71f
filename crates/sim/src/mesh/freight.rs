//! What radios carry: frames hold a small number, and what it stands for lies here until the sender knows what became
//! of the frame.

use crate::pool::PacketId;
use anabranch_wire::ospf::Packet;
use core::net::Ipv6Addr;
use std::sync::Arc;

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreightId(u32);

/// What lies in the warehouse.
#[derive(Clone, Debug)]
pub(crate) enum Freight {
    /// A packet of the pool that is still with the sender.
    Packet(PacketId),
    /// A packet of a router, for all that receive it.
    Control(Control),
    /// It has been received, or dropped.
    Gone,
}

/// A packet of a router.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) packet: Arc<Packet>,
    /// The link-local address it comes from.
    pub(crate) source: Ipv6Addr,
    /// For the trace hash.
    pub(crate) digest: u64,
}

/// Everything that is in the queues of the radios or on the air.
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
    /// A receiver takes what a frame carries: a packet of the pool is there once, one of a router for all.
    pub(crate) fn receive(&mut self, id: FreightId) -> Freight {
        match &self.places[id.0 as usize] {
            Freight::Control(control) => Freight::Control(control.clone()),
            Freight::Packet(_) | Freight::Gone => self.take(id),
        }
    }
    fn take(&mut self, id: FreightId) -> Freight {
        core::mem::replace(&mut self.places[id.0 as usize], Freight::Gone)
    }
    /// The sender is done with it; returns what nobody has taken.
    pub(crate) fn release(&mut self, id: FreightId) -> Freight {
        self.free.push(id.0);
        self.take(id)
    }
    /// How many frames there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
