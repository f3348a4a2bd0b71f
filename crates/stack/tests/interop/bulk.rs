//! Much data: over lossy paths, over paths that fail, through small buffers, with every window scale, in mappings of many
//! segments.
//!
//! `ANABRANCH_BULK` says how many bytes go over the lossy paths, 64 MiB if it does not.

use crate::aborting::warm_up;
use crate::middlebox::Way;
use crate::mischief::{Failure, befall};
use crate::pair;
use crate::scene::{Hosts, Role, Scene, Shared, blocking, pattern};
use crate::traffic::{End, exchange};
use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_policy::rate::Rate;
use anabranch_sim::link::{QueueConfig, QueueLimit, RateModel};
use anabranch_wire::Flags;
use libtest_mimic::Trial;
use sha2::{Digest, Sha256};
use socket2::Socket;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(50);

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |name: String, test: Box<dyn FnOnce() + Send>| {
        trials.push(Trial::test(format!("bulk::{name}"), move || {
            test();
            Ok(())
        }));
    };
    for (to_us, what) in [(false, "we_send"), (true, "the_kernel_sends")] {
        add(format!("{what}_much_over_two_lossy_paths"), Box::new(move || lossy(to_us)));
        add(format!("{what}_past_a_buffer_of_64_kb"), Box::new(move || small_buffers(to_us)));
    }
    for (role, who) in Role::ALL {
        let kinds = [
            (Failure::DeviceGone, "its_device_goes"),
            (Failure::AddressGone, "our_address_goes"),
            (Failure::KernelAddressGone, "the_kernels_address_goes"),
            (Failure::BlackHole, "it_falls_silent"),
            (Failure::Resets, "it_is_reset"),
        ];
        for (failure, words) in kinds {
            for path in [0, 1] {
                let v6 = path == 1;
                let test = move || killed(role, failure, path, v6);
                add(format!("{who}_and_{words}_on_path_{path}_in_mid_transfer"), Box::new(test));
            }
        }
        add(format!("{who}_with_every_window_scale"), Box::new(move || scales(role)));
        add(format!("{who}_and_mappings_are_longer_than_segments"), Box::new(move || long_mappings(role)));
    }
    for (congestion, loss, words) in
        [("cubic", 0.0, "a_perfect"), ("bbr", 0.0, "a_steady"), ("cubic", 0.0005, "a_lossy")]
    {
        let name = format!("the_kernel_takes_several_segments_under_one_mapping_over_{words}_path");
        add(name, Box::new(move || bulk_with_shared_mappings(congestion, loss)));
    }
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        add(format!("mappings_of_64_kb_over_devices_with_offloads_{family}"), Box::new(move || offloaded(v6)));
    }
    trials
}

/// Writes a long stream into `take` piece by piece, and returns its SHA-256.
fn long_stream(length: u64, mut take: impl FnMut(&[u8])) -> [u8; 32] {
    let (mut block, mut sum, mut left) = (pattern(64 * 1024), Sha256::new(), length);
    while left > 0 {
        block[..8].copy_from_slice(&left.to_be_bytes());
        let part = &block[..left.min(block.len() as u64) as usize];
        sum.update(part);
        take(part);
        left -= part.len() as u64;
    }
    sum.finalize().into()
}

fn lossy(to_us: bool) {
    let length: u64 = std::env::var("ANABRANCH_BULK")
        .map_or(64 << 20, |text| text.parse().expect("ANABRANCH_BULK is a number of bytes"));
    let mut scene = Scene::new(2, false).links(2, 0.003);
    scene.deadline = 60 + length / 200_000;
    scene.run(|hosts| async move {
        let (mut stream, mut socket) = hosts.open(Role::WeOpen, hosts.config()).await;
        warm_up(&mut stream, &mut socket, 2).await;
        let begin = std::time::Instant::now();
        let stream = Shared::new(stream);
        let (sent, received) = if to_us {
            kernel_to_us(length, socket, &stream).await
        } else {
            we_to_kernel(length, socket, &stream).await
        };
        assert!(sent == received, "the SHA-256 of what arrived is another");
        let carried: Vec<u64> = stream.paths_carried(to_us);
        eprintln!("{length} bytes in {:?}, by path {carried:?}", begin.elapsed());
        assert!(carried.iter().all(|bytes| *bytes > length / 20), "both paths carry: {carried:?}");
        drop(stream);
        hosts.nothing_lingers().await;
    });
}

async fn kernel_to_us(length: u64, mut socket: Socket, stream: &Shared) -> ([u8; 32], [u8; 32]) {
    let write = blocking(move || {
        let sum = long_stream(length, |part| socket.write_all(part).expect("the kernel can write"));
        socket.shutdown(Shutdown::Write).expect("it is open");
        (sum, socket)
    });
    let read = async {
        let mut sum = Sha256::new();
        loop {
            let part = stream.read(256 * 1024).await.expect("the stream ends well");
            if part.is_empty() {
                return sum.finalize().into();
            }
            sum.update(&part);
        }
    };
    let ((sent, _socket), received) = tokio::join!(write, read);
    stream.close().await.expect("open");
    (sent, received)
}

async fn we_to_kernel(length: u64, mut socket: Socket, stream: &Shared) -> ([u8; 32], [u8; 32]) {
    let read = blocking(move || {
        let (mut sum, mut buffer) = (Sha256::new(), vec![0; 256 * 1024]);
        loop {
            let part = socket.read(&mut buffer).expect("the stream ends well");
            if part == 0 {
                return sum.finalize().into();
            }
            sum.update(&buffer[..part]);
        }
    });
    // Piece by piece, so that not all of it has to be in memory.
    let (mut block, mut sum, mut left) = (pattern(64 * 1024), Sha256::new(), length);
    let write = async {
        while left > 0 {
            block[..8].copy_from_slice(&left.to_be_bytes());
            let part = &block[..left.min(block.len() as u64) as usize];
            sum.update(part);
            stream.write_all(part).await.expect("we can write");
            left -= part.len() as u64;
        }
        stream.close().await.expect("open");
        sum.finalize().into()
    };
    let (received, sent) = tokio::join!(read, write);
    (sent, received)
}

/// Links of a rate, so that a transfer lasts.
fn slow(mut scene: Scene, megabits: u64) -> Scene {
    for link in scene.links.iter_mut().flatten() {
        link.rate = RateModel::Fixed(Rate::from_bits_per_second(megabits * 1_000_000));
        link.queue = QueueConfig { limit: QueueLimit::Packets(60), ..QueueConfig::default() };
    }
    scene
}

/// A path dies while both ends send.
fn killed(role: Role, failure: Failure, path: usize, v6: bool) {
    let mut scene = slow(Scene::new(2, v6).links(5, 0.0), 40);
    scene.kernel_joins = role == Role::TheKernelOpens;
    scene.run(|hosts| async move {
        let (mut stream, mut socket) = hosts.open(role, hosts.config()).await;
        warm_up(&mut stream, &mut socket, 2).await;
        let trouble = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            befall(&hosts, path, failure);
        };
        let end = End::new(6_000_000);
        tokio::join!(exchange(stream, socket, &end, &end, PATIENCE), trouble);
    });
}

/// One end has no more than 64 kB for what it receives, on paths of unlike delay. The kernel's autotuning has been seen to
/// stop for good there; ours goes on, and does not stop a kernel either.
fn small_buffers(to_us: bool) {
    for role in [Role::WeOpen, Role::TheKernelOpens] {
        let mut scene = slow(Scene::new(2, false).links(3, 0.005), 20).set("ipv4/tcp_rmem", "4096 65536 65536");
        scene.links[1] = slow(Scene::new(1, false).links(25, 0.005), 20).links.remove(0);
        scene.run(|hosts| async move {
            let config = ConnectionConfig { receive_buffer: BufferSize::Fixed(65_536), ..hosts.config() };
            let (mut stream, mut socket) = hosts.open(role, config).await;
            warm_up(&mut stream, &mut socket, 2).await;
            let (ours, kernel) =
                if to_us { (End::new(0), End::new(4_000_000)) } else { (End::new(4_000_000), End::new(0)) };
            exchange(stream, socket, &ours, &kernel, PATIENCE).await;
            hosts.nothing_lingers().await;
        });
    }
}

/// Receive buffers from 64 kB to 1 GiB at each end, and none that is scaled.
fn scales(role: Role) {
    let mut seen = [Vec::new(), Vec::new()];
    for shift in [0_u32, 1, 3, 5, 8, 11, 14] {
        let most = (65_535_u64 << shift).min((1 << 30) - 1);
        let scene = Scene::new(1, false).set("ipv4/tcp_rmem", format!("4096 65536 {most}"));
        let scales = scene.run(|hosts| async move { transfer_and_scales(&hosts, role, true, most).await });
        seen.iter_mut().zip(scales).for_each(|(seen, scale)| seen.push(scale));
    }
    for side in &seen {
        assert!(side.windows(2).all(|pair| pair[0] <= pair[1]), "{seen:?}");
        assert_eq!(side.last(), Some(&Some(14)), "{seen:?}");
    }
    // The kernel's own least depends on the machine's largest buffer.
    assert_eq!(seen[1].first(), Some(&Some(0)), "{seen:?}");
    for (kernel, ours) in [(false, true), (true, false), (false, false)] {
        let scene = Scene::new(1, false).set("ipv4/tcp_window_scaling", u8::from(kernel));
        let scales = scene.run(|hosts| async move { transfer_and_scales(&hosts, role, ours, 1 << 20).await });
        let both = kernel && ours;
        assert!(both || scales.iter().any(Option::is_none), "{scales:?}");
    }
}

/// Moves data both ways; returns the scales in the kernel's SYN and in ours.
async fn transfer_and_scales(hosts: &Hosts, role: Role, scaling: bool, most: u64) -> [Option<u8>; 2] {
    let mut config = hosts.config();
    config.tcp.options.window_scaling = scaling;
    config.receive_buffer = BufferSize::Auto { initial: 65_535.min(most), max: most };
    let (stream, socket) = hosts.open(role, config).await;
    exchange(stream, socket, &End::new(2_000_000), &End::new(2_000_000), PATIENCE).await;
    hosts.nothing_lingers().await;
    [Way::ToUs, Way::ToKernel].map(|way| {
        let syns = hosts.middleboxes[0].seen(|seen| seen.way == way && seen.packet.segment.flags.contains(Flags::SYN));
        syns.first().expect("there was one").packet.segment.options.window_scale
    })
}

/// The kernel maps up to 64 kB at once, whatever its segments' size.
fn long_mappings(role: Role) {
    Scene::new(1, false).links(5, 0.01).run(|hosts| async move {
        let (stream, socket) = hosts.open(role, hosts.config()).await;
        exchange(stream, socket, &End::new(0), &End::new(4_000_000), PATIENCE).await;
        let mapped = hosts.middleboxes[0].seen(|seen| seen.way == Way::ToUs);
        let length = |seen: &crate::middlebox::Seen| {
            seen.packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping).map_or(0, |mapping| mapping.length)
        };
        let longest = mapped.iter().map(length).max().unwrap_or(0);
        assert!(longest > 30_000, "the longest mapping has {longest} bytes");
        hosts.nothing_lingers().await;
    });
}

/// Segments that wait for pacing have one mapping, which only the first carries.
fn bulk_with_shared_mappings(congestion: &'static str, loss: f64) {
    let mut scene = slow(Scene::new(1, false).links(5, loss), 40);
    let words = format!("scheduler=anabranch,congestion={congestion}");
    scene.combination.apply(&words).expect("policies of ours");
    scene.run(|hosts| async move {
        let mut config = hosts.config();
        config.tcp.pacing = true;
        let (stream, socket) = hosts.open(Role::WeOpen, config).await;
        exchange(stream, socket, &End::new(8_000_000), &End::new(0), PATIENCE).await;
        let data =
            hosts.middleboxes[0].seen(|seen| seen.way == Way::ToKernel && !seen.packet.segment.payload.is_empty());
        let bare = data.iter().filter(|seen| seen.packet.segment.options.dss.is_none()).count();
        eprintln!("{bare} of {} segments without a mapping of their own", data.len());
        assert!(bare > 200, "{bare} of {} segments without a mapping of their own", data.len());
        hosts.nothing_lingers().await;
    });
}

/// The kernel sends segments of a whole mapping at once where the device takes them.
fn offloaded(v6: bool) {
    pair::with_paths(2, v6, move |stack| async move {
        let address = std::net::SocketAddr::new(pair::ours(0, v6), 7);
        let listener = stack.listen(7, pair::config(&Default::default())).expect("the port is free");
        let socket = crate::kernel::mptcp_socket(address);
        let connecting = blocking(move || socket.connect(&address.into()).map(|()| socket));
        let (stream, socket) = tokio::join!(listener.accept(), connecting);
        let (stream, socket) = (stream.expect("the kernel connects"), socket.expect("we accept"));
        exchange(stream, socket, &End::new(30_000_000), &End::new(30_000_000), PATIENCE).await;
    });
}
