//! What cannot be seen from outside: keys whose tokens collide.

use super::Endpoint;
use super::random::Random;
use crate::config::{ConnectionConfig, EndpointConfig, Policies};
use anabranch_policy::ids::AddressId;
use anabranch_policy::path_manager::full_mesh::{FullMesh, MeshSettings};
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::Instant;
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
        // The same luck for both.
        endpoint.random = Random::new(seed);
        let remote = ([10, 0, 0, 2], 80).into();
        let id = endpoint.connect(Instant::ZERO, None, remote, ConnectionConfig::new(policies.clone())).unwrap();
        endpoint.connections.get(id).unwrap().token().unwrap()
    });
    let mut random = Random::new(seed);
    let _port = random.next_u32();
    let keys = [random.next_u64(), random.next_u64()];
    assert_eq!(tokens, keys.map(|key| crate::keys::Key(key).derive().token));
    assert_eq!(endpoint.connection_count(), 2);
}
