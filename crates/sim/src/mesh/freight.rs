//! What radios carry: frames hold a small number, and what it stands for lies here until the sender knows what became
//! of the frame.

use crate::pool::PacketId;

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreightId(u32);

/// What lies in the warehouse.
#[derive(Clone, Debug)]
pub(crate) enum Freight {
    /// A packet of the pool that is still with the sender.
    Packet(PacketId),
    /// It has been received, or given up.
    Gone,
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
    /// The receiver of a unicast frame takes what it carries; a second time there is nothing.
    pub(crate) fn take(&mut self, id: FreightId) -> Freight {
        core::mem::replace(&mut self.places[id.0 as usize], Freight::Gone)
    }
    /// The sender is done with it; gives what nobody has taken.
    pub(crate) fn release(&mut self, id: FreightId) -> Freight {
        self.free.push(id.0);
        self.take(id)
    }
    /// How many frames there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
