//! A run that is watched.

use crate::catalogue::{json, read};
use crate::change::Quantity;
use crate::frame::{ConnectionFrame, Frame, LaneFrame, SubflowFrame};
use crate::lanes::{Lane, add_packets, fixed_rate, lanes_of, links_of, slowest};
use crate::mesh::{self, Looked};
use crate::running::Running;
use crate::witness::Witness;
use anabranch_lab::experiment::path_sets;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::scenario::model::{Direction, Path};
use anabranch_lab::simulation::{AdHoc, Extras, OwnPolicies, as_it_meets, connection};
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::contender::{Contender, Route};
use anabranch_sim::{InterfaceId, LinkId};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why there are no nodes.
const NO_MESH: &str = "the scenario is no ad-hoc network: it has paths";

/// One policy in one scenario with one seed.
pub struct Playground {
    scenario: Scenario,
    run: Running,
    witness: Witness,
    lanes: Vec<Lane>,
    links: Vec<LinkId>,
    /// The client's interfaces, and their addresses with the indices of their paths.
    interfaces: Vec<InterfaceId>,
    addresses: Vec<(IpAddr, usize)>,
    looked: Looked,
    ended: bool,
}

impl Playground {
    /// A run at its beginning. A contender that uses its best path gets the one with the highest rate.
    ///
    /// # Errors
    /// What is wrong with the scenario, or that it has no such policy.
    pub fn new(text: &str, policy: &str, seed: u64) -> Result<Self, String> {
        let scenario = read(text)?;
        let contender = scenario.policies.iter().find(|contender| contender.name == policy).ok_or_else(|| {
            let known: Vec<&str> = scenario.policies.iter().map(|contender| contender.name.as_str()).collect();
            format!("the scenario has no policy '{policy}': it has {}", known.join(", "))
        })?;
        let scenario = as_it_meets(&scenario, contender).into_owned();
        let contender = contender.clone();
        let paths = match contender.route {
            Route::Best => scenario.paths.iter().enumerate().max_by_key(|(_, path)| rate(path)).map(|(at, _)| vec![at]),
            _ => path_sets(&scenario, &contender).into_iter().next(),
        };
        let paths = paths.unwrap_or_default();
        let witness = Witness::default();
        let extras = Extras { own: watched(&witness, &scenario, &contender), ..Extras::default() };
        let mut run = Running::new(&scenario, &contender, &paths, seed, &extras).map_err(|error| error.to_string())?;
        let (lanes, links) = match &run {
            Running::Paths(run) => (lanes_of(&scenario, &paths, seed), links_of(run.lines())),
            Running::AdHoc(_) => (Vec::new(), Vec::new()),
        };
        let interfaces = match &run {
            Running::Paths(run) => run.lines().interfaces.clone(),
            Running::AdHoc(run) => run.lanes().to_vec(),
        };
        let world = run.world();
        world.mark_repeats();
        let addresses = interfaces.iter().map(|interface| world.address(*interface)).zip(paths).collect();
        let looked = Looked::default();
        Ok(Self { scenario, run, witness, lanes, links, interfaces, addresses, looked, ended: false })
    }

    /// In seconds.
    pub fn now(&mut self) -> f64 {
        self.run.world().now().since(Instant::ZERO).as_secs_f64()
    }

    /// The longest that it can last, in seconds.
    pub fn duration(&self) -> f64 {
        self.run.duration(&self.scenario).as_secs_f64()
    }

    /// Whether the scenario, or its transfers, have ended.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Advances by so many seconds, at most to the end. Others than positive ones do nothing.
    pub fn advance(&mut self, seconds: f64) {
        if self.ended || seconds.is_nan() || seconds <= 0.0 {
            return;
        }
        let to = Duration::from_secs_f64((self.now() + seconds).min(self.duration()));
        self.ended = self.run.advance(&self.scenario, to);
    }

    /// Advances to the next delivery of a packet.
    pub fn step(&mut self) {
        self.ended = self.ended || self.run.step(&self.scenario);
    }

    /// Over all events so far, in hexadecimal. At the end, that of the command for the same scenario, policy and seed, if
    /// nothing was changed.
    pub fn trace_hash(&mut self) -> String {
        format!("{:016x}", self.run.trace_hash())
    }

    /// The lanes, as JSON.
    pub fn lanes(&self) -> String {
        json(&self.lanes)
    }

    /// Four numbers for each packet under way: index of its lane, position from 0 to 1, bytes, and 0 for data, 1 for an
    /// acknowledgement, 2 for other traffic, 3 for data that was sent before.
    pub fn packets(&mut self) -> Vec<f32> {
        let world = self.run.world();
        world.settle();
        let mut packets = Vec::new();
        for (at, (lane, link)) in self.lanes.iter().zip(&self.links).enumerate() {
            add_packets(world, &self.interfaces, *link, (at, lane), &mut packets);
        }
        packets
    }

    /// Queues, the connection and its subflows, as JSON.
    pub fn frame(&mut self) -> String {
        let time = self.now();
        let world = self.run.world();
        world.settle();
        let lanes = self.links.iter().map(|link| LaneFrame::of(&world.link_view(*link))).collect();
        let [sender, receiver] = self.run.info(&self.scenario);
        let connection = sender.as_ref().map(|sender| ConnectionFrame::of(sender, receiver.as_ref()));
        // Of connections without lanes all is one path.
        let other = matches!(self.run, Running::AdHoc(_)).then_some(0);
        let of = |info| SubflowFrame::of(info, &self.addresses, other);
        let subflows = sender.iter().flat_map(|sender| &sender.subflows).map(of).collect();
        let (goodput_bytes, other_bytes) = self.run.delivered();
        json(&Frame { time, lanes, goodput_bytes, other_bytes, connection, subflows })
    }

    /// The latest decisions of the schedulers, the newest last, as JSON.
    pub fn decisions(&self) -> String {
        json(&self.witness.choices())
    }

    /// The latest actions of the path managers, the newest last, as JSON.
    pub fn actions(&self) -> String {
        json(&self.witness.actions())
    }

    /// Changes a path, by its index among the scenario's, from now on.
    ///
    /// # Errors
    /// What is wrong with the path, the quantity or the value.
    pub fn change(&mut self, path: usize, quantity: &str, value: f64) -> Result<(), String> {
        let quantity = Quantity::named(quantity)?;
        quantity.check(value)?;
        if matches!(self.run, Running::AdHoc(_)) {
            return Err("the lanes of an ad-hoc network are not changed: move its nodes".to_owned());
        }
        let changed = self.scenario.paths.get(path).ok_or_else(|| format!("there is no path {path}"))?;
        let at = slowest(changed);
        let losing = changed.links.get(at).map_or(Direction::Both, |link| link.loss_direction);
        let world = self.run.world();
        let now = world.now();
        for (lane, link) in self.lanes.iter_mut().zip(&self.links) {
            if lane.path == Some(path) && quantity.concerns(lane, at, losing) {
                let change = quantity.change(lane, *link, value);
                world.schedule(now, change);
            }
        }
        Ok(())
    }

    /// The ad-hoc network, as JSON: nodes with their roles, links with their forecasts, the ways of packets, and the next hops of
    /// the chosen node.
    ///
    /// # Errors
    /// The scenario has paths.
    pub fn mesh(&mut self) -> Result<String, String> {
        let looked = self.looked;
        let Running::AdHoc(run) = &mut self.run else { return Err(NO_MESH.to_owned()) };
        Ok(mesh::mesh(&self.scenario, run, looked))
    }

    /// Chooses the node whose next hops are told, or none.
    ///
    /// # Errors
    /// There is no such node.
    pub fn choose_node(&mut self, node: Option<u32>) -> Result<(), String> {
        let run = self.ad_hoc()?;
        node.map(|node| mesh::node(run.world(), node)).transpose()?;
        self.looked.node = node;
        Ok(())
    }

    /// Chooses the nodes between which ways are told, where the network has no lanes.
    ///
    /// # Errors
    /// There is no such node, or they are the same.
    pub fn choose_ends(&mut self, from: u32, to: u32) -> Result<(), String> {
        let run = self.ad_hoc()?;
        if mesh::node(run.world(), from)? == mesh::node(run.world(), to)? {
            return Err("a way leads from one node to another".to_owned());
        }
        self.looked.ends = Some((from, to));
        Ok(())
    }

    /// Puts a node to a place, in metres, or to the nearest in the area, and holds it there.
    ///
    /// # Errors
    /// There is no such node, or the place is no number.
    pub fn move_node(&mut self, node: u32, x: f64, y: f64) -> Result<(), String> {
        let run = self.ad_hoc()?;
        let (node, place) = (mesh::node(run.world(), node)?, mesh::place(run, x, y)?);
        run.world().hold_node(node, place);
        Ok(())
    }

    /// Lets go of a node: it is where it would be.
    ///
    /// # Errors
    /// There is no such node.
    pub fn release_node(&mut self, node: u32) -> Result<(), String> {
        let run = self.ad_hoc()?;
        let node = mesh::node(run.world(), node)?;
        run.world().release_node(node);
        Ok(())
    }

    fn ad_hoc(&mut self) -> Result<&mut AdHoc, String> {
        match &mut self.run {
            Running::AdHoc(run) => Ok(run),
            Running::Paths(_) => Err(NO_MESH.to_owned()),
        }
    }
}

/// The rate of a path's slowest link in bits per second, that of a trace being none.
fn rate(path: &Path) -> u64 {
    path.links.iter().map(|link| fixed_rate(link).unwrap_or(0)).min().unwrap_or(0)
}

/// The contender's scheduler and path managers, with a witness.
fn watched(witness: &Witness, scenario: &Scenario, contender: &Contender) -> OwnPolicies {
    let scheduler = witness.scheduler(connection(scenario, contender).policies.scheduler);
    let (witness, policies, made) = (witness.clone(), contender.policies.clone(), AtomicUsize::new(0));
    let in_mesh = scenario.mesh.is_some();
    let path_manager = move || {
        // The client's is made first, in an ad-hoc network the server's.
        let is_client = (made.fetch_add(1, Ordering::Relaxed) == 0) != in_mesh;
        let end = if is_client { "the client" } else { "the server" };
        witness.path_manager(end, policies.build_path_manager().expect("the combination was checked"))
    };
    OwnPolicies { scheduler: Some(scheduler), path_manager: Some(Arc::new(path_manager)), ..OwnPolicies::default() }
}

#[cfg(test)]
mod tests;
