//! The loop that advances time, and the handling of each event.
//!
//! After every input to an endpoint its outputs are drained: packets to send, then events for the applications, which
//! may make it send again, then records, then its next timeout. Timers are armed lazily: an event is put into the queue
//! only when the new deadline is earlier than the queued one.

use super::event_kinds::{
    CHANGE_EVENT, FLOW_EVENT, HOST_EVENT, SAMPLE_EVENT, SESSION_EVENT, START_EVENT, STOP_EVENT, SUPERVISOR_EVENT,
    UDP_EVENT,
};
use super::{Change, Host, World};
use crate::address::InterfaceId;
use crate::event_queue::Target;
use crate::flow::{Flow, FlowId, Side, SubflowChange};
use crate::identifiers::{HostId, LinkId};
use crate::network::{Arrival, LINK_EVENT};
use crate::random::RandomStream;
use anabranch_mptcp::OperationError;
use anabranch_mptcp::{Endpoint, Event, TraceRecord, event::SendKind};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::time::{Duration, Instant};
use core::net::SocketAddr;
use std::collections::BTreeMap;

/// Limit of consecutive timeouts of an endpoint at the same time: panics instead of an endless loop.
const STALLED: u32 = 100_000;

impl World {
    /// Advances time to `end`.
    pub fn run_until(&mut self, end: Instant) {
        self.run(end, |_| false);
        self.now = self.now.max(end);
    }
    /// Advances time until all finite flows have ended, at most to `end`. Returns whether they have ended.
    pub fn run_until_finished(&mut self, end: Instant) -> bool {
        self.run(end, |world| world.unfinished == 0);
        self.unfinished == 0
    }
    /// Advances time until a link has delivered a packet, at most to `end`. Returns whether one has.
    pub fn run_until_delivery(&mut self, end: Instant) -> bool {
        let before = self.network.hash.deliveries();
        self.run(end, |world| world.network.hash.deliveries() > before);
        self.network.hash.deliveries() > before
    }
    #[inline]
    fn run(&mut self, end: Instant, is_done: impl Fn(&Self) -> bool) {
        self.network.update_routes();
        while !is_done(self) {
            let Some((time, target)) = self.network.events.take(end) else {
                self.now = self.now.max(end);
                return;
            };
            debug_assert!(time >= self.now, "time runs forwards");
            self.now = self.now.max(time);
            self.handle(target);
            while let Some(arrival) = self.network.poll_immediate_arrival() {
                self.handle_arrival(arrival);
            }
        }
    }
    fn handle(&mut self, target: Target) {
        let index = target.index();
        match target.kind() {
            LINK_EVENT => self.handle_link(LinkId(index as u32)),
            HOST_EVENT => self.handle_timer(HostId(index as u32)),
            FLOW_EVENT => self.handle_application(index / 2, index % 2),
            SAMPLE_EVENT => self.sample(index),
            UDP_EVENT => self.handle_udp(index),
            CHANGE_EVENT => self.apply(self.changes[index]),
            START_EVENT => self.start_flow(index),
            STOP_EVENT => self.stop_flow(index),
            SESSION_EVENT => self.handle_session_timer(index),
            SUPERVISOR_EVENT => self.supervise(HostId(index as u32)),
            _ => self.network.handle_mesh(self.now, target),
        }
    }
    fn handle_link(&mut self, link: LinkId) {
        self.network.handle_link(self.now, link);
        while let Some(arrival) = self.network.poll_arrival(self.now, link) {
            self.handle_arrival(arrival);
        }
    }
    fn handle_arrival(&mut self, Arrival { host, length, id }: Arrival) {
        match self.network.pool.remove(id) {
            Some(packet) => {
                self.hosts[host.index()].endpoint.handle_packet_in_place(self.now, packet);
                self.drain(host);
            }
            None => match self.network.pool.take_carried(id) {
                Some((header, payload)) => self.handle_carried(&header, &payload),
                None => {
                    let result = &mut self.hosts[host.index()].result;
                    result.udp_packets += 1;
                    result.udp_bytes += u64::from(length);
                }
            },
        }
    }
    fn handle_timer(&mut self, id: HostId) {
        let host = &mut self.hosts[id.index()];
        if host.armed > self.now {
            return;
        }
        host.armed = Instant::NEVER;
        host.timeouts_at_once = if host.last_timeout == self.now { host.timeouts_at_once + 1 } else { 0 };
        host.last_timeout = self.now;
        assert!(host.timeouts_at_once < STALLED, "{}: its endpoint's timeout does not move on", host.result.name);
        if host.endpoint.poll_timeout() <= self.now {
            host.endpoint.handle_timeout(self.now);
        }
        self.drain(id);
    }
    fn supervise(&mut self, id: HostId) {
        let host = &mut self.hosts[id.index()];
        let Some(supervisor) = &mut host.supervisor else { return };
        supervisor.act(self.now, &mut host.endpoint);
        self.network.events.put(self.now + supervisor.interval(), Target::new(SUPERVISOR_EVENT, id.index()));
        self.drain(id);
    }
    fn handle_application(&mut self, flow: usize, side: usize) {
        let end = &mut self.flows[flow].ends[side];
        if end.armed > self.now {
            return;
        }
        end.armed = Instant::NEVER;
        let host = end.host;
        end.on_timer(self.now, &mut self.hosts[host.index()].endpoint);
        self.arm_application(flow, side);
        self.drain(host);
    }
    #[inline]
    fn arm_application(&mut self, flow: usize, side: usize) {
        let end = &mut self.flows[flow].ends[side];
        let due = end.timer();
        if due < end.armed && !end.is_closed() {
            end.armed = due;
            self.network.events.put(due, Target::new(FLOW_EVENT, flow * 2 + side));
        }
    }
    /// The lowest bit of the index says that a packet is due; without it the source only checks its rate again.
    fn handle_udp(&mut self, index: usize) {
        let source = &mut self.udp[index >> 1];
        if self.now >= source.config.stop {
            return;
        }
        if index & 1 == 1 {
            let length = source.packet();
            let ends = (source.config.from, source.config.to);
            self.network.send_udp(self.now, ends, length, source.result.sent_packets);
        }
        let (time, is_packet) = source.next(self.now);
        self.network.events.put(time, Target::new(UDP_EVENT, index & !1 | usize::from(is_packet)));
    }
    pub(super) fn apply(&mut self, change: Change) {
        let now = self.now;
        match change {
            Change::LinkState(link, up) => {
                self.network.change_link(link, |link, _, pool| link.handle_state(now, up, pool));
            }
            Change::LinkRate(link, rate) => {
                self.network.change_link(link, |link, _, pool| link.handle_rate(now, rate, pool));
            }
            Change::LinkDelay(link, delay) => {
                self.network.change_link(link, |link, _, pool| link.handle_delay(now, delay, pool));
            }
            Change::LinkLoss(link, loss) => {
                let seed = self.config.seed;
                self.network.change_link(link, |link, name, pool| {
                    let random = RandomStream::new(seed, &format!("link/{name}/changed loss"));
                    link.handle_loss(now, loss, random, pool);
                });
            }
            Change::LinkQueue(link, limit) => {
                self.network.change_link(link, |link, _, pool| link.handle_queue_limit(now, limit, pool));
            }
            Change::Address(interface, up) => {
                let address = self.address(interface);
                let Some(id) = self.host_of(interface) else { return };
                let host = &mut self.hosts[id.index()];
                let place = host.interfaces.iter().position(|other| *other == interface).unwrap_or(0);
                let address_id = AddressId(u8::try_from(place + 1).unwrap_or(u8::MAX));
                if up {
                    host.endpoint.handle_address_up(self.now, address_id, address);
                } else {
                    host.endpoint.handle_address_down(self.now, address_id);
                }
                self.drain(id);
            }
            Change::Abort(flow, side) => self.operate(flow, side, |endpoint, now, id| endpoint.abort(now, id)),
            Change::Priority(flow, side, priority) => {
                self.operate(flow, side, |endpoint, _, id| endpoint.set_priority(id, priority));
            }
            Change::PlayOutLeft(flow, side, left) => {
                self.operate(flow, side, |endpoint, now, id| endpoint.set_play_out_left(now, id, left));
            }
        }
    }
    /// Applies an operation of the application at one end of a flow, if its connection exists.
    fn operate(
        &mut self,
        flow: FlowId,
        side: Side,
        operation: impl FnOnce(&mut Endpoint, Instant, ConnectionId) -> Result<(), OperationError>,
    ) {
        let end = &self.flows[flow.0 as usize].ends[side as usize];
        let (host, connection) = (end.host, end.connection);
        if let Some(connection) = connection {
            // The connection may have ended already.
            let _ = operation(&mut self.hosts[host.index()].endpoint, self.now, connection);
        }
        self.drain(host);
    }

    fn start_flow(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.failed.is_none() {
            let (from, to) = (flow.config.from, flow.config.to);
            let address = |id: InterfaceId| if self.config.ipv6 { id.ipv6() } else { id.ipv4() };
            let remote = SocketAddr::new(address(to), flow.port);
            let host = &mut self.hosts[flow.config.client.index()];
            let config = flow.config.client_config.clone();
            match host.endpoint.connect(self.now, from.map(address), remote, config) {
                Ok(connection) => {
                    flow.ends[Side::Client as usize].connection = Some(connection);
                    host.connections.insert(connection, (FlowId(index as u32), Side::Client));
                }
                Err(error) => flow.failed = Some(error),
            }
        }
        let client = flow.config.client;
        self.record_if_finished(index);
        self.drain(client);
    }
    fn stop_flow(&mut self, index: usize) {
        for side in Side::BOTH {
            let end = &mut self.flows[index].ends[side as usize];
            let host = end.host;
            if let Some(connection) = end.connection.filter(|_| !end.is_closed()) {
                end.writer.end(self.now, &mut self.hosts[host.index()].endpoint, connection);
            }
            self.drain(host);
        }
    }
    fn sample(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let Some(interval) = flow.config.record else { return };
        for end in &mut flow.ends {
            end.update_stats(&self.hosts[end.host.index()].endpoint);
        }
        let view = |end: usize| {
            let end = &flow.ends[end];
            end.connection.map(|id| (&self.hosts[end.host.index()].endpoint, id))
        };
        let (client, server) = (view(0), view(1));
        let (sender, receiver) = if flow.sender == Side::Client { (client, server) } else { (server, client) };
        if let Some(recorder) = &mut flow.recorder {
            recorder.sample(self.now, sender, receiver);
        }
        if !flow.finished {
            self.network
                .events
                .put(self.now + interval.max(Duration::from_micros(1)), Target::new(SAMPLE_EVENT, index));
        }
    }

    /// Takes all outputs of an endpoint after an input.
    fn drain(&mut self, id: HostId) {
        loop {
            let host = &mut self.hosts[id.index()];
            while host.endpoint.poll_transmit_into(self.now, self.network.pool.next_place()) {
                let again = self.marks_repeats && sends_again(self.now, host, &mut self.flows);
                self.network.send_tcp(self.now, id, again);
            }
            let Some(event) = host.endpoint.poll_event() else { break };
            // Nearly all events are about readable data.
            match event {
                Event::Readable(connection) => self.on_readable(id, connection),
                _ => self.on_event(id, event),
            }
            while let Some(event) = self.hosts[id.index()].endpoint.poll_event() {
                self.on_event(id, event);
            }
        }
        let host = &mut self.hosts[id.index()];
        if host.traced {
            while let Some(record) = host.endpoint.poll_trace() {
                record_trace(self.now, &host.connections, &mut self.flows, &record);
            }
        }
        if let Some(supervisor) = &mut host.supervisor {
            supervisor.observe(self.now, &host.endpoint);
        }
        let due = host.endpoint.poll_timeout();
        if due < host.armed {
            host.armed = due.max(self.now);
            self.network.events.put(host.armed, Target::new(HOST_EVENT, id.index()));
        }
    }
    /// There is data to read.
    #[inline(always)]
    fn on_readable(&mut self, id: HostId, connection: ConnectionId) {
        let host = &mut self.hosts[id.index()];
        let Some((flow, side)) = host.connections.get(&connection) else { return };
        let (index, side) = (flow.0 as usize, *side as usize);
        let flow = &mut self.flows[index];
        flow.ends[side].on_readable(self.now, &mut host.endpoint, connection);
        let may_be_over = flow.may_be_over();
        self.arm_application(index, side);
        if may_be_over {
            self.record_if_finished(index);
        }
    }
    /// An event of an endpoint for its application.
    fn on_event(&mut self, id: HostId, event: Event) {
        let host = &mut self.hosts[id.index()];
        let connection = match event {
            Event::Accepted { connection, port, .. } => {
                let Some(flow) = host.listeners.get(&port) else { return };
                host.connections.insert(connection, (*flow, Side::Server));
                connection
            }
            Event::Connected(connection)
            | Event::Readable(connection)
            | Event::Writable(connection)
            | Event::EndOfStream(connection)
            | Event::Closed(connection, _)
            | Event::FellBack(connection, _)
            | Event::SubflowEstablished(connection, _)
            | Event::SubflowClosed(connection, _, _) => connection,
            // Hosts of the lab accept only SYNs of the lab.
            Event::Asked { .. } => return,
        };
        let Some((flow, side)) = host.connections.get(&connection).copied() else { return };
        let (index, side) = (flow.0 as usize, side as usize);
        let flow = &mut self.flows[index];
        let recorded = flow.recorder.is_some();
        let (end, endpoint) = (&mut flow.ends[side], &mut host.endpoint);
        match event {
            Event::Connected(_) | Event::Accepted { .. } => end.on_established(self.now, endpoint, connection),
            Event::Readable(_) => self.on_readable(id, connection),
            Event::Writable(_) => end.writer.write(self.now, endpoint, connection),
            Event::EndOfStream(_) => end.on_end_of_stream(self.now, endpoint, connection),
            Event::Closed(_, cause) => {
                end.on_closed(self.now, cause, endpoint);
                host.connections.remove(&connection);
            }
            Event::FellBack(_, cause) => end.on_fallback(cause),
            Event::SubflowEstablished(_, subflow) if recorded => {
                end.on_subflow(self.now, subflow, SubflowChange::Established);
            }
            Event::SubflowClosed(_, subflow, reason) if recorded => {
                end.on_subflow(self.now, subflow, SubflowChange::Closed(reason));
            }
            Event::SubflowEstablished(..) | Event::SubflowClosed(..) | Event::Asked { .. } => {}
        }
        self.arm_application(index, side);
        // Reads of endless flows end nothing.
        let flow = &self.flows[index];
        let may_end =
            matches!(event, Event::EndOfStream(_) | Event::Closed(..) | Event::Writable(_) | Event::Readable(_));
        if may_end && flow.may_be_over() {
            self.record_if_finished(index);
        }
    }
    #[inline(never)]
    fn record_if_finished(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if !flow.finished && flow.is_over() {
            flow.finished = true;
            self.unfinished -= usize::from(flow.is_finite());
        }
    }
}

/// Takes the records of a host that is traced after it has sent a packet. Whether its data has been sent before.
#[inline(never)]
fn sends_again(now: Instant, host: &mut Host, flows: &mut [Flow]) -> bool {
    let mut again = false;
    while let Some(record) = host.endpoint.poll_trace() {
        if let TraceRecord::Sent { kind, .. } = record {
            again = kind != SendKind::New;
        }
        record_trace(now, &host.connections, flows, &record);
    }
    again
}

fn record_trace(
    now: Instant,
    connections: &BTreeMap<ConnectionId, (FlowId, Side)>,
    flows: &mut [Flow],
    record: &TraceRecord,
) {
    let (TraceRecord::Sent { connection, .. }
    | TraceRecord::Arrived { connection, .. }
    | TraceRecord::Delivered { connection, .. }
    | TraceRecord::Blocked { connection, .. }) = record;
    let Some((flow, side)) = connections.get(connection) else { return };
    let flow = &mut flows[flow.0 as usize];
    if let Some(recorder) = &mut flow.recorder {
        recorder.on_trace(now, *side == flow.sender, record);
    }
}
