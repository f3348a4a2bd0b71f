//! Two hosts of the kernel at the ends of emulated paths: a network namespace each, with addresses, routes, and MPTCP
//! configured to use every path. Only descriptors keep them alive, so nothing outlives the program.

use super::address::{self, IPV4_BITS, IPV6_BITS};
use anabranch_stack::device::open_tun;
use anabranch_system::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The server's device, the end of all paths.
const SERVER_DEVICE: &str = "paths";
/// Packets queued at a device until the relay reads them, enough for a burst.
const DEVICE_QUEUE: u32 = 10_000;
/// Most endpoints of the kernel's path manager (MPTCP_PM_ADDR_MAX).
const ENDPOINTS: usize = 8;
/// The routing table of path 1.
const TABLES: u32 = 1_000;
/// Bytes of the least MTU with which a device has IPv6 (RFC 8200, section 5).
const IPV6_LEAST_MTU: u16 = 1_280;
/// Whether new devices configure link-local addresses; 1 disables that.
pub(super) const NO_ADDRESSES: &str = "/proc/sys/net/ipv6/conf/default/addr_gen_mode";
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Settings of the hosts.
#[derive(Clone, Debug)]
pub struct HostsConfig {
    /// The paths' names, which are also those of the client's devices if the kernel accepts them; otherwise `path1`,
    /// `path2`, ...
    pub paths: Vec<String>,
    /// MTU in bytes of IP.
    pub mtu: u16,
    /// Configures the kernel's MPTCP: an endpoint per path at the client, and limits that allow all paths.
    pub mptcp: bool,
    /// Congestion control of the kernel's connections, set on the routes; by default the host's.
    pub congestion: Option<String>,
    /// Further kernel settings of both hosts: dotted names and values.
    pub settings: Vec<(String, String)>,
}

/// Why setup failed. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// Neither root nor CAP_SYS_ADMIN.
    #[error("network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN): run it with sudo")]
    NoPermission,
    /// No TUN devices.
    #[error("there is no /dev/net/tun: load the module with `modprobe tun`")]
    NoTun,
    /// iproute2 is missing.
    #[error("the program `ip` is missing: install iproute2")]
    NoIp,
    /// Unknown congestion control.
    #[error("the kernel has no congestion control '{name}': it has {}", .known.split_whitespace().collect::<Vec<_>>().join(", "))]
    NoCongestionControl {
        /// The requested name.
        name: String,
        /// The available names, separated by spaces.
        known: String,
    },
    /// The kernel refused a setting.
    #[error("the kernel rejects {key} = {value} in a network namespace: {error}")]
    Setting {
        /// Its name.
        key: String,
        value: String,
        error: io::Error,
    },
    /// The program `ip` reported an error.
    #[error("the network could not be set up: {0}")]
    Ip(String),
    /// Another error.
    #[error("{doing}: {error}")]
    System {
        /// The attempted action.
        doing: &'static str,
        error: io::Error,
    },
}

pub(super) fn system(doing: &'static str) -> impl Fn(io::Error) -> HostsError {
    move |error| match error.kind() {
        io::ErrorKind::PermissionDenied => HostsError::NoPermission,
        _ => HostsError::System { doing, error },
    }
}

#[derive(Clone, Debug)]
pub struct Hosts {
    client: Namespace,
    server: Namespace,
    devices: Vec<String>,
}

impl Hosts {
    /// Creates the hosts. Returns the other ends of their devices: the client's in the order of the paths, then the
    /// server's.
    ///
    /// # Errors
    /// A message for the user.
    pub fn new(config: &HostsConfig) -> Result<(Self, Vec<OwnedFd>), HostsError> {
        if !Path::new("/dev/net/tun").exists() {
            return Err(HostsError::NoTun);
        }
        check_congestion(config.congestion.as_deref())?;
        let doing = "a network namespace could not be made";
        let (client, server) = (Namespace::new().map_err(system(doing))?, Namespace::new().map_err(system(doing))?);
        let devices: Vec<String> = (1..).zip(&config.paths).map(|(at, name)| device_name(at, name)).collect();
        let names: Vec<&str> = devices.iter().map(String::as_str).collect();
        let mut ends = furnish(&client, &names, config, &client_script(&devices, config))?;
        ends.extend(furnish(&server, &[SERVER_DEVICE], config, &server_script(config))?);
        Ok((Self { client, server, devices }, ends))
    }

    /// Wraps two existing hosts; `devices` are the names of the client's.
    pub fn of(client: Namespace, server: Namespace, devices: Vec<String>) -> Self {
        Self { client, server, devices }
    }

    /// The host that has an interface per path.
    pub fn client(&self) -> &Namespace {
        &self.client
    }

    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The client's devices, in the order of the paths.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// A command prefix that runs a program in the server.
    pub fn at_server(&self) -> String {
        format!("nsenter --net=/proc/{}/fd/{}", std::process::id(), self.server.file().as_raw_fd())
    }

    /// Packets that the kernel dropped at the devices because of a full queue.
    ///
    /// # Errors
    /// If a namespace cannot be entered, or `/proc` is missing.
    pub fn dropped(&self) -> io::Result<u64> {
        let mut total = 0;
        for host in [&self.client, &self.server] {
            let table = host.run(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
            // After the name there are eight columns for received packets and eight for sent ones; the fourth of each
            // counts drops.
            let dropped = |line: &str| line.split_once(':')?.1.split_whitespace().nth(11)?.parse::<u64>().ok();
            total += table.lines().filter_map(dropped).sum::<u64>();
        }
        Ok(total)
    }

    /// Ends the processes left in the hosts: SIGTERM, and after two seconds SIGKILL.
    pub fn end(&self) {
        end(&[&self.client, &self.server]);
    }
}

/// Ends the processes left in these hosts.
pub(super) fn end(hosts: &[&Namespace]) {
    let end = Instant::now() + GRACE;
    let mut signal = Signal::SIGTERM;
    loop {
        let left = processes(hosts);
        if left.is_empty() {
            return;
        }
        // A process that has already ended is ignored.
        left.iter().for_each(|process| {
            let _ = kill(*process, signal);
        });
        if signal == Signal::SIGKILL {
            return;
        }
        while !processes(hosts).is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
        signal = Signal::SIGKILL;
    }
}

/// The processes in the hosts.
fn processes(hosts: &[&Namespace]) -> Vec<Pid> {
    let ours: Vec<u64> = hosts.iter().filter_map(|host| Some(host.file().metadata().ok()?.ino())).collect();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let inside = |entry: fs::DirEntry| {
        let process: i32 = entry.file_name().to_str()?.parse().ok()?;
        let place = fs::metadata(entry.path().join("ns/net")).ok()?.ino();
        ours.contains(&place).then(|| Pid::from_raw(process))
    };
    entries.flatten().filter_map(inside).filter(|process| *process != Pid::this()).collect()
}

/// The name of a path's device: the path's, if that can be one and is not what another path's device may get instead.
fn device_name(number: usize, path: &str) -> String {
    // The kernel refuses the first three, and the program `ip` reads the others in another way.
    let possible = |byte: u8| byte.is_ascii_graphic() && !b"/:%#\"'\\".contains(&byte);
    let reserved = ["lo", ".", "..", "all", "default"].contains(&path)
        || path.strip_prefix("path").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    if (1..=15).contains(&path.len()) && path.bytes().all(possible) && !reserved {
        path.to_owned()
    } else {
        format!("path{number}")
    }
}

fn check_congestion(name: Option<&str>) -> Result<(), HostsError> {
    let Some(name) = name else { return Ok(()) };
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_err(system("the kernel's congestion controls cannot be read"))?;
    if known.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    Err(HostsError::NoCongestionControl { name: name.to_owned(), known })
}

/// Sets up devices, settings, addresses and routes in a namespace.
fn furnish(
    host: &Namespace,
    devices: &[&str],
    config: &HostsConfig,
    script: &Script<'_>,
) -> Result<Vec<OwnedFd>, HostsError> {
    let work = || {
        // Asymmetric routes must be allowed; new devices inherit this.
        for key in ["net.ipv4.conf.all.rp_filter", "net.ipv4.conf.default.rp_filter"] {
            set(key, "0")?;
        }
        if Path::new(NO_ADDRESSES).exists() {
            // Without link-local addresses the kernel does not send neighbour and router solicitations.
            fs::write(NO_ADDRESSES, "1").map_err(system("IPv6 could not be set up"))?;
        }
        let ends = devices.iter().map(|name| open_tun(name, config.mtu)).collect::<io::Result<Vec<_>>>();
        let ends = ends.map_err(system("a TUN device could not be made"))?;
        config.settings.iter().try_for_each(|(key, value)| set(key, value))?;
        ip("-4", &script.ipv4)?;
        if has_ipv6() {
            ip("-6", &script.ipv6)?;
        }
        Ok(ends)
    };
    host.run(work).map_err(system("a network namespace could not be entered"))?
}

/// Whether devices in the calling thread's namespace take addresses of IPv6: the kernel has it, and the settings do not disable it.
pub(super) fn has_ipv6() -> bool {
    fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6").is_ok_and(|value| value.trim() != "1")
}

/// Writes a setting of the calling thread's namespace.
pub(super) fn set(key: &str, value: &str) -> Result<(), HostsError> {
    // Settings outside `net` would change the machine.
    let path = key.strip_prefix("net.").map(|rest| Path::new("/proc/sys/net").join(rest.replace('.', "/")));
    let outcome = path.map_or(Err(io::ErrorKind::NotFound.into()), |path| fs::write(path, value));
    outcome.map_err(|error| HostsError::Setting { key: key.to_owned(), value: value.to_owned(), error })
}

/// Runs `ip` commands, one per line, for an address family, in the calling thread's namespace.
pub(super) fn ip(family: &str, commands: &str) -> Result<(), HostsError> {
    let doing = "the program `ip` could not be run";
    let child = Command::new("ip")
        .args([family, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HostsError::NoIp,
        _ => system(doing)(error),
    })?;
    if let Some(mut input) = child.stdin.take() {
        // If it ended early, it reports why.
        let _ = input.write_all(commands.as_bytes());
    }
    let output = child.wait_with_output().map_err(system(doing))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(HostsError::Ip(said.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// A script of `ip` commands for each address family. `ip` runs one family at a time: it cannot always infer it from an
/// address.
struct Script<'a> {
    ipv4: String,
    /// Empty if the kernel has no IPv6, or the MTU is too low for it.
    ipv6: String,
    has_ipv6: bool,
    congestion: Option<&'a str>,
}

impl<'a> Script<'a> {
    fn new(config: &'a HostsConfig) -> Self {
        let has_ipv6 = Path::new("/proc/sys/net/ipv6").exists() && config.mtu >= IPV6_LEAST_MTU;
        let ipv4 = "link set lo up\n".to_owned();
        Self { ipv4, ipv6: String::new(), has_ipv6, congestion: config.congestion.as_deref() }
    }

    /// Adds a command for the family of this address.
    fn line(&mut self, address: IpAddr, line: &str) {
        let text = if address.is_ipv4() { &mut self.ipv4 } else { &mut self.ipv6 };
        if address.is_ipv4() || self.has_ipv6 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
        }
    }

    fn device(&mut self, device: &str) {
        let _ = writeln!(self.ipv4, "link set dev {device} txqueuelen {DEVICE_QUEUE} up");
    }

    fn address(&mut self, device: &str, address: IpAddr) {
        let whole = if address.is_ipv4() { "/32" } else { "/128 nodad" };
        self.line(address, &format!("address add {address}{whole} dev {device} noprefixroute"));
    }

    fn route(&mut self, device: &str, to: &str, source: IpAddr, more: &str) {
        let congestion = self.congestion.map(|name| format!(" congctl {name}")).unwrap_or_default();
        self.line(source, &format!("route add {to} dev {device} src {source}{congestion}{more}"));
    }

    /// The kernel's MPTCP endpoints and limits.
    fn multipath(&mut self, subflows: &[(IpAddr, &str)]) {
        if Path::new("/proc/sys/net/mptcp").exists() {
            let limits = format!("mptcp limits set subflow {ENDPOINTS} add_addr_accepted {ENDPOINTS}");
            let _ = writeln!(self.ipv4, "{limits}");
            for (address, device) in subflows {
                self.line(*address, &format!("mptcp endpoint add {address} dev {device} subflow"));
            }
        }
    }
}

/// `10.0.1.0/24`, `fd00:1::/64`.
fn network(path: u8, address: IpAddr) -> String {
    let place = usize::from(address.is_ipv6());
    let bits = if place == 0 { IPV4_BITS } else { IPV6_BITS };
    address::prefixes(path).get(place).map_or_else(String::new, |prefix| format!("{}/{bits}", prefix.address))
}

fn client_script<'a>(devices: &[String], config: &'a HostsConfig) -> Script<'a> {
    let mut script = Script::new(config);
    for (path, device) in (1u8..).zip(devices) {
        script.device(device);
        for source in address::client(path) {
            script.address(device, source);
            script.route(device, &network(path, source), source, "");
            // Other destinations use the first path that is up, unless the source address selects one.
            script.route(device, "default", source, &format!(" metric {path}"));
            let table = TABLES + u32::from(path);
            script.route(device, "default", source, &format!(" table {table}"));
            script.line(source, &format!("rule add from {source} lookup {table} priority {table}"));
        }
    }
    if config.mptcp {
        let of_family = |family: usize| {
            let sources = (1u8..).map(move |path| address::client(path).get(family).copied());
            sources.flatten().zip(devices.iter().map(String::as_str))
        };
        // The kernel holds no more endpoints: IPv6 is added only if all paths of both families fit.
        let subflows = of_family(0).chain(of_family(1)).take(endpoints(devices.len(), script.has_ipv6));
        script.multipath(&subflows.collect::<Vec<_>>());
    }
    script
}

fn endpoints(paths: usize, ipv6: bool) -> usize {
    if ipv6 && 2 * paths <= ENDPOINTS { 2 * paths } else { paths.min(ENDPOINTS) }
}

fn server_script(config: &HostsConfig) -> Script<'_> {
    let mut script = Script::new(config);
    script.device(SERVER_DEVICE);
    for source in address::server() {
        script.address(SERVER_DEVICE, source);
        script.route(SERVER_DEVICE, "default", source, "");
    }
    for (path, _) in (1u8..).zip(&config.paths) {
        // No route of their own: a socket that is bound to none answers from the server's address.
        for address in address::server_on(path) {
            script.address(SERVER_DEVICE, address);
        }
    }
    if config.mptcp {
        script.multipath(&[]);
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_called_after_its_path_where_the_kernel_takes_the_name() {
        assert_eq!(device_name(1, "wifi"), "wifi");
        for name in ["", "a name", "lo", "a/b", "a:b", "all", "of_sixteen_bytes", "wïfi", "path2", "#x", "\"q"] {
            assert_eq!(device_name(3, name), "path3", "{name}");
        }
    }

    #[test]
    fn the_kernel_gets_as_many_endpoints_as_it_holds() {
        assert_eq!([1, 2, 4, 5, 9].map(|paths| endpoints(paths, true)), [2, 4, 8, 5, 8]);
        assert_eq!([1, 4, 9].map(|paths| endpoints(paths, false)), [1, 4, 8]);
    }

    #[test]
    fn a_setting_of_the_machine_is_refused() {
        assert!(matches!(set("kernel.hostname", "x"), Err(HostsError::Setting { .. })));
        assert!(matches!(set("net.ipv4.no_such_setting", "x"), Err(HostsError::Setting { .. })));
    }
}
