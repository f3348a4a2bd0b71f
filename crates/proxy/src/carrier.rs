//! Carries connections whose clients have no socket: the caller names the target of each, and accepts it once the
//! target is reached.

use super::bound::BoundSockets;
use super::control::Control;
use super::counters::{Outcome, ProxyCounters};
use super::failure::Failure;
use super::far::Far;
use super::outbound::{Choose, Outbound, Via};
use super::relay::{Relay, SocketIs};
use super::resolve::connect_to_first;
use super::service::{Journal, Limits, Refused, Service, Tasks};
use super::target::Target;
use anabranch_stack::{Stack, Stream};
use bytes::Bytes;
use core::fmt;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::timeout;

/// Settings of a carrier.
pub struct CarrierConfig {
    /// Where connections go.
    pub exit: Exit,
    /// Called for each connection.
    pub choose: Choose,
    /// Limits on what clients use.
    pub limits: Limits,
    /// Called for each connection that has ended.
    pub journal: Option<Journal>,
}

/// How connections leave this host.
#[derive(Clone)]
pub enum Exit {
    /// Over one of the stacks.
    Stacks(Via),
    /// Over sockets of the kernel, directly to the target.
    Sockets(BoundSockets),
}

/// Carries each connection over one of several stacks.
pub struct Carrier {
    /// The task of each client holds its stack.
    stacks: Vec<Arc<Stack>>,
    outbound: Arc<Outbound>,
    exit: Arc<Exit>,
    tasks: Tasks,
    /// The end was asked for: attempts to reach a target are abandoned.
    ending: watch::Sender<bool>,
}

impl Carrier {
    /// A carrier whose connections go out over one of `stacks` each, of which there is at least one.
    pub fn new(stacks: &[Stack], config: CarrierConfig) -> Self {
        let service = Arc::new(Service::new(config.limits, config.journal));
        let tasks = Tasks::new(Arc::clone(&service));
        let outbound = Outbound { service, choose: config.choose };
        let exit = Arc::new(config.exit);
        let (stacks, ending) = (stacks.iter().cloned().map(Arc::new).collect(), watch::Sender::new(false));
        Self { exit, stacks, outbound: Arc::new(outbound), tasks, ending }
    }

    /// Connects to `target` for a client, passes the result to `begin`, and carries the stream that it returns. Returns
    /// false at the limit of connections: then `begin` is dropped.
    pub fn carry<B>(&mut self, client: impl fmt::Display + Send + 'static, target: Target, begin: B) -> bool
    where
        B: FnOnce(Result<(), Failure>) -> Option<Stream> + Send + 'static,
    {
        let idlest = self.stacks.iter().min_by_key(|stack| Arc::strong_count(stack));
        let (Some(seat), Some(stack)) = (self.tasks.admit(), idlest.map(Arc::clone)) else { return false };
        let (outbound, exit, runtime) = (Arc::clone(&self.outbound), Arc::clone(&self.exit), stack.runtime().clone());
        let mut ending = self.ending.subscribe();
        let ending = async move {
            // The sender lives as long as this task.
            let _ = ending.wait_for(|ending| *ending).await;
        };
        self.tasks.spawn(seat, &runtime, async move {
            let (outcome, up, down) = match &*exit {
                Exit::Stacks(via) => serve(&outbound, via, &stack, &target, begin, ending).await,
                Exit::Sockets(sockets) => serve_over(&outbound, sockets, &target, begin, ending).await,
            };
            outbound.service.ended(outcome, up, down, || format!("{client} -> {target}"));
        });
        true
    }

    /// A handle to query it while it runs.
    pub fn control(&self) -> Control {
        Control::new(&self.outbound.service)
    }

    /// Reaps the tasks of clients that have gone; never completes without one.
    pub async fn reap(&mut self) {
        self.tasks.reap().await;
    }

    /// Lets clients whose target is reached finish for a short time, then ends them; others are told at once that it cannot be
    /// reached. Returns the totals.
    pub async fn drain(self) -> ProxyCounters {
        self.ending.send_replace(true);
        self.tasks.drain().await
    }
}

/// Serves one client from its first byte to its last; how it ended, and the bytes from and to it.
async fn serve(
    outbound: &Outbound,
    via: &Via,
    stack: &Stack,
    target: &Target,
    begin: impl FnOnce(Result<(), Failure>) -> Option<Stream>,
    ending: impl Future<Output = ()>,
) -> (Outcome, u64, u64) {
    // Memory for opening the connection is released once it is connected.
    let Some(connected) = unless(ending, Box::pin(outbound.connect(via, stack, Some(target)))).await else {
        return abandon(begin);
    };
    match connected {
        Ok((far, first)) => {
            let Some(stream) = begin(Ok(())) else { return (Outcome::LeftEarly, 0, 0) };
            // Short writes should be sent at once; if it has ended, that is detected later.
            let _ = stream.set_nodelay(true);
            let service = &*outbound.service;
            let (slots, idle) = (service.slots.clone(), service.limits().idle);
            let mut relay = Relay::new(stream, SocketIs::Client, far, Bytes::new(), slots, idle);
            relay.push_down(first);
            service.carry(relay).await
        }
        Err(Refused { failure, outcome }) => {
            begin(Err(failure));
            (outcome, 0, 0)
        }
    }
}

/// As [`serve`], with a socket of the kernel's to the target.
async fn serve_over(
    outbound: &Outbound,
    sockets: &BoundSockets,
    target: &Target,
    begin: impl FnOnce(Result<(), Failure>) -> Option<Stream>,
    ending: impl Future<Output = ()>,
) -> (Outcome, u64, u64) {
    let service = &*outbound.service;
    let connect = async {
        let addresses = service.resolver.resolve(target).await?;
        connect_to_first(addresses, |address| sockets.connect(address)).await
    };
    let Some(connected) = unless(ending, timeout(service.limits().connect, Box::pin(connect))).await else {
        return abandon(begin);
    };
    match connected.unwrap_or(Err(Failure::TimedOut)) {
        Ok(socket) => {
            let Some(stream) = begin(Ok(())) else { return (Outcome::LeftEarly, 0, 0) };
            let _ = stream.set_nodelay(true);
            let (slots, idle) = (service.slots.clone(), service.limits().idle);
            let relay = Relay::new(socket, SocketIs::Target, Far::Plain(stream), Bytes::new(), slots, idle);
            let (outcome, from_target, to_target) = service.carry(relay).await;
            (outcome, to_target, from_target)
        }
        Err(failure) => {
            begin(Err(failure));
            (Refused::from(failure).outcome, 0, 0)
        }
    }
}

/// The outcome of `work`, unless `ending` comes first.
async fn unless<T>(ending: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        outcome = work => Some(outcome),
        () = ending => None,
    }
}

/// Tells a client that its target is not reached any more. It may have gone without waiting.
fn abandon(begin: impl FnOnce(Result<(), Failure>) -> Option<Stream>) -> (Outcome, u64, u64) {
    begin(Err(Failure::HostUnreachable));
    (Outcome::LeftEarly, 0, 0)
}
