//! Datagram sessions in the lab.

use crate::metric::Series;
use crate::record::Record;
use crate::scenario::Document;
use crate::simulation::{self, Extras};
use anabranch_policy::combination::Choice;
use anabranch_settings::contender::Contender;

/// Two paths of 20 Mbit/s, 10 and 30 ms; `quick` has further settings of the first, `more` of the scenario.
fn run(quick: &str, more: &str, policy: &str, seed: u64) -> Record {
    let text = format!(
        r#"
        name = "s"
        duration = "12 s"
        warm_up = "2 s"
        sample = "500 ms"
        [[datagrams]]
        name = "call"
        kind = "call"
        rate = "1 Mbit/s"
        size = "1000 B"
        deadline = "150 ms"
        [[datagrams]]
        name = "dns"
        kind = "requests"
        interval = "100 ms"
        [[paths]]
        name = "quick"
        links = [{{ rate = "20 Mbit/s", delay = "10 ms", queue = "500 packets"{quick} }}]
        [[paths]]
        name = "slow"
        links = [{{ rate = "20 Mbit/s", delay = "30 ms" }}]
        {more}
        "#
    );
    let scenario = Document::embedded("s.toml", &text, &[]).scenario().expect("it is a scenario");
    let contender = Contender { datagram: Choice::new(policy), ..Contender::plain() };
    let paths: Vec<usize> = (0..scenario.paths.len()).collect();
    simulation::run(&scenario, &contender, &paths, seed, &Extras { curves: true, ..Extras::default() })
        .expect("it runs")
}

fn of(record: &Record, name: &str) -> f64 {
    record.metric(name).unwrap_or_else(|| panic!("{name} is not measured"))
}

#[test]
fn the_same_seed_has_the_same_trace_hash_although_keys_differ() {
    let hash = |policy, seed| run("", "", policy, seed).trace_hash;
    assert_eq!(hash("lowest_delay", 1), hash("lowest_delay", 1));
    assert_ne!(hash("lowest_delay", 1), hash("lowest_delay", 2));
    assert_ne!(hash("lowest_delay", 1), hash("weighted", 1));
}

#[test]
fn a_call_takes_the_quick_path_and_copies_cost_twice_as_much() {
    let record = run("", "", "lowest_delay", 1);
    assert_eq!((of(&record, "datagrams_lost"), of(&record, "datagrams_in_time")), (0.0, 100.0));
    // 1,000 bytes every 8 ms in both directions, for 9 of the 10 s after the warm-up.
    assert!((of(&record, "datagrams:call") - 2_250.0).abs() <= 2.0);
    // 10 ms and 1,085 bytes at 20 Mbit/s.
    assert!((of(&record, "datagram_delay_p50:call") - 10.43).abs() < 0.1);
    // Round trip, and the transmission times of 1,085 and 145 bytes.
    let answer = of(&record, "datagram_delay_p50:dns");
    assert!((20.0..20.7).contains(&answer), "{answer}");
    assert!(record.metric("datagram_gap:dns").is_none() && of(&record, "datagram_gap") < 20.0);
    // Per 1,028 bytes there are 57 of encryption, probes and reports.
    let cost = of(&record, "datagram_cost");
    assert!((1.05..1.2).contains(&cost), "{cost}");
    let copies = of(&run("", "", "duplicate", 1), "datagram_cost");
    assert!((1.9..2.2).contains(&(copies / cost)), "{copies}");
    let sent = |path| record.curve(Series::DatagramPathThroughput, Some(path)).expect("it is measured").values[10];
    assert!(sent(0) > 2.0 && sent(1) < 0.1, "{} {}", sent(0), sent(1));
}

#[test]
fn a_path_that_dies_silently_is_left_in_less_than_a_fifth_of_a_second() {
    for seed in 1..=3 {
        let record = run(", down = [\"5..9 s\"]", "", "lowest_delay", seed);
        let gap = of(&record, "datagram_gap");
        assert!((100.0..200.0).contains(&gap), "{gap}");
        assert!(of(&record, "datagrams_lost:call") < 2.0);
    }
}

#[test]
fn a_call_stays_off_a_queue_that_others_keep_full() {
    let others = "[[beside]]\ncongestion = \"cubic\"\npath = \"quick\"\ncount = 2\ndirection = \"download\"";
    let record = run("", others, "lowest_delay", 1);
    assert!(of(&record, "datagrams_in_time:call") > 99.5, "{}", of(&record, "datagrams_in_time:call"));
    assert!(of(&record, "others_throughput") > 10.0);
    assert!(record.metric("throughput").is_none(), "there is no transfer");
}

#[test]
fn datagrams_go_beside_a_transfer_and_both_are_measured() {
    let transfer = "[transfer]\nkind = \"endless\"\n[connection]\nreceive_buffer = \"4 MB\"";
    let record = run("", transfer, "lowest_delay", 1);
    assert!(of(&record, "throughput") > 20.0 && of(&record, "datagrams") > 2_000.0);
}
