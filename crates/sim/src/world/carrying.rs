//! Sessions that carry datagrams of programs: their addition, and their events.

use super::World;
use super::event_kinds::SESSION_EVENT;
use crate::datagrams::{Carrier, DatagramsConfig, Session};
use crate::event_queue::Target;
use crate::network::UDP_OVERHEAD;
use crate::pool::Header;

impl World {
    /// Adds programs that send datagrams between a client and a server, and the carrier of each end.
    pub fn add_datagrams(&mut self, config: DatagramsConfig, client: Box<dyn Carrier>, server: Box<dyn Carrier>) {
        let session = self.sessions.len();
        self.sessions.push(Session::new(config, [client, server], self.config.seed));
        (0..2).for_each(|side| self.arm_session(session, side));
    }

    /// The lowest bit of the index is the end.
    pub(super) fn handle_session_timer(&mut self, index: usize) {
        let (session, side) = (index >> 1, index & 1);
        if self.sessions[session].handle_timeout(self.now, side) {
            self.drain_session(session, side);
        }
    }

    /// A packet of a session arrived at its host.
    pub(super) fn handle_carried(&mut self, header: &Header, payload: &[u8]) {
        let session = usize::from(header.session) - 1;
        let ends = (header.source, header.destination);
        if let Some(side) = self.sessions[session].handle_packet(self.now, ends, payload) {
            self.drain_session(session, side);
        }
    }

    fn drain_session(&mut self, index: usize, side: usize) {
        let session = &mut self.sessions[index];
        session.deliver(self.now, side);
        while let Some(packet) = session.poll_transmit(self.now, side, UDP_OVERHEAD) {
            self.network.send_carried(self.now, index as u16 + 1, packet, session.packets);
        }
        self.arm_session(index, side);
    }

    fn arm_session(&mut self, session: usize, side: usize) {
        if let Some(due) = self.sessions[session].arm(self.now, side) {
            self.network.events.put(due, Target::new(SESSION_EVENT, session << 1 | side));
        }
    }
}
