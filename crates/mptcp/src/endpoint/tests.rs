//! Tests of internals: keys whose tokens collide, and the shares of several endpoints of a host.

use super::Endpoint;
use super::random::Random;
use crate::config::{ConnectionConfig, EndpointConfig, Origin, Policies, Ports, Share};
use anabranch_policy::ids::AddressId;
use anabranch_policy::path_manager::full_mesh::{FullMesh, MeshSettings};
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, scheduler};
use std::sync::Arc;

#[test]
fn a_key_whose_token_another_connection_has_is_not_used() {
    let seed = [3; 32];
    let config = EndpointConfig { seed, ..EndpointConfig::default() };
    let mut endpoint = Endpoint::new(config, Box::new(FullMesh::new(MeshSettings::default())));
    endpoint.handle_address_up(Instant::ZERO, AddressId(1), [10, 0, 0, 1].into());
    let policies = Policies {
        congestion: Arc::new(|| build(congestion::TABLE, "new_reno", &Settings::new()).unwrap()),
        scheduler: Arc::new(|| build(scheduler::TABLE, "lowest_rtt", &Settings::new()).unwrap()),
        reliability: crate::config::fully_reliable(),
    };
    let tokens = [0, 1].map(|_| {
        // The same random numbers for both.
        endpoint.random = Random::new(seed, Origin::default());
        let remote = ([10, 0, 0, 2], 80).into();
        let id = endpoint.connect(Instant::ZERO, None, remote, ConnectionConfig::new(policies.clone())).unwrap();
        endpoint.connections.get(id).unwrap().token().unwrap()
    });
    let mut random = Random::new(seed, Origin::default());
    let _port = random.next_u32();
    let keys = [random.next_u64(), random.next_u64()];
    assert_eq!(tokens, keys.map(|key| crate::keys::Key(key).derive().token));
    assert_eq!(endpoint.connection_count(), 2);
}

#[test]
fn endpoints_that_are_one_host_have_tokens_and_ports_of_their_own() {
    let policies = Policies {
        congestion: Arc::new(|| build(congestion::TABLE, "new_reno", &Settings::new()).unwrap()),
        scheduler: Arc::new(|| build(scheduler::TABLE, "lowest_rtt", &Settings::new()).unwrap()),
        reliability: crate::config::fully_reliable(),
    };
    let shares = [0, 1, 2].map(|index| Share { index, count: 3 });
    // Ports left over in a range that three does not divide belong to no endpoint.
    let ports = shares.map(|share| share.ports(100, 200));
    let range = |low, high| Ports::HashBased { low, high };
    assert_eq!(ports, [range(100, 132), range(133, 165), range(166, 198)]);
    assert_eq!(Share::WHOLE.ports(1_024, u16::MAX), range(1_024, u16::MAX));
    assert_eq!(Share::WHOLE.ports(100, 100), range(100, 100));
    assert_eq!(Share { index: 1, count: 3 }.ports(60_000, 60_002), range(60_001, 60_001));
    for (share, ports) in shares.into_iter().zip(ports) {
        // The same random numbers for all.
        let config = EndpointConfig { seed: [7; 32], share, ports, ..EndpointConfig::default() };
        let mut endpoint = Endpoint::new(config, Box::new(FullMesh::new(MeshSettings::default())));
        endpoint.handle_address_up(Instant::ZERO, AddressId(1), [10, 0, 0, 1].into());
        for _ in 0..30 {
            let remote = ([10, 0, 0, 2], 80).into();
            let id = endpoint.connect(Instant::ZERO, None, remote, ConnectionConfig::new(policies.clone())).unwrap();
            let token = endpoint.connections.get(id).unwrap().token().unwrap();
            assert_eq!(token % 3, share.index);
            assert!(shares.into_iter().filter(|share| share.owns_token(token)).eq([share]));
        }
    }
}

#[test]
fn an_endpoint_claims_its_connections_its_joins_and_new_ones_and_nothing_else() {
    use anabranch_wire::{Flags, MptcpOption, Packet};
    let share = Share { index: 1, count: 4 };
    let config = EndpointConfig { seed: [7; 32], share, ..EndpointConfig::default() };
    let mut endpoint = Endpoint::new(config, Box::new(FullMesh::new(MeshSettings::default())));
    let now = Instant::ZERO;
    endpoint.handle_address_up(now, AddressId(1), [10, 0, 0, 1].into());
    let policies = Policies {
        congestion: Arc::new(|| build(congestion::TABLE, "new_reno", &Settings::new()).unwrap()),
        scheduler: Arc::new(|| build(scheduler::TABLE, "lowest_rtt", &Settings::new()).unwrap()),
        reliability: crate::config::fully_reliable(),
    };
    let remote = ([10, 0, 0, 2], 80).into();
    endpoint.connect(now, None, remote, ConnectionConfig::new(policies)).unwrap();
    let syn = endpoint.poll_transmit(now).unwrap();
    let packet = |port: u16, flags: Flags, token: Option<u32>| {
        let mut packet = Packet::default();
        (packet.ip.source, packet.ip.destination) = (syn.ip.destination, syn.ip.source);
        (packet.segment.source_port, packet.segment.destination_port) = (syn.segment.destination_port, port);
        packet.segment.flags = flags;
        let join = |token| MptcpOption::JoinSyn { backup: false, address_id: 2, token, nonce: 0 };
        packet.segment.options.mptcp.extend(token.map(join));
        packet
    };
    let (ours, other) = (syn.segment.source_port, syn.segment.source_port ^ 1);
    assert!(endpoint.claims(&packet(ours, Flags::ACK, None)), "of its connection");
    assert!(!endpoint.claims(&packet(other, Flags::ACK, None)), "of nobody it knows");
    assert!(endpoint.claims(&packet(other, Flags::SYN, None)), "a new connection is whose its SYN comes to");
    assert!(!endpoint.claims(&packet(other, Flags::SYN | Flags::ACK, None)), "an answer that it did not ask for");
    assert!(endpoint.claims(&packet(other, Flags::SYN, Some(5))), "a join of its own");
    assert!(!endpoint.claims(&packet(other, Flags::SYN, Some(6))), "a join of another's");
}

#[test]
fn timestamps_to_a_host_begin_at_an_offset_that_others_cannot_tell_and_go_on_in_the_next_program() {
    let origin = |secret, millis| Origin { secret, millis, sequences: None };
    let offset = |seed: u8, origin, remote: u8| Random::new([seed; 32], origin).stamp_offset([10, 0, 0, remote].into());
    let seeded = origin(None, 0);
    assert_eq!(offset(1, seeded, 2), offset(1, seeded, 2));
    let all = [offset(1, seeded, 2), offset(1, seeded, 3), offset(2, seeded, 2), offset(1, origin(Some(7), 0), 2)];
    assert!((0..4).all(|one| (0..one).all(|other| all[one] != all[other])), "{all:?}");
    // Two programs with seeds of their own, the second 30 s later.
    let since = offset(2, origin(Some(7), 40_000), 2).wrapping_sub(offset(1, origin(Some(7), 10_000), 2));
    assert_eq!(since, 30_000);
}

#[test]
fn the_next_program_of_a_host_takes_none_of_the_ports_that_the_last_one_took_within_two_minutes() {
    let policies = || Box::new(FullMesh::new(MeshSettings::default()));
    let program = |seed: u8, millis, number| {
        let (origin, ports) =
            (Origin { secret: Some(7), millis, sequences: None }, Ports::HashBased { low: 1_024, high: u16::MAX });
        let mut endpoint =
            Endpoint::new(EndpointConfig { seed: [seed; 32], origin, ports, ..EndpointConfig::default() }, policies());
        let mut take = |remote| endpoint.free_port(Instant::ZERO, [10, 0, 0, 1].into(), remote).unwrap().0;
        (0..number).map(|_| take(([10, 0, 0, 2], 443).into())).collect::<std::collections::BTreeSet<u16>>()
    };
    // A hundred connections a second over three uplinks for ten seconds. The clock passes its largest number meanwhile.
    for start in [0, 70_000, u32::MAX - 3_000] {
        let last = program(1, start, 3_000);
        assert_eq!(last.len(), 3_000);
        for later in [10_000, 60_000, 100_000] {
            let next = program(2, start.wrapping_add(later), 3_000);
            assert_eq!(last.intersection(&next).count(), 0, "{start} + {later} ms");
        }
    }
}

#[test]
fn with_a_secret_for_them_initial_sequence_numbers_go_on_in_the_next_program_and_without_it_they_do_not() {
    let ends = ["10.0.0.1:2000", "10.0.0.2:443"].map(|end| end.parse().unwrap());
    let initial = |seed: u8, sequences, millis, now| {
        let origin = Origin { secret: Some(7), sequences, millis };
        Random::new([seed; 32], origin).initial_sequence(Instant::ZERO + now, ends[0], ends[1])
    };
    let second = Duration::from_secs(1);
    // 10 s of 250,000 numbers each. The clock passes its largest number meanwhile.
    for start in [0, 5_000, u32::MAX - 4_000] {
        let last = initial(1, Some([9; 32]), start, second);
        assert_eq!(initial(2, Some([9; 32]), start.wrapping_add(10_000), second) - last, 2_500_000);
        assert_ne!(initial(2, Some([8; 32]), start.wrapping_add(10_000), second) - last, 2_500_000, "another secret");
    }
    assert_ne!(initial(2, None, 10_000, second) - initial(1, None, 0, second), 2_500_000);
}
