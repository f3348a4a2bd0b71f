//! A capture: its own stack for packets from the device, and the tasks that serve its connections and datagrams.

use crate::counters::{CaptureCounters, Drops, Shared};
use crate::datagrams::{DNS, Datagrams};
use crate::dns::{self, Questions};
use crate::flows::FlowReport;
use crate::tcp;
use anabranch_datagram::Way;
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::combination::Combination;
use anabranch_proxy::{Carrier, CarrierConfig, Control, Exit, Journal, Limits};
use anabranch_stack::{Device, Gateway, Stack, StackConfig};
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use tokio::task::JoinHandle;

/// Settings of a capture.
pub struct CaptureConfig {
    /// Where connections go.
    pub exit: Exit,
    /// Settings of the outgoing connections.
    pub connection: ConnectionConfig,
    /// Carries UDP, ICMP echo and DNS; without it programs are told that there is no route.
    pub datagrams: Option<Way>,
    /// Limits on the resources of programs.
    pub limits: Limits,
    /// Most SYNs that wait for their target at a time.
    pub held: usize,
    /// Called for each connection that has ended.
    pub journal: Option<Journal>,
}

/// A capture with its device.
pub struct Capture {
    stack: Stack,
    gateway: Arc<Gateway>,
    driver: JoinHandle<io::Result<()>>,
    carrier: Carrier,
    /// Settings of the programs' connections.
    near: ConnectionConfig,
    datagrams: Option<Way>,
    shared: Arc<Shared>,
}

/// Observes a capture. Clones observe the same capture.
#[derive(Clone)]
pub struct CaptureObserver {
    control: Control,
    shared: Arc<Shared>,
    /// The device is gone with the capture.
    gateway: Weak<Gateway>,
}

impl CaptureObserver {
    /// The open connections, and the counters.
    pub fn connections(&self) -> &Control {
        &self.control
    }

    /// At most `limit` recent flows of datagrams, those with most bytes first, and the number of all flows.
    pub fn flows(&self, limit: usize) -> (Vec<FlowReport>, usize) {
        self.shared.flows(limit)
    }

    /// What was dropped of what programs sent beside TCP.
    pub fn drops(&self) -> Drops {
        let overflowed = self.gateway.upgrade().map_or(0, |gateway| gateway.dropped_foreign());
        self.shared.drops(overflowed)
    }
}

impl Capture {
    /// Creates a capture that terminates the connections in the packets of `device` (see [`super::open_device`]) and
    /// carries each over one of `stacks`. There is at least one stack unless connections leave over sockets. Call this
    /// within a single-threaded runtime.
    ///
    /// # Errors
    /// If the operating system has no descriptors or random numbers left.
    pub fn new(device: OwnedFd, stacks: &[Stack], config: CaptureConfig) -> io::Result<Self> {
        let combination = Combination::default();
        let path_manager = combination.build_path_manager().map_err(io::Error::other)?;
        let mut stack_config = StackConfig::new(path_manager);
        stack_config.endpoint.max_held_syns = config.held;
        let (stack, driver) = Stack::new(stack_config)?;
        let gateway = Arc::new(stack.gateway(Device::opened_tun(device)?));
        let near = tcp::near(&combination)?;
        let (exit, limits, journal) = (config.exit, config.limits, config.journal);
        let connection = config.connection;
        let choose = Box::new(move |_: &_| connection.clone());
        let stacks = if stacks.is_empty() { std::slice::from_ref(&stack) } else { stacks };
        let carrier = Carrier::new(stacks, CarrierConfig { exit, choose, limits, journal });
        let (datagrams, shared) = (config.datagrams, Arc::default());
        Ok(Self { driver: tokio::spawn(driver), stack, gateway, carrier, near, datagrams, shared })
    }

    /// An observer that can be used while the capture runs.
    pub fn observer(&self) -> CaptureObserver {
        let (shared, gateway) = (Arc::clone(&self.shared), Arc::downgrade(&self.gateway));
        CaptureObserver { control: self.carrier.control(), shared, gateway }
    }

    /// Serves until `stop` completes or the device is gone; open connections then get a short time to end. Returns the
    /// totals.
    pub async fn run(self, stop: impl Future<Output = ()>) -> CaptureCounters {
        let Self { stack, gateway, driver, mut carrier, near, datagrams: way, shared } = self;
        let questions = Arc::<Questions>::default();
        let datagrams = Datagrams {
            gateway: Arc::clone(&gateway),
            way: way.clone(),
            questions: Arc::clone(&questions),
            shared: Arc::clone(&shared),
        };
        let datagrams = tokio::spawn(datagrams.run());
        let mut stop = Box::pin(stop);
        loop {
            let asked = tokio::select! {
                biased;
                () = &mut stop => break,
                asked = gateway.asked() => asked,
                () = carrier.reap() => continue,
            };
            let Some(asked) = asked else { break };
            match &way {
                Some(way) if asked.to().port() == DNS => dns::serve(asked, &near, way, &questions, &shared),
                _ => tcp::serve(asked, &mut carrier, &near, &gateway, &shared),
            }
        }
        let connections = carrier.drain().await;
        let engine = stack.counters().endpoint;
        datagrams.abort();
        stack.shutdown();
        // The driver's result no longer matters.
        let _ = driver.await;
        shared.totals(connections, &engine, gateway.dropped_foreign())
    }
}
