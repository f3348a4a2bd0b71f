//! A session of Bidirectional Forwarding Detection (RFC 5880) in asynchronous mode: is the neighbour still there, within
//! a fraction of a second?
//!
//! The caller sends what [`Session::poll_transmit`] returns, in UDP with hop limit 255 (RFC 5881), and calls
//! [`Session::handle_timeout`] at [`Session::poll_timeout`]. Decisions:
//! - No authentication, no echo packets, no demand mode.
//! - The least interval of reception is constant. That of transmission is a second until the session is up (section
//!   6.8.3), and a Poll Sequence announces the other one.
//! - A change of the state is sent at once, beside the periodic packets.

use anabranch_policy::{Duration, Instant};
use anabranch_wire::bfd::{ControlPacket, Diagnostic, State};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Least interval of transmission of a session that is not up (section 6.8.3).
const SLOW: Duration = Duration::from_secs(1);

/// How a session detects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BfdSettings {
    /// DesiredMinTxInterval and RequiredMinRxInterval.
    pub interval: Duration,
    /// DetectMult: missing packets after which the session is down, 1 to 255.
    pub multiplier: u8,
}

impl Default for BfdSettings {
    /// 100 ms and 3.
    fn default() -> Self {
        Self { interval: Duration::from_millis(100), multiplier: 3 }
    }
}

/// What has become of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Both ends hear each other.
    Up,
    /// It was up, and is no more.
    Down(Diagnostic),
}

/// The peer's side of a session, as it told.
#[derive(Clone, Copy, Debug)]
struct Remote {
    discriminator: u32,
    desired_min_tx: Duration,
    required_min_rx: Duration,
    multiplier: u8,
}

impl Remote {
    /// Before anything is received (section 6.8.1).
    const UNKNOWN: Self = Self {
        discriminator: 0,
        desired_min_tx: Duration::ZERO,
        required_min_rx: Duration::from_micros(1),
        multiplier: 1,
    };
}

/// A session with one neighbour.
#[derive(Debug)]
pub struct Session {
    settings: BfdSettings,
    discriminator: u32,
    state: State,
    diagnostic: Diagnostic,
    remote: Remote,
    /// A Poll Sequence is under way.
    polling: bool,
    /// The answer to a packet with the Poll bit is due.
    answer: bool,
    /// When the next periodic packet is due; never if the peer does not want any.
    send_at: Instant,
    /// When the detection time is over; never if nothing is expected.
    expires: Instant,
    random: ChaCha8Rng,
}

impl Session {
    /// A session that begins now. `discriminator` is not 0, and no other session of this host has it.
    pub fn new(now: Instant, settings: BfdSettings, discriminator: u32) -> Self {
        Self {
            settings,
            discriminator,
            state: State::Down,
            diagnostic: Diagnostic::NONE,
            remote: Remote::UNKNOWN,
            polling: false,
            answer: false,
            send_at: now,
            expires: Instant::NEVER,
            random: ChaCha8Rng::seed_from_u64(discriminator.into()),
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Why it last went down.
    pub fn diagnostic(&self) -> Diagnostic {
        self.diagnostic
    }

    /// This end's number of the session.
    pub fn discriminator(&self) -> u32 {
        self.discriminator
    }

    /// Time without a packet after which the session is down (section 6.8.4).
    fn detection_time(&self) -> Duration {
        self.settings.interval.max(self.remote.desired_min_tx) * u64::from(self.remote.multiplier)
    }

    /// A packet of this session was received (section 6.8.6).
    pub fn handle_packet(&mut self, now: Instant, packet: &ControlPacket) -> Option<Change> {
        self.remote = Remote {
            discriminator: packet.my_discriminator,
            desired_min_tx: microseconds(packet.desired_min_tx),
            required_min_rx: microseconds(packet.required_min_rx),
            multiplier: packet.detect_multiplier,
        };
        self.polling &= !packet.is_final;
        self.answer |= packet.poll;
        self.expires = now + self.detection_time();
        let next = match (self.state, packet.state) {
            (State::Init | State::Up, State::AdminDown) | (State::Up, State::Down) => State::Down,
            (State::Down, State::Down) => State::Init,
            (State::Down, State::Init) | (State::Init, State::Init | State::Up) => State::Up,
            (same, _) => same,
        };
        let change = self.enter(now, next, Diagnostic::NEIGHBOR_DOWN);
        // Another interval holds from now on (section 6.8.3).
        self.send_at = self.interval().map_or(Instant::NEVER, |interval| self.send_at.min(now + interval));
        change
    }

    /// Timers expire.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Change> {
        if self.expires > now {
            return None;
        }
        self.expires = Instant::NEVER;
        // The peer may have another number when it returns (section 6.8.1).
        self.remote = Remote::UNKNOWN;
        self.enter(now, State::Down, Diagnostic::EXPIRED)
    }

    /// When to call [`Self::handle_timeout`] and [`Self::poll_transmit`].
    pub fn poll_timeout(&self) -> Instant {
        if self.answer { Instant::ZERO } else { self.send_at.min(self.expires) }
    }

    /// The packet that is due, if any.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<ControlPacket> {
        if core::mem::take(&mut self.answer) {
            return Some(ControlPacket { poll: false, is_final: true, ..self.packet() });
        }
        if self.send_at > now {
            return None;
        }
        let interval = self.interval();
        self.send_at = interval.map_or(Instant::NEVER, |interval| now + self.jittered(interval));
        // The first packets are sent although nothing says that they are wanted: the peer's interval is not known.
        interval.map(|_| self.packet())
    }

    /// The last packet of a session that its administrator ends (section 6.8.16).
    pub fn farewell(&self) -> ControlPacket {
        ControlPacket { state: State::AdminDown, diagnostic: Diagnostic(7), poll: false, ..self.packet() }
    }

    fn enter(&mut self, now: Instant, next: State, why: Diagnostic) -> Option<Change> {
        let before = core::mem::replace(&mut self.state, next);
        if before == next {
            return None;
        }
        self.send_at = now;
        self.polling = next == State::Up;
        if next == State::Down {
            self.diagnostic = why;
        }
        match (before, next) {
            (State::Up, _) => Some(Change::Down(self.diagnostic)),
            (_, State::Up) => Some(Change::Up),
            _ => None,
        }
    }

    fn desired_min_tx(&self) -> Duration {
        if self.state == State::Up { self.settings.interval } else { self.settings.interval.max(SLOW) }
    }

    /// Interval of the periodic packets; none if the peer wants none (section 6.8.7).
    fn interval(&self) -> Option<Duration> {
        let required = self.remote.required_min_rx;
        (!required.is_zero()).then(|| self.desired_min_tx().max(required))
    }

    /// Reduced by up to a quarter at random, and by a tenth at least if one missing packet is enough (section 6.8.7).
    fn jittered(&mut self, interval: Duration) -> Duration {
        let least = if self.settings.multiplier == 1 { 0.1 } else { 0.0 };
        let share = f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        interval.mul_f64(1.0 - (least + (0.25 - least) * share))
    }

    fn packet(&self) -> ControlPacket {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        ControlPacket {
            diagnostic: self.diagnostic,
            state: self.state,
            poll: self.polling,
            is_final: false,
            detect_multiplier: self.settings.multiplier,
            my_discriminator: self.discriminator,
            your_discriminator: self.remote.discriminator,
            desired_min_tx: micros(self.desired_min_tx()),
            required_min_rx: micros(self.settings.interval),
            required_min_echo_rx: 0,
        }
    }
}

fn microseconds(count: u32) -> Duration {
    Duration::from_micros(count.into())
}

#[cfg(test)]
mod tests;
