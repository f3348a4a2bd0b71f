//! Opening connections, in both roles.

use crate::kernel::{accept, connect, counter, echo, mptcp_listener, sysctl};
use crate::pair::{config, ours, theirs, with_paths};
use anabranch_mptcp::Protocol;
use anabranch_policy::combination::Combination;
use anabranch_stack::Stream;
use libtest_mimic::Trial;
use std::io::{Read, Write};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        for (checksum, checksums) in [(Checksums::Off, "off"), (Checksums::Ours, "ours"), (Checksums::Theirs, "theirs")]
        {
            trials.push(Trial::test(format!("handshake::we_open_{family}_checksums_{checksums}"), move || {
                we_open(v6, checksum);
                Ok(())
            }));
            trials.push(Trial::test(
                format!("handshake::the_kernel_opens_{family}_checksums_{checksums}"),
                move || {
                    the_kernel_opens(v6, checksum);
                    Ok(())
                },
            ));
        }
    }
    trials
}

/// Which side asks for DSS checksums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checksums {
    Off,
    Ours,
    Theirs,
}

impl Checksums {
    /// Our settings; the kernel's are set.
    fn configure(self) -> anabranch_mptcp::ConnectionConfig {
        sysctl("mptcp.checksum_enabled", if self == Self::Theirs { "1" } else { "0" });
        let mut config = config(&Combination::default());
        config.checksum = self == Self::Ours;
        config
    }
}

/// What is sent: more than a segment.
fn text() -> Vec<u8> {
    (0..20_000_u32).map(|number| (number % 251) as u8).collect()
}

/// The kernel listens and sends back what it reads, until the end of the stream.
fn we_open(v6: bool, checksums: Checksums) {
    with_paths(1, v6, |stack| async move {
        let config = checksums.configure();
        let kernel = accept(mptcp_listener(v6, 7), echo);
        let address = SocketAddr::new(theirs(0, v6), 7);
        let mut stream = stack.connect(None, address, config).await.expect("it accepts");
        stream.write_all(&text()).await.expect("room for a few bytes");
        stream.shutdown().await.expect("open");
        let mut echoed = Vec::new();
        stream.read_to_end(&mut echoed).await.expect("the kernel closes");
        assert_eq!(echoed, text());
        kernel.done().await;
        assert_eq!(counter("MPCapableSYNRX"), 1);
        assert_eq!(counter("MPCapableACKRX"), 1);
        assert_is_clean(&stream);
    });
}

/// We listen and send back what we read.
fn the_kernel_opens(v6: bool, checksums: Checksums) {
    with_paths(1, v6, |stack| async move {
        let config = checksums.configure();
        let listener = stack.listen(7, config).expect("the port is free");
        let kernel = connect(SocketAddr::new(ours(0, v6), 7), |mut socket| {
            socket.write_all(&text()).expect("we read");
            socket.shutdown(std::net::Shutdown::Write).expect("it is open");
            let mut echoed = Vec::new();
            socket.read_to_end(&mut echoed).expect("we close");
            echoed
        });
        let mut stream = listener.accept().await.expect("the kernel connects");
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.expect("the kernel closes");
        stream.write_all(&read).await.expect("the kernel reads");
        stream.shutdown().await.expect("open");
        assert_eq!(kernel.done().await, text());
        assert_eq!(counter("MPCapableSYNACKRX"), 1);
        assert_is_clean(&stream);
    });
}

/// It was multipath TCP from end to end, and neither side found fault with the other.
fn assert_is_clean(stream: &Stream) {
    assert!(stream.protocol().is_none_or(|protocol| protocol == Protocol::Multipath));
    for fault in ["MPCapableFallbackACK", "MPCapableFallbackSYNACK", "DataCsumErr", "DSSNotMatching", "InfiniteMapRx"] {
        assert_eq!(counter(fault), 0, "{fault}");
    }
    assert_eq!(stream.stats().map_or(0, |stats| stats.checksum_failures + stats.bad_hmacs), 0);
}
