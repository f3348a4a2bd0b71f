//! The programs' namespace, whose only route leads to the device, and the world's namespace with capture, server and
//! targets.

use anabranch_capture::{Capture, CaptureConfig, CaptureCounters, CaptureObserver, open_device};
use anabranch_datagram::{Client, ClientConfig, ClientState, Limits, Server, ServerConfig, Way};
use anabranch_host::{INSIDE_DEVICE, lead_out};
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::datagram;
use anabranch_policy::table::{Settings, build};
use anabranch_proxy::{Exit, Via};
use anabranch_stack::{Stack, StackConfig};
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The target's addresses.
pub const TARGET: &str = "203.0.113.1";
pub const TARGET_V6: &str = "2001:db8::1";

/// The shared key.
const KEY: [u8; 32] = [7; 32];

/// Timeout of any operation.
const DEADLINE: Duration = Duration::from_secs(30);

pub fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The parts in the world's namespace.
pub struct Scene {
    pub programs: Namespace,
    /// The resolver that the server queries.
    pub resolver: SocketAddr,
    device: Option<OwnedFd>,
}

/// A test within a runtime in the world's namespace.
pub fn trial<F: Future<Output = ()> + 'static>(name: &'static str, test: fn(Scene) -> F) -> Trial {
    Trial::test(name, move || {
        let namespace = || Namespace::new().expect("namespaces were there a moment ago");
        let (programs, world) = (namespace(), namespace());
        let device = programs.run(|| {
            let device = open_device(INSIDE_DEVICE).expect("a device");
            lead_out(0).expect("it leads out");
            device
        });
        let device = Some(device.expect("it can be entered"));
        let inside = || {
            ip("link set lo up");
            ip(&format!("address add {TARGET}/32 dev lo"));
            ip(&format!("address add {TARGET_V6}/128 dev lo nodad"));
            std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").expect("it can be set");
            let resolver = SocketAddr::from(([127, 0, 0, 1], 5_300));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let scene = Scene { programs, resolver, device };
            runtime.block_on(async { tokio::time::timeout(DEADLINE, test(scene)).await.expect("it ends in time") });
            runtime.shutdown_background();
        };
        world.run(inside).expect("it can be entered");
        Ok(())
    })
}

/// A running capture.
pub struct Running {
    observer: CaptureObserver,
    stop: oneshot::Sender<()>,
    task: JoinHandle<CaptureCounters>,
}

impl Running {
    /// Number of programs' connections.
    pub fn clients(&self) -> usize {
        self.observer.connections().clients()
    }

    /// Stops it and returns its totals.
    pub async fn stop(self) -> CaptureCounters {
        let _ = self.stop.send(());
        self.task.await.expect("it does not panic")
    }
}

impl Scene {
    /// Runs a program's part in its namespace, on a thread beside the runtime.
    pub async fn program<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let programs = self.programs.clone();
        let entered = tokio::task::spawn_blocking(move || programs.run(work).expect("it can be entered"));
        entered.await.expect("the program does what it should")
    }

    /// A capture whose datagrams go to this client; its connections have no exit.
    pub fn capture(&mut self, datagrams: Option<Client>) -> Running {
        self.capture_to(Exit::Stacks(Via::Direct), datagrams, Duration::from_millis(100))
    }

    /// A capture whose connections go to this exit, and have this time to end.
    pub fn capture_to(&mut self, exit: Exit, datagrams: Option<Client>, drain: Duration) -> Running {
        let combination = Combination::default();
        let connection = ConnectionConfig::new(Policies::of(&combination).expect("the default exists"));
        let path_manager = combination.build_path_manager().expect("the default exists");
        let (stack, driver) = Stack::new(StackConfig::new(path_manager)).expect("a stack");
        tokio::spawn(driver);
        let config = CaptureConfig {
            exit,
            connection,
            datagrams: datagrams.map(Way::Server),
            limits: anabranch_proxy::Limits { drain, ..Default::default() },
            held: 64,
            journal: None,
        };
        let device = self.device.take().expect("there is one capture");
        let capture = Capture::new(device, std::slice::from_ref(&stack), config).expect("a capture");
        let (observer, (stop, stopped)) = (capture.observer(), oneshot::channel());
        let task = tokio::spawn(capture.run(async {
            let _ = stopped.await;
            drop(stack);
        }));
        Running { observer, stop, task }
    }

    /// A client connected to a server on this host.
    pub async fn client(&self) -> Client {
        let policy = || build(datagram::TABLE, "duplicate", &Settings::new()).expect("there is one");
        let bind = SocketAddr::from(([127, 0, 0, 1], 4_434));
        let config = ServerConfig {
            bind,
            keys: vec![KEY.into()],
            allow: Arc::new(|_| true),
            policy: Arc::new(policy),
            nameservers: vec![self.resolver],
            limits: Limits::default(),
            journal: None,
        };
        let server = Server::bind(config).expect("the port is free");
        tokio::spawn(server.run(std::future::pending()));
        let config = ClientConfig { server: bind.into(), key: KEY, interfaces: Vec::new(), policy: policy() };
        let (client, work) = Client::start(config).expect("a client");
        tokio::spawn(work);
        while client.state() != ClientState::Connected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client
    }
}

/// An address of the target.
pub fn target(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse::<IpAddr>().expect("an address"), port)
}
