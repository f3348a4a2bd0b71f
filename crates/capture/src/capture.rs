//! A capture: a stack of its own for what comes from the device, and who serves its connections and packets.

use crate::counters::{CaptureCounters, Shared};
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
use std::sync::Arc;
use tokio::task::JoinHandle;

/// What can be chosen about a capture.
pub struct CaptureConfig {
    /// Where connections go.
    pub exit: Exit,
    /// What connections that lead out begin with.
    pub connection: ConnectionConfig,
    /// Who carries what is not TCP; without it programs are told that there is no way for that.
    pub datagrams: Option<Way>,
    /// What keeps programs from taking everything.
    pub limits: Limits,
    /// Most SYNs that wait for their target at a time.
    pub held: usize,
    /// Who is told of each connection.
    pub journal: Option<Journal>,
}

/// A capture that has its device.
pub struct Capture {
    stack: Stack,
    gateway: Arc<Gateway>,
    driver: JoinHandle<io::Result<()>>,
    carrier: Carrier,
    /// What connections of programs are accepted with.
    near: ConnectionConfig,
    datagrams: Option<Way>,
    shared: Arc<Shared>,
}

/// Sees what a capture carries. Clones are of the same.
#[derive(Clone)]
pub struct CaptureObserver {
    control: Control,
    shared: Arc<Shared>,
}

impl CaptureObserver {
    /// Connections: those that are carried now, and what was counted.
    pub fn connections(&self) -> &Control {
        &self.control
    }

    /// Flows of datagrams that were used lately, at most `limit`, those with most bytes first, and how many there are.
    pub fn flows(&self, limit: usize) -> (Vec<FlowReport>, usize) {
        self.shared.flows(limit)
    }
}

impl Capture {
    /// Takes the packets of `device`, which was opened with [`super::open_device`], and sends what they carry out over one of `stacks`,
    /// of which there is at least one unless connections leave over sockets. To be called within a runtime with one thread.
    ///
    /// # Errors
    /// If the operating system has no descriptor or no random numbers left.
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

    /// To see what is carried while it runs.
    pub fn observer(&self) -> CaptureObserver {
        CaptureObserver { control: self.carrier.control(), shared: Arc::clone(&self.shared) }
    }

    /// Serves until `stop` completes or the device is gone, and then for a moment those who are connected. Gives the totals.
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
        // How it ended is of no concern any more.
        let _ = driver.await;
        shared.totals(connections, &engine, gateway.dropped_foreign())
    }
}
