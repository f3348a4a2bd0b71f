//! Gateways: routers that tell the mesh a way out while they have one.

use crate::field::{chain, lines, listener};
use crate::host::inside;
use crate::kernel::ip;
use crate::scene::{Running, Scene, config, same, wait_for};
use anabranch_emulate::{Ether, Mesh, mesh};
use anabranch_router::{Family, Question, RouteConfig, TABLE};
use anabranch_system::Namespace;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 1] =
        [("gateway::the_nearest_gateway_that_has_a_way_out_is_used", the_nearest_gateway_that_has_a_way_out_is_used)];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// Gives a node an interface out of the mesh, `up0`, with default routes of both families.
pub fn give_uplink(namespace: &Namespace) {
    inside(namespace, || {
        ip("link add up0 type veth peer name far0");
        ip("link set far0 up");
        ip("link set up0 up");
        ip("address add 192.0.2.2/24 dev up0");
        ip("address add 2001:db8:77::2/64 dev up0 nodad");
        default_routes("add");
    });
}

fn default_routes(verb: &str) {
    ip(&format!("route {verb} default via 192.0.2.1 dev up0"));
    ip(&format!("-6 route {verb} default via 2001:db8:77::1 dev up0"));
}

/// The next hops of a node's default routes of the mesh, IPv4 and IPv6, as the last byte of their addresses.
fn ways_out(scene: &Scene, node: usize) -> [Vec<u8>; 2] {
    let ipv6 = scene.output(node, &format!("ip -6 route show table {TABLE} default"));
    let after_via = ipv6.split_whitespace().skip_while(|word| *word != "via").nth(1);
    let name = after_via.map(|address| neighbour(scene, node, address));
    [scene.next_hops(node, "default"), name.into_iter().flatten().collect()]
}

/// The node with this link-local address on the channel.
fn neighbour(scene: &Scene, node: usize, address: &str) -> Option<u8> {
    let all = scene.routers[node - 1].ask(Question::Neighbors);
    let one = all.as_array()?.iter().find(|one| one["address"] == address)?;
    one["router"].as_str()?.rsplit('.').next()?.parse().ok()
}

fn the_nearest_gateway_that_has_a_way_out_is_used() {
    let (mesh, air, ends) = Mesh::new(&chain(4)).expect("namespaces were there a moment ago");
    for end in [0, 3] {
        give_uplink(&mesh.nodes()[end].namespace);
    }
    let ether = Ether::start(air, ends, None).expect("a thread");
    let mut logs = Vec::new();
    let nodes = mesh.nodes().iter().enumerate();
    let start = |(node, one): (usize, &anabranch_emulate::Node)| {
        let (log, tell) = listener();
        logs.push(log);
        let families = vec![Family::Ipv6, Family::Ipv4];
        let gateway = [0, 3].contains(&node).then_some(1);
        let mut config = RouteConfig { families, gateway, ..config(Family::Ipv4, 1) };
        // What changes twice in this test need not wait so long.
        config.router.min_ls_interval = anabranch_policy::time::Duration::from_secs(2);
        Running::start_telling(&one.namespace, config, tell)
    };
    let routers = nodes.map(start).collect();
    let scene = Scene { routers, mesh, ether };
    let all = || (1..=4).map(|node| ways_out(&scene, node)).collect::<Vec<_>>();
    let both = |hop: &[u8]| [hop.to_vec(), hop.to_vec()];
    // The gateways have ways of their own and take no other.
    wait_for("the ways out", || same(all(), vec![both(&[]), both(&[1]), both(&[4]), both(&[])]));
    assert_eq!(scene.routers[0].ask(Question::Status)["way_out_ipv6"], "up0");
    wait_for("the routes from end to end", || {
        let far = [(1, 4), (4, 1)].map(|(node, to)| scene.next_hops(node, &mesh::loopback_ipv4(to).to_string()));
        same(far, [vec![2], vec![3]])
    });
    // What an LSA replaces sooner than MinLSArrival is not believed.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    inside(scene.node(1), || default_routes("del"));
    let begun = std::time::Instant::now();
    wait_for("the way out of the other end", || same(all(), vec![both(&[2]), both(&[3]), both(&[4]), both(&[])]));
    eprintln!("a way out that ended was replaced within {:?}", begun.elapsed());
    // An interface that goes takes its routes along, of which the kernel does not tell in IPv4.
    inside(scene.node(1), || default_routes("add"));
    wait_for("the ways out", || same(all(), vec![both(&[]), both(&[1]), both(&[4]), both(&[])]));
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    inside(scene.node(1), || ip("link set up0 down"));
    wait_for("the way out of the other end", || same(all(), vec![both(&[2]), both(&[3]), both(&[4]), both(&[])]));
    for family in ["ipv4", "ipv6"] {
        assert_eq!(lines(&logs[0], &format!("the way out by {family} is up0")), 2);
        assert_eq!(lines(&logs[0], &format!("the way out by {family}, up0, is gone")), 2);
    }
    assert_eq!(scene.routers[0].ask(Question::Status)["way_out_changes"], 8);
}
