//! The daemon: samples, hears, decides by [`Classes`], and carries out.

use crate::addresses::Addresses;
use crate::classes::Classes;
use crate::diag::Sampler;
use crate::events::{Events, open_path_manager};
use crate::hands::Hands;
use crate::kernel::{Counters, Loss};
use crate::path_manager::{Endpoint, to_io};
use anabranch_host::Watch;
use anabranch_policy::time::{Duration, Instant};
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::event::Event;
use anabranch_steering::sample::Token;
use anabranch_steering::status::Why;
use anabranch_system::Clock;
use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::io;
use std::net::IpAddr;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep_until};

/// Interval of looks at the kernel's counters.
const COUNTERS_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// What a user may want to know.
#[derive(Clone, Debug)]
pub enum Notice<'a> {
    Event(&'a Event),
    /// A connection that no event announced: it is older than the daemon, or the event was lost.
    Adopted(Token),
    /// A connection became plain TCP.
    FellBack(Token),
    Command {
        command: &'a Command,
        outcome: Outcome,
        /// The kernel's words, if it refused.
        refusal: Option<&'a str>,
        why: Option<&'a Why>,
    },
    /// Something that makes connections plain TCP happened, so many times.
    Loss(u64, &'static Loss),
    /// The endpoint of an address is no backup any more: the connections for which it was one have ended, or do without.
    Restored(IpAddr),
    /// A sample failed.
    Blind(&'a io::Error),
    /// A sample was taken, and decided about.
    Sampled {
        at: Instant,
        classes: &'a Classes,
    },
}

/// Steers the connections of a network namespace.
pub struct Daemon {
    classes: Classes,
    clock: Clock,
    sampler: Sampler,
    hands: Hands,
    events: Events,
    addresses: Addresses,
    /// Interfaces that are for the time when no other works.
    reserve: Vec<String>,
    watch: Watch,
    counters: Counters,
    /// Connections that were told of as fallen back, and those that were told of as adopted.
    fallen: BTreeSet<Token>,
    adopted: BTreeSet<Token>,
    sampled: u64,
}

impl Daemon {
    /// Opens all that is needed, in the namespace of the calling thread and within a runtime. `uplinks` are names of
    /// interfaces, see [`Addresses::open`].
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the kernel has no MPTCP, [`io::ErrorKind::PermissionDenied`] without
    /// CAP_NET_ADMIN.
    pub fn open(classes: impl Into<Classes>, uplinks: Vec<String>) -> io::Result<Self> {
        let path_manager = open_path_manager()?;
        let events = Events::open(&path_manager)?;
        Ok(Self {
            classes: classes.into(),
            clock: Clock::new(),
            sampler: Sampler::open()?,
            hands: Hands::new(path_manager),
            events,
            addresses: Addresses::open(uplinks)?,
            reserve: Vec::new(),
            watch: Watch::open()?,
            counters: Counters::read(),
            fallen: BTreeSet::new(),
            adopted: BTreeSet::new(),
            sampled: 0,
        })
    }

    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Decides by another machine from now on: it adopts what it finds.
    pub fn replace(&mut self, mut classes: Classes) {
        classes.succeed(&self.classes);
        self.classes = classes;
        self.sampler.refresh();
        self.classes.reserve(self.clock.now(), self.reserve.clone());
        for (address, interface) in self.addresses.known().clone() {
            self.classes.handle_event(self.clock.now(), &Event::AddressUp { address, interface });
        }
        for address in self.addresses.deprecated().clone() {
            self.classes.handle_event(self.clock.now(), &Event::AddressDeprecated { address });
        }
    }

    /// Takes over from a daemon that was killed: what is a backup at the first sample is used again, unless it is to wait
    /// here too or the user has made its endpoint one.
    pub fn take_over(&mut self) {
        self.classes.take_over(self.hands.backups_of_the_user());
    }

    /// Paths over these interfaces are used only while no other works, from now on.
    pub fn reserve(&mut self, interfaces: Vec<String>) {
        self.reserve.clone_from(&interfaces);
        self.classes.reserve(self.clock.now(), interfaces);
    }

    /// Calls `note` with each endpoint of the kernel's path manager before it is made a backup. It is not, if that
    /// fails.
    pub fn note_endpoints(&mut self, note: impl FnMut(&Endpoint) -> io::Result<()> + 'static) {
        self.hands.note_endpoints(Box::new(note));
    }

    /// Samples each `every` and steers, until `wish` completes; returns its output. Connections stay as they are.
    ///
    /// # Errors
    /// A socket of the kernel failed.
    pub async fn run<T>(
        &mut self,
        every: Duration,
        wish: impl Future<Output = T>,
        mut tell: impl FnMut(Notice<'_>),
    ) -> io::Result<T> {
        self.look(&mut tell)?;
        let mut ticks = ticks(std::time::Duration::from_nanos(every.as_nanos()));
        let mut looks = ticks_later(COUNTERS_EVERY);
        let mut heard = Vec::new();
        tokio::pin!(wish);
        loop {
            let due = self.due();
            let look = self.addresses.due().map(Into::into);
            tokio::select! {
                biased;
                wish = &mut wish => return Ok(wish),
                _ = ticks.tick() => self.sample(&mut tell),
                outcome = self.events.next(&mut heard) => {
                    outcome?;
                    for event in heard.drain(..) {
                        self.handle(&event, &mut tell);
                    }
                }
                outcome = self.watch.changed() => {
                    outcome?;
                    self.look(&mut tell)?;
                }
                () = sleep_to(look) => self.look(&mut tell)?,
                () = sleep_to(due) => self.classes.handle_timeout(self.clock.now()),
                _ = looks.tick() => self.compare_counters(&mut tell),
            }
            self.carry_out(&mut tell);
        }
    }

    fn handle(&mut self, event: &Event, tell: &mut impl FnMut(Notice<'_>)) {
        tell(Notice::Event(event));
        self.sampler.refresh();
        match *event {
            Event::AddressUp { address, interface } => self.hands.raise(address, interface),
            Event::AddressDown { address } => self.hands.lower(address),
            _ => {}
        }
        self.classes.handle_event(self.clock.now(), event);
    }

    /// When the machine wants to be called, samples aside.
    fn due(&self) -> Option<tokio::time::Instant> {
        let at = self.classes.poll_timeout()?;
        Some(tokio::time::Instant::now() + std::time::Duration::from_nanos(at.since(self.clock.now()).as_nanos()))
    }

    fn sample(&mut self, tell: &mut impl FnMut(Notice<'_>)) {
        let sample = match self.sampler.sample(self.clock.now()) {
            Ok(sample) => sample,
            Err(error) => return tell(Notice::Blind(&to_io(error))),
        };
        self.sampled += 1;
        let adopted = self.classes.counters().adopted;
        self.classes.handle_sample(&sample);
        for connection in sample.connections.iter().filter(|connection| connection.fallback) {
            if self.fallen.insert(connection.token) {
                tell(Notice::FellBack(connection.token));
            }
        }
        if self.classes.counters().adopted > adopted {
            self.tell_adopted(tell);
        }
        for address in self.hands.restore(|address| self.classes.holds_back(address)) {
            tell(Notice::Restored(address));
        }
        self.fallen.retain(|token| sample.has(*token));
        self.adopted.retain(|token| sample.has(*token));
        tell(Notice::Sampled { at: sample.at, classes: &self.classes });
    }

    fn tell_adopted(&mut self, tell: &mut impl FnMut(Notice<'_>)) {
        for connection in self.classes.connections().filter(|connection| connection.adopted) {
            if self.adopted.insert(connection.token) {
                tell(Notice::Adopted(connection.token));
            }
        }
    }

    /// Looks which addresses there are.
    fn look(&mut self, tell: &mut impl FnMut(Notice<'_>)) -> io::Result<()> {
        let events = self.addresses.look()?;
        self.classes.own(self.addresses.own().clone());
        for event in events {
            self.handle(&event, tell);
        }
        Ok(())
    }

    fn compare_counters(&mut self, tell: &mut impl FnMut(Notice<'_>)) {
        let now = Counters::read();
        now.losses_since(&self.counters).for_each(|(times, what)| tell(Notice::Loss(times, what)));
        self.counters = now;
    }

    /// Carries out what was decided.
    fn carry_out(&mut self, tell: &mut impl FnMut(Notice<'_>)) {
        while let Some((class, command)) = self.classes.poll_command() {
            let outcome = self.hands.carry_out(&command);
            self.sampler.refresh();
            let why = self.classes.why(class, &command);
            tell(Notice::Command { command: &command, outcome, refusal: self.hands.refusal(), why: why.as_ref() });
            self.classes.handle_outcome(self.clock.now(), class, command, outcome);
        }
    }

    /// Makes what we made backups regular again: nobody else would. Subflows stay as they are otherwise.
    pub fn end(&mut self) {
        for (token, endpoints) in self.classes.held_back() {
            // It may have ended.
            let _ = self.hands.carry_out(&Command::SetBackup { token, endpoints, backup: false });
        }
        self.hands.restore(|_| false);
    }

    /// How many samples were taken.
    pub fn sampled(&self) -> u64 {
        self.sampled
    }
}

/// Ticks from now on; one that is late is left out.
fn ticks(every: std::time::Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

fn ticks_later(every: std::time::Duration) -> Interval {
    let mut ticks = ticks(every);
    ticks.reset();
    ticks
}

async fn sleep_to(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
