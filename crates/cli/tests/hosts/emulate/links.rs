//! Effects on packets: delay, rate, queue, losses, outages, cross traffic.

use crate::emulate::stage::{Stage, path};
use anabranch_emulate::{Hop, Network};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::{LinkConfig, LossModel};
use libtest_mimic::{Failed, Trial};

type Test = fn() -> Result<(), Failed>;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, Test); 8] = [
        ("emulate::links::a_round_trip_takes_the_delays_of_its_path", a_round_trip_takes_the_delays_of_its_path),
        (
            "emulate::links::a_seed_loses_the_packets_that_it_loses_in_the_lab",
            a_seed_loses_the_packets_that_it_loses_in_the_lab,
        ),
        (
            "emulate::links::a_burst_leaves_at_the_rate_and_fills_the_queue",
            a_burst_leaves_at_the_rate_and_fills_the_queue,
        ),
        ("emulate::links::a_trace_says_when_packets_leave", a_trace_says_when_packets_leave),
        ("emulate::links::a_link_that_is_down_carries_nothing", a_link_that_is_down_carries_nothing),
        ("emulate::links::corrupt_packets_do_not_reach_programs", corrupt_packets_do_not_reach_programs),
        ("emulate::links::paths_that_share_a_link_share_its_rate", paths_that_share_a_link_share_its_rate),
        ("emulate::links::cross_traffic_takes_its_share", cross_traffic_takes_its_share),
    ];
    tests.into_iter().map(|(name, test)| Trial::test(name, test)).collect()
}

/// Tolerance of times on a busy machine, µs.
const SLACK: u64 = 100_000;

/// RTTs in µs, from an address of the client.
fn round_trips(stage: &Stage, from: &str, to: &str, count: usize) -> Vec<u64> {
    let ran = stage.agents(&[], &["echo"], &["ping", from, to, &count.to_string()]);
    let times: Vec<u64> = ran.said.lines().map(|line| line.parse().expect("a time")).collect();
    assert_eq!(times.len(), count, "nothing is lost: {}", ran.complained);
    times
}

fn a_round_trip_takes_the_delays_of_its_path() -> Result<(), Failed> {
    let link = |delay: u32| format!("rate = \"100 Mbit/s\"\ndelay = \"{delay} ms\"");
    let stage = Stage::new("round_trips", &(path("A", &link(10)) + &path("B", &link(40))));
    let ways = [
        ("10.0.1.1", "10.0.0.2", 20),
        ("10.0.2.1", "10.0.0.2", 80),
        // The source address selects the path, not the destination.
        ("10.0.2.1", "10.0.1.2", 80),
        ("fd00:1::1", "fd00::2", 20),
        ("fd00:2::1", "fd00::2", 80),
    ];
    for (from, to, millis) in ways {
        let times = round_trips(&stage, from, to, 10);
        let (least, lower) = (*times.iter().min().expect("there are some"), millis * 1_000);
        // Never too early. The best of ten is late only by the processing of two packets.
        assert!(times.iter().all(|time| *time >= lower), "{from}: {times:?}");
        assert!(least < lower + 30_000, "{from}: {times:?}");
    }
    Ok(())
}

/// Numbers and arrival times in µs after the first.
fn stream(stage: &Stage, options: &[&str], words: &[&str]) -> (crate::emulate::stage::Ran, Vec<(u32, u64)>) {
    let file = stage.file("arrived");
    let file_name = file.to_str().expect("the path is UTF-8");
    let ran = stage.agents(options, &["sink", file_name], &[&["stream"], words].concat());
    let text = std::fs::read_to_string(&file).expect("the sink wrote it");
    let line = |line: &str| {
        let (number, time) = line.split_once(' ').expect("two columns");
        (number.parse().expect("a number"), time.parse().expect("a time"))
    };
    (ran, text.lines().map(line).collect())
}

fn a_seed_loses_the_packets_that_it_loses_in_the_lab() -> Result<(), Failed> {
    let link = "rate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nloss = \"10 %\"";
    let stage = Stage::one_path("losses", link);
    for seed in [7u64, 8] {
        let words = ["10.0.1.1", "10.0.0.2", "1000", "200", "500"];
        let (ran, arrived) = stream(&stage, &["--seed", &seed.to_string()], &words);
        // The link with that name in the lab; uniform loss draws once per packet, independent of time.
        let mut config = LinkConfig::new(Rate::from_bits_per_second(100_000_000), Duration::from_millis(5), 1_000);
        config.loss = vec![LossModel::Uniform(0.1)];
        let mut network = Network::new(seed);
        let (here, there) = (network.add_port(), network.add_port());
        let link = network.add_link("A/0/forward", &config, Hop::Port(there));
        network.connect(here, Hop::Link(link));
        for number in 0..1_000u32 {
            // An IPv4 header with routable addresses, followed by the number.
            let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 1, 1, 10, 0, 0, 2];
            packet.extend_from_slice(&number.to_be_bytes());
            network.handle_packet(Instant::ZERO + Duration::from_millis(u64::from(number)), here, &packet);
        }
        network.handle_timeout(Instant::ZERO + Duration::from_secs(100));
        let expected: Vec<u32> = core::iter::from_fn(|| network.poll_delivery())
            .map(|delivery| u32::from_be_bytes(*delivery.frame.bytes()[20..].first_chunk().expect("a number")))
            .collect();
        assert_eq!(arrived.iter().map(|(number, _)| *number).collect::<Vec<_>>(), expected);
        assert_eq!(ran.link("A/0/forward", "offered_packets"), 1_000);
        assert_eq!(ran.link("A/0/forward", "drops/loss"), 1_000 - expected.len() as u64);
        assert_eq!(ran.json["no_route"], 0, "nothing but the program's packets took part");
    }
    Ok(())
}

fn a_burst_leaves_at_the_rate_and_fills_the_queue() -> Result<(), Failed> {
    // A packet of 1250 bytes takes 10 ms.
    let stage = Stage::one_path("burst", "rate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"20 packets\"");
    let (ran, arrived) = stream(&stage, &[], &["10.0.1.1", "10.0.0.2", "200", "1250", "0"]);
    // One is being sent and 20 wait when the others arrive; more arrive if sending took over 10 ms.
    assert!((21..100).contains(&arrived.len()), "{}", arrived.len());
    let lost = 200 - arrived.len() as u64;
    assert_eq!(ran.link("A/0/forward", "drops/overflow"), lost);
    assert_eq!(ran.link("A/0/forward", "peak_queue_packets"), 20);
    let (_, span) = arrived.last().expect("some arrive");
    let expected = (arrived.len() as u64 - 1) * 10_000;
    assert!(ran.was_late() || span.abs_diff(expected) < SLACK, "{span} µs rather than {expected}");
    Ok(())
}

fn a_trace_says_when_packets_leave() -> Result<(), Failed> {
    let stage = Stage::one_path("trace", "rate = { trace = \"ten.trace\" }\nqueue = \"100 packets\"");
    // 1500 bytes every 10 ms, with a pause of 200 ms at the end.
    let times: Vec<String> = (1..=20).map(|at| (at * 10).to_string()).chain(["400".to_owned()]).collect();
    std::fs::write(stage.file("ten.trace"), times.join("\n")).expect("it can be written");
    let (ran, arrived) = stream(&stage, &[], &["10.0.1.1", "10.0.0.2", "63", "1500", "0"]);
    assert_eq!(arrived.len(), 63);
    // 63 packets are three cycles of the trace from any starting point: 800 ms plus the rest of the cycle.
    let (_, span) = arrived.last().expect("all arrive");
    assert!(ran.was_late() || (1_000_000 - SLACK..1_200_000 + SLACK).contains(span), "{span}");
    Ok(())
}

fn a_link_that_is_down_carries_nothing() -> Result<(), Failed> {
    let link = "rate = \"10 Mbit/s\"\ndelay = \"5 ms\"\ndown = [\"0..2 s\"]";
    let stage = Stage::one_path("down", link);
    let (ran, arrived) = stream(&stage, &[], &["10.0.1.1", "10.0.0.2", "40", "100", "100000"]);
    let lost = ran.link("A/0/forward", "drops/link_down");
    assert_eq!(lost + arrived.len() as u64, 40);
    // The first is sent well within the outage, the last after four seconds.
    assert!(lost > 0 && arrived.len() > 5, "{lost} lost");
    assert!(arrived.iter().map(|(number, _)| u64::from(*number)).eq(lost..40), "the last ones: {arrived:?}");
    Ok(())
}

fn corrupt_packets_do_not_reach_programs() -> Result<(), Failed> {
    let stage = Stage::one_path("corrupt", "rate = \"100 Mbit/s\"\ncorruption = \"20 %\"");
    let (ran, arrived) = stream(&stage, &[], &["10.0.1.1", "10.0.0.2", "500", "300", "500"]);
    let corrupted = ran.link("A/0/forward", "corrupted");
    assert!(corrupted > 50, "{corrupted}");
    assert_eq!(arrived.len() as u64 + corrupted, 500, "the kernel finds each by its checksum");
    assert_eq!(ran.link("A/0/forward", "delivered_packets"), 500);
    Ok(())
}

fn paths_that_share_a_link_share_its_rate() -> Result<(), Failed> {
    let link = "rate = \"100 Mbit/s\"\ndelay = \"1 ms\"";
    let shared = "[[shared]]\nname = \"bottleneck\"\nrate = \"1 Mbit/s\"\nqueue = \"10 packets\"\n";
    let stage = Stage::new("shared", &(path("A", link) + &path("B", link) + shared));
    let (ran, arrived) = stream(&stage, &[], &["10.0.2.1", "10.0.0.2", "100", "1250", "0"]);
    assert_eq!(ran.link("B/0/forward", "delivered_packets"), 100);
    assert_eq!(ran.link("A/0/forward", "offered_packets"), 0);
    assert_eq!(ran.link("shared/0/forward", "offered_packets"), 100);
    assert_eq!(ran.link("shared/0/forward", "delivered_packets"), arrived.len() as u64);
    assert_eq!(ran.link("shared/0/forward", "drops/overflow"), 100 - arrived.len() as u64);
    // Answers use the same path.
    let times = round_trips(&stage, "10.0.2.1", "10.0.0.2", 3);
    assert!(times.iter().all(|time| *time >= 2_000), "{times:?}");
    Ok(())
}

fn cross_traffic_takes_its_share() -> Result<(), Failed> {
    let background =
        "[paths.background]\nshare = \"50 %\"\ntcp = \"0 %\"\nsizes = [{ share = \"100 %\", size = \"1000 B\" }]\n";
    let stage = Stage::new("cross", &(path("A", "rate = \"8 Mbit/s\"\nqueue = \"1000 packets\"") + background));
    let (ran, arrived) = stream(&stage, &[], &["10.0.1.1", "10.0.0.2", "10", "100", "1000"]);
    assert_eq!(arrived.len(), 10, "none of the cross traffic reaches the program");
    // 500 packets a second for at least two seconds with exponential intervals: 1000 with a standard deviation of 32.
    let offered = ran.link("A/0/forward", "offered_packets");
    let seconds = ran.json["seconds"].as_f64().expect("a time");
    let expected = 500.0 * seconds;
    assert!((offered as f64 - expected).abs() < 6.0 * expected.sqrt() + 20.0, "{offered} in {seconds} s");
    let with_tcp = stage.run(&["--set", "paths.A.background.tcp=\"10 %\""], &["true"]);
    assert_eq!(with_tcp.code, 2);
    assert!(with_tcp.complained.contains("path 'A' has a TCP part"), "{}", with_tcp.complained);
    Ok(())
}
