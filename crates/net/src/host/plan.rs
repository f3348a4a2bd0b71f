//! All that is to be done for an attachment, in order.

use super::HostError;
use super::layout::{Layout, MAX_PATHS};
use super::step::{Route, Rule, Selector, Step, Target};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// One path of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathPlan {
    /// Its number.
    pub number: u8,
    /// What users call it: the uplink's name, or the device's own.
    pub name: String,
    /// The TUN device.
    pub device: String,
    /// Its largest packet, bytes of IP.
    pub mtu: u16,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Where our things are.
    pub layout: Layout,
    /// The paths.
    pub paths: Vec<PathPlan>,
    /// The steps, in order; they are undone in reverse.
    pub steps: Vec<Step>,
}

/// Whether the kernel speaks IPv6 on new devices.
pub(crate) fn has_ipv6() -> bool {
    let disabled = Path::new("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    std::fs::read_to_string(disabled).is_ok_and(|text| text.trim() == "0")
}

impl Plan {
    /// Paths between the stack and the programs of this host, and nobody else.
    ///
    /// # Errors
    /// [`HostError::NumberOfPaths`].
    pub(crate) fn local(layout: Layout, paths: u8, mtu: u16) -> Result<Self, HostError> {
        if paths == 0 || paths > MAX_PATHS {
            return Err(HostError::NumberOfPaths);
        }
        let mut plan = Self { layout, paths: Vec::new(), steps: Vec::new() };
        for number in 0..paths {
            let device = layout.device(number);
            plan.paths.push(PathPlan { number, name: device.clone(), device: device.clone(), mtu });
            plan.steps.push(Step::Device { name: device.clone(), mtu });
            let families = [
                (IpAddr::from(layout.host_ipv4(number)), IpAddr::from(layout.stack_ipv4(number)), true),
                (IpAddr::from(layout.host_ipv6(number)), IpAddr::from(layout.stack_ipv6(number)), has_ipv6()),
            ];
            for (host, ..) in families.iter().filter(|(.., there)| *there) {
                plan.steps.push(Step::Address { device: device.clone(), address: *host });
            }
            plan.steps.push(Step::Up { device: device.clone() });
            for (host, stack, _) in families.into_iter().filter(|(.., there)| *there) {
                let ipv6 = stack.is_ipv6();
                let table = layout.table(number);
                plan.steps.push(Step::Route(to_stack(table, stack, &device, Some(host))));
                let into = Rule { ipv6, selector: Selector::LocalTo(stack), table: Some(table) };
                // What the host itself is not meant to get goes nowhere, even if the host is a router.
                let out = Rule { ipv6, selector: Selector::Input(device.clone()), table: None };
                plan.steps.extend([Step::Rule(into), Step::Rule(out)]);
            }
        }
        Ok(plan)
    }
}

/// The way into the stack.
fn to_stack(table: u32, stack: IpAddr, device: &str, source: Option<IpAddr>) -> Route {
    let length = if stack.is_ipv6() { 128 } else { 32 };
    let target = Target::Device { name: device.to_owned(), gateway: None, onlink: false, source };
    Route { table, destination: stack, length, target, metric: 0 }
}

/// Anywhere.
#[allow(dead_code)]
fn anywhere(ipv6: bool) -> IpAddr {
    if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}
