//! Opening connections, in both roles.

use crate::kernel::mptcp_socket;
use crate::pair::{config, ours, theirs, with_paths};
use anabranch_mptcp::connection::Protocol;
use anabranch_policy::combination::Combination;
use libtest_mimic::Trial;
use std::io::{Read, Write};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        trials.push(Trial::test(format!("handshake::we_open_{family}"), move || {
            we_open(v6);
            Ok(())
        }));
        trials.push(Trial::test(format!("handshake::the_kernel_opens_{family}"), move || {
            the_kernel_opens(v6);
            Ok(())
        }));
    }
    trials
}

/// The kernel listens and sends back what it reads, until the end of the stream.
fn we_open(v6: bool) {
    with_paths(1, v6, |stack| async move {
        let address = SocketAddr::new(theirs(0, v6), 7);
        let listener = mptcp_socket(address);
        listener.bind(&address.into()).expect("the port is free");
        listener.listen(1).expect("it can listen");
        let echo = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("we connect");
            let mut text = Vec::new();
            socket.read_to_end(&mut text).expect("the stream ends");
            socket.write_all(&text).expect("we read");
        });
        let mut stream = stack.connect(None, address, config(&Combination::default())).await.expect("it accepts");
        stream.write_all(b"over the river").await.expect("room for a few bytes");
        stream.shutdown().await.expect("open");
        assert_eq!(stream.protocol(), Some(Protocol::Multipath));
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.expect("the kernel closes");
        assert_eq!(text, b"over the river");
        echo.join().expect("the echo ends");
    });
}

/// We listen and send back what we read.
fn the_kernel_opens(v6: bool) {
    with_paths(1, v6, |stack| async move {
        let address = SocketAddr::new(ours(0, v6), 7);
        let listener = stack.listen(7, config(&Combination::default())).expect("the port is free");
        let client = std::thread::spawn(move || {
            let mut socket = mptcp_socket(address);
            socket.connect(&address.into()).expect("we accept");
            socket.write_all(b"over the river").expect("we read");
            socket.shutdown(std::net::Shutdown::Write).expect("it is open");
            let mut text = Vec::new();
            socket.read_to_end(&mut text).expect("we close");
            text
        });
        let mut stream = listener.accept().await.expect("the kernel connects");
        assert_eq!(stream.protocol(), Some(Protocol::Multipath));
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.expect("the kernel closes");
        stream.write_all(&text).await.expect("the kernel reads");
        stream.shutdown().await.expect("open");
        let echoed = tokio::task::spawn_blocking(move || client.join().expect("the client ends")).await;
        assert_eq!(echoed.expect("it ran"), b"over the river");
    });
}
