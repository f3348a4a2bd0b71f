//! The paper's mesh of eight routers.

mod harness;

use anabranch_policy::Duration;
use harness::{Net, Setup, figure_8_lateral};

#[test]
fn all_routers_of_the_paper_s_mesh_reach_each_other() {
    let mut net = Net::with_links(Setup::new(8, 1), &figure_8_lateral());
    net.run_for(Duration::from_secs(30));
    for from in 0..8 {
        let distances = net.true_distances(from);
        for to in (0..8).filter(|to| *to != from) {
            let route =
                net.router(from).routes().prefixes.get(&anabranch_wire::ospf::Prefix::host(harness::address(to, 0)));
            assert_eq!(route.map(|route| route.cost), distances[to], "M{} to M{}", from + 1, to + 1);
        }
    }
    assert_eq!(net.next_hops(0, 7), [1, 2, 3]);
}
