use super::*;
use crate::scheduler::TABLE;
use crate::scheduler::tests::{connection, new_data, send, subflow};
use crate::table::{Settings, build};

/// A network of one layer, whose row for each path is given with its bias: of two paths, an observation has 23 numbers.
fn network(rows: [&[(usize, f32)]; 2]) -> String {
    let names: Vec<&str> = (crate::observation::PATH_FEATURES.iter().cycle().take(20))
        .chain(&crate::observation::SENDER_FEATURES)
        .map(|feature| feature.name)
        .collect();
    let row = |entries: &[(usize, f32)]| {
        let mut row = [0.0f32; 24];
        entries.iter().for_each(|(at, weight)| row[*at] = *weight);
        row.map(|weight| weight.to_string()).join(" ")
    };
    let (zeros, ones) = (["0"; 23].join(" "), ["1"; 23].join(" "));
    format!(
        "anabranch-network 1 paths 2 interval 0.1 features {} shift {zeros} scale {ones} clip 1000 layer 2 linear {} {} range 0 1",
        names.join(" "),
        row(rows[0]),
        row(rows[1])
    )
}

/// Place of the bias in a row.
const BIAS: usize = 23;

fn learned(weights: &str) -> Box<dyn Scheduler> {
    build(TABLE, "learned", &Settings::new().with("weights", weights)).unwrap()
}

/// How many of `count` segments at this time go on each of two paths.
fn sent(scheduler: &mut dyn Scheduler, now: u64, count: u32) -> [u32; 2] {
    let paths = [subflow(0, 10), subflow(1, 50)];
    let mut sent = [0; 2];
    for _ in 0..count {
        match scheduler.schedule(&connection(now), &new_data(), &paths) {
            Decision::Send(id) => sent[id.0 as usize] += 1,
            Decision::Wait(_) => panic!("there is room"),
        }
    }
    sent
}

#[test]
fn weights_are_equal_until_the_first_interval_is_over_and_then_those_of_the_network() {
    // Weight 1 of the first path, 0.25 of the second.
    let mut scheduler = learned(&network([&[(BIAS, 1.0)], &[(BIAS, 0.25)]]));
    // The second subflow counts from where the first one is when it begins.
    assert_eq!(sent(&mut *scheduler, 0, 10), [6, 4]);
    assert_eq!(sent(&mut *scheduler, 99, 10), [5, 5]);
    assert_eq!(sent(&mut *scheduler, 100, 50), [40, 10]);
}

#[test]
fn the_network_sees_the_round_trips_of_the_paths() {
    // A path's weight is a hundredth of the other's round trip in ms: 0.5 and 0.1.
    let mut scheduler = learned(&network([&[(12, 0.01)], &[(2, 0.01)]]));
    sent(&mut *scheduler, 0, 1);
    assert_eq!(sent(&mut *scheduler, 100, 60), [50, 10]);
}

#[test]
fn a_path_of_weight_zero_is_used_only_if_there_is_no_other() {
    let mut scheduler = learned(&network([&[(BIAS, -5.0)], &[(BIAS, 5.0)]]));
    sent(&mut *scheduler, 0, 1);
    assert_eq!(sent(&mut *scheduler, 100, 10), [0, 10]);
    assert_eq!(scheduler.schedule(&connection(200), &new_data(), &[subflow(0, 10)]), send(0));
}

#[test]
fn sums_that_are_not_finite_and_paths_without_weights_exclude_nothing() {
    let mut scheduler = learned(&network([&[(BIAS, f32::MAX), (2, f32::MAX)], &[(BIAS, 1.0)]]));
    sent(&mut *scheduler, 0, 1);
    assert_eq!(sent(&mut *scheduler, 100, 10), [5, 5]);
    let third = [subflow(2, 10)];
    assert_eq!(scheduler.schedule(&connection(300), &new_data(), &third), send(2));
}

#[test]
fn layers_clipping_and_activations_are_applied_in_order() {
    let text = network([&[(BIAS, 0.0)], &[(BIAS, 0.0)]]);
    let (head, _) = text.split_once("layer").unwrap();
    // The second number is 5 after the shift, 50 after the scale, 10 when clipped.
    let head = head.replacen("shift 0 0", "shift 0 1", 1).replacen("scale 1 1", "scale 1 10", 1);
    let head = head.replace("clip 1000", "clip 10");
    let hidden = |bias: f32| format!("0 0.1 {} {bias}", ["0"; 21].join(" "));
    let text = format!(
        "{head} layer 3 tanh {} {} {} layer 2 relu 1 0 0 0 0 -1 0 0 layer 2 linear 1 0 0 0 1 0.5 range 0 2",
        hidden(0.0),
        hidden(-0.5),
        hidden(0.0)
    );
    let mut network = Network::read(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text}"));
    let mut observation = [0.0; 23];
    observation[1] = 6.0;
    let mut weights = [0.0; 2];
    network.weights(&observation, &mut weights);
    // tanh(1) / 2; the second is -tanh(0.5) before the ReLU, 0 after it, and 0.5 / 2 with its bias.
    assert!((weights[0] - 0.380_797).abs() < 1e-5 && (weights[1] - 0.25).abs() < 1e-6, "{weights:?}");
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let whole = network([&[(BIAS, 1.0)], &[(BIAS, 1.0)]]);
    let cut = |word: &str| whole.split_once(word).unwrap().0.to_owned() + word;
    for (text, expected) in [
        (String::new(), "it ends after the beginning"),
        ("weights".to_owned(), "it has 'weights' where 'anabranch-network' is expected"),
        (whole.replace("network 1 ", "network 2 "), "its format is not 1"),
        (whole.replace("paths 2", "paths 17"), "17 after paths is not 1 to 16"),
        (whole.replace("paths 2", "paths two"), "'two' after paths is not a number"),
        (whole.replace("interval 0.1", "interval 0"), "an interval is 0.001 to 10 s, and not 0"),
        (whole.replace("window_left", "goodput"), "it has 'goodput' where 'window_left' is expected"),
        (cut("shift"), "it ends after shift"),
        (whole.replace("clip 1000", "clip x"), "'x' after clip is not a number"),
        (whole.replace("shift 0", "shift inf"), "inf is not finite"),
        (whole.replace("layer 2 linear", "layer 2 step"), "'step' is none of tanh, relu, linear"),
        (whole.replace("layer 2", "layer 0"), "0 after layer is not 1 to 1024"),
        (whole.replace("range", "layer 1 linear 0 0 0 range"), "its last layer does not have 2 numbers"),
        (whole.replace("range", &"layer 2 relu 0 0 0 0 0 0 ".repeat(8)), "it has more than 8 layers"),
        (whole.replace("clip 1000", "clip -1"), "its clip is -1, which is not 0 or more"),
        (whole.replace("clip 1000", "clip nan"), "its clip is NaN, which is not 0 or more"),
        (whole.replace("range 0 1", "range nan 1"), "NaN is not finite"),
        (whole.replace("range 0 1", "range 0 1e39"), "inf is not finite"),
        (whole.replace("range 0 1", "range -3e38 3e38"), "is too wide"),
        (whole.replace("range 0 1", "range 1 1"), "its range begins with 1, which is not below 1"),
        (whole.clone() + " 3", "'3' follows the range"),
    ] {
        let wrong =
            build(TABLE, "learned", &Settings::new().with("weights", &text)).err().map(|wrong| wrong.to_string());
        let wrong = wrong.unwrap_or_else(|| panic!("{text}"));
        assert!(wrong.contains(expected), "{expected}: {}", &wrong[wrong.len().saturating_sub(200)..]);
    }
}

#[test]
fn the_built_in_network_can_be_read() {
    assert_eq!(WEIGHTS.default().paths(), 2);
}

#[test]
fn a_stale_subflow_and_a_backup_wait_for_others_whatever_the_weights() {
    let mut scheduler = learned(&network([&[(BIAS, 1.0)], &[(BIAS, 0.0)]]));
    sent(&mut *scheduler, 0, 1);
    assert_eq!(sent(&mut *scheduler, 100, 10), [10, 0]);
    let stale = [SubflowView { stale: true, ..subflow(0, 10) }, subflow(1, 50)];
    assert_eq!(scheduler.schedule(&connection(150), &new_data(), &stale), send(1));
    let backup = [SubflowView { backup: true, ..subflow(0, 10) }, subflow(1, 50)];
    assert_eq!(scheduler.schedule(&connection(150), &new_data(), &backup), send(1));
    assert_eq!(scheduler.schedule(&connection(150), &new_data(), &backup[..1]), send(0));
}
