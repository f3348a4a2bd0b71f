//! A case: everything that is left to chance, drawn from a seed and a number.

use crate::mischief::Failure;
use crate::scene::{Role, Scene};
use crate::traffic::{Close, End};
use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_policy::combination::{Choice, Combination, Family};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_sim::LinkConfig;
use anabranch_sim::link::{DelayModel, LossModel, Ordering, QueueConfig, QueueLimit, RateModel};
use anabranch_sim::random::RandomStream;

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Repeats it, together with `number`.
    pub seed: u64,
    /// Its number.
    pub number: u64,
    /// Who opens.
    pub role: Role,
    /// Address family.
    pub v6: bool,
    /// Each path's two links.
    pub links: Vec<[LinkConfig; 2]>,
    /// What goes wrong with paths but the first, and after how many milliseconds.
    pub failures: Vec<(usize, Failure, u64)>,
    /// Our policies.
    pub combination: Combination,
    /// Who asks for checksums: the kernel, we.
    pub checksums: [bool; 2],
    /// Whether the kernel has timestamps.
    pub timestamps: bool,
    /// The kernel's traffic.
    pub kernel: End,
    /// Ours.
    pub ours: End,
    /// Receive and send buffer of the kernel and of ours, bytes; none leaves it to the end's own adaptation.
    pub buffers: [[Option<u64>; 2]; 2],
}

/// What a case is drawn with.
struct Luck(RandomStream);

impl Luck {
    fn one_in(&mut self, cases: u64) -> bool {
        self.0.below(cases) == 0
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize].clone()
    }

    /// Uniform in the logarithm.
    fn size(&mut self, least: f64, most: f64) -> usize {
        self.0.between(least.ln(), most.ln()).exp() as usize
    }

    fn link(&mut self) -> LinkConfig {
        let mut link = LinkConfig::default();
        let delay = Duration::from_micros(self.0.below(50_000));
        link.delay = match self.0.below(4) {
            0 => DelayModel::Uniform { min: delay, max: delay + delay / 2 },
            _ => DelayModel::Fixed(delay),
        };
        link.ordering = if self.one_in(4) { Ordering::Free } else { Ordering::Kept };
        if self.one_in(2) {
            link.loss = vec![LossModel::Uniform(self.0.between(0.0, 0.05))];
        } else if self.one_in(4) {
            // In time, not by packets: a sender that has backed off would see no end of a burst.
            let (mean_good, mean_bad) = (Duration::from_millis(500), Duration::from_millis(self.0.below(25)));
            link.loss = vec![LossModel::Fading { mean_good, mean_bad, loss_good: 0.0, loss_bad: 1.0 }];
        }
        if self.one_in(3) {
            link.impairments.duplication = self.0.between(0.0, 0.03);
            link.impairments.corruption = self.0.between(0.0, 0.02);
            link.impairments.reordering = self.0.between(0.0, 0.05);
            link.impairments.held_back = Duration::from_millis(self.0.below(10));
        }
        if self.one_in(2) {
            let rate = self.pick(&[5, 20, 100]);
            link.rate = RateModel::Fixed(Rate::from_bits_per_second(rate * 1_000_000));
            let packets = self.pick(&[10, 50, 300]);
            link.queue = QueueConfig { limit: QueueLimit::Packets(packets), ..QueueConfig::default() };
        }
        link
    }

    fn end(&mut self) -> End {
        End {
            bytes: if self.one_in(8) { 0 } else { self.size(1.0, 8.0 * 1024.0 * 1024.0) },
            chunk: self.size(100.0, 300_000.0),
            pause: if self.one_in(4) { self.0.below(2_000) } else { 0 },
            close: Close::AfterWriting,
        }
    }

    fn buffer(&mut self) -> Option<u64> {
        self.one_in(3).then(|| self.pick(&[64, 128, 512, 4096]) * 1024)
    }

    fn failure(&mut self) -> Failure {
        match self.0.below(7) {
            0 => Failure::BlackHole,
            1 => Failure::Outage(self.0.below(3_000)),
            2 => Failure::DeviceGone,
            3 => Failure::AddressGone,
            4 => Failure::Resets,
            5 => Failure::KernelAddressGone,
            _ => Failure::Stripped,
        }
    }

    fn combination(&mut self) -> Combination {
        let mut combination = Combination::default();
        for family in [Family::Congestion, Family::Scheduler, Family::PathManager] {
            *combination.choice_mut(family) = Choice::new(self.pick(&family.members()));
        }
        combination
    }
}

impl Case {
    /// The case of this number.
    pub fn draw(seed: u64, number: u64) -> Self {
        let mut luck = Luck(RandomStream::new(seed, &format!("transfer {number}")));
        let paths = 1 + luck.0.below(3) as usize;
        let links: Vec<_> = (0..paths).map(|_| [luck.link(), luck.link()]).collect();
        let mut failures = Vec::new();
        for path in 1..paths {
            if luck.one_in(3) {
                failures.push((path, luck.failure(), luck.0.below(1_500)));
            }
        }
        let (mut kernel, mut ours) = (luck.end(), luck.end());
        match luck.0.below(3) {
            0 => kernel.close = Close::AfterReading,
            1 => ours.close = Close::AfterReading,
            _ => {}
        }
        Self {
            seed,
            number,
            role: luck.pick(&[Role::WeOpen, Role::TheKernelOpens]),
            v6: luck.one_in(2),
            links,
            failures,
            combination: luck.combination(),
            checksums: [luck.one_in(3), luck.one_in(3)],
            timestamps: !luck.one_in(5),
            kernel,
            ours,
            buffers: [[luck.buffer(), luck.buffer()], [luck.buffer(), luck.buffer()]],
        }
    }

    /// What is around it.
    pub fn scene(&self) -> Scene {
        let mut scene = Scene::new(0, self.v6);
        scene.links.clone_from(&self.links);
        scene.seed = self.seed ^ self.number;
        scene.combination = self.combination.clone();
        scene.kernel_joins = self.role == Role::TheKernelOpens;
        scene.deadline = 180;
        scene
            .set("mptcp/checksum_enabled", u8::from(self.checksums[0]))
            .set("ipv4/tcp_timestamps", u8::from(self.timestamps))
    }

    /// Our connection's settings, on top of the scene's.
    pub fn configure(&self, mut config: ConnectionConfig) -> ConnectionConfig {
        config.checksum = self.checksums[1];
        let [receive, send] = self.buffers[1];
        if let Some(bytes) = receive {
            config.receive_buffer = BufferSize::Fixed(bytes);
        }
        if let Some(bytes) = send {
            config.send_buffer = bytes;
        }
        config
    }
}
