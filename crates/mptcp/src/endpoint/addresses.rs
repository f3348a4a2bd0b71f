//! Local addresses and listeners.

use super::error::OperationError;
use super::state::{Endpoint, LocalAddress};
use crate::config::ConnectionConfig;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager::PathEvent;
use anabranch_policy::time::Instant;
use core::net::IpAddr;
use std::sync::Arc;

impl Endpoint {
    /// A local address is available. Ids are stable; the caller numbers them from 1, as Linux does.
    pub fn handle_address_up(&mut self, now: Instant, id: AddressId, address: IpAddr) {
        self.handle_address_up_as(now, id, address, address);
    }

    /// As [`Self::handle_address_up`], for an address behind a NAT: ADD_ADDR announces `public`, which a router
    /// translates to `address`.
    pub fn handle_address_up_as(&mut self, now: Instant, id: AddressId, address: IpAddr, public: IpAddr) {
        self.addresses.retain(|known| known.id != id && known.address != address);
        self.addresses.push(LocalAddress { id, address, public });
        self.tell_path_manager(now, &PathEvent::AddressUp { id, address });
        self.carry_out(now);
    }

    /// Makes a local address, which need not be up yet, a backup or an ordinary address. Connections begin on a backup
    /// only while no other address answers, and peers learn that its subflows are backups (RFC 8684, sections 3.2 and
    /// 3.3.8).
    pub fn handle_address_backup(&mut self, now: Instant, id: AddressId, backup: bool) {
        if !self.uplinks.set_backup(id, backup) {
            return;
        }
        let ids: Vec<ConnectionId> = self.connections.ids().collect();
        for connection in ids {
            if let Some(connection) = self.connections.get_mut(connection) {
                connection.set_backup_from(id, backup);
            }
            self.settle(now, connection);
        }
    }

    /// A local address is no longer available.
    pub fn handle_address_down(&mut self, now: Instant, id: AddressId) {
        self.addresses.retain(|known| known.id != id);
        self.uplinks.forget(id);
        let ids: Vec<ConnectionId> = self.connections.ids().collect();
        for connection in ids {
            if let Some(connection) = self.connections.get_mut(connection) {
                connection.leave_address(now, id);
            }
            self.settle(now, connection);
        }
        self.tell_path_manager(now, &PathEvent::AddressDown { id });
        self.carry_out(now);
    }

    /// Accepts connections on a port of every local address; on port 0, those to any port that has no listener.
    ///
    /// # Errors [`OperationError::PortInUse`] if there is a listener on the port.
    pub fn listen(&mut self, port: u16, config: ConnectionConfig) -> Result<(), OperationError> {
        if self.listeners.iter().any(|(taken, _)| *taken == port) {
            return Err(OperationError::PortInUse);
        }
        self.listeners.push((port, Arc::new(config)));
        Ok(())
    }

    /// Stops accepting connections on a port. Existing connections continue.
    pub fn unlisten(&mut self, port: u16) {
        self.listeners.retain(|(taken, _)| *taken != port);
    }
}
