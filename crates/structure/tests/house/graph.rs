//! Directed graphs of files, and their circles.

use std::collections::{BTreeMap, BTreeSet};

/// Which file needs which, and an example of what for.
#[derive(Default)]
pub struct Graph {
    edges: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Graph {
    /// Notes that `from` needs `what` of `to`; a file that needs itself is not noted.
    pub fn add(&mut self, from: &str, to: &str, what: &str) {
        if from != to {
            let reasons = self.edges.entry(from.to_owned()).or_default().entry(to.to_owned()).or_default();
            reasons.insert(what.to_owned());
        }
    }

    /// Every circle: the files of each strongly connected component of more than one, sorted.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|file| (file.as_str(), self.reachable(file))).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for (&file, behind) in &reach {
            if !behind.contains(file) || seen.contains(file) {
                continue;
            }
            let circle: Vec<String> = behind
                .iter()
                .filter(|other| reach.get(*other).is_some_and(|back| back.contains(file)))
                .map(|name| (*name).to_owned())
                .collect();
            seen.extend(behind.iter().filter(|other| circle.iter().any(|name| name == *other)).copied());
            circles.push(circle);
        }
        circles
    }

    /// The edges inside a circle, a line each.
    pub fn explain(&self, circle: &[String]) -> String {
        let mut text = String::new();
        for from in circle {
            for (to, what) in self.edges.get(from).into_iter().flatten() {
                if circle.contains(to) {
                    let what: Vec<_> = what.iter().map(String::as_str).collect();
                    text.push_str(&format!("    {from} -> {to}: {}\n", what.join(", ")));
                }
            }
        }
        text
    }

    fn reachable<'a>(&'a self, from: &str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&str> = vec![from];
        while let Some(file) = open.pop() {
            for to in self.edges.get(file).into_iter().flatten().map(|(to, _)| to.as_str()) {
                if reached.insert(to) {
                    open.push(to);
                }
            }
        }
        reached
    }
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let mut graph = Graph::default();
    graph.add("a", "b", "x");
    graph.add("b", "c", "y");
    assert!(graph.circles().is_empty());
    graph.add("c", "a", "z");
    graph.add("c", "d", "w");
    assert_eq!(graph.circles(), [["a", "b", "c"]]);
    assert_eq!(graph.explain(&graph.circles()[0]), "    a -> b: x\n    b -> c: y\n    c -> a: z\n");
}
