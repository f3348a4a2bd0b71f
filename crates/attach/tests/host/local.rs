//! A stack for the programs of its own host.

use crate::kernel::{ip, mptcp_socket};
use anabranch_attach::{Attachment, HostOptions, Local, attach};
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_stack::StackConfig;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        trials.push(Trial::test(format!("local::programs_of_the_host_reach_the_stack_{family}"), move || {
            let namespace = Namespace::new().expect("namespaces were there a moment ago");
            namespace.run(|| reach(v6)).expect("it can be entered");
            Ok(())
        }));
        trials.push(Trial::test(format!("local::two_stacks_of_a_host_reach_each_other_{family}"), move || {
            let namespace = Namespace::new().expect("namespaces were there a moment ago");
            namespace.run(|| each_other(v6)).expect("it can be entered");
            Ok(())
        }));
    }
    trials
}

/// The visible state of the host's network.
fn state() -> String {
    let show = |words: &str| {
        let output = std::process::Command::new("ip").args(words.split(' ')).output().expect("ip runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    ["rule", "-6 rule", "route show table all", "-6 route show table all", "address"].map(show).concat()
}

fn reach(v6: bool) {
    ip("link set lo up");
    let before = state();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let combination = Combination::default();
        let config = ConnectionConfig::new(Policies::of(&combination).expect("a combination of ours"));
        let stack = StackConfig::new(combination.build_path_manager().expect("the default exists"));
        let local = Attachment::Local(Local { paths: 2, options: HostOptions::default() });
        let attached = attach(&local, stack).await.expect("we may");
        let listener = attached.stack().listen(7, config).expect("the port is free");
        let paths = attached.paths();
        assert_eq!(paths.len(), 2);
        let to = paths[1].addresses.iter().find(|(_, address)| address.is_ipv6() == v6).expect("both families").1;
        let client = std::thread::spawn(move || client(to));
        let mut stream = listener.accept().await.expect("the kernel connects");
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.expect("the kernel closes");
        stream.write_all(&text).await.expect("the kernel reads");
        stream.shutdown().await.expect("open");
        let echoed = tokio::task::spawn_blocking(move || client.join().expect("the client ends")).await;
        assert_eq!(echoed.expect("it ran"), b"over the river");
        attached.detach().await.expect("all is undone");
    });
    assert_eq!(state(), before);
}

fn client(to: IpAddr) -> Vec<u8> {
    let address = SocketAddr::new(to, 7);
    let mut socket = mptcp_socket(address);
    socket.connect(&address.into()).expect("we accept");
    socket.write_all(b"over the river").expect("we read");
    socket.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut text = Vec::new();
    socket.read_to_end(&mut text).expect("we close");
    text
}

/// The stacks of a client and a server, as in two programs.
fn each_other(v6: bool) {
    ip("link set lo up");
    let before = state();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let combination = Combination::default();
        let config = || ConnectionConfig::new(Policies::of(&combination).expect("a combination of ours"));
        let attached = async || {
            let stack = StackConfig::new(combination.build_path_manager().expect("the default exists"));
            let local = Attachment::Local(Local { paths: 2, options: HostOptions::default() });
            attach(&local, stack).await.expect("we may")
        };
        let (server, client) = (attached().await, attached().await);
        let listener = server.stack().listen(7, config()).expect("the port is free");
        let paths = server.paths();
        let to = paths[0].addresses.iter().find(|(_, address)| address.is_ipv6() == v6).expect("both families").1;
        let mut stream = client.stack().connect(None, SocketAddr::new(to, 7), config()).await.expect("it is reached");
        let mut accepted = listener.accept().await.expect("it comes");
        let octets: Vec<u8> = (0..3_000_000_u32).map(|at| at as u8).collect();
        let sent = octets.clone();
        let echo = async {
            let mut read = vec![0; sent.len()];
            accepted.read_exact(&mut read).await.expect("it is open");
            accepted.write_all(&read).await.expect("it is open");
        };
        let ask = async {
            let (mut reading, mut writing) = tokio::io::split(&mut stream);
            let mut read = vec![0; octets.len()];
            let write = async { writing.write_all(&octets).await.expect("it is open") };
            let (_, got) = tokio::join!(write, reading.read_exact(&mut read));
            got.expect("it is open");
            assert!(read == octets);
        };
        tokio::join!(echo, ask);
        assert!(stream.subflows().len() > 1, "over several paths");
        client.detach().await.expect("all is undone");
        server.detach().await.expect("all is undone");
    });
    assert_eq!(state(), before);
}
