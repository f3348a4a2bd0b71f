//! A stack whose packets leave by the host's uplinks.

use crate::kernel::{mptcp_socket, sysctl};
use crate::scene::{BOTH, PORT, Scene, attached, config, exchange_until, exchange_until_on};
use anabranch_mptcp::Protocol;
use libtest_mimic::Trial;
use std::net::{IpAddr, SocketAddr};

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
    trials
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
