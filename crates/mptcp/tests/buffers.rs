//! Buffers that grow, and the memory that connections share.

mod pair;

use anabranch_mptcp::{BufferMemory, BufferSize, ConnectionConfig, Event};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Duration;
use bytes::Bytes;
use pair::{Fate, PORT, Pair, address, config, pattern};
use std::net::SocketAddr;
use std::sync::Arc;

const KIB: u64 = 1024;
/// The initial sizes here.
const FIRST: u64 = 64 * KIB;
/// What is reported late for each connection: less than 64 KiB, and what one step of the test writes or reads.
const LATE: u64 = 128 * KIB;

/// Both buffers grow up to 16 MiB.
fn growing(memory: Option<&Arc<BufferMemory>>) -> ConnectionConfig {
    ConnectionConfig {
        send_buffer: FIRST,
        send_buffer_max: 16 * KIB * KIB,
        receive_buffer: BufferSize::Auto { initial: FIRST, max: 16 * KIB * KIB },
        memory: memory.cloned(),
        ..config()
    }
}

/// A pair with a round trip of 100 ms, whose server has these settings.
fn pair(server: ConnectionConfig) -> Pair {
    let mut pair = Pair::new(1);
    pair.keep = false;
    pair.delay = vec![Duration::from_millis(50)];
    pair.hosts[1].listen(PORT, server).unwrap();
    pair
}

fn open(pair: &mut Pair, config: ConnectionConfig) -> ConnectionId {
    let id = pair.hosts[0].connect(pair.now, None, SocketAddr::new(address(1, 0), PORT), config).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(200));
    id
}

/// Bytes written by the client and not acknowledged.
fn held(pair: &Pair, id: ConnectionId) -> u64 {
    let view = pair.hosts[0].connection_view(pair.now, id).unwrap();
    view.data_nxt + view.unsent - view.data_una
}

/// Writes on all of these for a time as much as is accepted. Returns the most that each held at once.
fn flood(pair: &mut Pair, ids: &[ConnectionId], time: Duration) -> Vec<u64> {
    let block = Bytes::from(vec![7; 32 * KIB as usize]);
    let end = pair.now + time;
    let mut most = vec![0; ids.len()];
    loop {
        for (id, most) in ids.iter().zip(&mut most) {
            while pair.hosts[0].write(pair.now, *id, block.clone()).unwrap() == block.len() {}
            *most = held(pair, *id).max(*most);
        }
        pair.settle();
        if !pair.step(end) {
            return most;
        }
    }
}

fn accepted(pair: &Pair) -> Vec<ConnectionId> {
    let of = |event: &Event| match event {
        Event::Accepted { connection, .. } => Some(*connection),
        _ => None,
    };
    pair.events[1].iter().filter_map(of).collect()
}

#[test]
fn a_send_buffer_grows_with_the_window_to_its_limit_and_the_receive_buffer_with_it() {
    let fixed = ConnectionConfig { send_buffer_max: 0, ..growing(None) };
    let [grown, stayed] = [growing(None), fixed].map(|client| {
        let mut pair = pair(growing(None));
        let id = open(&mut pair, client);
        let most = flood(&mut pair, &[id], Duration::from_secs(2));
        (most[0], pair.received[1].len() as u64)
    });
    // In 20 round trips of slow start the window passes the limit, which is 16 MiB for the only subflow.
    assert!(grown.0 > 12 * KIB * KIB && grown.0 <= 16 * KIB * KIB, "{grown:?}");
    assert!(stayed.0 <= FIRST && stayed.1 <= 20 * FIRST, "{stayed:?}");
    assert!(grown.1 > 20 * stayed.1, "{grown:?} {stayed:?}");
}

#[test]
fn a_send_buffer_does_not_grow_for_an_application_that_does_not_fill_it() {
    let mut pair = pair(growing(None));
    let id = open(&mut pair, growing(None));
    // Half of the buffer in each round trip.
    for _ in 0..30 {
        assert_eq!(pair.write_all(0, id, &pattern(FIRST as usize / 2), Duration::ZERO), 0);
        pair.run(Duration::from_millis(110));
    }
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.hosts[0].room(id), Some(FIRST));
}

#[test]
fn connections_that_all_want_the_memory_get_the_same_part_whoever_came_first() {
    let memory = Arc::new(BufferMemory::new(2_000 * KIB));
    let mut pair = pair(growing(None));
    let first = open(&mut pair, growing(Some(&memory)));
    let alone = flood(&mut pair, &[first], Duration::from_secs(2));
    // x = 64 + 2000 - x
    assert!(alone[0].abs_diff(1_032 * KIB) < LATE, "{alone:?}");
    let mut ids = vec![first];
    ids.extend((0..3).map(|_| open(&mut pair, growing(Some(&memory)))));
    flood(&mut pair, &ids, Duration::from_secs(3));
    let each: Vec<u64> = ids.iter().map(|id| held(&pair, *id)).collect();
    // x = 64 + 2000 - 4 x
    assert!(each.iter().all(|held| held.abs_diff(413 * KIB) < LATE), "{each:?}");
    assert!(memory.used() <= memory.limit(), "{memory:?}");
    for id in ids {
        pair.hosts[0].abort(pair.now, id).unwrap();
    }
    pair.run(Duration::from_secs(1));
    assert_eq!(memory.used(), 0);
}

#[test]
fn readers_that_stop_hold_no_more_than_the_memory_and_their_initial_buffers_and_lose_nothing() {
    let memory = Arc::new(BufferMemory::new(1_000 * KIB));
    let mut pair = pair(growing(Some(&memory)));
    let ids: Vec<ConnectionId> = (0..3).map(|_| open(&mut pair, growing(None))).collect();
    flood(&mut pair, &ids, Duration::from_secs(2));
    let before: u64 = pair.received[1].len() as u64;
    // Each has been promised nearly all of the memory by now.
    pair.reading[1] = false;
    flood(&mut pair, &ids, Duration::from_secs(5));
    let servers = accepted(&pair);
    let states: Vec<_> = servers.iter().map(|id| pair.hosts[1].receive_state(*id).unwrap()).collect();
    let waiting: u64 = states.iter().map(|state| state.readable + state.out_of_order).sum();
    assert!(waiting > 900 * KIB && waiting <= 1_000 * KIB + 3 * (FIRST + LATE), "{states:#?}");
    assert!(states.iter().any(|state| state.dropped.without_memory > 0), "{states:#?}");
    pair.reading[1] = true;
    servers.iter().for_each(|id| pair.read(1, *id));
    pair.settle();
    let written = |pair: &Pair| -> u64 {
        let view = |id: &ConnectionId| pair.hosts[0].connection_view(pair.now, *id).unwrap();
        ids.iter().map(view).map(|view| view.data_nxt + view.unsent).sum()
    };
    let all = written(&pair);
    pair.run(Duration::from_secs(60));
    assert_eq!(pair.received[1].len() as u64, all, "{before} before");
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_receive_buffer_that_is_small_at_first_stays_so_until_it_is_opened_and_then_takes_all() {
    let small = ConnectionConfig { receive_buffer_at_first: 4, ..growing(None) };
    let mut pair = pair(small);
    pair.reading[1] = false;
    let id = open(&mut pair, growing(None));
    let server = accepted(&pair)[0];
    let data = pattern(300 * KIB as usize);
    assert_eq!(pair.write_all(0, id, &data[..64], Duration::ZERO), 0);
    pair.run(Duration::from_millis(200));
    // What is read makes room for as much, and no more.
    pair.read(1, server);
    assert_eq!(pair.received[1].len(), 64);
    let left = pair.write_all(0, id, &data[64..], Duration::from_secs(2));
    let held = pair.hosts[1].receive_state(server).unwrap();
    assert!(left > 0 && held.readable + held.out_of_order <= 4 * KIB, "{left} {held:?}");
    pair.hosts[1].open_receive_buffer(pair.now, server).unwrap();
    pair.settle();
    assert_eq!(pair.hosts[1].receive_state(server).unwrap().buffer, FIRST);
    pair.reading[1] = true;
    pair.read(1, server);
    pair.settle();
    pair.write_all(0, id, &data[data.len() - left..], Duration::from_secs(10));
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.received[1], data);
    assert!(pair.hosts[1].receive_state(server).unwrap().buffer > FIRST, "it grows as others do");
}

#[test]
fn out_of_order_data_before_a_small_buffer_is_opened_is_held_within_it() {
    let small = ConnectionConfig { receive_buffer_at_first: 4, ..growing(None) };
    let mut pair = pair(small);
    let id = open(&mut pair, growing(None));
    // The first segment with data is lost, again and again.
    let first = pattern(64);
    pair.judge = Box::new(
        move |_, _, packet| {
            if packet.segment.payload.starts_with(&first) { Fate::Drop } else { Fate::Deliver }
        },
    );
    pair.write_all(0, id, &pattern(300 * KIB as usize), Duration::from_secs(1));
    let held = pair.hosts[1].receive_state(accepted(&pair)[0]).unwrap();
    assert!(held.out_of_order > 0 && held.out_of_order <= 4 * KIB, "{held:?}");
}
