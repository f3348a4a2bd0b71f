//! Settings of a comparison.

use super::reception::Fading;
use crate::mobility::{Area, Model, Span};
use crate::radio::{MediumConfig, Overlap, PathLoss, Reach};
use anabranch_policy::time::Duration;

/// Settings shared by all forecasters of a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// Number of nodes.
    pub nodes: usize,
    pub area: Area,
    pub model: Model,
    pub duration: Duration,
    /// Path loss and shadowing; reception depends on `fading`.
    pub path_loss: PathLoss,
    pub fading: Fading,
    pub hello_interval: Duration,
    /// Time without a Hello after which a neighbour is removed.
    pub dead_interval: Duration,
    /// How far ahead is forecast.
    pub horizon: Duration,
    /// Whether forecasters receive the signal strength of packets.
    pub signal_known: bool,
}

impl Setting {
    /// 24 nodes in a square kilometre, random waypoint at 1 to 20 m/s without pauses, for 300 s. Mean range about 250
    /// m, shadowing of 4 dB with a correlation distance of 20 m, some line of sight. Hellos every second, dead interval
    /// 6 s, horizon 2 s.
    pub fn standard() -> Self {
        Self {
            nodes: 24,
            area: Area { x: 1000.0, y: 1000.0 },
            model: walk(1.0, 20.0),
            duration: Duration::from_secs(300),
            path_loss: PathLoss { transmit_power: 25.2, shadowing: 4.0, ..PathLoss::default() },
            fading: Fading { shape: 3, sensitivity: -82.0 },
            hello_interval: Duration::from_secs(1),
            dead_interval: Duration::from_secs(6),
            horizon: Duration::from_secs(2),
            signal_known: true,
        }
    }

    /// A radio with the path loss, shadowing and fading of the standard setting, and this mean range in metres. Of frames that
    /// overlap at a receiver, one that is stronger by 10 dB is received.
    pub fn standard_radio(range: f64) -> MediumConfig {
        let standard = Self::standard();
        // The mean range of the standard setting is 250 m.
        let farther = libm::log10(range / 250.0) * 10.0 * standard.path_loss.exponent;
        let path_loss = PathLoss {
            transmit_power: standard.path_loss.transmit_power + farther,
            fading: standard.fading.shape,
            decode: standard.fading.sensitivity as f32,
            ..standard.path_loss
        };
        let (reach, overlap) = (Reach::PathLoss(path_loss), Overlap::Capture(10.0));
        MediumConfig { reach, overlap, ..MediumConfig::default() }
    }
}

fn walk(slowest: f64, fastest: f64) -> Model {
    Model::RandomWaypoint { speed: Span::new(slowest, fastest), pause: Span::only(0.0) }
}

/// The standard setting, and variants with one change each.
pub fn settings() -> Vec<(&'static str, Setting)> {
    let standard = Setting::standard();
    let shadows = |shadowing, correlation_distance| Setting {
        path_loss: PathLoss { shadowing, correlation_distance, ..standard.path_loss },
        ..standard
    };
    let wanderers = Model::GaussMarkov { speed: 10.0, speed_deviation: 2.0, direction_deviation: 0.4, memory: 0.75 };
    let groups = Model::ReferencePointGroup {
        members: 4,
        speed: Span::new(1.0, 20.0),
        pause: Span::only(0.0),
        radius: 100.0,
        member_speed: Span::new(0.5, 2.0),
    };
    vec![
        ("1 to 20 m/s, shadows of 4 dB, 20 m wide", standard),
        ("walking, 1 to 2 m/s", Setting { model: walk(1.0, 2.0), ..standard }),
        ("driving, 10 to 20 m/s", Setting { model: walk(10.0, 20.0), ..standard }),
        ("Gauss-Markov, 10 m/s", Setting { model: wanderers, ..standard }),
        ("groups of four", Setting { model: groups, ..standard }),
        ("shadows 50 m wide", shadows(4.0, 50.0)),
        ("deep shadows, 8 dB", shadows(8.0, 20.0)),
        ("open ground, no shadows", shadows(0.0, 20.0)),
        ("strengths are not told", Setting { signal_known: false, ..standard }),
    ]
}
