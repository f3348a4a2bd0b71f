//! What an application writes, and when.

use super::pattern::pattern;
use super::video::{Schedule, VideoSender};
use crate::random::RandomStream;
use crate::share::{Share, ShareRange};
use anabranch_mptcp::Endpoint;
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;

/// What an application writes. All variants but `File` send the pattern.
#[derive(Clone, Debug)]
pub enum Sending {
    /// Nothing; it closes when the other end has closed.
    Nothing,
    /// As much as the send buffer accepts, without end.
    Endless,
    /// This many bytes, then it closes.
    Bytes(u64),
    /// These bytes, then it closes.
    File(Bytes),
    /// As much as its pace allows, without end.
    Paced(Pace),
    /// Messages without end, as a Poisson process: independent of the delivery of earlier messages.
    Messages {
        /// Bytes per message.
        size: u64,
        /// Mean time between messages.
        interval: Duration,
    },
    /// The frames of a video, each as a message at its time; then it closes.
    Video(Schedule),
    /// Requests, each after the response to the one before; then it closes.
    Requests {
        /// Bytes per request.
        size: u64,
        /// Bytes per response.
        response: u64,
        /// Time from a response to the next request.
        think: Duration,
        /// Number of requests.
        count: u64,
    },
    /// A response after each complete request.
    Responses {
        /// Bytes per request.
        request: u64,
        /// Bytes per response.
        size: u64,
    },
}

/// The rate of an application-limited writer.
#[derive(Clone, PartialEq, Debug)]
pub struct Pace {
    /// The rate while it is on.
    pub rate: Rate,
    /// The varying share of this rate, and the name of its random stream; `None`: the full rate.
    pub share: Option<(ShareRange, String)>,
    /// Means of the exponentially distributed on and off times; `None`: always on.
    pub on_off: Option<(Duration, Duration)>,
}

/// Time between writes of a paced application.
const TICK: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub(crate) struct Writer {
    plan: Plan,
    written: u64,
    /// Bytes of the pattern that may be written now.
    budget: u64,
    state: State,
    wake: Instant,
    /// From each request to the last byte of its response.
    pub(crate) latencies: Vec<Duration>,
    /// When each message was ready to be written.
    pub(crate) messages: Vec<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Writing,
    /// Closes as soon as the budget is used up.
    Ending,
    Closed,
}

#[derive(Clone, Debug)]
enum Plan {
    Nothing,
    Pattern,
    File(Bytes),
    Paced(Box<Paced>),
    Messages { size: u64, interval: Duration, random: Box<RandomStream> },
    Video(VideoSender),
    Requests { size: u64, response: u64, think: Duration, left: u64, asked: Instant, read: u64 },
    Responses { request: u64, size: u64, answered: u64 },
}

#[derive(Clone, Debug)]
struct Paced {
    rate: Rate,
    share: Option<Share>,
    on_off: Option<(Duration, Duration)>,
    random: RandomStream,
    on: bool,
    until: Instant,
    last: Instant,
    tokens: f64,
}

impl Writer {
    pub(crate) fn new(sending: &Sending, seed: u64, name: &str) -> Self {
        let (mut budget, mut state) = (0, State::Writing);
        let plan = match sending {
            Sending::Nothing => Plan::Nothing,
            Sending::Endless => {
                budget = u64::MAX;
                Plan::Pattern
            }
            Sending::Bytes(bytes) => {
                (budget, state) = (*bytes, State::Ending);
                Plan::Pattern
            }
            Sending::File(bytes) => {
                state = State::Ending;
                Plan::File(bytes.clone())
            }
            Sending::Paced(pace) => Plan::Paced(Box::new(Paced {
                rate: pace.rate,
                share: pace.share.as_ref().map(|(range, name)| Share::new(*range, seed, name)),
                on_off: pace.on_off,
                random: RandomStream::new(seed, &format!("pace/{name}")),
                on: false,
                until: Instant::ZERO,
                last: Instant::ZERO,
                tokens: 0.0,
            })),
            Sending::Messages { size, interval } => Plan::Messages {
                size: *size,
                interval: *interval,
                random: Box::new(RandomStream::new(seed, &format!("messages/{name}"))),
            },
            Sending::Video(schedule) => Plan::Video(VideoSender::new(schedule.clone())),
            Sending::Requests { size, response, think, count } => Plan::Requests {
                size: *size,
                response: *response,
                think: *think,
                left: *count,
                asked: Instant::NEVER,
                read: 0,
            },
            Sending::Responses { request, size } => {
                Plan::Responses { request: (*request).max(1), size: *size, answered: 0 }
            }
        };
        Self { plan, written: 0, budget, state, wake: Instant::NEVER, latencies: Vec::new(), messages: Vec::new() }
    }
    pub(crate) fn timer(&self) -> Instant {
        if let Plan::Video(video) = &self.plan { video.timer() } else { self.wake }
    }
    pub(crate) fn written(&self) -> u64 {
        if let Plan::Video(video) = &self.plan { video.written() } else { self.written }
    }
    /// Whether it will not write any more.
    pub(crate) fn is_finished(&self) -> bool {
        if let Plan::Video(video) = &self.plan { video.is_finished() } else { self.state == State::Closed }
    }
    /// The connection is established.
    pub(crate) fn open(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if let Plan::Video(video) = &mut self.plan {
            return video.open(now, endpoint, id);
        }
        if let Plan::Paced(paced) = &mut self.plan {
            (paced.last, paced.until) = (now, now);
        }
        if let Plan::Messages { interval, random, .. } = &mut self.plan {
            self.wake = now + next_message(*interval, random);
            return;
        }
        if matches!(self.plan, Plan::Paced(_) | Plan::Requests { .. }) {
            self.wake = now;
            return self.tick(now, endpoint, id);
        }
        self.write(now, endpoint, id);
    }
    /// Handles its timer if it is due.
    pub(crate) fn tick(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if let Plan::Video(video) = &mut self.plan {
            return video.write(now, endpoint, id);
        }
        if now < self.wake || self.state != State::Writing {
            return;
        }
        self.wake = Instant::NEVER;
        match &mut self.plan {
            Plan::Paced(paced) => {
                // Backlog of more than a second is dropped.
                let most = (paced.rate.bytes_per_second()).max(1);
                self.budget = self.budget.saturating_add(paced.produce(now)).min(most);
                self.wake = paced.next(now);
            }
            Plan::Messages { size, interval, random } => {
                self.budget = self.budget.saturating_add(*size);
                self.messages.push(now);
                self.wake = now + next_message(*interval, random);
            }
            Plan::Requests { size, left, asked, .. } => {
                *left = left.saturating_sub(1);
                *asked = now;
                self.budget += *size;
            }
            Plan::Nothing | Plan::Pattern | Plan::File(_) | Plan::Video(_) | Plan::Responses { .. } => {}
        }
        self.write(now, endpoint, id);
    }
    /// Reacts to `total` bytes read so far from the other direction.
    #[inline]
    pub(crate) fn on_read(&mut self, now: Instant, total: u64, endpoint: &mut Endpoint, id: ConnectionId) {
        if matches!(self.plan, Plan::Requests { .. } | Plan::Responses { .. }) {
            self.answer(now, total, endpoint, id);
        }
    }
    #[inline(never)]
    fn answer(&mut self, now: Instant, total: u64, endpoint: &mut Endpoint, id: ConnectionId) {
        match &mut self.plan {
            Plan::Requests { response, think, left, asked, read, .. } => {
                if *asked == Instant::NEVER || total < read.saturating_add(*response) {
                    return;
                }
                *read += *response;
                self.latencies.push(now - *asked);
                *asked = Instant::NEVER;
                if *left == 0 {
                    self.state = State::Ending;
                } else {
                    self.wake = now + *think;
                }
            }
            Plan::Responses { request, size, answered } => {
                let complete = total / *request;
                self.budget += (complete - *answered) * *size;
                *answered = complete;
            }
            Plan::Nothing | Plan::Pattern | Plan::File(_) | Plan::Paced(_) | Plan::Messages { .. } | Plan::Video(_) => {
                return;
            }
        }
        self.tick(now, endpoint, id);
        self.write(now, endpoint, id);
    }
    /// The other end has closed.
    pub(crate) fn on_end(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if matches!(self.plan, Plan::Nothing | Plan::Responses { .. }) {
            self.end(now, endpoint, id);
        }
    }
    /// Writes only what is due now, then closes; endless writers end here.
    pub(crate) fn end(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if let Plan::Video(video) = &mut self.plan {
            return video.end(now, endpoint, id);
        }
        if self.state == State::Writing {
            self.state = State::Ending;
            self.wake = Instant::NEVER;
            if self.budget > u64::MAX / 2 {
                self.budget = 0;
            }
            self.write(now, endpoint, id);
        }
    }
    /// Writes what is due, up to the room in the send buffer.
    pub(crate) fn write(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if let Plan::Video(video) = &mut self.plan {
            return video.write(now, endpoint, id);
        }
        if self.state == State::Closed {
            return;
        }
        loop {
            let piece = match &self.plan {
                Plan::File(rest) => rest.clone(),
                _ => pattern(self.written, self.budget),
            };
            if piece.is_empty() {
                break;
            }
            let length = piece.len();
            let Ok(taken) = endpoint.write(now, id, piece) else {
                self.state = State::Closed;
                return;
            };
            self.written += taken as u64;
            match &mut self.plan {
                Plan::File(rest) => *rest = rest.slice(taken..),
                _ if self.budget != u64::MAX => self.budget -= taken as u64,
                _ => {}
            }
            if taken < length {
                return;
            }
        }
        if self.state == State::Ending {
            self.state = State::Closed;
            // The connection may have ended already.
            let _ = endpoint.close(now, id);
        }
    }
}

/// Time to the next message, at least a nanosecond.
fn next_message(mean: Duration, random: &mut RandomStream) -> Duration {
    Duration::from_secs_f64(random.exponential(mean.as_secs_f64())).max(Duration::from_nanos(1))
}

impl Paced {
    /// Bytes produced since the last call.
    fn produce(&mut self, now: Instant) -> u64 {
        if self.on {
            let share = self.share.as_mut().map_or(1.0, |share| share.at(now));
            self.tokens += self.rate.bits_per_second() as f64 / 8.0 * share * (now - self.last).as_secs_f64();
        }
        self.last = now;
        if now >= self.until {
            self.on = !self.on;
            self.until = match self.on_off {
                None => Instant::NEVER,
                Some((on, off)) => {
                    let mean = if self.on { on } else { off };
                    now + Duration::from_secs_f64(self.random.exponential(mean.as_secs_f64()))
                }
            };
        }
        let whole = self.tokens as u64;
        self.tokens -= whole as f64;
        whole
    }
    fn next(&self, now: Instant) -> Instant {
        if self.on { self.until.min(now + TICK) } else { self.until.max(now + Duration::from_nanos(1)) }
    }
}
