//! Addresses that are replaced on their interface, as by DHCP or by temporary addresses of IPv6.

use super::*;

const OLD: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 1, 1));
const NEW: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 4, 1));

fn up(address: IpAddr) -> Event {
    Event::AddressUp { address, interface: Interface(1) }
}

fn down(address: IpAddr) -> Event {
    Event::AddressDown { address }
}

/// A connection with subflows from [`OLD`], the initial one, and from the address of another interface. Its commands
/// are taken.
fn connected(manager: &str, server: bool) -> Steering {
    let manager = build(TABLE, manager, &PolicySettings::new()).unwrap();
    let mut steering = Steering::new(manager, Settings::default());
    steering.handle_event(at(0), &up(OLD));
    let other = IpAddr::from([10, 0, 2, 1]);
    steering.handle_event(at(0), &Event::AddressUp { address: other, interface: Interface(2) });
    let event =
        Event::Established { token: TOKEN, endpoints: endpoints(1, 40_000), server, remote_denies_joins: false };
    steering.handle_event(at(1), &event);
    let joined = endpoints(2, 40_001);
    let event = Event::SubflowEstablished { token: TOKEN, endpoints: joined, local_id: 2, remote_id: 0, backup: false };
    steering.handle_event(at(2), &event);
    for millis in [100, 200] {
        steering.handle_sample(&sample(at(millis), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    }
    while steering.poll_command().is_some() {}
    steering
}

/// The addresses from which subflows are opened, and those that are announced.
fn beginnings(steering: &mut Steering) -> Vec<IpAddr> {
    let commands = core::iter::from_fn(|| steering.poll_command());
    let of = |command| match command {
        Command::CreateSubflow { local, .. } => Some(local),
        Command::Announce { address, .. } => Some(address),
        _ => None,
    };
    commands.filter_map(of).collect()
}

fn close_of_the_old(steering: &mut Steering, millis: u64) {
    let event = Event::SubflowClosed { token: TOKEN, endpoints: endpoints(1, 40_000), error: 0 };
    steering.handle_event(at(millis), &event);
}

#[test]
fn an_address_that_replaces_that_of_the_first_subflow_is_joined_from_before_the_next_sample() {
    for (manager, server) in [("full_mesh", false), ("goodput_trial", false), ("goodput_trial", true)] {
        for closed_before in [true, false] {
            let mut steering = connected(manager, server);
            steering.handle_event(at(210), &down(OLD));
            if closed_before {
                close_of_the_old(&mut steering, 220);
            }
            steering.handle_event(at(230), &up(NEW));
            assert_eq!(beginnings(&mut steering), [NEW], "{manager} {server} {closed_before}");
        }
    }
}

#[test]
fn an_address_that_was_there_beside_another_is_joined_from_once_when_that_is_gone() {
    for (manager, server) in [("full_mesh", false), ("goodput_trial", false), ("goodput_trial", true)] {
        let mut steering = connected(manager, server);
        steering.handle_event(at(210), &up(NEW));
        assert_eq!(beginnings(&mut steering), [] as [IpAddr; 0]);
        steering.handle_event(at(220), &down(OLD));
        assert_eq!(beginnings(&mut steering), [NEW], "{manager} {server}");
        close_of_the_old(&mut steering, 230);
        steering.handle_event(at(240), &down(IpAddr::from([10, 0, 2, 1])));
        assert_eq!(beginnings(&mut steering), [] as [IpAddr; 0]);
    }
}

#[test]
fn a_deprecated_address_is_replaced_when_its_subflow_has_ended() {
    let mut steering = connected("full_mesh", false);
    steering.handle_event(at(210), &up(NEW));
    steering.handle_event(at(220), &Event::AddressDeprecated { address: OLD });
    assert_eq!(beginnings(&mut steering), [] as [IpAddr; 0], "the path is there");
    close_of_the_old(&mut steering, 230);
    assert_eq!(beginnings(&mut steering), [NEW]);
}

/// The last subflow of a connection is not closed by us, and the kernel may keep it for minutes.
#[test]
fn the_only_address_that_is_deprecated_replaced_and_gone_is_joined_from_its_replacement() {
    for (manager, deprecated_first) in [("full_mesh", true), ("goodput_trial", true), ("goodput_trial", false)] {
        let mut steering = connected(manager, false);
        steering.handle_event(at(205), &down(IpAddr::from([10, 0, 2, 1])));
        let event = Event::SubflowClosed { token: TOKEN, endpoints: endpoints(2, 40_001), error: 0 };
        steering.handle_event(at(206), &event);
        let deprecated = Event::AddressDeprecated { address: OLD };
        let events = if deprecated_first { [deprecated, up(NEW)] } else { [up(NEW), deprecated] };
        events.iter().for_each(|event| steering.handle_event(at(210), event));
        assert_eq!(beginnings(&mut steering), [] as [IpAddr; 0], "the path is there");
        steering.handle_event(at(220), &down(OLD));
        assert_eq!(beginnings(&mut steering), [NEW], "{manager} {deprecated_first}");
    }
}

#[test]
fn an_address_that_is_deprecated_no_more_is_joined_from() {
    let mut steering = connected("full_mesh", false);
    let third = IpAddr::from([10, 0, 3, 1]);
    let there = Event::AddressUp { address: third, interface: Interface(3) };
    steering.handle_event(at(210), &Event::AddressUp { address: NEW, interface: Interface(1) });
    steering.handle_event(at(220), &Event::AddressDeprecated { address: NEW });
    steering.handle_event(at(230), &down(OLD));
    assert_eq!(beginnings(&mut steering), [] as [IpAddr; 0]);
    steering.handle_event(at(240), &there);
    assert_eq!(beginnings(&mut steering), [third]);
    steering.handle_event(at(250), &up(NEW));
    assert_eq!(beginnings(&mut steering), [NEW]);
}
