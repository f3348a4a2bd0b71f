//! Generators of cross traffic at routers: their rates compared with results by hand, and their routes.

use anabranch_mptcp::{EndpointConfig, Policies};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::generator::{Generator, Source, ns2_tcp};
use anabranch_sim::link::LossModel;
use anabranch_sim::topology::{NoPaths, attach_to_router};
use anabranch_sim::{End, LinkConfig, RouterId, RunResult, UdpConfig, World, WorldConfig};

fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_second(mbit * 1_000_000)
}

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Two routers and a link of 10 Mbit/s and 10 ms between them with loss in the forward direction.
fn routers(world: &mut World, loss: f64) -> (RouterId, RouterId) {
    let (one, other) = (world.add_router(), world.add_router());
    let link = LinkConfig::new(mbit(10), Duration::from_millis(10), 50);
    let lossy = LinkConfig { loss: vec![LossModel::Uniform(loss)], ..link.clone() };
    world.add_link("there", &lossy, End::Router(one), End::Router(other));
    world.add_link("back", &link, End::Router(other), End::Router(one));
    (one, other)
}

fn generator(name: &str, (from, to): (RouterId, RouterId), source: Source) -> Generator {
    let access = LinkConfig::new(mbit(100), Duration::from_millis(25), 50);
    Generator { name: name.to_owned(), from, to, access, start: Instant::ZERO, source }
}

fn ftp() -> Source {
    let policies = Combination { congestion: Choice::new("new_reno"), ..Combination::default() };
    Source::Ftp(Box::new(ns2_tcp(Policies::of(&policies).unwrap(), Some(20))))
}

fn vbr() -> Source {
    Source::Vbr { rate: Rate::from_bits_per_second(448_000), sizes: (100, 200), on_off: None }
}

/// Traffic of each generator that arrived: bytes of data of an FTP, whole packets of UDP.
fn got(results: &RunResult, generator: &Generator) -> f64 {
    let flow = results.flow(&generator.name).map(|flow| flow.server.read);
    let host = results.hosts.iter().find(|host| host.name == generator.sink()).unwrap();
    flow.unwrap_or(host.udp_bytes) as f64
}

fn run(seed: u64, loss: f64, generators: impl Fn(RouterId, RouterId) -> Vec<Generator>) -> (Vec<f64>, RunResult) {
    let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
    let (one, other) = routers(&mut world, loss);
    let generators = generators(one, other);
    generators.iter().for_each(|generator| generator.add(&mut world));
    world.run_until(seconds(100));
    let results = world.results();
    (generators.iter().map(|generator| got(&results, generator)).collect(), results)
}

#[test]
fn an_ftp_without_losses_sends_its_window_once_per_round_trip() {
    let (got, _) = run(1, 0.0, |one, other| vec![generator("f", (one, other), ftp())]);
    // 2 x (25 + 10 + 25) ms, and 1040 B at 100, 10 and 100 Mbit/s: 83.2, 832 and 83.2 us; for the 40 B back, 38.4 us.
    let round_trip = 0.120 + 0.000_998_4 + 0.000_038_4;
    let expected = 20_000.0 * 100.0 / round_trip;
    assert!((got[0] / expected - 1.0).abs() < 0.01, "{} of {expected}", got[0]);
}

#[test]
fn an_ftp_that_meets_losses_is_limited_by_them() {
    let (got, _) = run(1, 0.02, |one, other| vec![generator("f", (one, other), ftp())]);
    // Mathis et al. (1997), with an acknowledgement of each packet: 1.22 * 1000 B / (0.121 s * sqrt(0.02)), 71 kB/s, as
    // long as there are no timeouts; with windows of 9 packets and a minimum timeout of 1 s there are some.
    let most = 1.22 * 1000.0 / (0.121 * f64::sqrt(0.02)) * 100.0;
    assert!((0.5 * most..1.05 * most).contains(&got[0]), "{} of {most}", got[0]);
}

#[test]
fn sources_load_the_link_between_their_routers_in_their_direction_alone() {
    let (got, results) = run(1, 0.0, |one, other| {
        vec![generator("there/udp", (one, other), vbr()), generator("back/ftp", (other, one), ftp())]
    });
    // 448 kbit/s for 100 s, less the packets under way at the end: 60 ms.
    assert!((got[0] / 5.6e6 - 1.0).abs() < 0.001, "{}", got[0]);
    let delivered = |link: &str| results.link(link).unwrap().counters.delivered_bytes as f64;
    // The link counts packets that have not reached their sink yet, 25 ms of UDP (1.4 kB) or a window of TCP, and the
    // handshake, at most 200 B. 1000 B of data are 1040 B in one direction and 40 B of acknowledgement in the other.
    let packets = got[1] / 1000.0;
    assert!((0.0..1_400.0 + 40.0 * 20.0 + 400.0).contains(&(delivered("there") - got[0] - 40.0 * packets)));
    assert!((0.0..1_040.0 * 20.0 + 200.0).contains(&(delivered("back") - 1_040.0 * packets)));
    assert_eq!(delivered("there/udp/source/in"), 0.0);
    assert!((delivered("there/udp/sink/in") / got[0] - 1.0).abs() < 1e-9);
}

#[test]
fn a_source_has_the_same_luck_whoever_else_there_is() {
    let sent = |others: bool| {
        let mut world = World::new(WorldConfig { seed: 5, ..WorldConfig::default() });
        let ends = routers(&mut world, 0.01);
        if others {
            generator("ftp", ends, ftp()).add(&mut world);
        }
        let pauses = Some((Duration::from_secs(1), Duration::from_secs(1)));
        let source = Source::Vbr { rate: mbit(1), sizes: (100, 200), on_off: pauses };
        generator("vbr", ends, source).add(&mut world);
        let hosts = ["a", "b"].map(|name| world.add_host(name, &EndpointConfig::default(), Box::new(NoPaths)));
        let [from, to] = [("a", hosts[0], ends.0), ("b", hosts[1], ends.1)]
            .map(|(name, host, router)| attach_to_router(&mut world, name, host, router));
        world.add_udp(UdpConfig::steady("old", from, to, mbit(1), 1000));
        world.run_until(seconds(20));
        world.results().udp
    };
    assert_eq!(sent(false), sent(true));
}

#[test]
fn a_generator_begins_when_it_is_to() {
    let (_, results) = run(1, 0.0, |one, other| {
        let late = |name, source| Generator { start: seconds(90), ..generator(name, (one, other), source) };
        vec![late("f", ftp()), late("v", vbr())]
    });
    assert_eq!(results.flow("f").unwrap().start, seconds(90));
    let established = results.flow("f").unwrap().client.established.unwrap();
    assert!(established > seconds(90) && established < seconds(91));
    // 10 s at 448 kbit/s.
    assert!(results.udp[0].sent_bytes.abs_diff(560_000) <= 200);
}
