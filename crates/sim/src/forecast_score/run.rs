//! One run: nodes move, send and receive Hellos, and forecast.

use super::measures::Forecasts;
use super::neighbors::Neighbor;
use super::setting::Setting;
use crate::mobility::{MobilityError, Movement};
use crate::radio::{Medium, MediumConfig, PathLoss, Reach, StationId};
use crate::random::RandomStream;
use anabranch_policy::forecast::LinkForecaster;
use anabranch_policy::time::{Duration, Instant};
use std::collections::BTreeMap;

pub struct Contender {
    /// Name in tables.
    pub name: String,
    /// Creates the forecaster of a link.
    pub make: Box<dyn Fn() -> Box<dyn LinkForecaster> + Sync + Send>,
}

/// Bytes of a Hello: IPv6, OSPFv3 header, Hello and a few neighbours with their TLV.
const HELLO_BYTES: u32 = 112;
/// Interval of position updates of the radio.
const MOVE: Duration = Duration::from_millis(100);
/// Greatest gain over its mean signal with which a packet is received, in dB.
const LUCK: f64 = 8.0;

/// Runs one seed; returns each contender's forecasts, one list per directed link, and finally those of an oracle that
/// knows the true states.
pub fn run(setting: &Setting, contenders: &[Contender], seed: u64) -> Result<Vec<Vec<Forecasts>>, MobilityError> {
    let margin = setting.duration + setting.horizon;
    let movement = setting.model.draw(setting.area, setting.nodes, margin, seed)?;
    let mut truth = Truth::new(setting, &movement, seed);
    Ok(Lab::new(setting, contenders, &movement, seed).run(&mut truth))
}

/// The signals of all links at any time, from a channel without traffic.
struct Truth<'a> {
    setting: &'a Setting,
    movement: &'a Movement,
    medium: Medium<()>,
}

impl<'a> Truth<'a> {
    fn new(setting: &'a Setting, movement: &'a Movement, seed: u64) -> Self {
        Self { setting, movement, medium: medium(setting, movement, seed) }
    }
    /// Whether each link is up at a time: `[to][from]`.
    fn up(&mut self, at: Instant) -> Vec<Vec<bool>> {
        place(&mut self.medium, self.movement, at);
        let nodes = self.setting.nodes;
        let fading = self.setting.fading;
        let mut up = vec![vec![false; nodes]; nodes];
        for (to, row) in up.iter_mut().enumerate() {
            for (from, up) in row.iter_mut().enumerate() {
                let signal = self.medium.hears(StationId(from as u32), StationId(to as u32)).flatten();
                *up = signal.is_some_and(|signal| fading.reception_ratio(f64::from(signal)) > 0.5);
            }
        }
        up
    }
}

fn medium<C: Clone>(setting: &Setting, movement: &Movement, seed: u64) -> Medium<C> {
    let decode = (setting.fading.sensitivity - LUCK) as f32;
    let path_loss = PathLoss { decode, interfere: decode - 6.0, sense: decode - 6.0, ..setting.path_loss };
    let config = MediumConfig { reach: Reach::PathLoss(path_loss), ..MediumConfig::default() };
    let mut medium = Medium::new(config, seed, "channel");
    for node in 0..setting.nodes {
        medium.add_station(movement.position(node, Instant::ZERO));
    }
    medium
}

fn place<C: Clone>(medium: &mut Medium<C>, movement: &Movement, at: Instant) {
    for node in 0..movement.nodes() {
        medium.set_position(StationId(node as u32), movement.position(node, at));
    }
}

struct Lab<'a> {
    setting: &'a Setting,
    contenders: &'a [Contender],
    movement: &'a Movement,
    medium: Medium<()>,
    random: RandomStream,
    /// By (to, from).
    neighbors: BTreeMap<(usize, usize), (Neighbor, usize)>,
    /// By contender, then by directed link; the oracle last.
    forecasts: Vec<Vec<Forecasts>>,
}

impl<'a> Lab<'a> {
    fn new(setting: &'a Setting, contenders: &'a [Contender], movement: &'a Movement, seed: u64) -> Self {
        Self {
            setting,
            contenders,
            movement,
            medium: medium(setting, movement, seed),
            random: RandomStream::new(seed, "forecast score"),
            neighbors: BTreeMap::new(),
            forecasts: vec![Vec::new(); contenders.len() + 1],
        }
    }

    fn run(mut self, truth: &mut Truth<'_>) -> Vec<Vec<Forecasts>> {
        let interval = self.setting.hello_interval;
        let phases = (0..self.setting.nodes).map(|_| self.random.uniform());
        let mut hellos: Vec<(Instant, usize)> =
            phases.map(|phase| Instant::ZERO + interval.mul_f64(phase)).enumerate().map(|(n, t)| (t, n)).collect();
        hellos.sort_unstable();
        let (mut next_move, mut next_forecast) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(1));
        let end = Instant::ZERO + self.setting.duration;
        loop {
            let (hello, sender) = hellos[0];
            let now = hello.min(next_move).min(next_forecast).min(self.medium.poll_timeout());
            if now >= end {
                return self.forecasts;
            }
            self.medium.handle_timeout(now);
            self.receive(now);
            if now == next_move {
                place(&mut self.medium, self.movement, now);
                self.find_missing(now);
                next_move += MOVE;
            }
            if now == hello {
                // A full queue is full of Hellos: losing one more does not matter.
                let _ = self.medium.enqueue(now, StationId(sender as u32), None, (), HELLO_BYTES);
                // Jitter as in routers, so that they do not synchronize (RFC 5614, section 4.1).
                let jitter = 0.9 + 0.1 * self.random.uniform();
                hellos[0].0 = now + interval.mul_f64(jitter);
                hellos.sort_unstable();
            }
            if now == next_forecast {
                self.forecast(now, truth);
                next_forecast += Duration::from_secs(1);
            }
        }
    }

    fn receive(&mut self, now: Instant) {
        let Setting { fading, hello_interval, .. } = *self.setting;
        while let Some(delivery) = self.medium.poll_delivery() {
            let (to, from) = (delivery.to.0 as usize, delivery.from.0 as usize);
            let mean = f64::from(delivery.signal.unwrap_or(f32::NAN));
            let signal = mean + fading.draw(&mut self.random);
            if signal.is_nan() || signal < fading.sensitivity {
                continue;
            }
            let contenders = self.contenders;
            let forecasts = &mut self.forecasts;
            let (neighbor, _) = self.neighbors.entry((to, from)).or_insert_with(|| {
                forecasts.iter_mut().for_each(|links| links.push(Forecasts::default()));
                let made = contenders.iter().map(|contender| (contender.make)()).collect();
                (Neighbor::new(made, now), forecasts[0].len() - 1)
            });
            // Real interfaces report whole dB.
            let told = if self.setting.signal_known { Some(libm::round(signal) as f32) } else { None };
            neighbor.on_hello(now, told, hello_interval);
        }
        while self.medium.poll_status().is_some() {}
    }

    fn find_missing(&mut self, now: Instant) {
        let Setting { hello_interval, dead_interval, .. } = *self.setting;
        self.neighbors.retain(|_, (neighbor, _)| neighbor.lives(now, hello_interval, dead_interval));
    }

    fn forecast(&mut self, now: Instant, truth: &mut Truth<'_>) {
        let horizon = self.setting.horizon;
        let (up_now, up_then) = (truth.up(now), truth.up(now + horizon));
        for ((to, from), (neighbor, link)) in &self.neighbors {
            let (up, came) = (up_now[*to][*from], up_then[*to][*from]);
            let oracle = f64::from(u8::from(came));
            let made = neighbor.forecasters.iter().map(|forecaster| forecaster.probability_up(now, horizon));
            for (links, forecast) in self.forecasts.iter_mut().zip(made.chain([oracle])) {
                links[*link].made.push((forecast, came));
                links[*link].up.push(up);
            }
        }
    }
}
