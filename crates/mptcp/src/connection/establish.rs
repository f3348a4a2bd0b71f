//! A subflow is established: fixes its parameters, and notifies the application and the path manager.

use super::association::Protocol;
use super::output::Notice;
use super::state::Connection;
use super::subflows::Handle;
use super::timer_table::Timer;
use crate::config::BufferSize;
use crate::event::Event;
use crate::subflow::Setup;
use crate::subflow::timers::SubflowTimer;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::Instant;
use anabranch_wire::Segment;

impl Connection {
    /// The window of a SYN is never scaled (RFC 7323, section 2.2).
    pub(super) fn take_syn_window(&mut self, handle: Handle, segment: &Segment) {
        if self.is_initial(handle) {
            self.sender.window_edge = self.sender.window_edge.max(u64::from(segment.window));
        }
        let subflow = &mut self.subflows[handle];
        subflow.record_window(u32::from(segment.window));
        subflow.window.edge = subflow.send.initial + 1 + u32::from(segment.window);
    }

    pub(super) fn announce_subflow(&mut self, now: Instant, handle: Handle) {
        let id = self.subflows[handle].id();
        // After the end of the connection nothing is left to send but its end.
        if self.life.closed.is_some() {
            return;
        }
        // The path manager of a client is notified only once joins are allowed.
        if self.association.protocol == Protocol::Multipath
            && (self.association.confirmed || self.identity.role == Role::Server)
        {
            self.output.tell(Notice::SubflowEstablished(id));
            self.fit_buffers();
        }
        self.output.notify(Event::SubflowEstablished(self.id, id));
        self.association.joined |= id != SubflowId(0);
        self.resume_signalling(now);
        self.timers.stop(Timer::WithoutSubflows);
        self.output.pending = true;
    }

    /// The SYNs are exchanged: fixes the segment size and starts congestion control.
    pub(super) fn establish(&mut self, now: Instant, handle: Handle) {
        let space = self.mptcp_option_space();
        let (subflow, cx) = self.subflow_in_context(now, handle);
        let setup = Setup { config: cx.config, mptcp_option_space: space };
        subflow.establish(now, cx.congestion, &setup);
        if subflow.handshake.confirmed {
            subflow.timers.stop(SubflowTimer::Handshake);
        }
        let (mss, round_trip) = (subflow.mss, subflow.rtt.smoothed());
        self.receiver.buffer.set_segment_size(mss);
        self.receiver.buffer.set_round_trip(round_trip);
        self.arm_measurement(now);
        self.watch_rest(now);
        self.output.pending = true;
    }

    /// How many times the sizes of buffers count: once for each subflow, if they are per subflow.
    pub(super) fn buffer_factor(&self) -> u64 {
        if !self.config.buffers_per_subflow {
            return 1;
        }
        self.subflows.iter().filter(|subflow| subflow.state.is_synchronised()).count().max(1) as u64
    }

    /// Adapts buffers to the number of subflows ([`crate::ConnectionConfig::buffers_per_subflow`]).
    pub(super) fn fit_buffers(&mut self) {
        if !self.config.buffers_per_subflow {
            return;
        }
        let subflows = self.buffer_factor();
        self.sender.buffer.raise_limit(self.config.send_buffer.saturating_mul(subflows));
        if let BufferSize::Auto { max, .. } = self.config.receive_buffer {
            self.receiver.buffer.raise_max(max.saturating_mul(subflows));
        }
    }
}
