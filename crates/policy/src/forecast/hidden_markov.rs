//! A hidden Markov model of two states, connect and disconnect, and its algorithms: Viterbi's most likely path, the
//! paper's pseudo-code for it, and the scaled forward filter.
//!
//! pi is the start, A the transitions (rows from, columns to), B the emissions (rows state, columns symbol):
//!
//! ```text
//! delta_0(i) = pi_i B_i(y_0)        delta_t(i) = max_k delta_t-1(k) A_ki B_i(y_t)       Viterbi
//! alpha_0(i) = pi_i B_i(y_0)        alpha_t(i) = sum_k alpha_t-1(k) A_ki B_i(y_t)       forward
//! ```
//!
//! Ties go to the state with the lower index, connect. A symbol that was not seen emits with factor 1.

use super::quality::Symbol;

/// Number of hidden states.
pub const STATES: usize = 2;
/// The longest sequence that is decoded.
pub const MAX_WINDOW: usize = 64;

/// The hidden states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The link is up.
    Connect = 0,
    /// The link is down.
    Disconnect = 1,
}

impl State {
    const fn of(index: usize) -> Self {
        if index == 0 { Self::Connect } else { Self::Disconnect }
    }
}

/// A model with `M` symbols.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model<const M: usize = 3> {
    /// pi: the states' probabilities at the first symbol.
    pub start: [f64; STATES],
    /// A: `transition[from][to]`.
    pub transition: [[f64; STATES]; STATES],
    /// B: `emission[state][symbol]`.
    pub emission: [[f64; M]; STATES],
}

/// The paper's numbers (Appendix A, lines 61 to 69). Its text indexes `tran_p[i]` and `emis_p[obs][i]`; the matrices it
/// prints are rows "from", and per state.
pub(super) const PAPER: Model =
    Model { start: [0.65, 0.35], transition: [[0.7, 0.3], [0.4, 0.6]], emission: [[0.55, 0.35, 0.1], [0.1, 0.3, 0.6]] };

/// The hidden states that a decoder found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decoding {
    states: [State; MAX_WINDOW],
    length: usize,
    /// The decoder's measure of its path: for Viterbi, its joint probability with the symbols.
    pub probability: f64,
}

impl Decoding {
    /// The states, one per symbol.
    pub fn states(&self) -> &[State] {
        &self.states[..self.length]
    }
    /// The state at the last symbol, which is the present; connect if there was no symbol.
    pub fn last(&self) -> State {
        self.states().last().copied().unwrap_or(State::Connect)
    }
}

/// The difference between the algorithm and its pseudo-code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Correct,
    AsPrinted,
}

/// The index of the larger value; the lower index wins a tie.
fn greatest(values: [f64; STATES]) -> usize {
    usize::from(values[1] > values[0])
}

impl Model {
    /// Viterbi's most likely path for the last [`MAX_WINDOW`] symbols.
    pub fn viterbi(&self, symbols: &[Option<Symbol>]) -> Decoding {
        self.decode(symbols, Reading::Correct)
    }

    /// The procedure `hmm_predict` of the paper's Appendix A as it is printed, which is not Viterbi's algorithm:
    ///
    /// - line 40 passes row i of A to the maximum over the states before, where column i is meant:
    ///   max_k delta_t-1(k) A_ik;
    /// - line 46 reads psi at t where t + 1 is meant, so that each state comes from the step before the right one;
    /// - with psi_0 = 0 the first state is always connect (of sequences longer than one).
    pub(super) fn viterbi_as_printed(&self, symbols: &[Option<Symbol>]) -> Decoding {
        self.decode(symbols, Reading::AsPrinted)
    }

    fn decode(&self, symbols: &[Option<Symbol>], reading: Reading) -> Decoding {
        let symbols = &symbols[symbols.len().saturating_sub(MAX_WINDOW)..];
        let mut decoding = Decoding { states: [State::Connect; MAX_WINDOW], length: symbols.len(), probability: 1.0 };
        let Some((first, rest)) = symbols.split_first() else { return decoding };
        let mut psi = [[0_usize; STATES]; MAX_WINDOW];
        let mut delta = [0, 1].map(|i| self.start[i] * self.emits(i, *first));
        for (j, symbol) in rest.iter().enumerate() {
            let before = delta;
            for i in 0..STATES {
                let candidates = [0, 1].map(|k| match reading {
                    Reading::Correct => before[k] * self.transition[k][i],
                    Reading::AsPrinted => before[k] * self.transition[i][k],
                });
                psi[j + 1][i] = greatest(candidates);
                delta[i] = candidates[psi[j + 1][i]] * self.emits(i, *symbol);
            }
        }
        let last = symbols.len() - 1;
        let mut state = greatest(delta);
        decoding.probability = delta[state];
        decoding.states[last] = State::of(state);
        for t in (0..last).rev() {
            state = match reading {
                Reading::Correct => psi[t + 1][state],
                Reading::AsPrinted => psi[t][state],
            };
            decoding.states[t] = State::of(state);
        }
        decoding
    }

    fn emits(&self, state: usize, symbol: Option<Symbol>) -> f64 {
        symbol.map_or(1.0, |symbol| self.emission[state][symbol as usize])
    }
}

impl<const M: usize> Model<M> {
    /// Probabilities of the states after `steps` steps: p A^steps.
    ///
    /// In closed form: with l = 1 - A_01 - A_10, the second eigenvalue, and c = A_10 / (A_01 + A_10), connect's share
    /// in the long run, p'_connect = c + l^steps (p_connect - c).
    pub fn ahead(&self, state: [f64; STATES], steps: u64) -> [f64; STATES] {
        let (leave, come) = (self.transition[0][1], self.transition[1][0]);
        if steps == 0 || leave + come <= 0.0 {
            return state;
        }
        let stationary = come / (leave + come);
        let connect = stationary + power(1.0 - leave - come, steps) * (state[0] - stationary);
        [connect, 1.0 - connect]
    }

    /// Probabilities of the states given `symbol`, and the symbol's own probability: prior times emission, scaled to
    /// sum to 1.
    pub fn update(&self, prior: [f64; STATES], symbol: usize) -> ([f64; STATES], f64) {
        let joint = [0, 1].map(|i| prior[i] * self.emission[i][symbol]);
        let sum = joint[0] + joint[1];
        if sum > 0.0 { (joint.map(|value| value / sum), sum) } else { (prior, 0.0) }
    }
}

/// `base` to an integer power, by squaring; `base` is within -1 to 1.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// The scaled forward filter. The current step is separate, since its symbol may be replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter<const M: usize = 3> {
    pub(super) model: Model<M>,
    /// Before the current step's symbol.
    pub(super) prior: [f64; STATES],
    /// After it.
    pub(super) filtered: [f64; STATES],
    begun: bool,
}

impl<const M: usize> Filter<M> {
    pub(super) const fn new(model: Model<M>) -> Self {
        Self { prior: model.start, filtered: model.start, begun: false, model }
    }

    /// Advances `steps` steps and processes the symbol of the new step; returns the symbol's probability.
    pub(super) fn take(&mut self, steps: u64, symbol: usize) -> f64 {
        if self.begun {
            if steps > 0 {
                self.prior = self.model.ahead(self.filtered, steps);
            }
        } else {
            self.begun = true;
        }
        let (filtered, probability) = self.model.update(self.prior, symbol);
        self.filtered = filtered;
        probability
    }
}

#[cfg(test)]
mod tests;
