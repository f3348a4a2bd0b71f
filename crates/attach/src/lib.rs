//! Attaches the stack to a real host's uplinks, and detaches it without leftovers.

mod attached;
mod attachment;
mod barred;
pub mod blocking;
mod default_route;
mod ending;
mod follow;
mod group;
mod lane;
mod lock;
mod tunnels;
mod uplink_choice;
mod uplinks;
mod works;

pub use anabranch_host::{DefaultRoute, HostError, Ipv6, Plan, ServerAddresses};
pub use attached::{Attached, PathObserver};
pub use attachment::Worker;
pub use attachment::{AttachedPath, Attachment, HostOptions, Local, Tunnels, Uplinks};
pub use default_route::{LedRoute, Restorations, end_kill_switch, plan_default_route};
pub use ending::{HangUps, asked_again, asked_to_end, listen_for_hang_ups, listen_for_the_end};

use anabranch_host::{Prospect, ReservedPorts, Setup, Watch, prospect};
use anabranch_mptcp::Share;
use anabranch_stack::{Driver, Stack, StackConfig};
use attached::Ground;
use barred::Barred;
use group::Group;
use lane::Ids;
use lock::lock;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use uplink_choice::choose;
use uplinks::Following;
use works::Works;

/// The steps of an attachment, for display; nothing is changed, and no privilege is needed.
///
/// # Errors
/// [`HostError`], as for [`attach`].
pub fn plan(attachment: &Attachment) -> Result<Plan, HostError> {
    ReservedPorts::take(attachment.ports())?;
    planned(attachment, &prospect(attachment.root(), attachment.needs_filter())?)
}

fn planned(attachment: &Attachment, prospect: &Prospect) -> Result<Plan, HostError> {
    match attachment {
        Attachment::Local(local) => Plan::local(prospect.layout, local.paths, local.options.mtu.unwrap_or(1_500)),
        Attachment::Uplinks(uplinks) => {
            let interfaces = choose(&uplinks.interfaces, &prospect.snapshot)?;
            let mtu = uplinks.options.mtu;
            Plan::uplinks(prospect.layout, &interfaces, &uplinks.ports, mtu, &prospect.others)
        }
        Attachment::Tunnels(_) | Attachment::TunnelServer(_) => Ok(Plan::nothing(prospect.layout)),
    }
}

/// Sets up the host, and starts the stack's event loop as a task. Everything belongs to the network namespace of the
/// calling thread. Call this within a single-threaded runtime.
///
/// # Errors
/// [`HostError`]; all changes are then undone.
pub async fn attach(attachment: &Attachment, config: StackConfig) -> Result<Attached, HostError> {
    attach_workers(attachment, vec![Worker { runtime: Handle::current(), config }]).await
}

/// Like [`attach`], with a stack per worker (at least one) whose event loop is a task of the worker's runtime. Together
/// they are one host. The runtimes are single-threaded, in the network namespace of the calling thread.
///
/// # Errors
/// As for [`attach`].
pub async fn attach_workers(attachment: &Attachment, workers: Vec<Worker>) -> Result<Attached, HostError> {
    match attachment {
        Attachment::Local(_) | Attachment::Uplinks(_) => attach_to_host(attachment, workers),
        Attachment::Tunnels(tunnels) => tunnels::attach(tunnels, workers).map(over_tunnels),
        Attachment::TunnelServer(bind) => tunnels::attach_server(*bind, workers).map(over_tunnels),
    }
}

/// A stack per worker, and their event loops.
type Started = (Vec<Stack>, Vec<Driver>);

/// Creates stacks with the same addresses but separate tokens and ports.
fn start(workers: Vec<Worker>) -> io::Result<Started> {
    let count = workers.len() as u32;
    let make = |(index, Worker { runtime, config }): (u32, Worker)| {
        let _inside = runtime.enter();
        Stack::new(config.share(Share { index, count }))
    };
    let made = (0..count).zip(workers).map(make).collect::<io::Result<Vec<_>>>()?;
    Ok(made.into_iter().unzip())
}

/// Spawns each event loop in its stack's runtime.
fn spawn(stacks: &[Stack], drivers: Vec<Driver>) -> Vec<JoinHandle<io::Result<()>>> {
    stacks.iter().zip(drivers).map(|(stack, driver)| stack.runtime().spawn(driver)).collect()
}

fn attach_to_host(attachment: &Attachment, workers: Vec<Worker>) -> Result<Attached, HostError> {
    let ports = ReservedPorts::take(attachment.ports())?;
    let (setup, directory, prospect) = Setup::begin(attachment.root(), attachment.needs_filter())?;
    // From here on, dropping `works` undoes the recorded steps, and takes the directory's lock for that: ours must be
    // released first.
    let (stacks, drivers) = start(workers).map_err(HostError::system("start the stack"))?;
    let stack = Group::new(stacks.clone());
    let mut works = Works { stack: stack.clone(), setup, paths: Vec::new(), ids: Ids::default() };
    let outcome = planned(attachment, &prospect).and_then(|plan| {
        plan.steps.iter().try_for_each(|step| works.carry_out(step, &plan.paths))?;
        Ok(plan)
    });
    drop(directory);
    let plan = outcome?;
    let barred = Barred::default();
    let following = match attachment {
        Attachment::Uplinks(uplinks) => {
            let following = Following { uplinks: uplinks.clone(), layout: plan.layout, barred: barred.clone() };
            // The watch starts before the last look, so that no change is missed.
            let watch = Watch::with_rules().map_err(HostError::system("watch the network over rtnetlink"))?;
            following.adjust(&mut works)?;
            Some((following, watch))
        }
        _ => {
            let Works { paths, ids, .. } = &mut works;
            paths.iter_mut().for_each(|lane| lane.open_to_the_host(&stack, plan.layout, ids));
            None
        }
    };
    let works = Arc::new(Mutex::new(works));
    let follower = following.map(|(following, watch)| {
        let (works, barred) = (Arc::clone(&works), barred.listen());
        tokio::spawn(async move {
            follow::follow(watch, barred, move || following.adjust(&mut lock(&works))).await;
        })
    });
    let ground = Ground::Host { works, layout: plan.layout, _ports: ports };
    let followers = follower.into_iter().collect();
    Ok(Attached { drivers: spawn(&stacks, drivers), stacks, followers, ground, barred })
}

fn over_tunnels(opened: tunnels::Opened) -> Attached {
    let tunnels::Opened { stacks, drivers, followers, lanes, barred } = opened;
    Attached { drivers: spawn(&stacks, drivers), stacks, followers, ground: Ground::Tunnels(lanes), barred }
}
