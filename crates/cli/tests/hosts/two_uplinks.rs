//! Two namespaces: a host with two uplinks, and the world at their other end.
//!
//! ```text
//!   host                          world
//!   up0  10.1.0.2  -------------  10.1.0.1  down0
//!   up1  10.2.0.2  -------------  10.2.0.1  down1
//! ```

use crate::program::ip;
use anabranch_system::Namespace;
use std::os::fd::AsRawFd as _;

/// Host and world; `further` sets up the rest of an uplink on the host, of which it is told the number, and that of its
/// network.
pub fn host_and_world(further: impl Fn(u8, u8) + Sync) -> (Namespace, Namespace) {
    let namespace = || Namespace::new().expect("namespaces were there a moment ago");
    let (host, world) = (namespace(), namespace());
    let inside = format!("/proc/{}/fd/{}", std::process::id(), world.file().as_raw_fd());
    let enter = "the namespace can be entered";
    for net in [1, 2] {
        let n = net - 1;
        host.run(|| ip(&format!("link add up{n} type veth peer name down{n} netns {inside}"))).expect(enter);
        world
            .run(|| {
                ip(&format!("address add 10.{net}.0.1/24 dev down{n}"));
                ip(&format!("link set down{n} up"));
            })
            .expect(enter);
        host.run(|| {
            ip(&format!("address add 10.{net}.0.2/24 dev up{n}"));
            ip(&format!("link set up{n} up"));
            ip(&format!("route add default via 10.{net}.0.1 dev up{n} metric 10{n}"));
            further(n, net);
        })
        .expect(enter);
    }
    host.run(|| ip("link set lo up")).expect(enter);
    (host, world)
}
