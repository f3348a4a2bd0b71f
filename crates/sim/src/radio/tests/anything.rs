//! Invariants of a channel under random inputs.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const STATIONS: u32 = 6;

/// An action on a channel, and the time in microseconds before it.
#[derive(Clone, Debug)]
enum Step {
    Send { station: u32, to: Option<u32>, bytes: u32 },
    Move { station: u32, x: f64 },
    Switch { station: u32, on: bool },
    Link { from: u32, to: u32, hears: Hears },
    Lossy { from: u32, to: u32 },
    Wait,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let station = || 0..STATIONS;
    let hears = prop_oneof![Just(Hears::Frames), Just(Hears::Nothing), Just(Hears::Busy), Just(Hears::Noise)];
    let step = prop_oneof![
        8 => (station(), proptest::option::of(station()), 20..1500u32)
            .prop_map(|(station, to, bytes)| Step::Send { station, to: to.filter(|to| *to != station), bytes }),
        2 => (station(), 0.0..500.0).prop_map(|(station, x)| Step::Move { station, x }),
        1 => (station(), any::<bool>()).prop_map(|(station, on)| Step::Switch { station, on }),
        1 => (station(), station(), hears).prop_map(|(from, to, hears)| Step::Link { from, to, hears }),
        1 => (station(), station()).prop_map(|(from, to)| Step::Lossy { from, to }),
        1 => Just(Step::Wait),
    ];
    (prop_oneof![0..30u64, 0..3000u64, Just(0)], step)
}

fn config() -> impl Strategy<Value = MediumConfig> {
    let overlap = prop_oneof![Just(Overlap::Spoils), Just(Overlap::Capture(6.0)), Just(Overlap::Despreads)];
    let reach = prop_oneof![
        Just(Reach::disk(150.0)),
        Just(Reach::realistic(120.0)),
        Just(Reach::PathLoss(PathLoss { shadowing: 4.0, fading: 1, ..PathLoss::default() })),
    ];
    (overlap, reach, prop_oneof![Just(u32::MAX), Just(500)], proptest::option::of(1..20u64), any::<bool>()).prop_map(
        |(overlap, reach, rts_threshold, lifetime, waits)| MediumConfig {
            overlap,
            reach,
            rts_threshold,
            lifetime: lifetime.map(Duration::from_millis),
            interrupted: if waits { Interrupted::Waits } else { Interrupted::BacksOff },
            queue_frames: 4,
            ..MediumConfig::default()
        },
    )
}

/// The fate of packets, by number: reports by result, and receivers.
#[derive(Default, Debug)]
struct Books {
    statuses: BTreeMap<u32, (u32, bool)>,
    arrivals: BTreeMap<u32, Vec<u32>>,
}

impl Books {
    fn take(&mut self, medium: &mut Medium<u32>) {
        while let Some(delivery) = medium.poll_delivery() {
            self.arrivals.entry(delivery.cargo).or_default().push(delivery.to.0);
        }
        while let Some(status) = medium.poll_status() {
            let entry = self.statuses.entry(status.cargo).or_default();
            *entry = (entry.0 + 1, status.delivered);
        }
    }
}

fn apply(medium: &mut Medium<u32>, now: u64, packet: u32, step: &Step) -> Option<Option<u32>> {
    match step {
        Step::Send { station, to, bytes } => {
            let sent = medium.enqueue(at(now), StationId(*station), to.map(StationId), packet, *bytes);
            return sent.is_ok().then_some(*to);
        }
        Step::Move { station, x } => medium.set_position(StationId(*station), Position { x: *x, y: 0.0 }),
        Step::Switch { station, on } => medium.set_on(at(now), StationId(*station), *on),
        Step::Link { from, to, hears } => {
            let link = Link { hears: *hears, ..Link::GOOD };
            medium.set_link(StationId(*from), StationId(*to), Some(link));
        }
        Step::Lossy { from, to } => medium.set_error_rate(StationId(*from), StationId(*to), 0.5),
        Step::Wait => {}
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn every_packet_is_reported_on_once_and_arrives_once(
        config in config(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut medium = Medium::new(config, 1, "channel");
        for station in 0..STATIONS {
            medium.add_station(Position { x: 80.0 * f64::from(station), y: 0.0 });
        }
        let (mut now, mut books, mut taken) = (0, Books::default(), BTreeMap::new());
        for (packet, (wait, step)) in (0..).zip(&steps) {
            now += wait;
            while medium.poll_timeout() < at(now) {
                medium.handle_timeout(medium.poll_timeout());
                books.take(&mut medium);
            }
            if let Some(to) = apply(&mut medium, now, packet, step) {
                taken.insert(packet, to);
            }
        }
        // In the end the channel is idle and empty.
        let mut events = 0;
        while medium.poll_timeout() != Instant::NEVER {
            medium.handle_timeout(medium.poll_timeout());
            books.take(&mut medium);
            events += 1;
            prop_assert!(events < 1_000_000, "it never rests");
        }
        books.take(&mut medium);
        prop_assert!((0..STATIONS).all(|station| medium.waiting(StationId(station)) == 0));
        prop_assert_eq!(books.statuses.keys().collect::<Vec<_>>(), taken.keys().collect::<Vec<_>>());
        for (packet, to) in &taken {
            let (reports, delivered) = books.statuses[packet];
            prop_assert_eq!(reports, 1);
            let arrivals = books.arrivals.get(packet).map_or(&[][..], Vec::as_slice);
            match to {
                // An acknowledged packet has arrived; one that was not may have.
                Some(to) => prop_assert!(arrivals == [*to] || (arrivals.is_empty() && !delivered), "{packet}: {arrivals:?}"),
                None => {
                    let mut once = arrivals.to_vec();
                    once.sort_unstable();
                    once.dedup();
                    prop_assert_eq!(once.len(), arrivals.len());
                }
            }
        }
    }
}
