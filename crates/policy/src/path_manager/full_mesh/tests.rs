use super::*;
use crate::path_manager::tests::{local, remote};
use crate::scheduler::tests::at;

const ONE: ConnectionId = ConnectionId(1);

struct Driver {
    mesh: FullMesh,
    now_ms: u64,
    handshake_rtt: Duration,
}

impl Driver {
    /// With local addresses 1 to `addresses` up.
    fn new(settings: MeshSettings, addresses: u8) -> Self {
        let mut driver = Self { mesh: FullMesh::new(settings), now_ms: 0, handshake_rtt: Duration::ZERO };
        (1..=addresses).for_each(|id| assert_eq!(driver.up(id), []));
        driver
    }
    fn tell(&mut self, event: PathEvent<'_>) -> Vec<PathAction> {
        let mut actions = Vec::new();
        self.mesh.handle(at(self.now_ms), &event, &mut actions);
        actions
    }
    fn up(&mut self, id: u8) -> Vec<PathAction> {
        self.tell(PathEvent::AddressUp { id: AddressId(id), address: local(id) })
    }
    fn down(&mut self, id: u8) -> Vec<PathAction> {
        self.tell(PathEvent::AddressDown { id: AddressId(id) })
    }
    /// A connection from local address 1 to the peer's address 1.
    fn connected(&mut self, role: Role, remote_denies_joins: bool) -> Vec<PathAction> {
        self.tell(PathEvent::ConnectionEstablished {
            connection: ONE,
            role,
            local: AddressId(1),
            remote: remote(1),
            remote_denies_joins,
            handshake_rtt: self.handshake_rtt,
        })
    }
    fn announced(&mut self, id: u8, remote: SocketAddr) -> Vec<PathAction> {
        self.tell(PathEvent::AddressAnnounced { connection: ONE, id: AddressId(id), remote })
    }
    fn established(&mut self, subflow: u32, local: u8, remote: u8) -> Vec<PathAction> {
        let (local, remote) = (AddressId(local), AddressId(remote));
        let subflow = SubflowId(subflow);
        self.tell(PathEvent::SubflowEstablished { connection: ONE, subflow, local, remote, backup: false })
    }
    fn closed(&mut self, subflow: u32, local: u8, remote: u8, reason: CloseReason) -> Vec<PathAction> {
        let (local, remote) = (AddressId(local), AddressId(remote));
        self.tell(PathEvent::SubflowClosed { connection: ONE, subflow: SubflowId(subflow), local, remote, reason })
    }
    fn wake_at(&mut self, ms: u64) -> Vec<PathAction> {
        self.now_ms = ms;
        self.tell(PathEvent::Wake)
    }
}

fn create(local: u8, remote: u8) -> PathAction {
    PathAction::CreateSubflow { connection: ONE, local: AddressId(local), remote: AddressId(remote), backup: false }
}
fn announce(local: u8) -> PathAction {
    PathAction::Announce { connection: ONE, local: AddressId(local) }
}
fn remove(local: u8) -> PathAction {
    PathAction::Remove { connection: ONE, local: AddressId(local) }
}
fn wake(ms: u64) -> PathAction {
    PathAction::WakeAt(at(ms))
}
fn creations(actions: &[PathAction]) -> Vec<PathAction> {
    actions.iter().filter(|action| matches!(action, PathAction::CreateSubflow { .. })).copied().collect()
}
fn settings() -> MeshSettings {
    MeshSettings::default()
}

#[test]
fn a_client_joins_from_every_address_to_every_address_but_not_the_initial_pair_again() {
    let mut driver = Driver::new(settings(), 2);
    // An attempt without a result would time out after 120 s.
    assert_eq!(driver.connected(Role::Client, false), [create(2, 0), wake(120_000)]);
    assert_eq!(driver.announced(7, remote(2)), [create(1, 7), create(2, 7)]);
    assert_eq!(driver.announced(7, remote(2)), [], "repeated until echoed");
    assert_eq!(driver.up(3), [create(3, 0), create(3, 7)]);
}

#[test]
fn a_server_opens_nothing_and_announces_its_other_addresses_once() {
    let mut driver = Driver::new(settings(), 3);
    assert_eq!(driver.connected(Role::Server, false), [announce(2), announce(3)]);
    assert_eq!(driver.established(1, 2, 5), []);
    assert_eq!(driver.up(4), [announce(4)]);
    assert_eq!(driver.announced(7, remote(2)), []);
    assert_eq!(driver.closed(1, 2, 5, CloseReason::TimedOut), []);
}

#[test]
fn who_announces_is_a_setting() {
    let mut silent = Driver::new(MeshSettings { announce: Announce::Never, ..settings() }, 2);
    assert_eq!(silent.connected(Role::Server, false), []);
    let mut both = Driver::new(MeshSettings { announce: Announce::Both, ..settings() }, 2);
    assert_eq!(both.connected(Role::Client, false)[..2], [announce(2), create(2, 0)]);
}

#[test]
fn with_backup_joined_whatever_joins_asks_to_be_a_backup() {
    let joined = Settings::new().with("backup", "joined");
    let mut driver = Driver::new(joined.read(MeshSettings::read_with_backup).unwrap(), 3);
    let actions = driver.connected(Role::Client, false);
    let backups: Vec<bool> = actions
        .iter()
        .filter_map(|action| if let PathAction::CreateSubflow { backup, .. } = action { Some(*backup) } else { None })
        .collect();
    assert_eq!(backups, [true, true]);
}

#[test]
fn an_address_that_the_peer_asks_not_to_join_is_left_out_and_the_others_are_used() {
    let mut driver = Driver::new(settings(), 2);
    assert_eq!(driver.connected(Role::Client, true), []);
    // The same address under another identifier is still the same address.
    assert_eq!(driver.announced(4, remote(1)), []);
    assert_eq!(creations(&driver.announced(5, remote(2))), [create(1, 5), create(2, 5)]);
}

#[test]
fn addresses_of_different_families_and_impossible_ones_are_no_pair() {
    let mut driver = Driver::new(settings(), 1);
    driver.connected(Role::Client, false);
    let v6: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
    assert_eq!(driver.announced(2, v6), []);
    for (id, impossible) in (3..).zip(["0.0.0.0:80", "224.0.0.1:80", "192.0.2.9:0"]) {
        assert_eq!(driver.announced(id, impossible.parse().unwrap()), []);
    }
    assert_eq!(driver.announced(0, remote(9)), []);
    let actions = driver.tell(PathEvent::AddressUp { id: AddressId(2), address: "2001:db8::2".parse().unwrap() });
    assert_eq!(creations(&actions), [create(2, 2)]);
}

#[test]
fn the_limit_counts_opening_subflows_and_a_slot_that_becomes_free_is_used() {
    let mut driver = Driver::new(MeshSettings { subflows: 2, ..settings() }, 4);
    assert_eq!(creations(&driver.connected(Role::Client, false)), [create(2, 0), create(3, 0)]);
    driver.established(1, 2, 0);
    assert_eq!(driver.closed(2, 3, 0, CloseReason::ProtocolError), [create(4, 0)]);
    assert_eq!(driver.closed(1, 2, 0, CloseReason::Normal), []);
    // The initial subflow never counted for the limit.
    assert_eq!(creations(&driver.announced(7, remote(2))), [create(1, 7)]);
}

#[test]
fn only_so_many_announced_addresses_are_used() {
    let mut driver = Driver::new(MeshSettings { add_addr_accepted: 1, ..settings() }, 1);
    driver.connected(Role::Client, false);
    assert_eq!(creations(&driver.announced(5, remote(2))), [create(1, 5)]);
    assert_eq!(driver.announced(6, remote(3)), []);
    driver.tell(PathEvent::AddressRemoved { connection: ONE, id: AddressId(5) });
    assert_eq!(creations(&driver.announced(6, remote(3))), [create(1, 6)]);
}

#[test]
fn a_lost_subflow_is_opened_again_after_one_second_two_four_up_to_sixty() {
    let mut driver = Driver::new(settings(), 2);
    driver.connected(Role::Client, false);
    let mut pauses = Vec::new();
    for id in 1..=8 {
        let lost = driver.closed(id, 2, 0, CloseReason::TimedOut);
        let PathAction::WakeAt(at) = lost[0] else { panic!("{lost:?}") };
        let due = at.as_nanos() / 1_000_000;
        pauses.push((due - driver.now_ms) / 1_000);
        assert_eq!(driver.wake_at(due - 1), [], "not a millisecond early");
        assert_eq!(driver.wake_at(due)[0], create(2, 0));
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    // One that lives for a minute starts with the first pause again; one that lives for less does not.
    let start = driver.now_ms;
    driver.established(9, 2, 0);
    driver.now_ms = start + 59_999;
    assert_eq!(driver.closed(9, 2, 0, CloseReason::Reset), [wake(start + 119_999)]);
    assert_eq!(creations(&driver.wake_at(start + 119_999)), [create(2, 0)]);
    driver.established(10, 2, 0);
    driver.now_ms += 60_000;
    let now = driver.now_ms;
    assert_eq!(driver.closed(10, 2, 0, CloseReason::TimedOut), [wake(now + 1_000)]);
}

#[test]
fn the_initial_subflow_is_opened_again_too_unless_the_peer_denies_it() {
    let mut driver = Driver::new(settings(), 1);
    driver.connected(Role::Client, false);
    assert_eq!(driver.closed(0, 1, 0, CloseReason::TimedOut), [wake(1_000)]);
    assert_eq!(driver.wake_at(1_000)[0], create(1, 0));
    let mut denied = Driver::new(settings(), 1);
    denied.connected(Role::Client, true);
    assert_eq!(denied.closed(0, 1, 0, CloseReason::TimedOut), []);
}

#[test]
fn the_initial_local_address_may_be_called_zero() {
    let mut driver = Driver::new(settings(), 1);
    driver.connected(Role::Client, false);
    assert_eq!(driver.established(0, 0, 0), []);
    assert_eq!(driver.closed(0, 0, 0, CloseReason::TimedOut), [wake(1_000)]);
    assert_eq!(driver.wake_at(1_000)[0], create(1, 0));
    // Also when the address goes down before the subflow ends.
    driver.established(1, 0, 0);
    driver.down(1);
    driver.closed(1, 0, 0, CloseReason::AddressGone);
    assert_eq!(creations(&driver.up(1)), [create(1, 0)]);
}

#[test]
fn a_server_announces_its_initial_address_when_it_has_gone_and_come_back() {
    let mut driver = Driver::new(settings(), 1);
    assert_eq!(driver.connected(Role::Server, false), []);
    assert_eq!(driver.down(1), [remove(1)]);
    assert_eq!(driver.up(1), [announce(1)]);
}

#[test]
fn what_was_closed_in_order_or_refused_stays_closed_until_its_address_comes_back() {
    for reason in [CloseReason::Normal, CloseReason::ProtocolError] {
        let mut driver = Driver::new(settings(), 2);
        driver.connected(Role::Client, false);
        driver.established(1, 2, 0);
        assert_eq!(driver.closed(1, 2, 0, reason), []);
        assert_eq!(creations(&driver.announced(7, remote(2))), [create(1, 7), create(2, 7)]);
        assert_eq!(driver.down(2), [remove(2)], "never announced, but joined from");
        assert_eq!(creations(&driver.up(2)), [create(2, 0), create(2, 7)]);
    }
}

#[test]
fn without_reopening_a_lost_subflow_stays_lost() {
    let mut driver = Driver::new(MeshSettings { reopen: false, ..settings() }, 2);
    driver.connected(Role::Client, false);
    driver.established(1, 2, 0);
    assert_eq!(driver.closed(1, 2, 0, CloseReason::TimedOut), []);
    assert_eq!(driver.wake_at(120_000), []);
    driver.down(2);
    assert_eq!(creations(&driver.up(2)), [create(2, 0)]);
}

#[test]
fn an_attempt_that_is_never_heard_of_counts_as_timed_out_after_120_seconds() {
    let mut driver = Driver::new(settings(), 2);
    assert_eq!(driver.connected(Role::Client, false), [create(2, 0), wake(120_000)]);
    assert_eq!(driver.wake_at(120_000), [wake(121_000)]);
    assert_eq!(driver.wake_at(121_000), [create(2, 0), wake(241_000)]);
    driver.established(1, 2, 0);
    assert_eq!(driver.wake_at(241_000), []);
}

#[test]
fn a_close_of_another_subflow_between_the_same_addresses_changes_nothing() {
    let mut driver = Driver::new(settings(), 2);
    driver.connected(Role::Client, false);
    driver.established(1, 2, 0);
    assert_eq!(driver.closed(5, 2, 0, CloseReason::TimedOut), []);
    assert_eq!(driver.closed(1, 2, 0, CloseReason::TimedOut), [wake(1_000)]);
}

#[test]
fn an_address_that_the_peer_withdrew_is_not_opened_again() {
    let mut driver = Driver::new(settings(), 1);
    driver.connected(Role::Client, false);
    driver.announced(7, remote(2));
    driver.established(1, 1, 7);
    assert_eq!(driver.tell(PathEvent::AddressRemoved { connection: ONE, id: AddressId(7) }), []);
    assert_eq!(driver.closed(1, 1, 7, CloseReason::TimedOut), []);
}

#[test]
fn a_story_a_phone_leaves_wifi_and_comes_back() {
    let mut driver = Driver::new(settings(), 2);
    driver.connected(Role::Client, false);
    driver.established(1, 2, 0);
    // Wi-Fi (address 1, that of the initial subflow) goes down: the peer knows the address, so it is withdrawn.
    driver.now_ms = 5_000;
    assert_eq!(driver.down(1), [remove(1)]);
    assert_eq!(driver.closed(0, 1, 0, CloseReason::AddressGone), []);
    // It comes up and is used at once. The cellular path dies meanwhile, and is tried again a second later.
    driver.now_ms = 20_000;
    assert_eq!(creations(&driver.up(1)), [create(1, 0)]);
    driver.established(2, 1, 0);
    driver.now_ms = 30_000;
    assert_eq!(driver.closed(1, 2, 0, CloseReason::TimedOut), [wake(31_000)]);
    assert_eq!(creations(&driver.wake_at(31_000)), [create(2, 0)]);
    driver.established(3, 2, 0);
    // The connection ends, and no state of it is kept.
    assert_eq!(driver.tell(PathEvent::ConnectionClosed { connection: ONE }), []);
    assert!(driver.mesh.connections.is_empty());
    assert_eq!(driver.closed(3, 2, 0, CloseReason::TimedOut), []);
}

#[test]
fn the_earliest_of_several_deadlines_is_asked_for_and_a_closed_connection_leaves_none() {
    let mut driver = Driver::new(settings(), 3);
    assert_eq!(driver.connected(Role::Client, false), [create(2, 0), create(3, 0), wake(120_000)]);
    assert_eq!(driver.closed(1, 2, 0, CloseReason::TimedOut), [wake(1_000)]);
    driver.now_ms = 500;
    assert_eq!(driver.closed(2, 3, 0, CloseReason::TimedOut), [], "1.5 s is later than 1 s");
    assert_eq!(driver.wake_at(1_000), [create(2, 0), wake(1_500)]);
    driver.tell(PathEvent::ConnectionClosed { connection: ONE });
    assert!(driver.mesh.due.is_empty());
    assert_eq!(driver.wake_at(1_500), []);
}

#[test]
fn an_identifier_that_moves_to_another_address_is_tried_there_at_once() {
    let mut driver = Driver::new(settings(), 1);
    driver.connected(Role::Client, false);
    assert_eq!(creations(&driver.announced(7, remote(2))), [create(1, 7)]);
    driver.established(1, 1, 7);
    assert_eq!(driver.closed(1, 1, 7, CloseReason::TimedOut), [wake(1_000)]);
    assert_eq!(creations(&driver.announced(7, remote(3))), [create(1, 7)]);
}

#[test]
fn a_connection_that_is_too_young_has_one_subflow_and_announces_nothing() {
    let settings = MeshSettings { join_age: Duration::from_millis(10), announce: Announce::Both, ..settings() };
    let mut driver = Driver::new(settings, 2);
    driver.handshake_rtt = Duration::from_millis(4);
    assert_eq!(driver.connected(Role::Client, false), [wake(6)]);
    assert_eq!(driver.announced(1, remote(2)), []);
    assert_eq!(driver.up(3), []);
    assert_eq!(driver.wake_at(5), []);
    let opened = driver.wake_at(6);
    assert_eq!(opened.iter().filter(|action| matches!(action, PathAction::Announce { .. })).count(), 2);
    assert_eq!(creations(&opened).len(), 5); // three addresses to two, but for the initial pair
}

#[test]
fn a_connection_whose_handshake_took_long_is_old_enough_at_once() {
    let settings = MeshSettings { join_age: Duration::from_millis(10), ..settings() };
    let mut driver = Driver::new(settings, 2);
    driver.handshake_rtt = Duration::from_millis(10);
    assert_eq!(creations(&driver.connected(Role::Client, false)), [create(2, 0)]);
}

#[test]
fn a_connection_that_ends_young_leaves_no_deadline() {
    let settings = MeshSettings { join_age: Duration::from_millis(10), ..settings() };
    let mut driver = Driver::new(settings, 2);
    driver.connected(Role::Client, false);
    driver.tell(PathEvent::ConnectionClosed { connection: ONE });
    assert!(driver.mesh.due.is_empty());
    assert_eq!(driver.wake_at(10), []);
}
