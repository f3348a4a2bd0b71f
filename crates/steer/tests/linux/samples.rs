//! What samples tell of the kernel's connections.

use crate::scene::{Path, PathManager, Scene, Transfer, client_address, connect, sample, server_address, wait_for};
use crate::steered::steering;
use anabranch_policy::time::{Duration, Instant};
use anabranch_steer::Sampler;
use anabranch_steering::sample::{ConnectionSample, HostSample, TcpState};
use anabranch_steering::settings::Control;
use libtest_mimic::Trial;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use std::io::{Read, Write};

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
        Trial::test("subflows_of_a_connection_that_moves_are_looked_at_without_a_list", || {
            subflows_of_a_connection_that_moves_are_looked_at_without_a_list();
            Ok(())
        }),
        Trial::test("what_samples_of_1000_connections_cost", || {
            what_samples_of_1000_connections_cost();
            Ok(())
        }),
        Trial::test("a_socket_that_its_program_has_closed_is_nobody_s", || {
            a_socket_that_its_program_has_closed_is_nobody_s();
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

fn a_socket_that_its_program_has_closed_is_nobody_s() {
    let scene = Scene::new(&[Path::new(20, 10)], PathManager::Kernel);
    let (client, _server) = scene.connect();
    let absent = |seen: &ConnectionSample| seen.subflows.iter().all(|subflow| subflow.owner.absent);
    assert!(!absent(&scene.client_sees(|seen| !seen.subflows.is_empty())));
    drop(client);
    // The other end does not close: the kernel waits a minute for that.
    scene.client_sees(|seen| !seen.subflows.is_empty() && absent(seen));
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

/// The time of the `number`th sample of ten a second.
fn tick(number: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(100 * number)
}

fn subflows_of_a_connection_that_moves_are_looked_at_without_a_list() {
    let scene = Scene::new(&[Path::new(50, 5), Path::new(50, 5)], PathManager::Kernel);
    let (client, server) = scene.connect();
    scene.client_sees(|connection| {
        connection.subflows.iter().filter(|s| s.state == TcpState::Established && s.segments.unacked == 0).count() == 2
    });
    scene.client(|| {
        let mut sampler = Sampler::open().expect("the kernel has sock_diag");
        let mut look = |number| {
            let sample = sampler.sample(tick(number)).expect("we may look");
            (sampler.lists(), sample.connections[0].subflows.iter().map(|s| s.bytes.acked).sum::<u64>())
        };
        let (_, before) = look(0);
        // It is new for three samples; then nothing moves for two seconds.
        assert_eq!(look(1).0, 2);
        assert!((2..22).all(|number| look(number).0 == 3));
        assert_eq!(look(22).0, 4);
        assert_eq!(look(23).0, 4);
        // Data is seen without a list, and when it is acknowledged too.
        (&client).write_all(&[1; 1_000]).expect("the connection lives");
        assert_eq!(look(24).0, 4);
        (&server).read_exact(&mut [0; 1_000]).expect("the connection lives");
        std::thread::sleep(std::time::Duration::from_millis(200));
        let (lists, after) = look(25);
        assert_eq!((lists, after - before), (4, 1_000));
        assert!((26..30).all(|number| look(number).0 == 4));
        sampler.refresh();
        sampler.sample(tick(30)).expect("we may look");
        assert_eq!(sampler.lists(), 5);
    });
}

/// User and system seconds of the calling thread.
fn seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("we may ask for ours");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn what_samples_of_1000_connections_cost() {
    let scene = Scene::new(&[Path::new(1_000, 1), Path::new(1_000, 1)], PathManager::Kernel);
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("we may ask for ours");
    setrlimit(Resource::RLIMIT_NOFILE, most.min(8_192), most).expect("it is not more than we may");
    let listener = scene.listen();
    let idle: Vec<_> = (0..1_000)
        .map(|_| {
            let client = scene.client(connect);
            let (server, _) = listener.accept().expect("the client has connected");
            // With data of the server the client may join.
            (&client).write_all(&[1]).expect("the connection lives");
            (&server).write_all(&[1]).expect("the connection lives");
            (client, server)
        })
        .collect();
    let quiet = |sample: &HostSample| {
        let all = || sample.connections.iter().flat_map(|connection| &connection.subflows);
        all().count() == 2 * idle.len() && all().all(|s| s.state == TcpState::Established && s.segments.unacked == 0)
    };
    wait_for(|| if quiet(&scene.client(sample)) { Ok(()) } else { Err("all joined".to_owned()) });
    scene.client(|| {
        let cost = |always: bool| {
            let mut sampler = Sampler::open().expect("the kernel has sock_diag");
            let mut steering = steering("goodput_trial", Control::Subflows);
            let before = seconds();
            for number in 0..100 {
                if always {
                    sampler.refresh();
                }
                let sample = sampler.sample(tick(number)).expect("we may look");
                assert_eq!(sample.connections.len(), 1_000);
                steering.handle_sample(&sample);
            }
            (seconds() - before, sampler.lists())
        };
        let ((always, _), (sparing, lists)) = (cost(true), cost(false));
        eprintln!(
            "100 samples of 1,000 idle connections: {always:.3} s with lists of subflows, {sparing:.3} s with {lists}"
        );
        assert!(lists < 50, "{lists} lists");
        let (client, server) = &idle[0];
        let clone = |socket: &socket2::Socket| socket.try_clone().expect("a descriptor");
        let _transfer = Transfer::start(clone(client), clone(server));
        let (busy, lists) = cost(false);
        eprintln!("{busy:.3} s if one of them is busy, with {lists} lists");
        assert!(lists < 50, "{lists} lists");
    });
}
