use super::*;
use crate::tcp_info::{SubflowBlock, read_tcp_info};
use anabranch_policy::path_manager::TABLE;
use anabranch_policy::table::{Settings as PolicySettings, build};
use anabranch_policy::time::Duration;
use anabranch_steering::event::Interface;

/// A subflow between these addresses, with the peer's identifier of its own.
fn subflow(local: &str, remote: &str, remote_id: u8) -> SubflowSample {
    let of = |text: &str| text.parse().expect("an address");
    let endpoints = Endpoints { local: of(local), remote: of(remote) };
    // Established, and nothing else.
    let mut info = [0; 232];
    info[0] = 1;
    let block = SubflowBlock { remote_id, ..SubflowBlock::default() };
    read_tcp_info(&info, endpoints, block).expect("it is whole")
}

#[test]
fn a_connection_is_judged_by_the_peer_at_its_beginning() {
    let manager = || build(TABLE, "full_mesh", &PolicySettings::new()).expect("it is there");
    let rule = || Rule {
        condition: Condition { remote: Some((IpAddr::from([192, 0, 2, 9]), 32)), ..Condition::default() },
        class: None,
    };
    let classes = |rules| Classes::new(rules, manager(), Settings::default());
    let sample = |subflows| HostSample {
        at: Instant::ZERO,
        connections: vec![ConnectionSample {
            token: Token(7),
            fallback: false,
            closing: false,
            write_seq: 2,
            snd_una: 0,
            rcv_nxt: 0,
            subflows,
        }],
    };
    // The second address of the peer is the lower one.
    let first = subflow("10.0.0.1:40000", "192.0.2.9:443", 0);
    let second = subflow("10.0.0.1:40001", "192.0.2.1:443", 1);
    let mut with_rule = classes(vec![rule()]);
    with_rule.handle_sample(&sample(vec![second.clone(), first.clone()]));
    assert_eq!((with_rule.left_alone(), with_rule.connection_count()), (1, 0));
    // What the classes before have seen counts after the end of the first subflow.
    let mut without = classes(Vec::new());
    without.handle_sample(&sample(vec![second.clone(), first]));
    for mut before in [with_rule, without] {
        let mut next = classes(vec![rule()]);
        next.succeed(&before);
        before = next;
        before.handle_sample(&sample(vec![second.clone()]));
        assert_eq!((before.left_alone(), before.connection_count()), (1, 0));
    }
}

#[test]
fn a_rule_fits_by_all_that_it_says() {
    let remote: SocketAddr = "192.0.2.77:443".parse().expect("an address");
    let directory = std::env::temp_dir().join(format!("anabranch-group-{}", std::process::id()));
    let group = Group::new(&directory);
    std::fs::create_dir(&directory).expect("it can be made");
    let of = |cgroup| Some(Owner { uid: 1_000, cgroup, ..Owner::default() });
    let owner = of(group.id());
    let net = |text: &str, length| Some((text.parse().expect("an address"), length));
    let all =
        Condition { remote: net("192.0.2.64", 26), port: Some(443), user: Some(1_000), cgroup: Some(group.clone()) };
    assert!(all.fits(remote, owner));
    assert!(!all.fits(remote, None));
    for other in [
        Condition { remote: net("192.0.2.0", 26), ..all.clone() },
        Condition { remote: net("::", 0), ..all.clone() },
        Condition { port: Some(80), ..all.clone() },
        Condition { user: Some(0), ..all.clone() },
        Condition { cgroup: Some(Group::new(std::env::temp_dir().join("anabranch-no-group"))), ..all.clone() },
    ] {
        assert!(!other.fits(remote, owner), "{other:?}");
    }
    assert!(Condition { remote: net("0.0.0.0", 0), ..Condition::default() }.fits(remote, None));
    let mapped = "[::ffff:192.0.2.77]:443".parse().expect("an address");
    assert!(all.fits(mapped, owner));
    // A group within it, at any depth, and one beside it.
    let (inner, beside) = (directory.join("user/session"), directory.with_extension("beside"));
    for made in [&inner, &beside] {
        std::fs::create_dir_all(made).expect("it can be made");
    }
    assert!(all.fits(remote, of(Group::new(&inner).id())));
    assert!(!all.fits(remote, of(Group::new(&beside).id())));
    assert!(!Condition { cgroup: Some(Group::new(&inner)), ..all.clone() }.fits(remote, owner), "it is above it");
    for made in [&inner, &directory.join("user"), &beside] {
        std::fs::remove_dir(made).expect("it is empty");
    }
    // The group goes, and another with its name is made: a file in between, so that the identifier is another one.
    std::fs::remove_dir(&directory).expect("it is empty");
    assert!(!all.fits(remote, owner), "a group that is not there has no sockets");
    assert!(!all.fits(remote, of(None)));
    let between = directory.with_extension("other");
    std::fs::create_dir(&between).expect("it can be made");
    std::fs::create_dir(&directory).expect("it can be made");
    let next = of(group.id());
    assert!(all.fits(remote, next));
    for made in [&between, &directory] {
        std::fs::remove_dir(made).expect("it is empty");
    }
}

fn full_mesh() -> Box<dyn PathManager> {
    build(TABLE, "full_mesh", &PolicySettings::new()).expect("it is there")
}

fn sampled(millis: u64, subflows: Vec<SubflowSample>) -> HostSample {
    let (token, fallback, closing) = (Token(7), false, false);
    let connection = ConnectionSample { token, fallback, closing, write_seq: 2, snd_una: 0, rcv_nxt: 0, subflows };
    HostSample { at: Instant::ZERO + Duration::from_millis(millis), connections: vec![connection] }
}

fn commands(classes: &mut Classes) -> Vec<Command> {
    core::iter::from_fn(|| classes.poll_command()).map(|(_, command)| command).collect()
}

/// RFC 1122, section 3.2.1.3: packets of loopback addresses do not leave the host.
#[test]
fn a_connection_that_stays_on_the_host_is_left_alone() {
    let rule = |user| Rule { condition: Condition { user, ..Condition::default() }, class: None };
    for rules in [Vec::new(), vec![rule(Some(77))]] {
        let mut classes = Classes::new(rules, full_mesh(), Settings::default());
        let own: BTreeSet<IpAddr> = ["10.0.0.1", "10.1.0.1", "::1"].map(|own| own.parse().expect("an address")).into();
        classes.own(own);
        for (index, address) in ["10.0.0.1", "10.1.0.1"].into_iter().enumerate() {
            let event = Event::AddressUp {
                address: address.parse().expect("an address"),
                interface: Interface(900 + index as u32),
            };
            classes.handle_event(Instant::ZERO, &event);
        }
        let mut alone = 0;
        for (local, remote) in [
            ("127.0.0.1:40000", "127.0.0.1:80"),
            ("[::1]:40000", "[::1]:80"),
            ("[::ffff:127.0.0.1]:40000", "[::ffff:127.0.0.1]:80"),
            ("10.0.0.1:40000", "10.1.0.1:80"),
            ("127.0.0.1:40000", "10.0.0.1:80"),
        ] {
            alone += 1;
            let token = Token(7);
            let subflow = subflow(local, remote, 0);
            let endpoints = subflow.endpoints;
            for server in [false, true] {
                let event = Event::Established { token, endpoints, server, remote_denies_joins: false };
                classes.handle_event(Instant::ZERO, &event);
            }
            // By an event before, or not.
            for millis in [100, 200] {
                classes.handle_sample(&sampled(millis, vec![subflow.clone()]));
            }
            assert_eq!((classes.connection_count(), classes.left_alone()), (0, alone), "{remote}");
            assert_eq!(commands(&mut classes), [], "{remote}");
            classes.handle_event(Instant::ZERO, &Event::Closed { token });
            classes.handle_sample(&HostSample { at: Instant::ZERO, connections: Vec::new() });
        }
        let to_another = sampled(300, vec![subflow("10.0.0.1:40000", "192.0.2.9:80", 0)]);
        for _ in 0..2 {
            classes.handle_sample(&to_another);
        }
        assert_eq!(classes.connection_count(), 1);
    }
}

/// The kernel keeps the socket of one that its program has closed until the peer has closed it too.
#[test]
fn a_connection_that_is_left_alone_counts_once_though_its_socket_outlives_it() {
    let rule = Rule { condition: Condition { port: Some(443), ..Condition::default() }, class: None };
    let mut classes = Classes::new(vec![rule], full_mesh(), Settings::default());
    let (token, first) = (Token(7), subflow("10.0.0.1:40000", "192.0.2.9:443", 0));
    let endpoints = first.endpoints;
    let event = Event::Established { token, endpoints, server: false, remote_denies_joins: false };
    classes.handle_event(Instant::ZERO, &event);
    classes.handle_sample(&sampled(100, vec![first.clone()]));
    classes.handle_event(Instant::ZERO, &Event::Closed { token });
    classes.handle_sample(&sampled(200, vec![first]));
    assert_eq!(classes.left_alone(), 1);
}

fn promotions(classes: &mut Classes) -> usize {
    let promotes = |command: &Command| matches!(command, Command::SetBackup { backup: false, .. });
    commands(classes).iter().filter(|command| promotes(command)).count()
}

/// A connection whose second subflow is a backup by our doing.
fn with_a_backup() -> (Classes, Vec<SubflowSample>) {
    let first = subflow("10.0.0.1:40000", "192.0.2.9:443", 0);
    let mut second = subflow("10.1.0.1:40001", "192.0.2.9:443", 0);
    (second.local_id, second.backup_local) = (2, true);
    let mut classes = Classes::new(Vec::new(), full_mesh(), Settings::default());
    let address = second.endpoints.local.ip();
    classes.handle_event(Instant::ZERO, &Event::AddressUp { address, interface: Interface(901) });
    classes.reserve(Instant::ZERO, vec![interface_name(Interface(901))]);
    let subflows = vec![first, second];
    classes.handle_sample(&sampled(0, subflows.clone()));
    (classes, subflows)
}

#[test]
fn backups_of_a_connection_that_a_rule_leaves_alone_from_now_on_are_used_again() {
    let (before, subflows) = with_a_backup();
    let rule = Rule { condition: Condition { port: Some(443), ..Condition::default() }, class: None };
    let mut next = Classes::new(vec![rule], full_mesh(), Settings::default());
    next.succeed(&before);
    next.handle_sample(&sampled(100, subflows.clone()));
    let (class, command) = next.poll_command().expect("it is promoted");
    assert!(matches!(command, Command::SetBackup { backup: false, .. }), "{command:?}");
    assert_eq!(next.why(class, &command).map(|why| why.occasion), Some(Occasion::LeftAlone));
    assert_eq!((next.left_alone(), promotions(&mut next)), (1, 0));
    next.handle_sample(&sampled(200, subflows));
    assert_eq!(promotions(&mut next), 0);
}

#[test]
fn backups_that_a_daemon_left_which_was_killed_are_used_again() {
    let (_, subflows) = with_a_backup();
    let user: BTreeSet<IpAddr> = [subflows[1].endpoints.local.ip()].into();
    for (except, count) in [(None, 0), (Some(BTreeSet::new()), 1), (Some(user), 0)] {
        let mut classes = Classes::new(Vec::new(), full_mesh(), Settings::default());
        if let Some(except) = except {
            classes.take_over(except);
        }
        classes.handle_sample(&sampled(0, subflows.clone()));
        assert_eq!(promotions(&mut classes), count);
    }
}

#[test]
fn an_address_is_held_back_while_a_subflow_or_its_role_wants_that() {
    let (mut classes, _) = with_a_backup();
    let [address, other] = ["10.1.0.1", "10.0.0.1"].map(|address| address.parse().expect("an address"));
    assert!(classes.holds_back(address) && !classes.holds_back(other));
    assert_eq!(classes.held_back().len(), 1);
    for millis in [100, 200] {
        let nothing = HostSample { at: Instant::ZERO + Duration::from_millis(millis), connections: Vec::new() };
        classes.handle_sample(&nothing);
    }
    assert_eq!(classes.connection_count(), 0);
    assert!(classes.holds_back(address), "its role is that of a backup");
    classes.reserve(Instant::ZERO, Vec::new());
    assert!(!classes.holds_back(address));
}
