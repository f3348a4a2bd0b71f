//! Policies whose decisions come from outside, once per step.

use crate::simulation::OwnPolicies;
use anabranch_policy::combination::Combination;
use anabranch_policy::congestion::{Ack, Congestion, CongestionControl, CongestionEvent, Start};
use anabranch_policy::ids::{SubflowId, SubflowMap};
use anabranch_policy::observation::path_of;
use anabranch_policy::path_manager::{Measurements, PathAction, PathEvent, PathManager};
use anabranch_policy::scheduler::{Chunk, Decision, Scheduler, Shares};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Paths and subflows that an agent can tell apart.
pub const MOST: usize = 16;
/// Limits of a window that an agent sets, segments.
const WINDOW: (u64, u64) = (2, 20_000);

/// Which policy the agent replaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// Nothing: the policies of the contender decide, and actions are ignored.
    Nothing,
    /// The scheduler. Action: a weight of 0 to 1 per path. New data is divided in proportion to the weights among the
    /// subflows with room; weight 0 excludes a path as long as another one is preferred (not a
    /// backup, not stale).
    Scheduler,
    /// The congestion control. Action: per path, the logarithm to base 2 of the factor of the congestion window, -1 to
    /// 1; 0 keeps it.
    Congestion,
    /// The path manager. Action: per path, whether it may carry new data (above 0.5) or is suspended; the last one in
    /// use stays.
    PathManager,
}

impl FromStr for Decides {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "nothing" => Ok(Self::Nothing),
            "scheduler" => Ok(Self::Scheduler),
            "congestion" => Ok(Self::Congestion),
            "path_manager" => Ok(Self::PathManager),
            _ => Err(format!("'{name}' is none of nothing, scheduler, congestion, path_manager")),
        }
    }
}

/// Numbers that the environment and its policies share.
#[derive(Debug, Default)]
pub struct Shared {
    /// The action, by path.
    actions: [Number; MOST],
    /// Congestion windows in bytes, by subflow.
    windows: [AtomicU64; MOST],
    /// Segment sizes in bytes, by subflow; zero: there is no such subflow.
    sizes: [AtomicU64; MOST],
}

/// A number that several threads may use.
#[derive(Debug, Default)]
struct Number(AtomicU64);

impl Number {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

impl Shared {
    /// Sets the action of a path.
    pub fn act(&self, path: usize, value: f64) {
        if let Some(action) = self.actions.get(path) {
            action.set(value);
        }
    }

    fn action(&self, path: usize) -> f64 {
        self.actions.get(path).map_or(0.0, Number::get)
    }

    /// Multiplies the window of a subflow.
    pub fn scale_window(&self, subflow: SubflowId, factor: f64) {
        let place = subflow.0 as usize;
        let (Some(window), Some(size)) = (self.windows.get(place), self.sizes.get(place)) else { return };
        let (bytes, size) = (window.load(Ordering::Relaxed), size.load(Ordering::Relaxed));
        if size > 0 {
            let scaled = (bytes as f64 * factor) as u64;
            window.store(scaled.clamp(WINDOW.0 * size, WINDOW.1 * size), Ordering::Relaxed);
        }
    }
}

/// The agent in place of the policy that it decides.
pub fn policies(decides: Decides, shared: &Arc<Shared>, interval: Duration) -> OwnPolicies {
    let mut own = OwnPolicies::default();
    let shared = Arc::clone(shared);
    match decides {
        Decides::Nothing => {}
        Decides::Scheduler => {
            own.scheduler =
                Some(Arc::new(move || Box::new(Weights { shared: Arc::clone(&shared), shares: Shares::default() })));
        }
        Decides::Congestion => {
            own.congestion =
                Some(Arc::new(move || Box::new(Windows { shared: Arc::clone(&shared), present: SubflowMap::new() })))
        }
        Decides::PathManager => {
            let inner = || Combination::default().build_path_manager().expect("the default combination is valid");
            own.path_manager =
                Some(Arc::new(move || Box::new(Uses { inner: inner(), shared: Arc::clone(&shared), interval })));
        }
    }
    own
}

/// Divides new data by the weights of the action.
struct Weights {
    shared: Arc<Shared>,
    shares: Shares,
}

impl Scheduler for Weights {
    fn schedule(&mut self, _: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let weight = |subflow: &SubflowView| {
            self.shared.action(path_of(subflow.local_address, subflow.remote_address)).clamp(0.0, 1.0)
        };
        self.shares.schedule(chunk, subflows, weight)
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.shares.remove(id);
    }
}

/// Windows that only the environment changes, except that a timeout leaves the least. A change takes effect with the
/// next acknowledgement: the engine asks for windows when it reports something.
struct Windows {
    shared: Arc<Shared>,
    present: SubflowMap<u64>,
}

impl Windows {
    fn set(&mut self, id: SubflowId, bytes: u64) {
        if let Some(window) = self.shared.windows.get(id.0 as usize) {
            window.store(bytes, Ordering::Relaxed);
        }
        self.present.insert(id, bytes);
    }

    fn set_size(&self, id: SubflowId, bytes: u64) {
        if let Some(size) = self.shared.sizes.get(id.0 as usize) {
            size.store(bytes, Ordering::Relaxed);
        }
    }

    fn size(&self, id: SubflowId) -> u64 {
        self.shared.sizes.get(id.0 as usize).map_or(0, |size| size.load(Ordering::Relaxed))
    }
}

impl CongestionControl for Windows {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        self.set(id, start.initial_window);
        self.set_size(id, u64::from(start.mss));
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.set_size(id, 0);
        self.present.remove(id);
    }

    fn on_ack(&mut self, id: SubflowId, _: &Ack) {
        if let Some(window) = self.shared.windows.get(id.0 as usize) {
            self.present.insert(id, window.load(Ordering::Relaxed));
        }
    }

    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        if event.cause == Congestion::Timeout {
            self.set(id, WINDOW.0 * self.size(id));
        }
    }

    fn on_spurious(&mut self, _: SubflowId, _: Instant) {}

    fn on_idle_restart(&mut self, _: SubflowId, _: u64) {}

    fn on_mss(&mut self, id: SubflowId, mss: u32) {
        self.set_size(id, u64::from(mss));
    }

    fn window(&self, id: SubflowId) -> u64 {
        self.present.get(id).copied().unwrap_or(0).max(self.size(id))
    }

    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.window(id)
    }
}

/// A full mesh whose subflows the action suspends and resumes.
struct Uses {
    inner: Box<dyn PathManager>,
    shared: Arc<Shared>,
    interval: Duration,
}

impl PathManager for Uses {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.inner.handle(now, event, actions);
        let PathEvent::Measured { connection, subflows } = event else { return };
        let wanted =
            |subflow: &&SubflowView| self.shared.action(path_of(subflow.local_address, subflow.remote_address)) > 0.5;
        if !subflows.iter().any(|subflow| wanted(&subflow)) {
            return;
        }
        for subflow in *subflows {
            let (connection, id) = (connection.id, subflow.id);
            match (wanted(&subflow), subflow.suspended) {
                (true, true) => actions.push(PathAction::Resume { connection, subflow: id }),
                (false, false) => actions.push(PathAction::Suspend { connection, subflow: id }),
                _ => {}
            }
        }
    }

    fn measurements(&self) -> Measurements {
        Measurements::Every(self.interval)
    }
}
