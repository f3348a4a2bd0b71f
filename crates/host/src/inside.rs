//! Sets up a program's own network namespace, whose only exit is a device of ours.

use super::layout::Layout;
use super::netlink::Netlink;
use super::step::{Route, Step, Target, anywhere};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use nix::net::if_::if_nametoindex;
use std::io;
use std::net::IpAddr;

/// The name of the device.
pub const INSIDE_DEVICE: &str = "bond0";

/// The device's queue in packets. The usual 500 overflow when thousands of connections are answered at once.
const QUEUE: u32 = 4_096;

/// The main routing table (RT_TABLE_MAIN).
const MAIN: u32 = 254;

/// The path whose addresses are used. The namespace has no other.
const PATH: u8 = 0;

/// Routes all IPv4 and IPv6 packets of the caller's namespace to the existing device [`INSIDE_DEVICE`], and lets
/// members of `group` send ICMP echo. Returns the address at the other end of the device, usable as resolver. Without
/// IPv6 on the host the namespace has none either.
///
/// # Errors
/// An error of the kernel.
pub fn lead_out(group: u32) -> io::Result<IpAddr> {
    let mut netlink = Netlink::open()?;
    let layout = Layout { instance: 0 };
    Step::Up { device: "lo".to_owned() }.carry_out(&mut netlink)?;
    address(&mut netlink, layout.host_ipv4(PATH).into())?;
    lengthen_queue(&mut netlink)?;
    Step::Up { device: INSIDE_DEVICE.to_owned() }.carry_out(&mut netlink)?;
    route(&mut netlink, layout.host_ipv4(PATH).into())?;
    let ipv6 = layout.host_ipv6(PATH).into();
    if address(&mut netlink, ipv6).is_ok() {
        route(&mut netlink, ipv6)?;
    }
    let ping = Step::Setting {
        key: "net/ipv4/ping_group_range".to_owned(),
        value: format!("{group} {group}"),
        before: None,
        unless: None,
    };
    // If settings cannot be written only `ping` fails.
    let _ = ping.carry_out(&mut netlink);
    Ok(layout.stack_ipv4(PATH).into())
}

/// Sets the device's queue to the same length as on our other devices.
fn lengthen_queue(netlink: &mut Netlink) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = if_nametoindex(INSIDE_DEVICE)?;
    message.attributes.push(LinkAttribute::TxQueueLen(QUEUE));
    netlink.change(RouteNetlinkMessage::SetLink(message), 0)
}

fn address(netlink: &mut Netlink, address: IpAddr) -> io::Result<()> {
    Step::Address { device: INSIDE_DEVICE.to_owned(), address }.carry_out(netlink)
}

/// Adds the default route, with this source address.
fn route(netlink: &mut Netlink, source: IpAddr) -> io::Result<()> {
    let target = Target::Device { name: INSIDE_DEVICE.to_owned(), gateway: None, onlink: false, source: Some(source) };
    let destination = anywhere(source.is_ipv6());
    Step::Route(Route { table: MAIN, destination, length: 0, target, metric: 0 }).carry_out(netlink)
}
