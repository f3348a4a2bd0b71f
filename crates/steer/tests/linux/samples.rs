//! What samples tell of the kernel's connections.

use crate::scene::{Path, PathManager, Scene, Transfer, client_address, sample, server_address};
use anabranch_steering::sample::TcpState;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_join_that_the_kernel_opens_is_sampled", || {
            a_join_that_the_kernel_opens_is_sampled();
            Ok(())
        }),
        Trial::test("counters_grow_with_what_is_carried", || {
            counters_grow_with_what_is_carried();
            Ok(())
        }),
        Trial::test("an_empty_host_has_an_empty_sample", || {
            let scene = Scene::new(&[Path::new(10, 1)], PathManager::Kernel);
            assert!(scene.client(sample).connections.is_empty());
            Ok(())
        }),
    ]
}

fn a_join_that_the_kernel_opens_is_sampled() {
    let scene = Scene::new(&[Path::new(50, 5), Path::new(50, 5)], PathManager::Kernel);
    let (_client, _server) = scene.connect();
    let both = |connection: &anabranch_steering::sample::ConnectionSample| {
        connection.subflows.iter().filter(|subflow| subflow.state == TcpState::Established).count() == 2
    };
    let client = scene.client_sees(both);
    let locals: Vec<_> = client.subflows.iter().map(|subflow| subflow.endpoints.local.ip()).collect();
    assert_eq!(locals, [client_address(1), client_address(2)]);
    assert!(client.subflows.iter().all(|subflow| subflow.endpoints.remote == server_address()));
    // The first subflow's address has identifier 0 (RFC 8684, section 3.2), the join's is the endpoint's.
    assert_eq!(client.subflows[0].local_id, 0);
    assert_ne!(client.subflows[1].local_id, 0);
    assert!(client.subflows.iter().all(|subflow| !subflow.backup_local && !subflow.backup_remote));
    let server = scene.server_sees(both);
    assert_ne!(server.token, client.token);
    let ends = |endpoints: anabranch_steering::sample::Endpoints| (endpoints.remote, endpoints.local);
    let theirs: Vec<_> = server.subflows.iter().map(|subflow| ends(subflow.endpoints)).collect();
    let ours: Vec<_> = client.subflows.iter().map(|s| (s.endpoints.local, s.endpoints.remote)).collect();
    assert_eq!(theirs, ours);
    assert_eq!(server.subflows[1].remote_id, client.subflows[1].local_id);
}

fn counters_grow_with_what_is_carried() {
    let scene = Scene::new(&[Path::new(20, 10), Path::new(20, 10)], PathManager::Kernel);
    let (client, server) = scene.connect();
    let transfer = Transfer::start(client, server);
    let seen = scene.client_sees(|connection| {
        connection.snd_una > 1_000_000 && connection.subflows.iter().all(|subflow| subflow.bytes.acked > 100_000)
    });
    assert!(seen.write_seq >= seen.snd_una, "{seen:?}");
    assert!(!seen.fallback);
    // What is acknowledged of the stream was acknowledged on a subflow.
    let carried: u64 = seen.subflows.iter().map(|subflow| subflow.bytes.acked).sum();
    assert!(carried + 100_000 >= seen.snd_una, "{carried} {}", seen.snd_una);
    for subflow in &seen.subflows {
        // Twice 10 ms of delay, and a queue of 100 packets at 20 Mbit/s is 60 ms.
        let rtt = subflow.rtt.as_millis();
        assert!((20..1_000).contains(&rtt), "{rtt} ms");
        assert!(subflow.min_rtt.is_some_and(|rtt| rtt.as_millis() >= 20));
        assert!((500..1_500).contains(&subflow.snd_mss) && subflow.snd_cwnd > 0);
        assert!(!subflow.chronographs.busy_time.is_zero() && subflow.snd_wnd.is_some_and(|window| window > 0));
        assert!(subflow.bytes.sent >= Some(subflow.bytes.acked));
    }
    let received = scene.server_sees(|connection| connection.subflows.iter().all(|s| s.bytes.received > 100_000));
    assert_eq!(received.subflows[0].owner.uid, 0);
    assert!(transfer.received() > 1_000_000);
}
