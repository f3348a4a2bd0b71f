//! A namespace with any number of stacks of ours, and the kernel as their router and as a host of its own: path `n` is a TUN
//! device on which the kernel has 10.0.n.1, and the stack that it belongs to 10.0.n.2.

use crate::kernel::{ip, sysctl};
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::AddressId;
use anabranch_proxy::{
    Control, Destination, Forward, Journal, Key, Keys, Limits, ListenerConfig, Priorities, Proxy, ProxyConfig,
    ProxyCounters, ProxyListeners, ProxyTerms, Server, ServerConfig, ServerTerms, Via,
};
use anabranch_stack::device::TunConfig;
use anabranch_stack::{Device, Stack, StackConfig};
use anabranch_system::Namespace;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The kernel's address on a path.
pub fn kernel_address(path: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, path, 1).into()
}

/// The address of the stack on a path.
pub fn stack_address(path: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, path, 2).into()
}

/// Runs `test` in a fresh namespace, within a runtime, for so many seconds at most.
pub fn scene<F: Future<Output = ()>>(seconds: u64, test: impl FnOnce() -> F + Send) {
    let namespace = Namespace::new().expect("namespaces were there a moment ago");
    let inside = || {
        ip("link set lo up");
        sysctl("ipv4.ip_forward", "1");
        sysctl("ipv4.conf.all.rp_filter", "0");
        sysctl("ipv4.conf.default.rp_filter", "0");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(seconds), test()).await.expect("the test ends in time");
        });
        // Programs that are still waited for are not worth waiting for.
        runtime.shutdown_background();
    };
    namespace.run(inside).expect("it can be entered");
}

/// The connections of these tests.
pub fn connection() -> ConnectionConfig {
    ConnectionConfig::new(Policies::of(&Combination::default()).expect("a combination of ours"))
}

/// A stack on these paths, running.
pub fn stack(paths: Range<u8>) -> Stack {
    let path_manager = Combination::default().build_path_manager().expect("the default exists");
    let (stack, driver) = Stack::new(StackConfig::new(path_manager)).expect("a stack");
    for path in paths {
        let name = format!("path{path}");
        let device = Device::tun(&TunConfig::new(name.clone(), 1500)).expect("a TUN device");
        ip(&format!("addr add {}/24 dev {name}", kernel_address(path)));
        // A crowd that answers all at once overflows the usual 500 packets.
        ip(&format!("link set {name} txqueuelen 10000 up"));
        let device = stack.attach(device);
        stack.address_up(device, AddressId(path + 1), stack_address(path)).expect("the device is there");
    }
    tokio::spawn(driver);
    stack
}

/// A proxy or a server that runs as a task.
pub struct Running {
    address: Option<SocketAddr>,
    pub control: Control,
    stop: oneshot::Sender<()>,
    task: JoinHandle<ProxyCounters>,
}

impl Running {
    /// Asks it to end, and returns its totals.
    pub async fn stop(self) -> ProxyCounters {
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.task.await.expect("it does not panic")
    }
}

/// Limits that let a test see them.
pub fn limits() -> Limits {
    Limits { drain: Duration::from_millis(300), ..Limits::default() }
}

/// A proxy over `stack` that asks its clients; returns its address.
pub fn proxy(stack: &Stack, via: Via, limits: Limits) -> (SocketAddr, Running) {
    one_listener(stack, via, Forward::Requested, limits)
}

/// A proxy over `stack` whose one listener forward somewhere.
pub fn one_listener(stack: &Stack, via: Via, forward: Forward, limits: Limits) -> (SocketAddr, Running) {
    let running = proxy_at(SocketAddr::from(([127, 0, 0, 1], 0)), stack, via, forward, limits);
    (running.address.expect("it listens"), running)
}

/// A proxy over `stack` whose one listener is there and forward somewhere.
pub fn proxy_at(listen: SocketAddr, stack: &Stack, via: Via, forward: Forward, limits: Limits) -> Running {
    let listeners = ProxyListeners::bind(vec![ListenerConfig { listen, forward }]).expect("a free port");
    let address = listeners.addresses().first().copied();
    let choose = Box::new(|_: &_| connection());
    let config = ProxyConfig { terms: ProxyTerms { via, credentials: None }, choose, limits, journal: None };
    let proxy = Proxy::new(listeners, std::slice::from_ref(stack), config);
    let (control, (stop, stopped)) = (proxy.control(), oneshot::channel());
    let task = tokio::spawn(proxy.run(async {
        let _ = stopped.await;
    }));
    Running { address, control, stop, task }
}

/// The port of every server of ours.
pub const PORT: u16 = 4_410;

/// A server over `stack`.
pub fn server(stack: &Stack, key: Option<&Key>, destination: Destination, limits: Limits) -> Running {
    prioritising(stack, key, destination, limits, Priorities::default())
}

/// A server over `stack` that sets the priority of what comes from targets.
pub fn prioritising(
    stack: &Stack,
    key: Option<&Key>,
    destination: Destination,
    limits: Limits,
    priorities: Priorities,
) -> Running {
    let terms = ServerTerms { keys: key.cloned().map(Keys::one), destination, priorities };
    run_server(stack, terms, limits, None)
}

/// A server over `stack` that tells `journal` of its connections.
pub fn run_server(stack: &Stack, terms: ServerTerms, limits: Limits, journal: Option<Journal>) -> Running {
    let config = ServerConfig { port: PORT, terms, connection: connection(), limits, journal };
    let server = Server::bind(std::slice::from_ref(stack), config).expect("the port is free");
    let (control, (stop, stopped)) = (server.control(), oneshot::channel());
    let task = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    Running { address: None, control, stop, task }
}

/// Through the server on a path.
pub fn via(path: u8, key: &Key) -> Via {
    Via::Server { server: SocketAddr::new(stack_address(path), PORT).into(), other: None, key: key.clone() }
}
