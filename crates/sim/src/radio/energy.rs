//! Energy of an interface that sends, receives and waits.

use anabranch_policy::time::Duration;

/// Power in watts. The default are the commonly quoted values of a WaveLAN card at 11 Mbit/s from Feeney and Nilsson,
/// "Investigating the energy consumption of a wireless network interface in an ad hoc networking environment" (2001).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Power {
    /// While sending.
    pub send: f64,
    /// While receiving a frame, for itself or for others.
    pub receive: f64,
    /// Otherwise: an ad-hoc station never sleeps.
    pub idle: f64,
}

impl Default for Power {
    fn default() -> Self {
        Self { send: 1.346_1, receive: 0.900_6, idle: 0.739_4 }
    }
}

/// Time that an interface spent in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AirtimeUse {
    /// Frames of any kind.
    pub sending: Duration,
    /// Frames that could be decoded without collisions, addressed to it or not.
    pub receiving: Duration,
}

impl AirtimeUse {
    /// The energy in joules used by the interface, switched on for the time `on`.
    pub fn joules(&self, on: Duration, power: &Power) -> f64 {
        let (sending, receiving) = (self.sending.as_secs_f64(), self.receiving.as_secs_f64());
        let idle = (on.as_secs_f64() - sending - receiving).max(0.0);
        sending * power.send + receiving * power.receive + idle * power.idle
    }
}
