//! Our nftables table, installed by the program `nft`.

use super::error::HostError;
use super::layout::Layout;
use super::path_plan::PathPlan;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The table in nft's language. `ports` are those of the stack at the uplinks' own addresses.
pub(crate) fn text(layout: Layout, paths: &[PathPlan], ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports = ports.join(", ");
    let (mut into, mut out, mut passing) = (String::new(), String::new(), String::new());
    for path in paths {
        let name = &path.name;
        let addresses = [
            ("ip", layout.stack_ipv4(path.number).to_string(), true, path.closed[0]),
            ("ip6", layout.stack_ipv6(path.number).to_string(), path.ipv6, path.closed[1]),
        ];
        for (family, stack, _, was_closed) in addresses.iter().filter(|(.., there, _)| *there) {
            let protocol = if *family == "ip" { "ipv4" } else { "ipv6" };
            // Writing to a string does not fail.
            if !ports.is_empty() {
                let _ = writeln!(
                    into,
                    "    iifname \"{name}\" meta nfproto {protocol} fib daddr type local tcp dport {{ {ports} }} dnat {family} to {stack}"
                );
            }
            let _ = writeln!(out, "    oifname \"{name}\" {family} saddr {stack} masquerade");
            // What belongs to no known connection is not translated.
            let _ = writeln!(passing, "    oifname \"{name}\" {family} saddr {stack} ct state invalid drop");
            if *was_closed {
                let _ =
                    writeln!(passing, "    iifname \"{name}\" meta nfproto {protocol} oifname != \"anabranch*\" drop");
            }
        }
    }
    let chains = [
        ("to_stack", "type nat hook prerouting priority dstnat; policy accept;", into),
        ("from_stack", "type nat hook postrouting priority srcnat; policy accept;", out),
        ("nothing_else", "type filter hook forward priority filter; policy accept;", passing),
    ];
    table(layout, &chains)
}

/// The table of an instance that has the host's default route: packets from a gateway's interface are forwarded to
/// `device`, and elsewhere only where they were before.
pub(crate) fn default_route(layout: Layout, device: &str, gateways: &[PathPlan], refuse_ipv6: bool) -> String {
    let (mut closed, mut refused) = (String::new(), String::new());
    for PathPlan { name, closed: was_closed, .. } in gateways {
        for (protocol, _) in ["ipv4", "ipv6"].into_iter().zip(was_closed).filter(|(_, closed)| **closed) {
            // Writing to a string does not fail.
            let _ = writeln!(closed, "    iifname \"{name}\" meta nfproto {protocol} oifname != \"{device}\" drop");
        }
    }
    if refuse_ipv6 {
        // TCP ignores an ICMPv6 error while it connects, and retries. A reset is final.
        for (which, how) in [(" meta l4proto tcp", "tcp reset"), ("", "icmpv6 type no-route")] {
            let _ = writeln!(refused, "    oifname \"{device}\" meta nfproto ipv6{which} reject with {how}");
        }
    }
    let chains = [
        ("no_ipv6", "type filter hook output priority filter; policy accept;", refused.clone()),
        ("nothing_else", "type filter hook forward priority filter; policy accept;", refused + &closed),
    ];
    table(layout, &chains)
}

/// A table of these chains, without empty ones.
fn table(layout: Layout, chains: &[(&str, &str, String)]) -> String {
    let mut text = format!("create table inet {table}\ntable inet {table} {{\n", table = layout.nft_table());
    for (name, hook, rules) in chains {
        if !rules.is_empty() {
            let _ = write!(text, "  chain {name} {{\n    {hook}\n{rules}  }}\n");
        }
    }
    text.push_str("}\n");
    text
}

/// The nft command, in its own process group: Ctrl-C signals the whole group of the terminal, while nft must still undo
/// our setup.
fn nft(arguments: &[&str]) -> Command {
    let mut nft = Command::new("nft");
    nft.args(arguments).process_group(0);
    nft
}

/// Runs `text` with nft, atomically.
pub(crate) fn run(text: &str) -> io::Result<()> {
    let mut nft = nft(&["-f", "-"]);
    let mut nft = nft.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = nft.stdin.take() {
        // A write error is ignored: nft reports incomplete input.
        let _ = input.write_all(text.as_bytes());
    }
    let output = nft.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    if output.status.code().is_none() {
        return Err(io::Error::new(io::ErrorKind::Interrupted, format!("nft was ended by {}", output.status)));
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let line = complaint.lines().find(|line| line.contains("rror: ")).unwrap_or(complaint.trim());
    let reason = line.split_once("rror: ").map_or(line, |(_, reason)| reason);
    let kind = if reason.contains("No such file") { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, reason.to_owned()))
}

/// Replaces a table.
pub(crate) fn replace(table: &str, text: &str) -> io::Result<()> {
    // The table may have been removed, but deletion requires it to exist.
    run(&format!("add table inet {table}\ndelete table inet {table}\n{text}"))
}

/// Removes a table; succeeds if it does not exist.
pub(crate) fn remove(table: &str) -> io::Result<()> {
    let text = format!("delete table inet {table}\n");
    let mut outcome = run(&text);
    // `emulate` ends all programs of a host one by one, and may have ended nft.
    if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
        outcome = run(&text);
    }
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Chains of other programs whose policy drops what this host forwards, such as "ip filter FORWARD"; `families` are "ip" and
/// "ip6". None where nft is missing.
pub fn chains_that_drop_forwarded(families: &[&str]) -> Vec<String> {
    let output = nft(&["list", "chains"]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map_or(Vec::new(), |output| dropping(&String::from_utf8_lossy(&output.stdout), families))
}

/// The same from what nft prints.
fn dropping(text: &str, families: &[&str]) -> Vec<String> {
    let (mut table, mut chain, mut found) = ("", "", Vec::new());
    for line in text.lines().map(str::trim) {
        let begins = |what| line.strip_prefix(what)?.strip_suffix(" {");
        if let Some(name) = begins("table ") {
            table = name;
        } else if let Some(name) = begins("chain ") {
            chain = name;
        } else if line.contains(" hook forward ") && line.contains("policy drop") {
            found.push(format!("{table} {chain}"));
        }
    }
    found.retain(|chain| families.iter().chain(&["inet"]).any(|family| chain.starts_with(&format!("{family} "))));
    found
}

/// The instance numbers whose table exists, as far as visible to us.
pub(crate) fn taken() -> Result<BTreeSet<u8>, HostError> {
    let output = nft(&["list", "tables", "inet"]).stdin(Stdio::null()).output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let names = text.lines().filter_map(|line| line.strip_prefix("table inet "));
            Ok(names.filter_map(|name| Layout::of_nft_table(name.trim())).map(|layout| layout.instance).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(HostError::MissingProgram { program: "nft", package: "nftables" })
        }
        Err(error) => Err(HostError::System { doing: "run nft", error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_with_a_policy_that_drops_forwarded_packets_are_found() {
        let text = "table ip filter {
\tchain INPUT {
\t\ttype filter hook input priority filter; policy drop;
\t}
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy drop;
\t}
\tchain DOCKER-USER {
\t}
}
table ip6 filter {
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy accept;
\t}
}
table inet own {
\tchain through {
\t\ttype filter hook forward priority 10; policy drop;
\t}
}
table bridge filter {
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy drop;
\t}
}
";
        assert_eq!(dropping(text, &["ip", "ip6"]), ["ip filter FORWARD", "inet own through"]);
        assert_eq!(dropping(text, &["ip6"]), ["inet own through"]);
        assert_eq!(dropping("", &["ip"]), [""; 0]);
    }
}
