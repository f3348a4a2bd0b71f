use super::*;

fn names(text: &str, baselines: &[&str]) -> Vec<String> {
    let found: Vec<Baseline> = baselines.iter().filter_map(|name| baseline::embedded(name)).collect();
    let schemes = [Scheme::mptcp().called("case_1")];
    let around = Surroundings { schemes: &schemes, defaults: &Choices::default(), baselines: &found };
    let made = all_from_option(text, &around).unwrap_or_else(|error| panic!("{text}: {error}"));
    made.into_iter().map(|contender| contender.name).collect()
}

#[test]
fn a_name_is_run_under_all_baselines_around_it_unless_it_says_where() {
    let both = ["linux", "plain"];
    assert_eq!(names("case_1", &[]), ["case_1"]);
    assert_eq!(names("case_1", &both), ["case_1@linux", "case_1@plain"]);
    assert_eq!(names("case_1@plain", &["linux"]), ["case_1@plain"]);
    assert_eq!(names("lm3,path_manager.rounding=up", &["linux"]), ["lm3+path_manager.rounding=up@linux"]);
    assert_eq!(names("scheduler=redundant", &both), ["scheduler=redundant@linux", "scheduler=redundant@plain"]);
    assert_eq!(names("linux", &both), ["linux"]);
    assert_eq!(names("linux,path_manager=lm3", &both), ["linux+path_manager=lm3"]);
    // They specify all policies.
    assert_eq!(
        (names("anabranch", &both), names("plain_tcp", &both)),
        (vec!["anabranch".into()], vec!["plain_tcp".into()])
    );
}

#[test]
fn a_datagram_policy_is_chosen_by_its_family_or_its_name_where_datagrams_are_carried() {
    let around = Surroundings { schemes: &[], defaults: &Choices::default(), baselines: &[] };
    let chosen = |text: &str| all_from_option(text, &around).map(|made| made[0].datagram.to_string());
    assert_eq!(chosen("plain"), Ok("lowest_delay".to_owned()));
    assert_eq!(chosen("duplicate"), Ok("duplicate".to_owned()));
    assert_eq!(chosen("datagram=weighted,datagram.hold=20,name=w"), Ok("weighted (hold = 20)".to_owned()));
    assert_eq!(chosen("plain,datagram.patience=20"), Ok("lowest_delay (patience = 20)".to_owned()));
    let refused = |text: &str| chosen(text).expect_err("it is wrong");
    assert!(refused("datagram=weihgted").contains("did you mean 'weighted'?"), "{}", refused("datagram=weihgted"));
    assert!(refused("datagram.hold=300").contains("setting 'hold' is '300'"), "{}", refused("datagram.hold=300"));
    // Connections have no such policy.
    assert!(
        from_option("datagram=duplicate").expect_err("it decides nothing").contains("no datagrams are carried here")
    );
}

#[test]
fn a_setting_may_be_written_before_its_member() {
    let around = Surroundings { schemes: &[], defaults: &Choices::default(), baselines: &[] };
    for (before, after) in [
        ("reliability.latency=50,reliability=both_ends", "reliability=both_ends,reliability.latency=50"),
        ("linux,path_manager.rounding=up,path_manager=lm3", "linux,path_manager=lm3,path_manager.rounding=up"),
        (
            "congestion.beta=0.8,scheduler=redundant,congestion=cubic",
            "scheduler=redundant,congestion=cubic,congestion.beta=0.8",
        ),
        ("scheduler.weights=3:1,scheduler=weighted", "scheduler=weighted,scheduler.weights=3:1"),
        ("datagram.hold=20,datagram=weighted", "datagram=weighted,datagram.hold=20"),
        (
            "steered_end=receiver,steer.late=0.03,steer=goodput_trial",
            "steer=goodput_trial,steer.late=0.03,steered_end=receiver",
        ),
    ] {
        let made = |text: &str| {
            let made =
                all_from_option(&format!("{text},name=x"), &around).unwrap_or_else(|error| panic!("{text}: {error}"));
            (made[0].policies.to_string(), made[0].datagram.to_string(), made[0].steered.clone())
        };
        assert_eq!(made(before), made(after), "{before}");
    }
}

#[test]
fn a_baseline_is_its_full_mesh_and_can_be_changed_one_thing_at_a_time() {
    let linux = from_option("linux").unwrap();
    assert_eq!((linux.scheme.as_str(), linux.baseline.as_deref()), ("mptcp", Some("linux")));
    assert_eq!((linux.policies.scheduler.name.as_str(), linux.label.as_str()), ("linux", "Linux MPTCP"));
    let changed = from_option("linux,path_manager=lm3,congestion.beta=0.8,connection.min_rto=1s").unwrap();
    assert_eq!(changed.policies.path_manager.name, "lm3");
    assert_eq!(changed.policies.congestion.settings.get("beta"), Some("0.8"));
    assert_eq!(changed.policies.congestion.settings.get("hystart"), Some("classic"));
    assert_eq!(changed.defaults, linux.defaults);
    let said: Vec<_> = changed.connection.iter().collect();
    assert_eq!(said, [("min_rto", "1 s".to_owned())]);
}

#[test]
fn its_description_has_all_that_holds_and_nothing_that_is_overridden() {
    let text = from_option("papers_simulator,path_manager=lm3,connection.min_rto=300ms").unwrap().describe();
    let expected = "MPTCP: lm3, ns2, lia (failed_after = 2); min_rto = 300 ms; baseline papers_simulator: \
                    initial_path = first, data_reinjection = never, initial_rto = 3 s, max_timeouts = 5";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(from_option("plain").unwrap().describe(), "MPTCP: full_mesh, lowest_rtt, lia; baseline plain");
}

#[test]
fn what_is_not_said_is_plain_multipath_tcp() {
    let made = from_option("congestion=olia").unwrap();
    assert_eq!((made.policies.scheduler.name.as_str(), made.policies.congestion.name.as_str()), ("lowest_rtt", "olia"));
    assert_eq!(from_option("plain").unwrap().policies, Contender::plain().policies);
    assert_eq!(from_option("recpr").unwrap().policies, Combination::named("recpr").unwrap());
    assert_eq!(from_option("anabranch").unwrap().policies, Combination::anabranch());
    // The member, whose name is also that of a baseline, is selected through its family.
    let linux = from_option("scheduler=linux").unwrap();
    assert_eq!((linux.policies.scheduler.name.as_str(), linux.baseline), ("linux", None));
}

#[test]
fn what_cannot_be_understood_is_answered_with_what_was_meant() {
    let cases = [
        ("lm4", "did you mean 'lm3'?"),
        ("lm3@linus", "there is no baseline 'linus'"),
        ("plain@linux", "'plain' is a baseline itself"),
        ("plain,connection.min_rtt=1s", "did you mean 'min_rto'?"),
        ("plain,connection.min_rto=1", "a time has no unit"),
        ("plain,conection.min_rto=1s", "did you mean 'connection'?"),
        ("lm3@linux,scheduler=blst", "did you mean 'blest'?"),
    ];
    for (text, expected) in cases {
        let error = from_option(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_is_given_twice_is_an_error() {
    for (text, key) in [
        ("congestion=cubic,congestion=olia", "congestion"),
        ("lm3,path_manager.rounding=up,path_manager.rounding=down", "path_manager.rounding"),
        ("connection.min_rto=1s,connection.min_rto=2s", "connection.min_rto"),
    ] {
        assert_eq!(from_option(text).err(), Some(format!("'{key}' is given twice in '{text}'")));
    }
}

#[test]
fn a_file_of_a_setting_is_read_at_once_and_errors_name_it() {
    let path = std::env::temp_dir().join(format!("anabranch-setting-{}.txt", std::process::id()));
    let word = format!("scheduler=learned,scheduler.weights=@{}", path.display());
    let missing = from_option(&word).unwrap_err();
    assert!(missing.contains("there is no such file") && missing.contains("anabranch-setting-"), "{missing}");
    std::fs::write(&path, "anabranch-network 2").unwrap();
    let wrong = from_option(&word).unwrap_err();
    assert!(wrong.contains("txt', which is not a trained network: its format is not 1"), "{wrong}");
    std::fs::write(&path, "built-in").unwrap();
    let made = from_option(&word).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(made.policies.scheduler.settings.get("weights"), Some("built-in"));
    assert!(made.policies.to_string().contains(&format!("scheduler.weights=@{}", path.display())), "{made:?}");
    made.policies.check().unwrap();
}
