use super::*;
use crate::catalogue::scenario_text;
use anabranch_lab::simulation;

/// A scenario of ten seconds.
const SHORT: &str = r#"
name = "short"
duration = "10 s"
connection.receive_buffer = "1 MB"
[[paths]]
name = "wifi"
[[paths.links]]
name = "radio"
rate = "20 Mbit/s"
delay = "10 ms"
queue = "60 packets"
[[paths]]
name = "lte"
[[paths.links]]
name = "radio"
rate = "10 Mbit/s"
delay = "40 ms"
queue = "100 packets"
loss = "0.1 %"
[[policies]]
name = "anabranch"
[[policies]]
name = "tcp"
paths = "best"
multipath = false
congestion = "cubic"
"#;

fn of(text: &str, policy: &str) -> Playground {
    Playground::new(text, policy, 7).unwrap()
}

fn value(json: &str) -> serde_json::Value {
    serde_json::from_str(json).unwrap()
}

/// Hash of the run as the command makes it.
fn hash_of_command(text: &str, policy: &str) -> String {
    let scenario = read(text).unwrap();
    let contender = scenario.policies.iter().find(|contender| contender.name == policy).unwrap();
    let paths = path_sets(&scenario, contender).remove(0);
    let record = simulation::run(&scenario, contender, &paths, 7, &Extras::default()).unwrap();
    format!("{:016x}", record.trace_hash)
}

#[test]
fn a_run_that_is_watched_in_steps_is_that_of_the_command() {
    let mut run = of(SHORT, "anabranch");
    while !run.ended() {
        for _ in 0..20 {
            run.step();
        }
        run.advance(0.137);
        let _ = (run.packets(), run.frame(), run.decisions(), run.actions());
    }
    assert_eq!(run.trace_hash(), hash_of_command(SHORT, "anabranch"));
    assert!((run.now() - 10.0).abs() < 1e-9, "{}", run.now());
}

#[test]
fn papers_experiments_have_the_hashes_of_the_command() {
    for (name, policy) in [("lm3_motivation", "case_2_lm3"), ("maps", "maps")] {
        let text = scenario_text(name).unwrap();
        let policy = read(text).unwrap().policies.iter().find(|one| one.name.starts_with(policy)).unwrap().name.clone();
        let mut run = of(text, &policy);
        while !run.ended() {
            run.advance(10.0);
        }
        assert_eq!(run.trace_hash(), hash_of_command(text, &policy), "{name}");
    }
}

#[test]
fn packets_queues_and_decisions_are_seen() {
    let mut run = of(SHORT, "anabranch");
    run.advance(5.0);
    let lanes = value(&run.lanes());
    assert_eq!(lanes.as_array().unwrap().len(), 4);
    assert_eq!((&lanes[0]["name"], &lanes[0]["rate"]), (&"wifi".into(), &20e6.into()));
    let packets = run.packets();
    assert!(packets.len() > 4 * 20 && packets.len().is_multiple_of(4), "{}", packets.len());
    for packet in packets.chunks(4) {
        assert!((0.0..=1.0).contains(&packet[1]) && packet[0] < 4.0 && packet[2] >= 40.0, "{packet:?}");
    }
    let frame = value(&run.frame());
    assert!(frame["goodput_bytes"].as_u64().unwrap() > 5_000_000, "{frame}");
    let paths: Vec<_> = frame["subflows"].as_array().unwrap().iter().map(|one| one["path"].as_u64()).collect();
    assert_eq!(paths, [Some(0), Some(1)]);
    let decisions = value(&run.decisions());
    assert_eq!(decisions.as_array().unwrap().len(), 50);
    let last = &decisions[49];
    assert!(last["view"].as_array().unwrap().len() == 2 && last["time"].as_f64().unwrap() > 4.5, "{last}");
    let actions = value(&run.actions());
    assert!(actions.to_string().contains("opens a subflow"), "{actions}");
}

#[test]
fn a_path_that_is_cut_carries_nothing_and_one_that_is_slowed_less() {
    let delivered =
        |run: &mut Playground, lane: usize| value(&run.frame())["lanes"][lane]["delivered_bytes"].as_u64().unwrap();
    let mut run = of(SHORT, "anabranch");
    run.advance(3.0);
    run.change(0, "up", 0.0).unwrap();
    run.change(1, "rate", 1e6).unwrap();
    run.change(1, "loss", 0.02).unwrap();
    run.advance(1.0);
    // Data flows from the client to the server.
    let before = [delivered(&mut run, 0), delivered(&mut run, 2)];
    run.advance(4.0);
    let after = [delivered(&mut run, 0), delivered(&mut run, 2)];
    assert_eq!(after[0], before[0]);
    let rate = (after[1] - before[1]) as f64 * 8.0 / 4.0;
    assert!((0.5e6..=1.01e6).contains(&rate), "{rate}");
    assert_eq!(value(&run.lanes())[0]["up"], false);
    assert_ne!(run.trace_hash(), hash_of_command(SHORT, "anabranch"));
}

#[test]
fn values_that_cannot_be_are_refused_in_a_sentence_and_the_run_goes_on() {
    let mut run = of(SHORT, "anabranch");
    for (path, quantity, value) in [
        (0, "rate", 0.0),
        (0, "loss", 1.5),
        (0, "delay", -1.0),
        (9, "rate", 1e6),
        (0, "colour", 1.0),
        (0, "queue", f64::NAN),
    ] {
        assert!(run.change(path, quantity, value).is_err(), "{path} {quantity} {value}");
    }
    run.advance(f64::NAN);
    run.advance(-5.0);
    run.advance(1e300);
    assert!(run.ended());
    run.step();
    assert!(Playground::new(SHORT, "nobody", 1).err().unwrap().contains("it has anabranch, tcp"));
}

/// A scenario with less time.
fn shortened(name: &str, duration: &str) -> String {
    let text = scenario_text(name).unwrap();
    let lines = text.lines().map(|line| if line.starts_with("duration =") { duration } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn ad_hoc_networks_that_are_watched_have_the_hashes_of_the_command() {
    for (name, policy, duration) in [
        ("manet_homogeneous", "MMPxM", "duration = \"5 s\""),
        ("manet_file", "MPxM", "duration = \"5 s\""),
        ("manet_moving", "min_cost", "duration = \"90 s\""),
        ("mesh_quality", "etx", "duration = \"70 s\""),
        ("mesh_download", "etx", "duration = \"100 s\""),
        ("manet_forecast", "viterbi", "duration = \"90 s\""),
        ("manet_cuts", "viterbi", "duration = \"240 s\""),
    ] {
        let text = shortened(name, duration);
        let mut run = of(&text, policy);
        while !run.ended() {
            run.advance(3.3);
            for _ in 0..5 {
                run.step();
            }
            let _ = (run.mesh().unwrap(), run.frame(), run.packets(), run.lanes());
        }
        assert_eq!(run.trace_hash(), hash_of_command(&text, policy), "{name}");
    }
}

#[test]
fn a_mesh_is_seen_with_roles_lanes_forecasts_and_next_hops() {
    let mut run = of(&shortened("manet_homogeneous", "duration = \"60 s\""), "MMPxM");
    assert!((run.duration() - 80.0).abs() < 1e-9, "{}", run.duration());
    // Before there is any traffic, in which Hellos are lost.
    run.advance(20.0);
    let mesh = value(&run.mesh().unwrap());
    let links = mesh["links"].as_array().unwrap();
    assert!(links.iter().all(|link| link["forecast"] == "good" && link["in_range"] == true), "{links:?}");
    run.advance(5.0);
    run.choose_node(Some(0)).unwrap();
    let mesh = value(&run.mesh().unwrap());
    let roles: Vec<_> = mesh["nodes"].as_array().unwrap().iter().filter_map(|node| node["role"].as_str()).collect();
    assert!(roles.len() == 8 && roles.contains(&"mdr"), "{roles:?}");
    assert_eq!((&mesh["nodes"][0]["name"], &mesh["nodes"][4]["x"]), (&"M1".into(), &200.0.into()));
    let ways = mesh["ways"].as_array().unwrap();
    assert_eq!((ways.len(), &ways[1]["name"], &ways[1]["arrives"]), (4, &"e1".into(), &true.into()));
    // From M1 to M8 in three hops.
    let hops = ways[1]["hops"].as_array().unwrap();
    assert_eq!((hops.len(), &hops[0][0], &hops[2][1]), (3, &0.into(), &7.into()));
    assert_eq!(mesh["chosen"]["routes"].as_array().unwrap().len(), 1, "only M8 has addresses in the routes: {mesh}");
    let frame = value(&run.frame());
    assert!(frame["goodput_bytes"].as_u64().unwrap() > 100_000, "{frame}");
    let paths: std::collections::BTreeSet<_> =
        frame["subflows"].as_array().unwrap().iter().map(|one| one["path"].as_u64().unwrap()).collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    let actions = value(&run.actions());
    assert!(actions.to_string().contains("the client: opens a subflow"), "{actions}");
}

#[test]
fn a_node_that_is_moved_away_is_missed_and_comes_back() {
    let mut run = of(scenario_text("manet_moving").unwrap(), "min_cost");
    run.advance(30.0);
    // Far outside: the corner of the area.
    run.move_node(3, 1e9, -1e9).unwrap();
    run.advance(20.0);
    let mesh = value(&run.mesh().unwrap());
    let node = &mesh["nodes"][3];
    assert_eq!((&node["x"], &node["y"], &node["held"]), (&500.0.into(), &0.0.into(), &true.into()));
    run.release_node(3).unwrap();
    let mesh = value(&run.mesh().unwrap());
    assert!(mesh["nodes"][3]["held"] == false && mesh["nodes"][3]["x"] != 500.0, "{}", mesh["nodes"][3]);
    run.choose_ends(3, 5).unwrap();
    assert_eq!(value(&run.mesh().unwrap())["ends"], serde_json::json!([3, 5]));
}

#[test]
fn nodes_and_places_that_cannot_be_are_refused() {
    let mut run = of(scenario_text("manet_moving").unwrap(), "min_cost");
    assert_eq!(run.move_node(20, 1.0, 1.0).unwrap_err(), "there is no node 20: nodes are 0 to 19");
    assert!(run.move_node(1, f64::NAN, 1.0).is_err() && run.release_node(99).is_err());
    assert!(run.choose_node(Some(20)).is_err() && run.choose_ends(1, 1).is_err() && run.choose_ends(1, 20).is_err());
    assert!(run.change(0, "rate", 1e6).unwrap_err().contains("move its nodes"));
    run.advance(1.0);
    assert!(run.mesh().is_ok());
    let mut paths = of(SHORT, "anabranch");
    assert!(paths.mesh().unwrap_err().contains("no ad-hoc network") && paths.move_node(0, 1.0, 1.0).is_err());
}

#[test]
fn data_that_is_sent_again_is_told_apart_and_so_are_drops_of_the_queue() {
    let lossy = SHORT.replace("loss = \"0.1 %\"", "loss = \"5 %\"");
    let mut run = of(&lossy, "anabranch");
    let kinds = |run: &mut Playground, from: usize, to: usize| {
        let mut counts = [0_usize; 4];
        for _ in from..to {
            run.advance(0.01);
            run.packets().chunks(4).for_each(|packet| counts[packet[3] as usize] += 1);
        }
        counts
    };
    // Three round trips of the shorter path: nothing is missing yet.
    let begin = kinds(&mut run, 0, 6);
    assert!(begin[0] > 0 && begin[3] == 0, "{begin:?}");
    let later = kinds(&mut run, 6, 600);
    assert!(later[3] > 20 && later[0] > 10 * later[3], "{later:?}");
    let mut full = of(SHORT, "tcp");
    full.advance(10.0);
    let frame = value(&full.frame());
    let wifi = &frame["lanes"][0];
    assert!(wifi["refused"].as_u64().unwrap() > 0 && wifi["refused"] == wifi["dropped"], "{wifi}");
    let mut lost = of(&lossy, "anabranch");
    lost.advance(10.0);
    let frame = value(&lost.frame());
    let lte = &frame["lanes"][2];
    assert!(lte["dropped"].as_u64() > lte["refused"].as_u64(), "{lte}");
}

#[test]
fn what_others_carry_is_told_apart_from_all_connections_of_the_transfer() {
    let crowd = SHORT
        .replace("duration = \"10 s\"", "duration = \"10 s\"\ntransfer = { kind = \"endless\", connections = 5 }")
        + "[[beside]]\nname = \"cubic\"\ncongestion = \"cubic\"\npath = \"wifi\"\n";
    let mut run = of(&crowd, "tcp");
    run.advance(10.0);
    let frame = value(&run.frame());
    let (own, others) = (frame["goodput_bytes"].as_u64().unwrap(), frame["other_bytes"].as_u64().unwrap());
    // Six connections share 20 Mbit/s for nearly ten seconds.
    assert!(own > 10_000_000 && (500_000..10_000_000).contains(&others) && own + others < 25_000_000, "{own} {others}");
}
