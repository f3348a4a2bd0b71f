use super::*;
use anabranch_mptcp::EndpointConfig;
use anabranch_policy::combination::Combination;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A host with 100 connections whose streams have all ended, and who waited for that.
fn ended() -> (State, Arc<Count>) {
    let path_manager = Combination::default().build_path_manager().expect("the default exists");
    let endpoint = Endpoint::new(EndpointConfig::default(), path_manager);
    let mut state = State::new(endpoint, 1, Vec::new(), Arc::new(BufferMemory::new(u64::MAX)));
    let count = Arc::new(Count::default());
    for id in (0..100).map(ConnectionId) {
        let mut connection = Connection::default();
        connection.reader = Some(Waker::from(Arc::clone(&count)));
        state.connections.insert(id, connection);
        state.pass_on(Instant::ZERO, Event::EndOfStream(id));
    }
    (state, count)
}

#[test]
fn where_many_connections_end_at_once_32_tasks_are_woken_after_each_turn() {
    let (mut state, count) = ended();
    for (woken, left) in [(32, true), (64, true), (96, true), (100, false)] {
        assert_eq!(state.wake_tasks(), left);
        assert_eq!(count.0.load(Ordering::Relaxed), woken);
    }
}

#[test]
fn all_are_woken_when_the_driver_ends() {
    let (mut state, count) = ended();
    state.driver_ended();
    assert_eq!(count.0.load(Ordering::Relaxed), 100);
}
