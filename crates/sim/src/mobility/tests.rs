//! Movements: against results by hand, from files, and whether the models start in their steady state.

use super::error::MAX_NODES;
use super::*;
use crate::radio::Position;
use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};

const AREA: Area = Area { x: 1000.0, y: 600.0 };

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn place(x: f64, y: f64) -> Position {
    Position { x, y }
}

fn assert_near(value: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((value - expected).abs() <= tolerance, "{what}: {value} is not {expected} within {tolerance}");
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

fn speed(movement: &Movement, node: usize, at: Instant) -> f64 {
    let (x, y) = movement.velocity(node, at);
    libm::hypot(x, y)
}

#[test]
fn a_node_goes_straight_and_evenly_between_its_waypoints_and_stands_outside_of_them() {
    let movement = bonnmotion::read("10 0 0 20 100 50 30 100 50\n\n# a remark\n5 1 2", bonnmotion::Dimensions::Two);
    let movement = movement.expect("two nodes");
    assert_eq!(movement.nodes(), 2);
    let places = [0.0, 10.0, 12.0, 20.0, 25.0, 99.0].map(|seconds| movement.position(0, at(seconds)));
    let expected = [(0.0, 0.0), (0.0, 0.0), (20.0, 10.0), (100.0, 50.0), (100.0, 50.0), (100.0, 50.0)];
    assert_eq!(places, expected.map(|(x, y)| place(x, y)));
    assert_eq!(movement.velocity(0, at(12.0)), (10.0, 5.0));
    assert_eq!(movement.velocity(0, at(20.0)), (0.0, 0.0));
    let stands = [0.0, 12.0, 20.0, 30.0].map(|seconds| movement.stands_until(0, at(seconds)));
    assert_eq!(stands, [at(10.0), at(12.0), at(30.0), Instant::NEVER]);
    assert_eq!(movement.position(1, at(0.0)), place(1.0, 2.0));
    assert_eq!(movement.position(7, at(0.0)), place(0.0, 0.0));
    let later = movement.clone().skipped(Duration::from_secs(12)).shifted(1.0, -1.0);
    assert_eq!(later.position(0, at(0.0)), place(21.0, 9.0));
    assert_eq!(later.position(0, at(8.0)), place(101.0, 49.0));
    assert_eq!(Movement::fixed([place(3.0, 4.0)]).position(0, at(1e6)), place(3.0, 4.0));
}

/// Nodes 0 and 1 of a movement that BonnMotion wrote in both formats: random waypoint, 500 m x 500 m, 600 s. Four
/// digits.
const BONNMOTION: &str = "\
0.0 121.8904 237.2744 290.7765 343.6642 161.8515 330.7796 343.6642 161.8515 600.0 316.6915 315.6603
0.0 9.2364 367.7755 1.7487 9.2364 367.7755 301.4129 236.7467 104.8764 352.0675 236.7467 104.8764 541.7981 385.5006 128.6775 580.6364 385.5006 128.6775 600.0 372.4766 141.9974
";
const NS2: &str = "\
$node_(0) set X_ 131.8904
$node_(0) set Y_ 247.2744
$ns_ at 0.0 \"$node_(0) setdest 353.6642 171.8515 0.8055954\"
# $ns_ at 290.7765 \"$node_(0) setdest 353.6642 171.8515 0.0\"
$ns_ at 330.7796 \"$node_(0) setdest 326.6915 325.6603 0.5800301\"
$node_(1) set X_ 19.2364
$node_(1) set Y_ 377.7755
# $ns_ at 0.0 \"$node_(1) setdest 19.2364 377.7755 0.0\"
$ns_ at 1.7487 \"$node_(1) setdest 246.7467 114.8764 1.1602103\"
$ns_ at 352.0675 \"$node_(1) setdest 395.5006 138.6775 0.7939996\"
$ns_ at 580.6364 \"$node_(1) setdest 382.4766 151.9974 0.9620734\"
";

#[test]
fn the_same_movement_in_both_of_bonnmotions_formats_is_the_same_ten_metres_apart() {
    let native = bonnmotion::read(BONNMOTION, bonnmotion::Dimensions::Two).expect("BonnMotion's own");
    let ns2 = ns2::read(NS2).expect("ns-2").shifted(-10.0, -10.0);
    assert_eq!((native.nodes(), ns2.nodes()), (2, 2));
    for node in 0..2 {
        for second in 0..=600 {
            let (a, b) = (native.position(node, at(f64::from(second))), ns2.position(node, at(f64::from(second))));
            assert!(a.distance(b) < 0.01, "node {node}, {second} s: {a:?}, {b:?}");
        }
    }
}

#[test]
fn three_dimensions_are_read_without_the_height_and_not_taken_for_two() {
    let text = "0 1 2 9 10 11 2 9";
    let movement = bonnmotion::read(text, bonnmotion::Dimensions::Three).expect("three dimensions");
    assert_eq!(movement.position(0, at(5.0)), place(6.0, 2.0));
    for (text, reason) in [
        (text, "line 1: the last waypoint is not whole"),
        ("0 1 2\n0 1 x", "line 2: something that is not a number"),
        ("0 1 2 9 10 11 2 9 20 1 2 9", "line 1: times run backwards: is it of another number of dimensions?"),
    ] {
        let error = bonnmotion::read(text, bonnmotion::Dimensions::Two).expect_err(text);
        assert_eq!(error.to_string(), reason);
    }
}

#[test]
fn a_new_destination_interrupts_the_way_where_it_is() {
    let text = "
        $ns_ at 20.0 \"$node_(0) setdest 0 0 0\"   ;# stands from here on
        $node_(0) set Z_ 0
        $ns_ at 10 {$node_( 0 ) setdest 1.0e2 1.0E+2 10}
        $ns_   at 0.0\t\"$node_(0) setdest 100 0 5\"
        $god_ set-dist 0 1 2
        set val(nn) 1
        $node(1) set X_ 5;$node(1) set Y_ 6
        $ns_ at 3 \"$node(1) set X_ 50; $node(1) set Y_ 60\"
        $ns_ at 4 \"$node(1) setdest 50 60 7\"
        $ns_ at 5 \"$node(1) setdest 50 67 7\"
    ";
    let movement = ns2::read(text).expect("all that is meant is understood");
    assert_eq!(movement.nodes(), 2);
    // At 10 s it is at (50, 0), turns to (100, 100), 111.8 m away, and is stopped after 100 m.
    assert_eq!(movement.position(0, at(5.0)), place(25.0, 0.0));
    assert_eq!(movement.position(0, at(10.0)), place(50.0, 0.0));
    let stopped = movement.position(0, at(1000.0));
    let share = 100.0 / libm::sqrt(12_500.0);
    assert_near(stopped.x, 50.0 + 50.0 * share, 1e-6, "x");
    assert_near(stopped.y, 100.0 * share, 1e-6, "y");
    let places = [2.9, 3.0, 4.9, 5.5, 6.0, 60.0].map(|seconds| movement.position(1, at(seconds)));
    let expected = [(5.0, 6.0), (50.0, 60.0), (50.0, 60.0), (50.0, 63.5), (50.0, 67.0), (50.0, 67.0)];
    assert_eq!(places, expected.map(|(x, y)| place(x, y)));
}

#[test]
fn a_line_of_a_movement_file_that_means_nothing_is_named() {
    for (text, reason) in [
        ("\n$ns_ at 1 \"$node_(0) setdest 1 2\"", "line 2: not as many numbers as there must be"),
        ("$ns_ at x \"$node_(0) setdest 1 2 3\"", "line 1: something that is not a number"),
        ("$node_(0) set X_ inf", "line 1: something that is not a number"),
        ("$node_(i) set X_ 1", "line 1: a node that has no number"),
        ("$ns_ at 1 \"$node_(0) setdest 1 2 -3\"", "line 1: a speed below 0"),
        ("$node_(100000) set X_ 1", "more than 100000 nodes"),
    ] {
        assert_eq!(ns2::read(text).expect_err(text).to_string(), reason);
    }
    assert_eq!(ns2::read("").expect("nothing").nodes(), 0);
}

fn models() -> [(&'static str, Model); 4] {
    let (speed, pause) = (Span::new(1.0, 20.0), Span::new(0.0, 30.0));
    [
        ("random waypoint", Model::RandomWaypoint { speed, pause }),
        ("random direction", Model::RandomDirection { speed, leg: 20.0 }),
        (
            "Gauss-Markov",
            Model::GaussMarkov { speed: 10.0, speed_deviation: 2.0, direction_deviation: 0.4, memory: 0.75 },
        ),
        (
            "groups",
            Model::ReferencePointGroup { members: 5, speed, pause, radius: 50.0, member_speed: Span::new(0.5, 2.0) },
        ),
    ]
}

#[test]
fn the_same_seed_moves_the_same_way_another_another_and_a_node_more_changes_nobody() {
    for (name, model) in models() {
        let draw = |nodes, seed| model.draw(AREA, nodes, Duration::from_secs(300), seed).expect(name);
        let (one, again, more, other) = (draw(10, 1), draw(10, 1), draw(11, 1), draw(10, 2));
        assert_eq!(one, again, "{name}");
        assert!((0..10).all(|node| one.waypoints(node) == more.waypoints(node)), "{name}");
        assert!((0..10).all(|node| one.waypoints(node) != other.waypoints(node)), "{name}");
    }
}

#[test]
fn nobody_leaves_the_area_and_nobody_jumps() {
    for (name, model) in models() {
        let movement = model.draw(AREA, 20, Duration::from_secs(600), 3).expect(name);
        for node in 0..20 {
            let mut before = movement.position(node, Instant::ZERO);
            for step in 0..6000 {
                let now = movement.position(node, at(f64::from(step) / 10.0));
                assert!((-1e-9..=AREA.x + 1e-9).contains(&now.x), "{name}: {now:?}");
                assert!((-1e-9..=AREA.y + 1e-9).contains(&now.y), "{name}: {now:?}");
                assert!(now.distance(before) <= 2.3, "{name}: {before:?} {now:?}"); // 20 m/s, a member's 2 m/s
                before = now;
            }
        }
    }
}

/// Mean speed of moving nodes, share of standing nodes, mean distance from the centre.
fn statistics(movement: &Movement, now: Instant) -> [f64; 3] {
    let speeds: Vec<f64> = (0..movement.nodes()).map(|node| speed(movement, node, now)).collect();
    let moving: Vec<f64> = speeds.iter().copied().filter(|speed| *speed > 0.0).collect();
    let centre = place(AREA.x / 2.0, AREA.y / 2.0);
    let distance = mean((0..movement.nodes()).map(|node| movement.position(node, now).distance(centre)));
    [mean(moving.iter().copied()), 1.0 - moving.len() as f64 / speeds.len() as f64, distance]
}

#[test]
fn the_start_is_as_any_later_moment() {
    for (name, model) in models() {
        let movement = model.draw(AREA, 4000, Duration::from_secs(400), 5).expect(name);
        let start = statistics(&movement, at(0.001));
        for later in [100.0, 399.0] {
            let later = statistics(&movement, at(later));
            // Groups of five have a fifth of the independent draws.
            let tolerance = if name == "groups" { 2.2 } else { 1.0 };
            assert_near(start[0], later[0], 0.45 * tolerance, &format!("{name}, speed"));
            assert_near(start[1], later[1], 0.035 * tolerance, &format!("{name}, share that stands"));
            assert_near(start[2], later[2], 10.0 * tolerance, &format!("{name}, distance from the centre"));
        }
    }
}

#[test]
fn random_waypoint_has_the_speed_and_the_pauses_of_the_theory() {
    let (speed, pause) = (Span::new(1.0, 20.0), Span::new(0.0, 60.0));
    let movement = Model::RandomWaypoint { speed, pause }.draw(AREA, 8000, Duration::from_secs(1), 7).expect("good");
    let [moving, standing, _] = statistics(&movement, at(0.001));
    // Time-weighted mean speed (v1 - v0) / ln(v1 / v0) = 19 / ln 20 = 6.342; standing nodes: 30 / (30 + E[L] ln 20 /
    // 19) with E[L] = 418.5 m: 30 / (30 + 66.0) = 0.3126.
    assert_near(moving, 6.342, 0.25, "speed");
    let leg = random_waypoint::mean_leg(AREA);
    assert_near(standing, 30.0 / (30.0 + leg * libm::log(20.0) / 19.0), 0.02, "share that stands");
    // Not the plain mean of the speeds, 10.5, as at the start of a run outside of the steady state.
    assert!(moving < 7.0);
}

#[test]
fn the_mean_leg_of_a_square_is_0_5214_of_its_side_and_of_a_rectangle_what_chance_says() {
    assert_near(random_waypoint::mean_leg(Area { x: 1.0, y: 1.0 }), 0.521_405_433, 1e-9, "square");
    let mut random = RandomStream::new(1, "legs");
    let legs = (0..200_000).map(|_| AREA.draw(&mut random).distance(AREA.draw(&mut random)));
    assert_near(random_waypoint::mean_leg(AREA), mean(legs), 1.5, "rectangle");
}

#[test]
fn random_direction_keeps_all_places_equally_likely() {
    let model = Model::RandomDirection { speed: Span::new(0.0, 20.0), leg: 30.0 };
    let movement = model.draw(AREA, 6000, Duration::from_secs(301), 11).expect("good");
    for seconds in [0.0, 300.0] {
        let edge = |position: Position| {
            position.x < 100.0 || position.x > AREA.x - 100.0 || position.y < 60.0 || position.y > AREA.y - 60.0
        };
        let share = mean((0..6000).map(|node| f64::from(u8::from(edge(movement.position(node, at(seconds)))))));
        assert_near(share, 1.0 - 0.8 * 0.8, 0.025, "share of the rim");
    }
}

#[test]
fn gauss_markov_remembers_as_much_of_a_second_as_it_is_told() {
    let model = Model::GaussMarkov { speed: 10.0, speed_deviation: 2.0, direction_deviation: 0.3, memory: 0.75 };
    let movement = model.draw(Area { x: 1e5, y: 1e5 }, 3000, Duration::from_secs(12), 13).expect("good");
    let speeds = |seconds| (0..3000).map(|node| speed(&movement, node, at(seconds))).collect::<Vec<_>>();
    let (now, next) = (speeds(5.5), speeds(6.5));
    let (a, b) = (mean(now.iter().copied()), mean(next.iter().copied()));
    let variance = mean(now.iter().map(|s| (s - a) * (s - a)));
    let covariance = mean(now.iter().zip(&next).map(|(s, t)| (s - a) * (t - b)));
    assert_near(a, 10.0, 0.15, "mean");
    assert_near(variance, 4.0, 0.4, "variance");
    assert_near(covariance / variance, 0.75, 0.04, "correlation over a second");
}

#[test]
fn members_of_a_group_stay_together() {
    let (_, model) = models()[3];
    let movement = model.draw(AREA, 12, Duration::from_secs(300), 17).expect("good");
    for second in 0..300 {
        let position = |node| movement.position(node, at(f64::from(second)));
        for (group, nodes) in [(0, 0..5), (1, 5..10), (2, 10..12)] {
            for node in nodes {
                assert!(position(node).distance(position(5 * group)) <= 100.0 + 1e-6);
            }
        }
    }
    assert!(
        (0..300)
            .any(|s| movement.position(0, at(f64::from(s))).distance(movement.position(5, at(f64::from(s)))) > 200.0)
    );
}

#[test]
fn what_a_model_cannot_be_is_refused() {
    let refused = |model: Model| model.draw(AREA, 1, Duration::from_secs(1), 1).expect_err("refused").to_string();
    let (speed, pause) = (Span::new(0.0, 20.0), Span::only(0.0));
    assert_eq!(
        refused(Model::RandomWaypoint { speed, pause }),
        "speed is 0, which is not above 0, finite, and in order"
    );
    assert_eq!(
        refused(Model::RandomWaypoint { speed: Span::new(3.0, 2.0), pause }),
        "speed is 2, which is not above 0, finite, and in order"
    );
    assert_eq!(refused(Model::RandomDirection { speed, leg: 0.0 }), "leg is 0, which is not a number above 0");
    let group = Model::ReferencePointGroup {
        members: 3,
        speed: Span::only(1.0),
        pause,
        radius: 300.0,
        member_speed: Span::only(1.0),
    };
    assert_eq!(refused(group), "radius is 300, which is not above 0 and below half of the area's extent");
    let still = Model::RandomWaypoint { speed: Span::only(1.0), pause };
    assert_eq!(still.draw(AREA, MAX_NODES + 1, Duration::ZERO, 1), Err(MobilityError::TooManyNodes));
    let nowhere = still.draw(Area { x: f64::NAN, y: 1.0 }, 1, Duration::ZERO, 1).expect_err("no area");
    assert_eq!(nowhere.to_string(), "the area's extent x is NaN, which is not a number above 0");
}

/// Speeds from 0 to 10 m/s, 500 m x 500 m: 5 m/s at the start. From 1,800 to 3,600 s the mean is 1.7 m/s according to
/// an independent program.
#[test]
fn nodes_that_began_to_move_with_any_speed_become_slower() {
    let area = Area { x: 500.0, y: 500.0 };
    let (speeds, pause) = (Span::new(0.0, 10.0), Span::only(0.0));
    let begun = |ago: u64| Model::BegunWaypoint { speed: speeds, pause, ago: Duration::from_secs(ago) };
    let mean_speed = |ago: u64| {
        let movement = begun(ago).draw(area, 4000, Duration::from_secs(1), 7).expect("good");
        mean((0..4000).map(|node| speed(&movement, node, at(0.1))))
    };
    assert_near(mean_speed(0), 5.0, 0.15, "speed at the start");
    assert_near(mean_speed(2700), 1.7, 0.2, "speed after 45 minutes");
    let movement = begun(0).draw(area, 4000, Duration::from_secs(1), 7).expect("good");
    assert_near(mean((0..4000).map(|node| movement.position(node, at(0.0)).x)), 250.0, 7.0, "places at the start");
}
