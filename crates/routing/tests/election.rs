//! The MDR election on small graphs with known outcomes, and on random ones against a reference and the RFC's
//! guarantees.

mod mesh;

use anabranch_routing::election::{AdjConnectivity, ElectionSettings};
use anabranch_routing::neighborhood::Level;
use mesh::{CONNECTIVITIES, Graph, Random, Routers, id, reference};

/// Graphs and outcomes; the format is described in the file.
const KNOWN: &str = include_str!("mdr_elections.txt");

/// The state of all routers: levels and Dependent Neighbors.
type State = (Vec<Level>, Vec<Vec<usize>>);

/// An election with known outcomes.
struct Known {
    name: String,
    graph: Graph,
    connectivity: AdjConnectivity,
    sequential: State,
    fixed: Vec<State>,
}

fn known() -> Vec<Known> {
    let mut all: Vec<Known> = Vec::new();
    let mut graph = (String::new(), Graph::new(0));
    for line in KNOWN.lines().filter(|line| !line.starts_with('#')) {
        if let Some((head, links)) = line.strip_prefix("graph ").and_then(|rest| rest.split_once(':')) {
            let (name, nodes) = head.split_once(' ').unwrap();
            let links: Vec<_> = links.split_whitespace().map(|link| pair(link, '-')).collect();
            graph = (name.to_owned(), Graph::of(nodes.parse().unwrap(), &links));
            continue;
        }
        let mut words = line.split(' ');
        let connectivity = CONNECTIVITIES[words.next().unwrap().parse::<usize>().unwrap()];
        let kind = words.next().unwrap();
        let levels = words.next().unwrap().bytes().map(|digit| level(digit - b'0')).collect();
        let mut dependents = vec![Vec::new(); graph.1.len()];
        for (node, list) in words.filter_map(|word| word.split_once('>')) {
            dependents[node.parse::<usize>().unwrap() - 1] =
                list.split(',').map(|other| other.parse::<usize>().unwrap() - 1).collect();
        }
        if kind == "sequential" {
            let (name, graph) = graph.clone();
            all.push(Known { name, graph, connectivity, sequential: (levels, dependents), fixed: Vec::new() });
        } else {
            all.last_mut().unwrap().fixed.push((levels, dependents));
        }
    }
    all
}

fn pair(text: &str, between: char) -> (usize, usize) {
    let (a, b) = text.split_once(between).unwrap();
    (a.parse().unwrap(), b.parse().unwrap())
}

fn level(digit: u8) -> Level {
    [Level::Other, Level::BackupMdr, Level::Mdr][usize::from(digit)]
}

fn settings(adj_connectivity: AdjConnectivity) -> ElectionSettings {
    ElectionSettings { adj_connectivity, ..ElectionSettings::default() }
}

fn routers(known: &Known) -> Routers {
    Routers::new(known.graph.clone(), settings(known.connectivity))
}

#[test]
fn the_51_known_elections_end_as_they_should() {
    let all = known();
    assert_eq!(all.len(), 51);
    for one in &all {
        let mut routers = routers(one);
        assert!(routers.settle(|| (0..one.graph.len()).collect()).is_some());
        assert_eq!((routers.levels(), routers.dependents.clone()), one.sequential, "{}", one.name);
        assert!(one.fixed.contains(&one.sequential), "{}", one.name);
    }
}

#[test]
fn every_known_fixed_point_is_one_for_each_router_and_random_orders_end_in_known_ones() {
    let mut random = Random::new(1);
    let mut unknown = 0;
    for one in &known() {
        for (levels, dependents) in &one.fixed {
            let mut routers = routers(one);
            for (selection, level) in routers.selections.iter_mut().zip(levels) {
                selection.level = *level;
            }
            routers.dependents.clone_from(dependents);
            for node in 0..routers.len() {
                let (selection, chosen) = routers.choice(node);
                assert_eq!((selection.level, &chosen), (levels[node], &dependents[node]), "{} {node}", one.name);
            }
            let (_, split) = promises(&routers, "a known fixed point");
            assert_eq!(split, 0, "{}", one.name);
        }
        for _ in 0..30 {
            let mut routers = routers(one);
            let nodes = one.graph.len();
            assert!(routers.settle(|| random.order(nodes)).is_some());
            unknown += usize::from(!one.fixed.contains(&(routers.levels(), routers.dependents.clone())));
        }
    }
    // 300 orders do not reach every fixed point of the largest graph.
    assert!(unknown <= 15, "{unknown} of 1530 runs ended elsewhere");
}

/// Checks the RFC's guarantees for a stable state (sections 1 and 5): the MDRs are a connected dominating set of each
/// component. Returns the number of biconnected components, and of those where the MDRs and BMDRs are not biconnected.
fn promises(routers: &Routers, context: &str) -> (usize, usize) {
    let (mut biconnected, mut split) = (0, 0);
    let graph = &routers.graph;
    let mdr = |node: usize| routers.level(node) == Level::Mdr;
    for component in graph.components() {
        let inside = |node: usize| component.contains(&node);
        assert!(graph.is_connected(|node| inside(node) && mdr(node)), "{context}: MDRs are not connected: {graph:?}");
        let dominated = |node: usize| mdr(node) || graph.neighbors(node).any(mdr);
        assert!(component.iter().all(|node| dominated(*node)), "{context}: a router hears no MDR: {graph:?}");
        if component.len() > 2 && graph.is_biconnected(&component) {
            let cuts = cuts(routers, &component);
            assert!(cuts.iter().all(|cut| is_explained(routers, *cut)), "{context}: {cuts:?} cut: {graph:?}");
            biconnected += 1;
            split += usize::from(!cuts.is_empty());
        }
    }
    (biconnected, split)
}

/// The relays whose failure disconnects the other MDRs and BMDRs of a component, or leaves a router without one.
fn cuts(routers: &Routers, component: &[usize]) -> Vec<usize> {
    let relays = |node: usize| component.contains(&node) && routers.level(node) >= Level::BackupMdr;
    let cuts = |gone: usize| {
        let left = |node: usize| relays(node) && node != gone;
        let hears = |node: usize| left(node) || node == gone || routers.graph.neighbors(node).any(left);
        !routers.graph.is_connected(left) || !component.iter().all(|node| hears(*node))
    };
    component.iter().copied().filter(|node| relays(*node) && cuts(*node)).collect()
}

/// Whether a relay is the Rmax of an MDR Other whose neighbours are connected only through that Rmax and itself. Two
/// disjoint paths from Rmax to each neighbour do not exclude that.
fn is_explained(routers: &Routers, cut: usize) -> bool {
    let key = |node: usize| (routers.priorities[node], routers.level(node), id(node));
    (0..routers.len()).any(|node| {
        let near: Vec<usize> = routers.graph.neighbors(node).collect();
        let largest = near.iter().copied().max_by_key(|one| key(*one));
        let rest: Vec<usize> = near.into_iter().filter(|one| *one != cut).collect();
        let larger = |one: usize| rest.contains(&one) && key(one) > key(node);
        let together = |from: usize| {
            let reached = routers.graph.reached(from, larger);
            rest.iter()
                .all(|one| reached[*one] || routers.graph.neighbors(*one).any(|next| larger(next) && reached[next]))
        };
        let start = rest.iter().copied().max_by_key(|one| key(*one));
        routers.level(node) == Level::Other && largest == Some(cut) && start.is_some_and(|start| !together(start))
    })
}

#[test]
fn on_random_graphs_the_election_is_the_references_at_every_step_and_keeps_its_promises() {
    let mut random = Random::new(2);
    let (mut longest, mut biconnected, mut split) = (0, 0, 0);
    for number in 0..mesh::graphs(600) {
        let connectivity = CONNECTIVITIES[number % 3];
        let graph = Graph::any(&mut random, 40);
        let nodes = graph.len();
        let mut routers = Routers::new(graph, settings(connectivity));
        if random.below(4) == 0 {
            routers.priorities.iter_mut().for_each(|priority| *priority = random.below(3) as u8);
        }
        if random.below(4) == 0 {
            routers.settings.mdr_constraint = 2 + random.below(4) as u8;
        }
        let rounds = loop_until_settled(&mut routers, &mut random, number);
        longest = longest.max(rounds);
        let counts = promises(&routers, &format!("graph {number} of {nodes} nodes, {connectivity:?}"));
        biconnected += counts.0;
        split += counts.1;
    }
    eprintln!("at most {longest} rounds; of {biconnected} biconnected components {split} have relays that are not");
    assert!(split * 50 <= biconnected);
}

/// Activates routers in random orders, and compares each choice with the reference. Returns the number of rounds.
fn loop_until_settled(routers: &mut Routers, random: &mut Random, number: usize) -> usize {
    for round in 1.. {
        assert!(round < 200, "graph {number} does not settle");
        let mut changed = false;
        for node in random.order(routers.len()) {
            let expected = reference::choice(routers, node);
            let (selection, dependents) = routers.choice(node);
            assert_eq!((selection.level, &dependents), (expected.level, &expected.dependents), "graph {number}");
            let allowed = |list: &[usize], chosen| match chosen {
                None => list.is_empty(),
                Some(chosen) => list.iter().any(|one| id(*one) == chosen),
            };
            assert!(allowed(&expected.parents, selection.parent), "graph {number}");
            assert!(allowed(&expected.backup_parents, selection.backup_parent) || selection.backup_parent.is_none());
            if selection.level == Level::Other && routers.settings.adj_connectivity == AdjConnectivity::Biconnected {
                assert!(reference::is_backup_parent(routers, node, &selection), "graph {number}");
            }
            changed |= routers.activate(node);
        }
        if !changed {
            return round;
        }
    }
    unreachable!("the loop has no end")
}

#[test]
fn the_rfc_promises_more_than_its_algorithm_keeps_where_two_triangles_share_rmax() {
    // Triangles 6-2-3 and 6-4-5, and router 1, a neighbour of all five. The graph is biconnected. Router 1 finds two
    // disjoint paths from Rmax, 6, to each of its neighbours, so it is an MDR Other; without 6, only it connects the
    // triangles.
    let links = [(6, 2), (6, 3), (2, 3), (6, 4), (6, 5), (4, 5), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6)];
    let mut routers = Routers::new(Graph::of(6, &links), settings(AdjConnectivity::Biconnected));
    assert!(routers.settle(|| (0..6).collect()).is_some());
    assert!(routers.graph.is_biconnected(&[0, 1, 2, 3, 4, 5]));
    assert_eq!((routers.level(5), routers.level(0)), (Level::Mdr, Level::Other));
    assert_eq!(cuts(&routers, &[0, 1, 2, 3, 4, 5]), [5]);
}
