//! DSS checksums: asked for by either end, and what they find when a middlebox changes payload.

use crate::aborting::warm_up;
use crate::middlebox::{Middlebox, Way};
use crate::scene::{Role, Scene, blocking};
use crate::traffic::{End, exchange};
use anabranch_mptcp::{ConnectionConfig, FallbackCause};
use anabranch_wire::{MptcpOption, Packet};
use bytes::Bytes;
use libtest_mimic::Trial;
use std::io::{Read, Write};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PATIENCE: Duration = Duration::from_secs(40);

/// Byte of the stream that the middlebox changes on the only path.
const CHANGED: u8 = b'!';

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |name: String, test: Box<dyn FnOnce() + Send>| {
        trials.push(Trial::test(format!("checksums::{name}"), move || {
            test();
            Ok(())
        }));
    };
    for (role, who) in Role::ALL {
        for (kernel, ours) in [(false, false), (false, true), (true, false), (true, true)] {
            let words = match (kernel, ours) {
                (false, false) => "nobody_asks",
                (false, true) => "we_ask",
                (true, false) => "the_kernel_asks",
                (true, true) => "both_ask",
            };
            for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
                let test = move || agreed(role, v6, [kernel, ours]);
                add(format!("{who}_and_{words}_{family}"), Box::new(test));
            }
        }
        for (way, to) in [(Way::ToUs, "to_us"), (Way::ToKernel, "to_the_kernel")] {
            for path in [0, 1] {
                let test = move || changed_on_one_of_two(role, way, path);
                add(format!("{who}_and_payload_{to}_changes_on_path_{path}_of_two"), Box::new(test));
            }
            for first in [false, true] {
                let place = if first { "first" } else { "later" };
                let test = move || changed_on_the_only_one(role, way, first);
                add(format!("{who}_and_{place}_payload_{to}_changes_on_the_only_path"), Box::new(test));
            }
        }
    }
    trials
}

/// Checksums are used if either end asks for them, on two paths.
fn agreed(role: Role, v6: bool, [kernel, ours]: [bool; 2]) {
    let scene = Scene::new(2, v6).set("mptcp/checksum_enabled", u8::from(kernel));
    scene.run(|hosts| async move {
        let config = ConnectionConfig { checksum: ours, ..hosts.config() };
        let (mut stream, mut socket) = hosts.open(role, config).await;
        warm_up(&mut stream, &mut socket, 2).await;
        exchange(stream, socket, &End::new(1_000_000), &End::new(1_000_000), PATIENCE).await;
        for middlebox in &hosts.middleboxes {
            let mapped = middlebox.seen(|seen| mapping_has_checksum(&seen.packet).is_some());
            assert!(!mapped.is_empty(), "both paths carry data");
            let with = mapped.iter().filter(|seen| mapping_has_checksum(&seen.packet) == Some(true)).count();
            assert_eq!(with, if kernel || ours { mapped.len() } else { 0 });
        }
        assert_eq!(hosts.stack.counters().endpoint.fallbacks.total(), 0);
        hosts.nothing_lingers().await;
    });
}

/// Whether a packet's mapping has a checksum; none without a mapping.
fn mapping_has_checksum(packet: &Packet) -> Option<bool> {
    packet.segment.options.dss.as_ref()?.mapping.map(|mapping| mapping.checksum.is_some())
}

/// Changes payload, and nothing else, of what goes one way from now on.
fn change(middlebox: &Middlebox, way: Way, most: usize) {
    let mut left = most;
    middlebox.obey(move |going, mut packet| {
        let payload = &packet.segment.payload;
        if going == way && left > 0 && payload.len() > 10 {
            left -= 1;
            let mut bytes = payload.to_vec();
            bytes[5] = CHANGED;
            packet.segment.payload = Bytes::from(bytes);
        }
        vec![packet]
    });
}

/// All that one of two paths carries is changed: its subflow ends with MP_FAIL, the data is whole.
fn changed_on_one_of_two(role: Role, way: Way, path: usize) {
    let scene = Scene::new(2, false).links(5, 0.0).set("mptcp/checksum_enabled", 1);
    scene.run(|hosts| async move {
        let config = ConnectionConfig { checksum: true, ..hosts.config() };
        let (mut stream, mut socket) = hosts.open(role, config).await;
        warm_up(&mut stream, &mut socket, 2).await;
        change(&hosts.middleboxes[path], way, usize::MAX);
        exchange(stream, socket, &End::new(3_000_000), &End::new(3_000_000), PATIENCE).await;
        let answers = if way == Way::ToUs { Way::ToKernel } else { Way::ToUs };
        assert!(failures(&hosts.middleboxes[path], answers) > 0, "MP_FAIL was sent");
        assert_eq!(hosts.stack.counters().endpoint.fallbacks.total(), 0);
        hosts.nothing_lingers().await;
    });
}

/// MP_FAILs that went this way.
fn failures(middlebox: &Middlebox, way: Way) -> usize {
    let fails = |option: &MptcpOption| matches!(option, MptcpOption::Fail { .. });
    middlebox.seen(|seen| seen.way == way && seen.packet.segment.options.mptcp.iter().any(fails)).len()
}

/// One packet is changed on the only path: MP_FAIL, then plain TCP, with the data as the middlebox left it.
fn changed_on_the_only_one(role: Role, way: Way, first: bool) {
    let scene = Scene::new(1, false).links(5, 0.0).set("mptcp/checksum_enabled", 1);
    scene.run(|hosts| async move {
        let mut config = ConnectionConfig { checksum: true, ..hosts.config() };
        // Linux 6.18 does not count the infinite mapping when it cuts segments: they would not fit its own device.
        config.tcp.mtu = 1440;
        let (mut stream, mut socket) = hosts.open(role, config).await;
        if !first {
            warm_up(&mut stream, &mut socket, 1).await;
        }
        change(&hosts.middleboxes[0], way, 1);
        let text = vec![b'.'; 400_000];
        let copy = text.clone();
        let kernel = blocking(move || {
            let mut second = socket.try_clone().expect("a descriptor");
            let writer = std::thread::spawn(move || second.write_all(&copy).expect("the kernel can write"));
            let mut read = Vec::new();
            socket.read_to_end(&mut read).expect("the stream ends");
            writer.join().expect("it does not panic");
            // Not earlier: Linux 6.18 cuts its stream off if it is closed while it falls back.
            socket.shutdown(std::net::Shutdown::Write).expect("the kernel can close");
            read
        });
        let ours = async {
            let (mut reader, mut writer) = tokio::io::split(stream);
            let mut read = vec![0; text.len()];
            let (outcome, written) = tokio::join!(reader.read_exact(&mut read), writer.write_all(&text));
            outcome.expect("the stream is as long");
            written.expect("we can write");
            writer.shutdown().await.expect("we can close");
            assert_eq!(reader.read(&mut [0; 10]).await.expect("the stream ends well"), 0);
            let stream = reader.unsplit(writer);
            (read, stream.fallback())
        };
        let (by_kernel, (by_us, fallback)) = tokio::join!(kernel, ours);
        let different = |bytes: &[u8]| bytes.iter().filter(|byte| **byte != b'.').count();
        assert_eq!((by_kernel.len(), by_us.len()), (text.len(), text.len()));
        let expected = if way == Way::ToUs { (0, 1) } else { (1, 0) };
        assert_eq!((different(&by_kernel), different(&by_us)), expected);
        let causes: &[Option<FallbackCause>] = match way {
            Way::ToUs => &[Some(FallbackCause::Checksum)],
            // Linux falls back without a word if it has never seen a right checksum.
            Way::ToKernel if first => &[Some(FallbackCause::Peer), Some(FallbackCause::OptionsStripped)],
            Way::ToKernel => &[Some(FallbackCause::Peer)],
        };
        assert!(causes.contains(&fallback), "{fallback:?}");
        hosts.nothing_lingers().await;
    });
}
