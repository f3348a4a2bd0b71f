//! Static routes, computed once from the graph of nodes in range.

use super::NodeId;

/// The neighbours of each node, by its number.
pub type Graph = [Vec<NodeId>];

/// For each node its next hops to `to`: all neighbours one hop nearer, in order of their numbers. Empty for `to` itself
/// and for nodes that cannot reach it.
pub fn next_hops(graph: &Graph, to: NodeId) -> Vec<Vec<NodeId>> {
    let mut distance = vec![u32::MAX; graph.len()];
    let mut frontier = vec![to];
    distance[to.index()] = 0;
    let mut hops = 0;
    while !frontier.is_empty() {
        hops += 1;
        let mut next = Vec::new();
        for neighbor in frontier.iter().flat_map(|node| &graph[node.index()]) {
            if distance[neighbor.index()] == u32::MAX {
                distance[neighbor.index()] = hops;
                next.push(*neighbor);
            }
        }
        frontier = next;
    }
    let nearer = |(node, neighbors): (usize, &Vec<NodeId>)| {
        let here = distance[node];
        let mut ways: Vec<NodeId> = neighbors
            .iter()
            .copied()
            .filter(|neighbor| here != u32::MAX && distance[neighbor.index()].checked_add(1) == Some(here))
            .collect();
        ways.sort_unstable();
        ways.dedup();
        ways
    };
    graph.iter().enumerate().map(nearer).collect()
}

/// The neighbours of each node, from a list of bidirectional links.
pub fn graph(nodes: usize, links: &[(u32, u32)]) -> Vec<Vec<NodeId>> {
    let mut graph = vec![Vec::new(); nodes];
    for (one, other) in links {
        graph[*one as usize].push(NodeId(*other));
        graph[*other as usize].push(NodeId(*one));
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(hops: &[NodeId]) -> Vec<u32> {
        hops.iter().map(|node| node.0).collect()
    }

    #[test]
    fn all_nearer_neighbours_are_next_hops() {
        // A square 0-1-3-2-0 with a tail 3-4, and 5 alone.
        let graph = graph(6, &[(0, 2), (0, 1), (1, 3), (2, 3), (3, 4)]);
        let hops = next_hops(&graph, NodeId(4));
        assert_eq!(numbers(&hops[0]), [1, 2]);
        assert_eq!(numbers(&hops[1]), [3]);
        assert_eq!(numbers(&hops[3]), [4]);
        assert_eq!(numbers(&hops[4]), [] as [u32; 0]);
        assert_eq!(numbers(&hops[5]), [] as [u32; 0]);
    }
}
