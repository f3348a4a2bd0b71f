//! Hosts of the kernel on shared channels: a network namespace for each node, with a TAP device for each channel. Only
//! descriptors keep them alive, so nothing outlives the program.

use super::air::{Air, AntennaId, ChannelModel, Hardware};
use super::hosts::{HostsError, NO_ADDRESSES, end, has_ipv6, ip, set, system};
use anabranch_sim::radio::Position;
use anabranch_stack::device::open_tap;
use anabranch_system::Namespace;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Packets queued at a device until the ether reads them.
const DEVICE_QUEUE: u32 = 1_000;

/// Most nodes, and most channels: each number is a byte of addresses.
pub const MOST: usize = 250;

/// Settings of a mesh.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    /// The positions of the nodes, which are named M1, M2, ...
    pub positions: Vec<Position>,
    /// The channels; each node has a device on each: e0, e1, ...
    pub channels: Vec<ChannelModel>,
    /// Metres. On ideal channels, the largest distance between connected nodes.
    pub reach: f64,
    /// MTU in bytes of IP.
    pub mtu: u16,
    /// Seed of the channels' random numbers.
    pub seed: u64,
    /// Further kernel settings of all nodes: dotted names and values.
    pub settings: Vec<(String, String)>,
}

impl MeshConfig {
    /// The eight nodes of figure 8 of the QoE-driven MPTCP paper, 100 m apart with a range of 150 m: its 13 links, plus
    /// the four within the layers that any disk model with those links has.
    pub fn figure_8(channels: Vec<ChannelModel>) -> Self {
        let places = [(0, 0), (100, 100), (100, 0), (100, -100), (200, 100), (200, 0), (200, -100), (300, 0)];
        let positions = places.map(|(x, y)| Position { x: f64::from(x), y: f64::from(y) });
        Self { positions: positions.to_vec(), channels, reach: 150.0, mtu: 1_500, seed: 1, settings: Vec::new() }
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub namespace: Namespace,
    /// Its antenna on each channel.
    pub antennas: Vec<AntennaId>,
}

impl Node {
    /// A command prefix that runs a program in it.
    pub fn at(&self) -> String {
        format!("nsenter --net=/proc/{}/fd/{}", std::process::id(), self.namespace.file().as_raw_fd())
    }
}

#[derive(Clone, Debug)]
pub struct Mesh {
    nodes: Vec<Node>,
}

/// The name of the device on a channel.
pub fn device(channel: usize) -> String {
    format!("e{channel}")
}

/// A node's IPv4 address on a channel, as in the paper: 112.26.X.Y on interface X of node Y, which counts from 1.
pub fn ipv4(channel: usize, node: usize) -> Ipv4Addr {
    Ipv4Addr::new(112, 26, byte(channel), byte(node))
}

/// A node's IPv6 address on a channel.
pub fn ipv6(channel: usize, node: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd70, 0x26, byte(channel).into(), 0, 0, 0, 0, byte(node).into())
}

/// A node's IPv4 address that belongs to no channel.
pub fn loopback_ipv4(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 26, 255, byte(node))
}

/// A node's IPv6 address that belongs to no channel.
pub fn loopback_ipv6(node: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd70, 0x26, 0xff, 0, 0, 0, 0, byte(node).into())
}

fn byte(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// A locally administered hardware address.
fn hardware(channel: usize, node: usize) -> Hardware {
    [0x02, 0x61, 0x6e, 0x61, byte(channel), byte(node)]
}

impl Mesh {
    /// Creates the nodes. Returns the air between them and the other ends of their devices, in the order of its
    /// antennas.
    ///
    /// # Errors
    /// A message for the user.
    pub fn new(config: &MeshConfig) -> Result<(Self, Air, Vec<OwnedFd>), HostsError> {
        if !Path::new("/dev/net/tun").exists() {
            return Err(HostsError::NoTun);
        }
        if config.positions.len() > MOST || config.channels.len() > MOST {
            return Err(HostsError::Ip(format!("at most {MOST} nodes and channels are possible")));
        }
        let mut air = Air::new();
        let channels: Vec<_> = config.channels.iter().map(|model| air.add_channel(model, config.seed)).collect();
        let (mut nodes, mut ends) = (Vec::new(), Vec::new());
        for (number, position) in (1..).zip(&config.positions) {
            let namespace = Namespace::new().map_err(system("a network namespace could not be made"))?;
            let work = || furnish(config, number);
            ends.extend(namespace.run(work).map_err(system("a network namespace could not be entered"))??);
            let on = channels.iter().enumerate();
            let stations = on.filter_map(|(at, channel)| air.add_station(*channel, *position, hardware(at, number)));
            let antennas = stations.collect();
            nodes.push(Node { name: format!("M{number}"), namespace, antennas });
        }
        let mesh = Self { nodes };
        mesh.link_ideal_channels(config, &mut air);
        Ok((mesh, air, ends))
    }

    /// The nodes, M1 first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Ends the processes left in the nodes: SIGTERM, and after two seconds SIGKILL.
    pub fn end(&self) {
        end(&self.nodes.iter().map(|node| &node.namespace).collect::<Vec<_>>());
    }

    fn link_ideal_channels(&self, config: &MeshConfig, air: &mut Air) {
        for (channel, model) in config.channels.iter().enumerate() {
            if *model != ChannelModel::Ideal {
                continue;
            }
            for (one, here) in self.nodes.iter().zip(&config.positions) {
                for (other, there) in self.nodes.iter().zip(&config.positions) {
                    let near = one.name != other.name && here.distance(*there) <= config.reach;
                    let pair = one.antennas.get(channel).zip(other.antennas.get(channel));
                    if let Some((from, to)) = pair.filter(|_| near) {
                        air.set_link(*from, *to, Some(0.0));
                    }
                }
            }
        }
    }
}

/// Sets up the devices, settings and addresses of a node, in the calling thread's namespace.
fn furnish(config: &MeshConfig, node: usize) -> Result<Vec<OwnedFd>, HostsError> {
    let settings = [
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.send_redirects", "0"),
        // Flows to one host spread over the next hops.
        ("net.ipv4.fib_multipath_hash_policy", "1"),
    ];
    settings.iter().try_for_each(|(key, value)| set(key, value))?;
    if Path::new(NO_ADDRESSES).exists() {
        // Link-local addresses derived from the hardware address; no duplicate detection, since the hardware addresses
        // are unique.
        fs::write(NO_ADDRESSES, "0").map_err(system("IPv6 could not be set up"))?;
        for (key, value) in [
            ("net.ipv6.conf.all.forwarding", "1"),
            ("net.ipv6.conf.default.accept_dad", "0"),
            ("net.ipv6.conf.all.accept_dad", "0"),
            ("net.ipv6.fib_multipath_hash_policy", "1"),
        ] {
            set(key, value)?;
        }
    }
    let names: Vec<String> = (0..config.channels.len()).map(device).collect();
    let taps = names.iter().enumerate().map(|(channel, name)| open_tap(name, config.mtu, hardware(channel, node)));
    let ends = taps.collect::<io::Result<Vec<_>>>().map_err(system("a TAP device could not be made"))?;
    config.settings.iter().try_for_each(|(key, value)| set(key, value))?;
    let mut ipv4_script = format!("link set lo up\naddress add {}/32 dev lo\n", loopback_ipv4(node));
    let mut ipv6_script = format!("address add {}/128 dev lo nodad\n", loopback_ipv6(node));
    for (channel, name) in names.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(ipv4_script, "link set dev {name} txqueuelen {DEVICE_QUEUE} up");
        let _ = writeln!(ipv4_script, "address add {}/24 dev {name}", ipv4(channel, node));
        let _ = writeln!(ipv6_script, "address add {}/64 dev {name} nodad", ipv6(channel, node));
    }
    ip("-4", &ipv4_script)?;
    if has_ipv6() {
        ip("-6", &ipv6_script)?;
    }
    Ok(ends)
}
