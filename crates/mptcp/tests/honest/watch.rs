//! Invariants: limits of memory and windows, and timers in the future.

use super::world::World;
use anabranch_mptcp::Protocol;

/// Checks one host.
pub fn check(world: &World<'_>, host: usize) -> Result<(), String> {
    let endpoint = &world.pair.hosts[host];
    let (now, side) = (world.pair.now, &world.case.sides[host]);
    if endpoint.connection_count() > super::world::MAX_CONNECTIONS {
        return Err(format!("host {host} holds {} connections", endpoint.connection_count()));
    }
    let dropped = endpoint.counters().dropped_events;
    if dropped > 0 {
        return Err(format!("host {host} lost {dropped} events that were fetched at once"));
    }
    let Some(id) = world.apps[host].id else { return Ok(()) };
    if let Some(state) = endpoint.receive_state(id) {
        let held = state.readable + state.out_of_order;
        if held > state.buffer || state.buffer > side.largest_buffer() {
            return Err(format!("host {host}: {state:?} of at most {}", side.largest_buffer()));
        }
        if state.next != world.pair.received[host].len() as u64 + state.readable {
            return Err(format!("host {host}: {state:?} after {} bytes read", world.pair.received[host].len()));
        }
    }
    let Some(view) = endpoint.connection_view(now, id) else { return Ok(()) };
    let (read, written) = (world.pair.received[1 - host].len() as u64, world.apps[host].written);
    let allowed = read + world.case.sides[1 - host].largest_buffer();
    if view.data_nxt > allowed {
        return Err(format!("host {host} sent up to {}, {allowed} were allowed", view.data_nxt));
    }
    if view.data_nxt + view.unsent != written || written - view.data_una > side.send_buffer {
        return Err(format!("host {host}: {view:?} after {written} bytes written"));
    }
    let mut subflows = endpoint.subflow_views(now, id);
    // Racing attempts of the initial subflow count as one.
    subflows.dedup_by_key(|view| view.id);
    let plain = endpoint.protocol(id) == Some(Protocol::Tcp);
    // A closing subflow of a closed connection may exist beside those that count.
    if subflows.len() > side.max_subflows.max(1) || (plain && subflows.len() > 1) {
        return Err(format!("host {host} has {} subflows", subflows.len()));
    }
    match subflows.iter().find(|view| view.mss == 0 || view.counters.bytes_acked > view.counters.bytes_sent) {
        Some(odd) => Err(format!("host {host}: {odd:?}")),
        None => Ok(()),
    }
}
