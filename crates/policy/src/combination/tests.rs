//! Combinations in words, and that every member of every family can be made.

use super::*;

#[test]
fn words_choose_members_and_settings_and_the_rest_stays_at_its_default() {
    let mut combination = Combination::default();
    combination.apply("scheduler=redundant,congestion=cubic, congestion.beta=0.8").expect("three good words");
    let expected = Combination {
        scheduler: Choice::new("redundant"),
        congestion: Choice { name: "cubic".to_owned(), settings: Settings::new().with("beta", "0.8") },
        ..Combination::default()
    };
    assert_eq!(combination, expected);
}

#[test]
fn choosing_a_member_forgets_the_settings_of_the_one_before() {
    let mut combination = Combination::default();
    combination.apply("congestion.hystart=on").expect("a setting of the default");
    assert_eq!(combination.congestion.settings.get("hystart"), Some("on"));
    combination.apply("congestion=olia").expect("a member");
    assert_eq!(combination.congestion, Choice::new("olia"));
}

#[test]
fn a_setting_may_be_written_before_its_member() {
    let after: Combination = "congestion=cubic,congestion.beta=0.8,scheduler=redundant".parse().expect("good words");
    let before: Combination = "congestion.beta=0.8,scheduler=redundant,congestion=cubic".parse().expect("good words");
    assert_eq!(before, after);
}

#[test]
fn no_words_are_the_default_combination() {
    let mut combination = Combination::default();
    combination.apply(" , ").expect("nothing said");
    assert_eq!(combination, Combination::default());
}

#[test]
fn a_word_that_is_not_understood_changes_nothing() {
    for (words, error) in [
        ("redundant", "'redundant' is not of the form family=member or family.setting=value"),
        ("congestion=olia,scheduler=", "'scheduler=' is not of the form family=member or family.setting=value"),
        ("congestion=olia,=x", "'=x' is not of the form family=member or family.setting=value"),
        ("congestion.=x", "'congestion.=x' is not of the form family=member or family.setting=value"),
        (
            "congestion=olia colour=red",
            "unknown family 'colour': known are congestion, scheduler, path_manager, reliability, forecaster",
        ),
    ] {
        let mut combination = Combination::default();
        let refused = combination.apply(words).expect_err(words);
        assert_eq!(refused.to_string(), error);
        assert_eq!(combination, Combination::default());
    }
}

#[test]
fn what_cannot_be_made_is_reported_with_its_family() {
    for (words, error) in [
        ("congestion=reno", "congestion: unknown policy 'reno': known are new_reno, cubic, bbr, lia, olia"),
        ("congestion=cubic,congestion.gamma=1", "congestion: unknown setting 'gamma': known are beta, c, fast_conv"),
        ("congestion=cubic,congestion.beta=2", "congestion: setting 'beta' is '2', which is not a number from 0.1 to"),
        ("reliability=none", "reliability: unknown policy 'none': known are full"),
        ("forecaster.window=3", "forecaster: unknown setting 'window': known are none"),
    ] {
        let refused = words.parse::<Combination>().expect_err(words).to_string();
        assert!(refused.starts_with(error), "{refused}");
    }
}

#[test]
fn the_default_combination_can_be_made() {
    Combination::default().check().expect("the defaults exist");
}

#[test]
fn a_combination_begins_with_the_name_of_another() {
    let parsed = |words: &str| words.parse::<Combination>().expect("it is understood");
    assert_eq!(parsed(Combination::RECOMMENDED), Combination::recommended());
    assert_eq!(
        parsed(" recpr , congestion=olia"),
        parsed("path_manager=one_way_delay,reliability=spe,congestion=olia")
    );
    assert_eq!(parsed("plain"), Combination::default());
    assert_eq!(parsed(""), Combination::default());
    assert_eq!(parsed("scheduler=redundant congestion=olia"), parsed("plain,scheduler=redundant,congestion=olia"));
}

#[test]
fn a_name_that_is_unknown_or_not_the_first_word_is_refused() {
    let refused = |words: &str| words.parse::<Combination>().expect_err(words).to_string();
    assert!(refused("anabrnch").starts_with("unknown combination 'anabrnch': known are anabranch, plain, recpr"));
    let message = "'anabranch' is not of the form family=member or family.setting=value";
    assert_eq!(refused("congestion=olia,anabranch"), message);
}

#[test]
fn a_combination_says_itself_in_words_that_make_it_again() {
    let words = "congestion=cubic,congestion.beta=0.8,congestion.hystart=off";
    let mut combination = Combination::default();
    combination.apply(words).expect("good words");
    let said = combination.to_string();
    assert!(said.starts_with(words), "{said}");
    let mut again = Combination::default();
    again.apply(&said).expect("its own words");
    assert_eq!(again, combination);
}

#[test]
fn every_member_of_every_family_can_be_made_and_has_a_name_of_its_own() {
    for family in Family::ALL {
        let members = family.members();
        assert!(!members.is_empty(), "{family}");
        for (index, member) in members.iter().enumerate() {
            assert!(!members[..index].contains(member), "{family} has two of '{member}'");
            assert!(member.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{member}");
            let mut combination = Combination::default();
            *combination.choice_mut(family) = Choice::new(member);
            combination.check().unwrap_or_else(|error| panic!("{family}={member}: {error}"));
        }
    }
}

fn parameters<P: ?Sized>(table: &'static [table::Member<P>]) -> Vec<(&'static str, Vec<table::Parameter>)> {
    table.iter().map(|member| (member.name, member.parameters())).collect()
}

#[test]
fn every_parameter_takes_its_own_default_and_refuses_what_is_none_of_its_words() {
    let families = [
        (Family::Congestion, parameters(congestion::TABLE)),
        (Family::Scheduler, parameters(scheduler::TABLE)),
        (Family::PathManager, parameters(path_manager::TABLE)),
        (Family::Reliability, parameters(reliability::TABLE)),
        (Family::Forecaster, parameters(forecast::TABLE)),
    ];
    for (family, members) in families {
        for (member, parameters) in members {
            for parameter in parameters {
                let mut combination = Combination::default();
                *combination.choice_mut(family) = Choice::new(member);
                combination.choice_mut(family).settings.set(parameter.name, &parameter.default);
                let place = format!("{family}={member}, {}", parameter.name);
                combination.check().unwrap_or_else(|error| panic!("{place}: {error}"));
                if parameter.values.contains(" | ") {
                    combination.choice_mut(family).settings.set(parameter.name, "no such word");
                    assert!(combination.check().is_err(), "{place}");
                }
            }
        }
    }
}

#[test]
fn each_named_combination_can_be_made() {
    for (name, _) in Combination::NAMED.iter().chain(Combination::READINGS) {
        let combination = Combination::named(name).expect(name);
        assert_eq!(combination.check(), Ok(()), "{name}");
        assert_ne!(combination, Combination::default(), "{name}");
    }
    assert_eq!(Combination::named("anabranch"), Some(Combination::anabranch()));
    assert_eq!(Combination::named("nobody"), None);
}

#[test]
fn our_own_combination_is_the_text_that_names_it() {
    let read = |text: &str| text.parse::<Combination>().expect("a combination");
    assert_eq!(Combination::anabranch(), read("congestion=anabranch,scheduler=anabranch,path_manager=anabranch"));
    assert_eq!(Combination::recommended(), read(Combination::RECOMMENDED));
}
