//! The paper's model against reference values of another program (hmmlearn, and brute force over all paths), and over
//! all sequences of up to ten symbols. 12 digits per number.

use super::*;

/// A sequence with its reference values. Symbols: 0 good, 1 moderate, 2 bad. States: c connect, d disconnect.
struct Vector {
    symbols: &'static str,
    /// Viterbi's path and its joint probability with the symbols.
    viterbi: (&'static str, f64),
    /// The path of the pseudo-code as printed.
    printed: &'static str,
    /// Logarithm of the symbols' probability.
    likelihood: f64,
    /// P(connect) at each step, given the symbols up to it.
    filtered: &'static [f64],
    /// P(connect) one and two steps after the last symbol.
    ahead: [f64; 2],
    /// Probabilities of the next symbol.
    next: [f64; 3],
}

const VECTORS: &[Vector] = &[
    Vector {
        symbols: "210",
        viterbi: ("dcc", 0.011319),
        printed: "cdc",
        likelihood: -3.47274037695,
        filtered: &[0.236363636364, 0.509412756392, 0.871785059717],
        ahead: [0.661535517915, 0.598460655375],
        next: [0.397690983062, 0.333076775896, 0.269232241042],
    },
    Vector {
        symbols: "002",
        viterbi: ("ccd", 0.02477475),
        printed: "ccd",
        likelihood: -3.18292065415,
        filtered: &[0.910828025478, 0.918912510867, 0.257730280512],
        ahead: [0.477319084154, 0.543195725246],
        next: [0.314793587869, 0.323865954208, 0.361340457923],
    },
    Vector {
        symbols: "012",
        viterbi: ("ccd", 0.01576575),
        printed: "ccd",
        likelihood: -3.25678864369,
        filtered: &[0.910828025478, 0.706213610766, 0.208068939775],
        ahead: [0.462420681933, 0.53872620458],
        next: [0.30808930687, 0.323121034097, 0.368789659034],
    },
    Vector {
        symbols: "2",
        viterbi: ("d", 0.21),
        printed: "d",
        likelihood: -1.29098418132,
        filtered: &[0.236363636364],
        ahead: [0.470909090909, 0.541272727273],
        next: [0.311909090909, 0.323545454545, 0.364545454545],
    },
    Vector {
        symbols: "0",
        viterbi: ("c", 0.3575),
        printed: "c",
        likelihood: -0.93521874176,
        filtered: &[0.910828025478],
        ahead: [0.673248407643, 0.601974522293],
        next: [0.402961783439, 0.333662420382, 0.263375796178],
    },
    Vector {
        symbols: "1",
        viterbi: ("c", 0.2275),
        printed: "c",
        likelihood: -1.10111541889,
        filtered: &[0.684210526316],
        ahead: [0.605263157895, 0.581578947368],
        next: [0.372368421053, 0.330263157895, 0.297368421053],
    },
    Vector {
        symbols: "21",
        viterbi: ("dd", 0.0378),
        printed: "cd",
        likelihood: -2.41939984759,
        filtered: &[0.236363636364, 0.509412756392],
        ahead: [0.552823826918, 0.565847148075],
        next: [0.348770722113, 0.327641191346, 0.323588086541],
    },
    Vector {
        symbols: "211",
        viterbi: ("dcc", 0.007203),
        printed: "cdd",
        likelihood: -3.53523604578,
        filtered: &[0.236363636364, 0.509412756392, 0.590549492957],
        ahead: [0.577164847887, 0.573149454366],
        next: [0.359724181549, 0.328858242394, 0.311417576056],
    },
    Vector {
        symbols: "2211",
        viterbi: ("ddcc", 0.00259308),
        printed: "cddd",
        likelihood: -4.55080689013,
        filtered: &[0.236363636364, 0.129177057357, 0.476997916295, 0.581023671872],
        ahead: [0.574307101562, 0.572292130468],
        next: [0.358438195703, 0.328715355078, 0.312846449219],
    },
    Vector {
        symbols: "0000",
        viterbi: ("cccc", 0.0204013184375),
        printed: "cccc",
        likelihood: -3.65627610432,
        filtered: &[0.910828025478, 0.918912510867, 0.919731793834, 0.919814573168],
        ahead: [0.67594437195, 0.602783311585],
        next: [0.404174967378, 0.333797218598, 0.262027814025],
    },
    Vector {
        symbols: "2222",
        viterbi: ("dddd", 0.00979776),
        printed: "cddd",
        likelihood: -4.22651288425,
        filtered: &[0.236363636364, 0.129177057357, 0.115272226954, 0.113554026593],
        ahead: [0.434066207978, 0.530219862393],
        next: [0.29532979359, 0.321703310399, 0.382966896011],
    },
    Vector {
        symbols: "1111",
        viterbi: ("cccc", 0.0033456434375),
        printed: "cccc",
        likelihood: -4.42916475796,
        filtered: &[0.684210526316, 0.641434262948, 0.629056626579, 0.625466069242],
        ahead: [0.587639820773, 0.576291946232],
        next: [0.364437919348, 0.329381991039, 0.306180089614],
    },
    Vector {
        symbols: "020202",
        viterbi: ("cdcdcd", 0.000100911096),
        printed: "ccdcdd",
        likelihood: -7.1716596601,
        filtered: &[0.910828025478, 0.255622732769, 0.833609510225, 0.236429380933, 0.830381304488, 0.235662134261],
        ahead: [0.470698640278, 0.541209592084],
        next: [0.311814388125, 0.323534932014, 0.364650679861],
    },
    Vector {
        symbols: "2111",
        viterbi: ("dccc", 0.001764735),
        printed: "cdcc",
        likelihood: -4.64736454104,
        filtered: &[0.236363636364, 0.509412756392, 0.590549492957, 0.614269830337],
        ahead: [0.584280949101, 0.57528428473],
        next: [0.362926427095, 0.329214047455, 0.307859525449],
    },
    Vector {
        symbols: "00112",
        viterbi: ("ccccd", 0.00148710436875),
        printed: "ccccd",
        likelihood: -5.2430587188,
        filtered: &[0.910828025478, 0.918912510867, 0.708500212508, 0.648441282853, 0.196387839741],
        ahead: [0.458916351922, 0.537674905577],
        next: [0.306512358365, 0.322945817596, 0.370541824039],
    },
    Vector {
        symbols: "0001122100",
        viterbi: ("cccccddccc", 4.2771469783e-06),
        printed: "ccccccddcc",
        likelihood: -10.2659639293,
        filtered: &[
            0.910828025478,
            0.918912510867,
            0.919731793834,
            0.708731844357,
            0.648508029016,
            0.196400949398,
            0.123851800398,
            0.475379033762,
            0.867106926532,
            0.914403766285,
        ],
        ahead: [0.674321129885, 0.602296338966],
        next: [0.403444508448, 0.333716056494, 0.262839435057],
    },
    Vector {
        symbols: "22012",
        viterbi: ("ddccd", 0.0007334712),
        printed: "cddcd",
        likelihood: -5.82436384622,
        filtered: &[0.236363636364, 0.129177057357, 0.811306833902, 0.677928431317, 0.202265107484],
        ahead: [0.460679532245, 0.538203859674],
        next: [0.30730578951, 0.323033976612, 0.369660233877],
    },
];

pub(in crate::forecast) fn symbols(text: &str) -> Vec<Option<Symbol>> {
    text.bytes().map(|digit| Symbol::ALL.get(usize::from(digit - b'0')).copied()).collect()
}

fn letters(states: &[State]) -> String {
    states.iter().map(|state| if *state == State::Connect { 'c' } else { 'd' }).collect()
}

fn assert_near(value: f64, expected: f64, place: &str) {
    assert!((value - expected).abs() < 1e-9, "{place}: {value} is not {expected}");
}

#[test]
fn viterbi_and_its_pseudo_code_find_the_paths_of_the_vectors() {
    for vector in VECTORS {
        let place = vector.symbols;
        let symbols = symbols(vector.symbols);
        let decoding = PAPER.viterbi(&symbols);
        assert_eq!(letters(decoding.states()), vector.viterbi.0, "{place}");
        assert!((decoding.probability / vector.viterbi.1 - 1.0).abs() < 1e-9, "{place}");
        assert_eq!(letters(PAPER.viterbi_as_printed(&symbols).states()), vector.printed, "{place}");
    }
}

#[test]
fn the_filter_computes_the_probabilities_of_the_vectors() {
    for vector in VECTORS {
        let mut filter = Filter::new(PAPER);
        let mut likelihood = 0.0;
        for (symbol, expected) in symbols(vector.symbols).into_iter().flatten().zip(vector.filtered) {
            likelihood += libm::log(filter.take(1, symbol as usize));
            assert_near(filter.filtered[0], *expected, vector.symbols);
        }
        assert_near(likelihood, vector.likelihood, vector.symbols);
        let ahead = [1, 2].map(|steps| PAPER.ahead(filter.filtered, steps)[0]);
        for (value, expected) in ahead.into_iter().zip(vector.ahead) {
            assert_near(value, expected, vector.symbols);
        }
        for (symbol, expected) in vector.next.into_iter().enumerate() {
            let next = ahead[0] * PAPER.emission[0][symbol] + (1.0 - ahead[0]) * PAPER.emission[1][symbol];
            assert_near(next, expected, vector.symbols);
        }
    }
}

#[test]
fn one_symbol_by_hand() {
    // Good: 0.65 x 0.55 = 0.3575 against 0.35 x 0.1 = 0.035.
    assert_near(PAPER.viterbi(&symbols("0")).probability, 0.3575, "joint");
    let (state, probability) = PAPER.update(PAPER.start, 0);
    assert_near(probability, 0.3925, "of the symbol");
    assert_near(state[0], 0.3575 / 0.3925, "filtered");
    // One step on: 0.7 p + 0.4 (1 - p).
    assert_near(PAPER.ahead(state, 1)[0], 0.4 + 0.3 * 0.3575 / 0.3925, "one step");
    assert_near(PAPER.ahead([1.0, 0.0], 1_000)[0], 4.0 / 7.0, "in the long run");
    assert_eq!(PAPER.ahead([0.25, 0.75], 0), [0.25, 0.75]);
}

#[test]
fn of_two_paths_that_are_equally_likely_the_one_through_connect_is_taken() {
    let even = Model { start: [0.5; 2], transition: [[0.5; 2]; 2], emission: [[0.5, 0.25, 0.25]; 2] };
    assert_eq!(even.viterbi(&symbols("0120")).states(), [State::Connect; 4]);
}

#[test]
fn a_step_that_was_not_seen_multiplies_by_the_transitions_only() {
    let mut filter = Filter::new(PAPER);
    filter.take(1, 2);
    let before = filter.filtered;
    filter.take(3, 0);
    let (expected, _) = PAPER.update(PAPER.ahead(before, 3), 0);
    assert_eq!(filter.filtered, expected);
    // A symbol that is replaced counts once.
    filter.take(0, 1);
    assert_eq!(filter.filtered, PAPER.update(PAPER.ahead(before, 3), 1).0);
    // Bad, not seen, good: 0.35 x 0.6 x 0.6 x 0.4 x 0.55 through d d c beats 0.35 x 0.6 x 0.4 x 0.7 x 0.55 through d c c?
    // 0.0277 against 0.0323: it does not.
    let decoding = PAPER.viterbi(&[Some(Symbol::Bad), None, Some(Symbol::Good)]);
    assert_eq!(letters(decoding.states()), "dcc");
    assert_near(decoding.probability, 0.35 * 0.6 * 0.4 * 0.7 * 0.55, "joint");
}

#[test]
fn a_sequence_that_is_too_long_counts_with_its_end() {
    let long: Vec<_> = symbols("2").into_iter().chain(symbols(&"0".repeat(MAX_WINDOW))).collect();
    assert_eq!(PAPER.viterbi(&long).states().len(), MAX_WINDOW);
    assert_eq!(PAPER.viterbi(&long), PAPER.viterbi(&long[1..]));
    assert_eq!(PAPER.viterbi(&[]).last(), State::Connect);
}

/// The rule on the last symbols: good is connect, bad is disconnect, moderate is disconnect only after bad.
fn rule(symbols: &[Option<Symbol>]) -> State {
    match symbols {
        [.., Some(Symbol::Bad)] | [.., Some(Symbol::Bad), Some(Symbol::Moderate)] => State::Disconnect,
        _ => State::Connect,
    }
}

#[test]
fn over_all_88572_sequences_the_papers_model_is_a_rule_on_the_last_two_symbols() {
    let (mut sequences, mut ends_apart, mut begins_apart) = (0, 0, 0);
    for length in 1..=10_u32 {
        for number in 0..3_usize.pow(length) {
            let digit = |place| Symbol::ALL[number / 3_usize.pow(place) % 3];
            let mut sequence = [None; 10];
            (0..length).for_each(|place| sequence[place as usize] = Some(digit(place)));
            let sequence = &sequence[..length as usize];
            let correct = PAPER.viterbi(sequence);
            assert_eq!(correct.last(), rule(sequence), "{sequence:?}");

            let mut filter = Filter::new(PAPER);
            for symbol in sequence.iter().flatten() {
                filter.take(1, *symbol as usize);
            }
            let next = PAPER.ahead(filter.filtered, 1)[0];
            assert_eq!(next >= 0.5, sequence.last() != Some(&Some(Symbol::Bad)), "{sequence:?}");
            assert!((0.4..=0.7).contains(&next), "{sequence:?}");

            let printed = PAPER.viterbi_as_printed(sequence);
            sequences += 1;
            ends_apart += u32::from(printed.last() != correct.last());
            begins_apart += u32::from(printed.states()[0] != correct.states()[0]);
        }
    }
    // Also counted by another program.
    assert_eq!((sequences, ends_apart, begins_apart), (88_572, 3_280, 29_523));
}

#[test]
fn bad_moderate_moderate_is_where_the_pseudo_code_decides_otherwise() {
    let sequence = symbols("211");
    assert_eq!(PAPER.viterbi(&sequence).last(), State::Connect);
    assert_eq!(PAPER.viterbi_as_printed(&sequence).last(), State::Disconnect);
}
