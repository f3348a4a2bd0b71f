//! A family of two members, and what is said about it wrongly.

use super::*;
use crate::table::Settings;

/// What the members of the test's family make: a number.
trait Answer {
    fn answer(&self) -> f64;
}
impl Answer for f64 {
    fn answer(&self) -> f64 {
        *self
    }
}

const VALUE: Number = Number { name: "value", unit: "apples", default: 1.5, range: 0.0..=10.0, summary: "The number." };
const SIGN: Choice<f64> =
    Choice { name: "sign", default: 1.0, words: &[("plus", 1.0), ("minus", -1.0)], summary: "Its sign." };

const TABLE: &[Member<dyn Answer>] = &[
    Member { name: "fixed", summary: "Always 42.", source: "a novel", build: |_| Ok(Box::new(42.0)) },
    Member {
        name: "chosen",
        summary: "A number, perhaps negated.",
        source: "nowhere",
        build: |reader| Ok(Box::new(reader.read(&VALUE)? * reader.read(&SIGN)?)),
    },
];

fn answer(name: &str, settings: &Settings) -> Result<f64, SettingError> {
    build(TABLE, name, settings).map(|member| member.answer())
}

#[test]
fn a_member_is_made_by_name_with_defaults_where_nothing_is_said() {
    assert_eq!(answer("fixed", &Settings::new()), Ok(42.0));
    assert_eq!(answer("chosen", &Settings::new()), Ok(1.5));
    assert_eq!(answer("chosen", &Settings::new().with("sign", "minus")), Ok(-1.5));
    assert_eq!(answer("chosen", &Settings::new().with("value", 10).with("sign", "minus")), Ok(-10.0));
}

#[test]
fn an_unknown_member_is_told_the_known_ones() {
    let error = answer("chozen", &Settings::new()).unwrap_err();
    assert_eq!(error.to_string(), "unknown policy 'chozen': known are fixed, chosen");
    assert!(find(TABLE, "chozen").is_none());
    assert_eq!(find(TABLE, "chosen").map(|member| member.source), Some("nowhere"));
}

#[test]
fn an_unknown_setting_is_told_the_known_ones_or_that_there_are_none() {
    let settings = Settings::new().with("valu", 3);
    assert_eq!(answer("chosen", &settings).unwrap_err().to_string(), "unknown setting 'valu': known are value, sign");
    assert_eq!(answer("fixed", &settings).unwrap_err().to_string(), "unknown setting 'valu': known are none");
}

#[test]
fn a_number_must_be_one_and_lie_in_its_range() {
    for value in ["", "ten", "-0.1", "10.1", "NaN", "inf", "1 "] {
        let error = answer("chosen", &Settings::new().with("value", value)).unwrap_err();
        let expected = "a number from 0 to 10".to_owned();
        let name = "value".to_owned();
        assert_eq!(error, SettingError::BadValue { name, value: value.to_owned(), expected });
    }
    for (value, number) in [("0", 0.0), ("10", 10.0), ("2.5e-1", 0.25)] {
        assert_eq!(answer("chosen", &Settings::new().with("value", value)), Ok(number));
    }
}

#[test]
fn a_word_must_be_one_of_those_allowed() {
    let error = answer("chosen", &Settings::new().with("sign", "Minus")).unwrap_err();
    assert_eq!(error.to_string(), "setting 'sign' is 'Minus', which is not one of plus, minus");
}

#[test]
fn settings_are_listed_in_order_of_name_and_the_last_value_counts() {
    let settings = Settings::new().with("b", 1).with("a", "x").with("b", 2);
    assert_eq!(settings.iter().collect::<Vec<_>>(), [("a", "x"), ("b", "2")]);
    assert_eq!((settings.get("b"), settings.get("c")), (Some("2"), None));
}

#[test]
fn a_value_from_a_file_is_read_once_and_shown_as_the_file() {
    let mut settings = Settings::new().with("a", "x").with("b", "@weights.txt");
    let text = |file: &str| if file == "weights.txt" { Ok("1 2 3".to_owned()) } else { Err(file.to_owned()) };
    settings.read_files(text).unwrap();
    settings.read_files(|file| Err(file.to_owned())).expect("it is not read again");
    assert_eq!((settings.get("a"), settings.get("b")), (Some("x"), Some("1 2 3")));
    assert_eq!(settings.iter().collect::<Vec<_>>(), [("a", "x"), ("b", "@weights.txt")]);
    assert_eq!(Settings::new().with("c", "@other").read_files(text), Err("other".to_owned()));
}

#[test]
fn what_a_member_reads_is_what_is_known_of_its_settings() {
    let parameters = find(TABLE, "chosen").expect("a member").parameters();
    let shown = |parameter: &Parameter| format!("{}={} ({})", parameter.name, parameter.default, parameter.values);
    assert_eq!(
        parameters.iter().map(shown).collect::<Vec<_>>(),
        ["value=1.5 (apples, 0 to 10)", "sign=plus (plus | minus)"]
    );
    assert_eq!(find(TABLE, "fixed").expect("a member").parameters(), []);
}

#[test]
fn an_unknown_setting_is_told_before_a_bad_value() {
    let settings = Settings::new().with("value", "eleven").with("zeal", 1);
    assert_eq!(answer("chosen", &settings).unwrap_err().to_string(), "unknown setting 'zeal': known are value, sign");
}

#[test]
fn times_are_written_in_milliseconds_or_seconds() {
    let number = |name| Number { name, unit: "", default: 500.0, range: 0.0..=1000.0, summary: "" };
    let read =
        |reader: &mut Reader<'_>| Ok((reader.read(&Milliseconds(number("ms")))?, reader.read(&Seconds(number("s")))?));
    let (half, long) = (crate::Duration::from_millis(500), crate::Duration::from_secs(500));
    assert_eq!(Settings::new().read(read), Ok((half, long)));
    assert_eq!(Settings::new().with("ms", 0.5).with("s", 0.5).read(read), Ok((half / 1000, half)));
}

#[test]
fn what_is_written_in_a_way_of_its_own_says_what_it_must_be() {
    let pair = |text: &str| text.split_once('-').map(|(from, to)| (from.to_owned(), to.to_owned()));
    let setting =
        Written { name: "pair", default: "a-b", values: "FROM-TO", expected: "a pair", read: pair, summary: "" };
    let read = |reader: &mut Reader<'_>| reader.read(&setting);
    assert_eq!(Settings::new().read(read), Ok(("a".to_owned(), "b".to_owned())));
    let error = Settings::new().with("pair", "ab").read(read).unwrap_err();
    assert_eq!(error.to_string(), "setting 'pair' is 'ab', which is not a pair");
}

#[test]
fn a_member_shows_its_name() {
    assert_eq!(format!("{:?}", find(TABLE, "chosen")), "Some(Member { name: \"chosen\", .. })");
}
