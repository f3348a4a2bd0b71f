//! A router's reported memory equals the allocator's count, apart from spare capacity of maps.

mod harness;

use anabranch_policy::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use harness::{Net, Setup};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn routers_free_about_what_they_said_that_they_need() {
    let nodes = 40;
    let mut setup = Setup::new(nodes, 5);
    setup.manet.lsa_fullness = LsaFullness::Full;
    // A ring with additional links to the second neighbours.
    let links: Vec<_> = (0..nodes).flat_map(|node| [(node, (node + 1) % nodes), (node, (node + 2) % nodes)]).collect();
    let mut net = Net::with_links(setup, &links);
    net.run_for(Duration::from_secs(30));
    assert_eq!(net.router(0).routes().routers.len(), nodes - 1);
    // The last owner of an LSA frees it, so all are dropped together: 39 of 40 copies of each were counted but never
    // allocated.
    let said: usize = (0..nodes).map(|node| net.router(node).footprint().total()).sum();
    let copies: usize = (0..nodes).map(|node| net.router(node).footprint().lsas).sum();
    let expected = said - copies + copies / nodes;
    let region = Region::new(ALLOCATOR);
    net.routers.clear();
    let freed = region.change().bytes_deallocated;
    eprintln!("{nodes} routers said {said} bytes, {copies} of them LSAs; freed {freed}, expected {expected}");
    assert!((expected / 2..expected * 5 / 2).contains(&freed), "freed {freed} bytes, expected about {expected}");
}
