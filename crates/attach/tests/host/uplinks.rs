//! A stack whose packets leave through the host's uplinks.

use crate::kernel::{ip, mptcp_socket, sysctl};
use crate::scene::{BOTH, PORT, Scene, attached, config, exchange_until, exchange_until_on, output};
use anabranch_attach::{Attachment, attach};
use anabranch_mptcp::Protocol;
use anabranch_policy::combination::Combination;
use anabranch_stack::{StackConfig, Stream};
use libtest_mimic::Trial;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        trials.push(Trial::test(format!("uplinks::a_connection_uses_both_and_nothing_is_left_{family}"), move || {
            both(v6, |_| {});
            Ok(())
        }));
        trials.push(Trial::test(format!("uplinks::a_kernel_reaches_us_at_both_addresses_{family}"), move || {
            server(v6);
            Ok(())
        }));
    }
    trials.push(Trial::test("uplinks::strict_reverse_path_filtering_is_content", || {
        both(false, |scene| scene.in_ours(|| sysctl("ipv4.conf.all.rp_filter", "1")));
        Ok(())
    }));
    trials.push(Trial::test("uplinks::what_connection_tracking_does_not_know_leaves_with_no_address_of_ours", || {
        unknown();
        Ok(())
    }));
    trials.push(Trial::test("uplinks::a_backup_carries_nothing_until_the_other_is_down", || {
        backup();
        Ok(())
    }));
    trials
}

/// The uplink that is first by routes and by number is the backup; the peer is the kernel.
fn backup() {
    let scene = Scene::new();
    let address = scene.echo(false);
    scene.run(|| async {
        let path_manager = Combination::default().build_path_manager().expect("the default exists");
        let config = StackConfig { backups: vec!["up0".to_owned()], ..StackConfig::new(path_manager) };
        let attached = attach(&Attachment::Uplinks(scene.uplinks(&[])), config).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, crate::scene::config()).await.expect("it accepts");
        exchange_until_on(&mut stream, BOTH).await;
        let mut rounds = 0;
        exchange_until(&mut stream, |_| {
            rounds += 1;
            rounds == 50
        })
        .await;
        let carried = |stream: &Stream, name: &str| {
            let paths = stream.paths().into_iter().filter(|path| path.name == name);
            paths.map(|path| (path.subflow.view.counters.bytes_sent, path.subflow.bytes_received)).collect::<Vec<_>>()
        };
        assert_eq!(carried(&stream, "up0"), [(0, 0)], "neither end sends there");
        scene.in_ours(|| ip("link set up1 down"));
        exchange_until(&mut stream, |stream| carried(stream, "up0").iter().any(|(_, received)| *received > 0)).await;
        attached.detach().await.expect("all is undone");
    });
}

/// Counts what arrives from addresses of stacks.
const COUNT: &str = "table ip seen { counter inner { }; \
    chain arriving { type filter hook prerouting priority raw; ip saddr 198.18.0.0/15 counter name inner; }; }";

/// The host forgets an idle connection, and takes up none in its midst.
fn unknown() {
    let scene = Scene::new();
    let address = scene.echo(false);
    scene.in_world(|| output("nft", COUNT));
    scene.in_ours(|| {
        sysctl("netfilter.nf_conntrack_tcp_loose", "0");
        sysctl("netfilter.nf_conntrack_tcp_timeout_established", "1");
    });
    scene.run(|| async {
        let attached = attached(scene.uplinks(&[])).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        exchange_until_on(&mut stream, BOTH).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let again = tokio::time::timeout(Duration::from_secs(1), exchange_until(&mut stream, |_| true)).await;
        assert!(again.is_err(), "nothing is translated any more");
        stream.abort();
        attached.detach().await.expect("all is undone");
    });
    let seen = scene.in_world(|| output("nft", "list counter ip seen inner"));
    assert!(seen.contains("packets 0 "), "{seen}");
}

fn both(v6: bool, prepare: impl FnOnce(&Scene)) {
    let scene = Scene::new();
    prepare(&scene);
    let address = scene.echo(v6);
    let before = scene.state();
    scene.run(|| async {
        let attached = attached(scene.uplinks(&[])).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        assert_eq!(stream.protocol(), Some(Protocol::Multipath));
        exchange_until_on(&mut stream, BOTH).await;
        let mut rounds = 0;
        exchange_until(&mut stream, |_| {
            rounds += 1;
            rounds == 20
        })
        .await;
        attached.detach().await.expect("all is undone");
    });
    scene.assert_as_before(&before);
}

fn server(v6: bool) {
    let scene = Scene::new();
    let before = scene.state();
    scene.run(|| async {
        let attached = attached(scene.uplinks(&[PORT])).await.expect("we may");
        let listener = attached.stack().listen(PORT, config()).expect("the port is free");
        let ours: IpAddr = if v6 { "fd01::2" } else { "10.1.0.2" }.parse().expect("an address");
        let to = SocketAddr::new(ours, PORT);
        let client = scene.in_world(|| mptcp_socket(to));
        let client = std::thread::spawn(move || {
            use std::io::{Read, Write};
            client.connect(&to.into()).expect("we listen");
            let mut client = client;
            let mut bytes = vec![0; 65_536];
            while let Ok(length @ 1..) = client.read(&mut bytes) {
                if client.write_all(&bytes[..length]).is_err() {
                    return;
                }
            }
        });
        let mut stream = listener.accept().await.expect("the kernel connects");
        assert_eq!(stream.protocol(), Some(Protocol::Multipath));
        exchange_until_on(&mut stream, BOTH).await;
        attached.detach().await.expect("all is undone");
        client.join().expect("the client ends");
    });
    scene.assert_as_before(&before);
}
