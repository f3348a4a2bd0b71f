//! Handles DATA_ACK.

use super::association::Protocol;
use super::state::Connection;
use super::timer_table::Timer;
use anabranch_policy::time::Instant;

impl Connection {
    /// Everything before `ack` has arrived. A value one beyond the end of the stream acknowledges DATA_FIN.
    pub(super) fn acknowledge_data(&mut self, now: Instant, ack: u64) {
        let newly = self.sender.buffer.acknowledge(ack.min(self.sender.data_nxt));
        if self.life.write_closed()
            && ack > self.sender.buffer.end()
            && self.association.protocol == Protocol::Multipath
        {
            self.life.acknowledge_end();
            self.subflows.iter_mut().for_each(|subflow| subflow.due.data_fin = false);
            self.limit_wait_for_end(now);
        }
        if newly > 0 {
            self.timers.data_attempts = 0;
            self.timers.stop(Timer::User);
            self.timers.begin_probes_anew();
            if self.partial.is_some() {
                self.drop_useless();
            }
            self.grow_send_buffer();
            self.report_memory();
            self.announce_room();
        }
        if newly > 0 || self.life.end_acknowledged() {
            self.arm_data_retransmit(now);
        }
    }
}
