//! The kernel's MPTCP at both ends, each in a namespace, with pairs of TUN devices between them: a thread carries what comes out
//! of one into the other, unread.

use crate::transfer::{Meter, Pins, Rate, Setting, address, ip, kernel_listener, kernel_reads, kernel_writes};
use anabranch_system::Namespace;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::JoinHandle;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Packets carried in one direction before the others get their turn.
const BATCH: usize = 64;
/// Bytes of the largest packet with its header.
const LARGEST: usize = 65_535 + 10;

/// From kernel to kernel.
pub fn moves(setting: &Setting, pins: Pins) -> Rate {
    let [left, right] = [(); 2].map(|()| Namespace::new().expect("namespaces were there a moment ago"));
    let ends = |namespace: &Namespace, host| namespace.run(|| devices(setting, host)).expect("it can be entered");
    let pairs: Vec<_> = ends(&left, 1).into_iter().zip(ends(&right, 2)).collect();
    let meter = Meter::default();
    let relay = relay(pairs, pins.path, meter.clone());
    let listener = right.run(kernel_listener).expect("it can be entered");
    let reader = kernel_reads(listener, pins.receiver, meter.clone());
    let writing = || kernel_writes(address(0, 2), pins.sender, meter.clone());
    let writer = left.run(writing).expect("it can be entered");
    let rate = meter.measure(setting.time);
    reader.join().expect("it read");
    writer.join().expect("it wrote");
    relay.join().expect("it carried");
    rate
}

/// The devices of one end, in the calling thread's namespace.
fn devices(setting: &Setting, host: u8) -> Vec<SyncDevice> {
    ip("mptcp limits set subflow 8 add_addr_accepted 8");
    let device = |path| {
        let name = format!("path{path}");
        let builder = DeviceBuilder::new().name(&name).mtu(setting.mtu).offload(setting.offload);
        let device = builder.build_sync().expect("a TUN device");
        device.set_nonblocking(true).expect("a device can be told");
        ip(&format!("addr add {}/24 dev {name}", address(path, host)));
        ip(&format!("link set {name} up"));
        if path > 0 {
            let role = if host == 2 { "signal" } else { "subflow" };
            ip(&format!("mptcp endpoint add {} dev {name} {role}", address(path, host)));
        }
        device
    };
    (0..setting.paths).map(device).collect()
}

fn relay(pairs: Vec<(SyncDevice, SyncDevice)>, core: Option<usize>, meter: Meter) -> JoinHandle<()> {
    std::thread::spawn(move || {
        match core {
            Some(core) => meter.pin(core),
            None => meter.count_time(),
        }
        let mut packet = vec![0; LARGEST];
        let descriptors: Vec<BorrowedFd<'_>> = pairs.iter().flat_map(|(a, b)| [a.as_fd(), b.as_fd()]).collect();
        while !meter.is_over() {
            let mut waits: Vec<_> = descriptors.iter().map(|end| PollFd::new(*end, PollFlags::POLLIN)).collect();
            poll(&mut waits, PollTimeout::from(100_u8)).expect("they are open");
            for (at, end) in waits.iter().enumerate().filter(|(_, end)| end.any() == Some(true)) {
                let other = descriptors[at ^ 1];
                for _ in 0..BATCH {
                    let Ok(length) = nix::unistd::read(end.as_fd(), &mut packet) else { break };
                    // What the other end does not take is lost, as on any path.
                    let _ = nix::unistd::write(other, &packet[..length]);
                }
            }
        }
    })
}
