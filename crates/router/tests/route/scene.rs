//! Running routers in namespaces, and queries of them.

use anabranch_emulate::{AntennaId, ChannelModel, Ether, Mesh, MeshConfig};
use anabranch_policy::time::Duration;
use anabranch_router::{ConfigRead, Family, MeshInterface, Question, RouteConfig, RouteDaemon, RouteError, TABLE, ask};
use anabranch_routing::InterfaceKind;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_system::Namespace;
use serde_json::Value;
use std::ffi::CStr;
use std::process::Command;
use std::str::FromStr;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

/// Timeout of any operation.
pub const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);

/// The name of the threads in which routers run.
pub const ROUTER: &CStr = c"a-router";

/// The value of an environment variable, if it has one of this type.
pub fn variable<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A router on its own thread in a namespace.
pub struct Running {
    namespace: Namespace,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), RouteError>>>,
}

impl Running {
    pub fn start(namespace: &Namespace, config: RouteConfig) -> Self {
        Self::start_telling(namespace, config, |news| eprintln!("a router: {news}"))
    }

    /// The same, with a listener for reports of rejected packets.
    pub fn start_telling(namespace: &Namespace, config: RouteConfig, tell: impl FnMut(&str) + Send + 'static) -> Self {
        Self::start_following(namespace, config, tell, unbounded_channel().1)
    }

    /// The same, with configurations that replace the first.
    pub fn start_following(
        namespace: &Namespace,
        config: RouteConfig,
        tell: impl FnMut(&str) + Send + 'static,
        news: UnboundedReceiver<ConfigRead>,
    ) -> Self {
        let (end, ended) = oneshot::channel();
        let inside = namespace.clone();
        let work = move || {
            let outcome = inside.run(|| {
                nix::sys::prctl::set_name(ROUTER).expect("a short name");
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async {
                    let daemon =
                        RouteDaemon::start(config).await.inspect_err(|error| eprintln!("a router: {error}"))?;
                    daemon
                        .telling(tell)
                        .following(news)
                        .run(async {
                            // A dropped sender ends the router too.
                            let _ = ended.await;
                        })
                        .await
                })
            });
            outcome.expect("the namespace can be entered")
        };
        let thread = Some(std::thread::spawn(work));
        Self { namespace: namespace.clone(), end: Some(end), thread }
    }

    /// Stops it normally.
    pub fn stop(mut self) -> Result<(), RouteError> {
        drop(self.end.take());
        self.thread.take().map_or(Ok(()), |thread| thread.join().expect("the router does not panic"))
    }

    /// The answer to a query; null while the router is not running yet.
    pub fn ask(&self, question: Question) -> Value {
        let asked = self.namespace.run(|| ask(TABLE, question)).expect("the namespace can be entered");
        let ended = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        asked.unwrap_or_else(|error| if ended { format!("it has ended; {error}").into() } else { Value::Null })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The test is already failing.
            let _ = thread.join();
        }
    }
}

/// The settings of the paper and of the measurements compared: Hello 1 s, dead 3 s, 2HopRefresh 3 (or
/// `ANABRANCH_2HOP_REFRESH`), full LSAs, one address family.
pub fn config(family: Family, channels: usize) -> RouteConfig {
    let mut config = RouteConfig { families: vec![family], keep_settings: true, ..RouteConfig::default() };
    for channel in 0..channels {
        let name = anabranch_emulate::mesh::device(channel);
        config.interfaces.push(MeshInterface { name, point_to_point: false, cost: None });
    }
    config.manet.hello_interval = Duration::from_secs(1);
    config.manet.router_dead_interval = Duration::from_secs(3);
    if let InterfaceKind::Manet(manet) = &mut config.manet.kind {
        let refresh = variable("ANABRANCH_2HOP_REFRESH");
        manet.two_hop_refresh = refresh.unwrap_or(3);
        manet.lsa_fullness = LsaFullness::Full;
    }
    config
}

/// The paper's mesh with a router in each node.
pub struct Scene {
    // Declared first: routers must end before their network.
    pub routers: Vec<Running>,
    pub mesh: Mesh,
    pub ether: Ether,
}

impl Scene {
    pub fn new(channels: Vec<ChannelModel>, config: &RouteConfig) -> Self {
        Self::of(&MeshConfig::figure_8(channels), config)
    }

    pub fn of(mesh: &MeshConfig, config: &RouteConfig) -> Self {
        let (mesh, air, ends) = Mesh::new(mesh).expect("namespaces were there a moment ago");
        let ether = Ether::start(air, ends, None).expect("a thread");
        let routers = mesh.nodes().iter().map(|node| Running::start(&node.namespace, config.clone())).collect();
        Self { routers, mesh, ether }
    }

    /// The namespace of a node, from 1 for M1.
    pub fn node(&self, number: usize) -> &Namespace {
        &self.mesh.nodes()[number - 1].namespace
    }

    fn antenna(&self, node: usize, channel: usize) -> AntennaId {
        self.mesh.nodes()[node - 1].antennas[channel]
    }

    /// Sets the loss between two nodes on a channel, in both directions; `None` disconnects them.
    pub fn set_link(&self, one: usize, other: usize, channel: usize, loss: Option<f64>) {
        let (one, other) = (self.antenna(one, channel), self.antenna(other, channel));
        self.ether.with(|air| {
            air.set_link(one, other, loss);
            air.set_link(other, one, loss);
        });
    }

    /// The output of a command in a node.
    pub fn output(&self, node: usize, words: &str) -> String {
        let run = || {
            let mut words = words.split_whitespace();
            let output = Command::new(words.next().expect("a program")).args(words).output().expect("the program runs");
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        };
        self.node(node).run(run).expect("the namespace can be entered")
    }

    /// The next hops of a node's kernel to an IPv4 address of the mesh, as the last byte of their addresses.
    pub fn next_hops(&self, node: usize, to: &str) -> Vec<u8> {
        let text = self.output(node, &format!("ip route show table {TABLE} {to}"));
        let mut words = text.split_whitespace();
        let mut hops = Vec::new();
        while let Some(word) = words.next() {
            if word == "via" {
                let address = words.next().unwrap_or_default();
                let address = if address == "inet6" { words.next().unwrap_or_default() } else { address };
                hops.extend(address.rsplit(['.', ':']).next().and_then(|last| last.parse::<u8>().ok()));
            }
        }
        hops.sort_unstable();
        hops
    }
}

/// Waits until `look` succeeds; panics with its last error.
pub fn wait_for<T: std::fmt::Debug>(what: &str, mut look: impl FnMut() -> Result<(), T>) {
    let until = Instant::now() + DEADLINE;
    loop {
        match look() {
            Ok(()) => return,
            Err(last) if Instant::now() > until => panic!("{what}: not in {DEADLINE:?}; last {last:?}"),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
        }
    }
}

/// Compares two values, for [`wait_for`].
pub fn same<T: PartialEq>(found: T, wanted: T) -> Result<(), T> {
    if found == wanted { Ok(()) } else { Err(found) }
}
