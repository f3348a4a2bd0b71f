//! One environment.

use super::agent::{self, Decides, MOST, Shared};
use super::observation::{Before, Observes};
use super::reward::Reward;
use crate::scenario::Scenario;
use crate::scenario::model::{Heading, Link, LinkRate, Path};
use crate::simulation::{Extras, Simulation};
use anabranch_mptcp::ConnectionInfo;
use anabranch_policy::observation::path_of;
use anabranch_policy::time::Duration;
use anabranch_settings::contender::{Contender, Route};
use anabranch_settings::diagnostic::Diagnostic;
use std::sync::Arc;

/// What an environment simulates.
#[derive(Clone, Debug)]
pub struct Spec {
    pub scenario: Scenario,
    /// Policies of both ends, except the one that the agent replaces.
    pub contender: Contender,
    /// How many connections of the transfer have an agent each; with one agent, it decides for all connections and
    /// observes the first.
    pub agents: usize,
    pub decides: Decides,
    pub observes: Observes,
    pub reward: Reward,
    /// Simulated time of a step.
    pub interval: Duration,
}

impl Spec {
    /// Checks that it can be an environment.
    ///
    /// # Errors
    /// It is an ad-hoc network, downloads, has more than 16 paths, no transfer, or an interval of zero; or the contender
    /// is an oracle or does not use all paths; or it has fewer connections than agents, or these decide what is not a
    /// connection's.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let wrong = |what: &str| Err(Diagnostic::plain(format!("{}: {what}", self.scenario.name)));
        let Scenario { mesh, moving, heading, paths, connections, .. } = &self.scenario;
        if mesh.is_some() || moving.is_some() {
            return wrong("an environment has paths, and no ad-hoc network");
        }
        if *heading != Heading::Upload || *connections == 0 {
            return wrong("an environment needs a transfer by upload");
        }
        if paths.is_empty() || paths.len() > MOST {
            return wrong("an environment has 1 to 16 paths");
        }
        let Contender { name, multipath, route, oracle, .. } = &self.contender;
        if !multipath || *route != Route::All || *oracle {
            return wrong(&format!("an environment's policy is multipath on all paths, and {name} is not"));
        }
        let agents = self.agents;
        if agents == 0 || agents > *connections as usize {
            return wrong(&format!(
                "{agents} agents need as many connections: set 'transfer.connections', which is {connections}"
            ));
        }
        if agents > 1 && self.decides == Decides::PathManager {
            return wrong("a path manager is a host's: several agents decide scheduler or congestion");
        }
        if self.interval.is_zero() || self.interval > self.scenario.duration {
            return wrong("the interval of a step is above 0 and at most the duration");
        }
        Ok(())
    }

    /// Numbers of an agent's action: one per path.
    pub fn actions(&self) -> usize {
        self.scenario.paths.len()
    }

    /// Numbers of an agent's observation.
    pub fn features(&self) -> usize {
        self.observes.count(self.scenario.paths.len())
    }

    /// Sum of the rates of all paths, Mbit/s; of a rate that varies, its mean.
    fn capacity(&self) -> f64 {
        let rate = |link: &Link| match &link.rate {
            LinkRate::Fixed(rate) => rate.bits_per_second() as f64 * 1e-6,
            LinkRate::Trace(trace) => trace.mean_rate().bits_per_second() as f64 * 1e-6,
        };
        let of_path = |path: &Path| path.links.iter().map(rate).fold(f64::INFINITY, f64::min);
        self.scenario.paths.iter().map(of_path).filter(|rate| rate.is_finite()).sum()
    }
}

/// Result of a step, beside the observation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Step {
    pub reward: f64,
    /// The transfer has ended.
    pub terminated: bool,
    /// The scenario's duration is over.
    pub truncated: bool,
}

/// What decides for a connection, and what it saw.
struct Agent {
    shared: Arc<Shared>,
    before: Before,
    /// The least round-trip time until now, ms.
    least_round_trip: f64,
    /// Sum of the rates of all paths, Mbit/s. It does not change, and the mean of a trace needs the whole trace.
    capacity: f64,
}

impl Agent {
    fn new(spec: &Spec) -> Self {
        let paths = spec.actions();
        let shared = Arc::new(Shared::default());
        (0..paths).for_each(|path| shared.act(path, 1.0));
        Self {
            shared,
            before: Before::new(spec.observes, paths),
            least_round_trip: f64::INFINITY,
            capacity: spec.capacity(),
        }
    }

    /// Observes the step that ends now, and gives its reward. `ends` are sender and receiver.
    fn observe(
        &mut self,
        spec: &Spec,
        ends: &[Option<ConnectionInfo>; 2],
        step: Duration,
        observation: &mut [f32],
    ) -> f64 {
        let totals = self.before.observe(ends, step, observation);
        if let [Some(sender), _] = ends {
            let trips = sender.subflows.iter().map(|subflow| subflow.round_trip.min_rtt.as_secs_f64() * 1e3);
            self.least_round_trip = trips.filter(|trip| *trip > 0.0).fold(self.least_round_trip, f64::min);
        }
        let least = if self.least_round_trip.is_finite() { self.least_round_trip } else { 0.0 };
        spec.reward.of(&totals, self.capacity, least)
    }

    fn act(&self, spec: &Spec, sender: Option<&ConnectionInfo>, action: &[f32]) {
        let sanitized = |value: f32| if value.is_finite() { f64::from(value) } else { 0.0 };
        if spec.decides == Decides::Congestion {
            for subflow in sender.iter().flat_map(|sender| &sender.subflows) {
                let path = path_of(subflow.identity.local_address, subflow.identity.remote_address);
                let factor = sanitized(action.get(path).copied().unwrap_or(0.0)).clamp(-1.0, 1.0);
                self.shared.scale_window(subflow.identity.id, factor.exp2());
            }
            return;
        }
        for (path, value) in action.iter().enumerate() {
            self.shared.act(path, sanitized(*value));
        }
    }
}

/// A simulation that is advanced step by step.
pub struct WorldEnvironment {
    spec: Arc<Spec>,
    seed: u64,
    agents: Vec<Agent>,
    simulation: Simulation,
    now: Duration,
}

impl WorldEnvironment {
    /// At the beginning of time; `observations` are what the agents see there.
    ///
    /// # Errors
    /// A policy cannot be built.
    pub fn new(spec: &Arc<Spec>, seed: u64, observations: &mut [f32]) -> Result<Self, Diagnostic> {
        let agents: Vec<Agent> = (0..spec.agents).map(|_| Agent::new(spec)).collect();
        let policies = |agent: &Agent| agent::policies(spec.decides, &agent.shared, spec.interval);
        let extras = match &agents[..] {
            [one] => Extras { own: policies(one), ..Extras::default() },
            all => Extras { own_by_connection: all.iter().map(policies).collect(), ..Extras::default() },
        };
        let paths: Vec<usize> = (0..spec.scenario.paths.len()).collect();
        let simulation = Simulation::new(&spec.scenario, &spec.contender, &paths, seed, &extras)?;
        observations.fill(0.0);
        Ok(Self { spec: Arc::clone(spec), seed, agents, simulation, now: Duration::ZERO })
    }

    /// The seed of its luck.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Hash over all events until now.
    pub fn trace_hash(&mut self) -> u64 {
        self.simulation.trace_hash()
    }

    /// Carries out the agents' actions, advances by an interval, and observes; a result each, in `steps`. Returns whether
    /// the episode has ended.
    pub fn step(&mut self, actions: &[f32], observations: &mut [f32], steps: &mut [Step]) -> bool {
        let spec = Arc::clone(&self.spec);
        let heading = spec.scenario.heading;
        for (connection, (agent, action)) in self.agents.iter().zip(actions.chunks(spec.actions())).enumerate() {
            let sender = (spec.decides == Decides::Congestion).then(|| self.simulation.info(connection, heading));
            agent.act(&spec, sender.as_ref().and_then(|[sender, _]| sender.as_ref()), action);
        }
        let before = self.now;
        self.now = (self.now + spec.interval).min(spec.scenario.duration);
        let terminated = self.simulation.advance(&spec.scenario, self.now);
        let truncated = !terminated && self.now >= spec.scenario.duration;
        let each = observations.chunks_mut(spec.features()).zip(steps);
        for (connection, (agent, (observation, step))) in self.agents.iter_mut().zip(each).enumerate() {
            let ends = self.simulation.info(connection, heading);
            let reward = agent.observe(&spec, &ends, self.now - before, observation);
            *step = Step { reward, terminated, truncated };
        }
        terminated || truncated
    }
}
