//! Hosts with addresses of both families.

use super::*;
use core::net::Ipv6Addr;

const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1));

/// The addresses that are announced or joined from, for a connection that began by IPv4.
fn beginnings(steering: &mut Steering) -> Vec<IpAddr> {
    let of = |command| match command {
        Command::Announce { address, .. } => Some(address),
        Command::CreateSubflow { local, .. } => Some(local),
        _ => None,
    };
    core::iter::from_fn(|| steering.poll_command()).filter_map(of).collect()
}

/// The kernel refuses: "families mismatch".
#[test]
fn a_connection_of_a_socket_of_ipv4_has_no_paths_of_ipv6_and_one_of_ipv6_may() {
    for server in [false, true] {
        let mut steering = without_connections(Control::Subflows);
        steering.handle_event(at(0), &Event::AddressUp { address: V6, interface: Interface(2) });
        let event =
            Event::Established { token: TOKEN, endpoints: endpoints(1, 40_000), server, remote_denies_joins: false };
        steering.handle_event(at(1), &event);
        let remote = "[fd99::9]:443".parse().unwrap();
        steering.handle_event(at(2), &Event::Announced { token: TOKEN, remote_id: 7, remote });
        assert_eq!(beginnings(&mut steering), [IpAddr::from([10, 0, 2, 1])], "{server}");
        let mut socket = subflow(1, 40_000);
        steering.handle_sample(&sample(at(100), vec![socket.clone()]));
        assert_eq!(beginnings(&mut steering), [] as [IpAddr; 0]);
        // The program's socket may be of IPv6, with an address of IPv4.
        socket.owner.ipv6 = true;
        steering.handle_sample(&sample(at(200), vec![socket]));
        assert_eq!(beginnings(&mut steering), [V6], "{server}");
        assert_eq!(steering.counters().impossible_actions, 0);
    }
}
