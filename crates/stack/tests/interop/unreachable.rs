//! A router of the kernel's that does not reach the peer, and says so by ICMP.

use crate::kernel::{ip, mptcp_listener, sysctl};
use crate::pair::{config, ours, theirs, with_paths};
use anabranch_perf::{Host, Ours, PerfError, Plan};
use anabranch_policy::combination::Combination;
use anabranch_stack::Stack;
use libtest_mimic::Trial;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};

const PORT: u16 = 5201;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        trials.push(Trial::test(
            format!("unreachable::what_a_router_says_reaches_the_application_{family}"),
            move || {
                told(v6);
                Ok(())
            },
        ));
        trials.push(Trial::test(
            format!("unreachable::one_path_without_a_route_leaves_the_others_{family}"),
            move || {
                one_of_two(v6);
                Ok(())
            },
        ));
    }
    trials
}

/// The kernel forwards, and has these routes. It still reports no more than five at once (`net.ipv4.route.error_burst`).
fn routes(v6: bool, routes: &[&str]) {
    sysctl("ipv4.icmp_ratelimit", "0");
    sysctl(if v6 { "ipv6.conf.all.forwarding" } else { "ipv4.ip_forward" }, "1");
    routes.iter().for_each(|words| ip(&format!("{} route add {words}", if v6 { "-6" } else { "-4" })));
}

/// Why a measurement against `remote` fails.
async fn measured(stack: &Stack, remote: SocketAddr) -> (String, io::ErrorKind) {
    let config = config(&Combination::default());
    let ours = Ours { stack: stack.clone(), config, local: None, policies: "default".to_owned() };
    let client = Host::Ours(Box::new(ours));
    let failed =
        anabranch_perf::run(&client, remote, &Plan::default(), pending(), |_| ()).await.expect_err("no server");
    let text = failed.to_string();
    let PerfError::Connect { error, .. } = failed else { panic!("{text}") };
    (text, error.kind())
}

fn told(v6: bool) {
    use io::ErrorKind::{HostUnreachable, NetworkUnreachable};
    // Linux sends "no route" for an unreachable route of IPv6.
    let cases: [(&str, io::ErrorKind); 3] = if v6 {
        [("2001:db8::1", NetworkUnreachable), ("2001:db8::2", HostUnreachable), ("2001:db8::3", NetworkUnreachable)]
    } else {
        [("192.0.2.1", HostUnreachable), ("192.0.2.2", HostUnreachable), ("192.0.2.3", NetworkUnreachable)]
    };
    with_paths(1, v6, move |stack| async move {
        routes(v6, &[&format!("unreachable {}", cases[0].0), &format!("prohibit {}", cases[1].0)]);
        for (address, kind) in cases {
            let remote = SocketAddr::new(address.parse::<IpAddr>().expect("an address"), PORT);
            let stream = stack.connect(None, remote, config(&Combination::default())).await.map(drop);
            assert_eq!(stream.map_err(io::Error::from).expect_err("no server").kind(), kind, "{address}");
        }
        let (address, kind) = cases[0];
        let remote = SocketAddr::new(address.parse::<IpAddr>().expect("an address"), PORT);
        let what = if kind == HostUnreachable { "host" } else { "network" };
        assert_eq!(measured(&stack, remote).await, (format!("no connection to {remote}: {what} unreachable"), kind));
        let counters = stack.counters().endpoint;
        assert_eq!((counters.refused_icmp_errors, counters.soft_icmp_errors), (0, 0));
    });
}

/// From the first path the kernel's router has no route to the kernel's own address on the second.
fn one_of_two(v6: bool) {
    with_paths(2, v6, move |stack| async move {
        let family = if v6 { "-6" } else { "-4" };
        for words in ["add pref 2 table local", &format!("add pref 1 from {} unreachable", ours(0, v6)), "del pref 0"] {
            ip(&format!("{family} rule {words}"));
        }
        routes(v6, &[]);
        let _listener = mptcp_listener(v6, PORT);
        let remote = SocketAddr::new(theirs(1, v6), PORT);
        let config = config(&Combination::default());
        let stream = stack.connect(Some(ours(0, v6)), remote, config).await.expect("over the other path");
        assert_eq!(stream.local_address().map(|local| local.ip()), Some(ours(1, v6)));
        assert_eq!(stack.counters().endpoint.refused_icmp_errors, 0);
    });
}
