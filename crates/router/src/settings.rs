//! The kernel settings that a router of the mesh needs, on its own interfaces where possible.

use super::RouteError;
use super::config::{Family, RouteConfig};
use anabranch_host::{Setup, Step, chains_that_drop_forwarded, read_setting};

/// The step for an interface's setting, unless it already has the value.
fn wanted(key: String, value: &str) -> Option<Step> {
    let before = read_setting(&key)?;
    (before != value).then(|| Step::Setting { key, value: value.to_owned(), before: Some(before), unless: None })
}

/// Changes the kernel settings that a router needs.
pub(super) fn prepare(config: &RouteConfig, uplinks: impl Iterator<Item = String>) -> Result<Setup, RouteError> {
    let (mut setup, _directory, _) = Setup::begin(config.journal.as_deref(), false)?;
    for name in uplinks {
        uplink_steps(&name, &config.families).iter().try_for_each(|step| setup.carry_out(step))?;
    }
    let mesh = config.interfaces.iter().map(|interface| interface.name.as_str());
    let others = config.lanes.iter().chain(&config.passive);
    let names = mesh.chain(others.map(String::as_str));
    for step in steps(names, &config.families) {
        setup.carry_out(&step)?;
    }
    Ok(setup)
}

/// Sentences about firewalls that drop what the router is to forward, as Docker's does.
pub(super) fn barriers(config: &RouteConfig) -> Vec<String> {
    let name = |family: &Family| match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    };
    let families: Vec<&str> = config.families.iter().map(name).collect();
    let sentence = |chain: String| {
        format!(
            "the firewall of this host drops what it is to forward, unless a rule allows it (policy of the nftables chain {chain}): \
             this router may forward nothing for others"
        )
    };
    chains_that_drop_forwarded(&families).into_iter().map(sentence).collect()
}

/// The steps after which the host forwards packets that come back from an uplink, and still learns its default route.
pub(super) fn uplink_steps(name: &str, families: &[Family]) -> Vec<Step> {
    let mut steps = Vec::new();
    if families.contains(&Family::Ipv4) {
        steps.extend(wanted(format!("net/ipv4/conf/{name}/forwarding"), "1"));
    }
    if families.contains(&Family::Ipv6) {
        // A host that forwards IPv6 as a whole ignores router advertisements unless this is 2.
        if read_setting(&format!("net/ipv6/conf/{name}/accept_ra")).as_deref() == Some("1") {
            steps.extend(wanted(format!("net/ipv6/conf/{name}/accept_ra"), "2"));
        }
        steps.extend(wanted(format!("net/ipv6/conf/{name}/force_forwarding"), "1"));
    }
    steps
}

/// The steps after which the host forwards packets from these interfaces, accepts asymmetric routes, and ignores
/// redirects. Settings that already have the value are left out.
pub(super) fn steps<'a>(interfaces: impl IntoIterator<Item = &'a str>, families: &[Family]) -> Vec<Step> {
    let (ipv4, ipv6) = (families.contains(&Family::Ipv4), families.contains(&Family::Ipv6));
    let mut steps = Vec::new();
    let forwards_ipv6 = read_setting("net/ipv6/conf/all/forwarding").as_deref() == Some("1");
    let can_force = read_setting("net/ipv6/conf/default/force_forwarding").is_some();
    if ipv6 && !forwards_ipv6 && !can_force {
        // Before Linux 6.17 there is no such setting per interface.
        steps.extend(wanted("net/ipv6/conf/all/forwarding".to_owned(), "1"));
    }
    for name in interfaces {
        if ipv4 {
            steps.extend(wanted(format!("net/ipv4/conf/{name}/forwarding"), "1"));
            steps.extend(wanted(format!("net/ipv4/conf/{name}/accept_redirects"), "0"));
            let strict = |key: String| read_setting(&key).as_deref() == Some("1");
            // The larger of the two values applies; 2 (loose) only requires some route to the source.
            if strict(format!("net/ipv4/conf/{name}/rp_filter")) || strict("net/ipv4/conf/all/rp_filter".to_owned()) {
                steps.extend(wanted(format!("net/ipv4/conf/{name}/rp_filter"), "2"));
            }
        }
        if ipv6 {
            if !forwards_ipv6 && can_force {
                steps.extend(wanted(format!("net/ipv6/conf/{name}/force_forwarding"), "1"));
            }
            steps.extend(wanted(format!("net/ipv6/conf/{name}/accept_redirects"), "0"));
        }
    }
    steps
}
