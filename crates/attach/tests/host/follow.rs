//! Uplinks that appear, disappear and change during a connection: it continues, and a returned uplink is used again.

use crate::kernel::{ip, mptcp_socket};
use crate::scene::{
    BOTH, PORT, Scene, attached, carrying, config, exchange_until, exchange_until_on, output, tunnelled,
};
use anabranch_attach::Uplinks;
use libtest_mimic::Trial;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

type Change = fn(&Scene, u8);

/// A name, how an uplink disappears, and how it returns.
const CASES: &[(&str, Change, Change)] = &[
    ("is_switched_off_and_on", switch_off, switch_on),
    ("loses_its_carrier", lose_carrier, regain_carrier),
    ("loses_its_addresses", lose_addresses, regain_addresses),
    ("loses_its_routes", lose_routes, regain_routes),
    ("is_removed_and_made_anew", remove, Scene::add_uplink),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(name, go, come) in CASES {
        for uplink in [0, 1] {
            for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
                trials.push(Trial::test(format!("follow::uplink_{uplink}_{name}_{family}"), move || {
                    goes_and_comes(uplink, v6, go, come);
                    Ok(())
                }));
            }
        }
    }
    let more: [(&str, fn()); 8] = [
        ("follow::the_last_uplink_keeps_its_subflow_while_it_has_no_carrier", last_uplink),
        ("follow::a_server_whose_only_uplink_loses_its_carrier_goes_on_with_a_download", server_without_carrier),
        ("follow::a_new_address_is_used_at_once", changed_address),
        ("follow::an_interface_with_a_default_route_is_adopted", adopted),
        ("follow::one_that_is_renamed_is_adopted_again_and_forwards_for_nobody_else_then_or_later", renamed),
        ("follow::inside_udp_the_33rd_interface_is_adopted_when_others_have_gone", || many_names(true)),
        ("follow::the_33rd_interface_is_adopted_when_others_have_gone", || many_names(false)),
        ("follow::a_route_whose_router_is_out_of_reach_holds_nothing_up_and_counts_once_it_is_not", stale_routes),
    ];
    trials.extend(more.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    }));
    trials
}

fn switch_off(scene: &Scene, n: u8) {
    scene.in_ours(|| ip(&format!("link set up{n} down")));
}

fn switch_on(scene: &Scene, n: u8) {
    scene.in_ours(|| ip(&format!("link set up{n} up")));
    // The kernel removes these addresses with the link.
    scene.in_ours(|| ip(&format!("address replace fd0{}::2/64 dev up{n} nodad", n + 1)));
    scene.route_uplink(n);
}

fn lose_carrier(scene: &Scene, n: u8) {
    scene.in_world(|| ip(&format!("link set down{n} down")));
}

fn regain_carrier(scene: &Scene, n: u8) {
    scene.in_world(|| {
        ip(&format!("link set down{n} up"));
        ip(&format!("address replace fd0{}::1/64 dev down{n} nodad", n + 1));
    });
    // Without carrier the IPv6 routes disappear, the IPv4 routes stay.
    let net = n + 1;
    scene.in_ours(|| {
        ip(&format!("address replace fd0{net}::2/64 dev up{n} nodad"));
        ip(&format!("-6 route replace default via fd0{net}::1 dev up{n} metric {}", 100 + n));
    });
}

fn lose_addresses(scene: &Scene, n: u8) {
    scene.in_ours(|| ip(&format!("address flush dev up{n}")));
}

fn regain_addresses(scene: &Scene, n: u8) {
    scene.address_uplink(n, 2);
    let net = n + 1;
    // IPv4 routes disappear with the last address, IPv6 routes may stay.
    scene.in_ours(|| {
        ip(&format!("route replace default via 10.{net}.0.1 dev up{n} metric {}", 100 + n));
        ip(&format!("-6 route replace default via fd0{net}::1 dev up{n} metric {}", 100 + n));
    });
}

fn lose_routes(scene: &Scene, n: u8) {
    scene.in_ours(|| {
        ip(&format!("route flush dev up{n} table main"));
        ip(&format!("-6 route flush dev up{n} table main"));
    });
}

fn regain_routes(scene: &Scene, n: u8) {
    let net = n + 1;
    scene.in_ours(|| {
        ip(&format!("route add 10.{net}.0.0/24 dev up{n}"));
        ip(&format!("-6 route add fd0{net}::/64 dev up{n}"));
    });
    scene.route_uplink(n);
}

fn remove(scene: &Scene, n: u8) {
    scene.in_ours(|| ip(&format!("link delete up{n}")));
}

fn goes_and_comes(uplink: u8, v6: bool, go: Change, come: Change) {
    let scene = Scene::new();
    let address = scene.echo(v6);
    scene.run(|| async {
        let attached = attached(scene.uplinks(&[])).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        exchange_until_on(&mut stream, BOTH).await;
        for _ in 0..2 {
            go(&scene, uplink);
            exchange_until_on(&mut stream, &BOTH[usize::from(1 - uplink)..usize::from(2 - uplink)]).await;
            come(&scene, uplink);
            exchange_until_on(&mut stream, BOTH).await;
        }
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}

/// Changes by the test prevent a comparison; our own state is recognisable.
fn nothing_of_ours(scene: &Scene) {
    let state = scene.state();
    let ours: Vec<&String> = state.iter().filter(|line| line.contains("198") || line.contains("anabranch")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
    let open: Vec<&String> = state.iter().filter(|line| line.ends_with("forwarding = 1")).collect();
    assert!(open.is_empty(), "{open:#?}");
}

/// The only uplink disappears for a while: the connection survives.
fn last_uplink() {
    let scene = Scene::new();
    let address = scene.echo(false);
    scene.run(|| async {
        let attached =
            attached(Uplinks { interfaces: vec!["up0".to_owned()], ..scene.uplinks(&[]) }).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        exchange_until_on(&mut stream, &BOTH[..1]).await;
        lose_carrier(&scene, 0);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(stream.subflows().len(), 1, "nothing was given up");
        regain_carrier(&scene, 0);
        exchange_until_on(&mut stream, &BOTH[..1]).await;
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}

/// The server loses its carrier for a while, while the client's own link is up and the client only waits for data.
fn server_without_carrier() {
    let scene = Scene::new();
    scene.run(|| async {
        let uplinks = Uplinks { interfaces: vec!["up0".to_owned()], ..scene.uplinks(&[PORT]) };
        let attached = attached(uplinks).await.expect("we may");
        let listener = attached.stack().listen(PORT, config()).expect("the port is free");
        let client = scene.in_world(|| {
            // A thread inherits the namespace of the thread that starts it.
            std::thread::spawn(|| {
                let address = SocketAddr::from(([10, 1, 0, 2], PORT));
                let mut socket = mptcp_socket(address);
                socket.connect(&address.into()).expect("somebody listens");
                std::io::copy(&mut socket, &mut std::io::sink()).expect("it is not reset")
            })
        });
        let mut stream = listener.accept().await.expect("it comes");
        let written = AtomicU64::new(0);
        let until = |enough: u64| {
            let written = &written;
            async move {
                while written.load(Ordering::Relaxed) < enough {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        };
        let weather = async {
            until(1 << 20).await;
            lose_carrier(&scene, 0);
            tokio::time::sleep(Duration::from_secs(3)).await;
            regain_carrier(&scene, 0);
            // More than both ends' buffers hold: the transfer has continued.
            until(written.load(Ordering::Relaxed) + (64 << 20)).await;
        };
        let block = vec![7; 65_536];
        let download = async {
            loop {
                stream.write_all(&block).await.expect("the connection lives");
                written.fetch_add(block.len() as u64, Ordering::Relaxed);
            }
        };
        tokio::select! {
            () = weather => {}
            () = download => {}
        }
        stream.shutdown().await.expect("the connection lives");
        let read = tokio::task::spawn_blocking(|| client.join()).await.expect("it runs").expect("it ends well");
        assert!(read >= written.load(Ordering::Relaxed), "{read} bytes came");
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}

/// An address lease ends and another begins.
fn changed_address() {
    let scene = Scene::new();
    let address = scene.echo(false);
    scene.run(|| async {
        let attached = attached(scene.uplinks(&[])).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        exchange_until_on(&mut stream, BOTH).await;
        scene.in_ours(|| {
            ip("address add 10.1.0.77/24 dev up0");
            ip("address delete 10.1.0.2/24 dev up0");
            ip("address replace 10.1.0.77/24 dev up0");
            ip("route replace default via 10.1.0.1 dev up0 metric 100");
        });
        // The peer sees the uplink's new address, or no subflow on it.
        let peers = || scene.in_world(|| output("ss", "--no-header --tcp --numeric state established"));
        exchange_until(&mut stream, |stream| carrying(stream) == BOTH && peers().contains("10.1.0.77:")).await;
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}

/// Without named uplinks.
fn adopted() {
    let scene = Scene::new();
    remove(&scene, 1);
    let address = scene.echo(false);
    scene.run(|| async {
        let mut uplinks = scene.uplinks(&[]);
        uplinks.interfaces.clear();
        let attached = attached(uplinks).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        exchange_until_on(&mut stream, &["up0"]).await;
        assert_eq!(attached.paths().len(), 1);
        scene.add_uplink(1);
        exchange_until_on(&mut stream, BOTH).await;
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}

/// With what it was set to an interface keeps its settings when it is renamed.
fn renamed() {
    let scene = Scene::new();
    let address = scene.echo(false);
    scene.run(|| async {
        let attached = attached(Uplinks { interfaces: Vec::new(), ..scene.uplinks(&[]) }).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        exchange_until_on(&mut stream, BOTH).await;
        let rename = |from: &str, to: &str| {
            scene.in_ours(|| {
                ip(&format!("link set {from} down"));
                ip(&format!("link set {from} name {to}"));
                ip(&format!("link set {to} up"));
                ip(&format!("route replace default via 10.2.0.1 dev {to} metric 101"));
            });
        };
        rename("up1", "wan");
        exchange_until_on(&mut stream, &["up0", "wan"]).await;
        let rules = scene.in_ours(|| output("nft", "list ruleset"));
        assert!(rules.contains("iifname \"wan\" meta nfproto ipv4 oifname != \"anabranch*\" drop"), "{rules}");
        rename("wan", "up1");
        exchange_until_on(&mut stream, BOTH).await;
        rename("up1", "wan");
        exchange_until_on(&mut stream, &["up0", "wan"]).await;
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}

/// The main table keeps default routes when the addresses go by which their routers were reached.
fn stale_routes() {
    let scene = Scene::new();
    scene.in_ours(|| {
        // With its last address of IPv4 an interface loses its routes.
        ip("address add 192.0.2.1/32 dev up0");
        for address in ["10.1.0.2/24", "fd01::2/64"] {
            ip(&format!("address delete {address} dev up0"));
        }
        let routes = output("ip", "route show default") + &output("ip", "-6 route show default");
        assert!(["via 10.1.0.1 dev up0", "via fd01::1 dev up0"].iter().all(|route| routes.contains(route)), "{routes}");
    });
    let address = scene.echo(false);
    scene.run(|| async {
        let attached = attached(scene.uplinks(&[])).await.expect("we may");
        let mut stream = attached.stack().connect(None, address, config()).await.expect("it accepts");
        exchange_until_on(&mut stream, &["up1"]).await;
        scene.in_ours(|| ip("address delete 192.0.2.1/32 dev up0"));
        regain_addresses(&scene, 0);
        exchange_until_on(&mut stream, BOTH).await;
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}

/// As a telephone's that has another name each time it is plugged in. A path has a number from 0 to 31.
fn many_names(udp: bool) {
    let scene = Scene::new();
    remove(&scene, 1);
    scene.run(|| async {
        let attached = match udp {
            true => tunnelled("203.0.113.1:4433").await,
            false => attached(Uplinks { interfaces: Vec::new(), ..scene.uplinks(&[]) }).await,
        };
        let attached = attached.expect("we may");
        let names = || {
            let usable = attached.paths().into_iter().filter(|path| !path.addresses.is_empty());
            usable.map(|path| path.name).collect::<Vec<_>>()
        };
        for n in 1..=32 {
            let name = format!("usb{n}");
            scene.in_ours(|| {
                ip(&format!("link add {name} type veth peer name other"));
                ip("link set other up");
                ip(&format!("address add 192.0.2.1/24 dev {name}"));
                ip(&format!("link set {name} up"));
                ip(&format!("route add default dev {name} metric 200"));
            });
            while !names().contains(&name) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            scene.in_ours(|| ip(&format!("link delete {name}")));
            while names() != ["up0"] {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        attached.detach().await.expect("all is undone");
    });
    nothing_of_ours(&scene);
}
