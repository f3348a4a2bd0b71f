//! A feed-forward network as text: words and numbers, separated by white space.
//!
//! ```text
//! anabranch-network 1
//! paths 2
//! interval 0.1                  seconds, as in the training
//! features established ...      names of the observation's numbers: ten per path, then three of the connection
//! shift s_1 ... s_n             x_i = clip((observation_i - shift_i) scale_i, -clip, clip)
//! scale k_1 ... k_n
//! clip 10
//! layer 64 tanh                 y = tanh(W x + b): for each of the 64, a row of W and its b
//! ...
//! layer 2 linear
//! ...
//! range -1 1                    the last layer's numbers that stand for weights 0 and 1
//! ```

use crate::observation::{PATH_FEATURES, SENDER_FEATURES};
use crate::time::Duration;
use core::fmt::Display;
use core::str::{FromStr, SplitWhitespace};

/// Most paths of a network.
const MOST_PATHS: usize = 16;
/// Most numbers of a layer.
const MOST_WIDE: usize = 1024;
/// Most layers.
const MOST_LAYERS: usize = 8;

/// What a layer applies to its sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Activation {
    Tanh,
    Relu,
    Linear,
}

/// A layer: rows of weights, each followed by its bias.
#[derive(Clone, PartialEq, Debug)]
struct Layer {
    inputs: usize,
    rows: Vec<f32>,
    activation: Activation,
}

/// A network that gives a weight of each path.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    paths: usize,
    interval: Duration,
    shift: Vec<f32>,
    scale: Vec<f32>,
    clip: f32,
    layers: Vec<Layer>,
    /// Outputs that stand for the weights 0 and 1.
    range: [f32; 2],
    /// Values of a layer, and of the one before.
    values: [Vec<f32>; 2],
}

impl Network {
    /// # Errors
    /// What is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut words = Words { rest: text.split_whitespace(), last: "the beginning" };
        let (paths, interval) = words.head()?;
        words.keyword("features")?;
        let names = PATH_FEATURES.iter().cycle().take(paths * PATH_FEATURES.len()).chain(&SENDER_FEATURES);
        let names: Vec<&str> = names.map(|feature| feature.name).collect();
        names.iter().try_for_each(|name| words.keyword(name))?;
        words.keyword("shift")?;
        let shift = words.numbers(names.len())?;
        words.keyword("scale")?;
        let scale = words.numbers(names.len())?;
        words.keyword("clip")?;
        let clip: f32 = words.number()?;
        // Between other limits there is no place for a number.
        if clip.is_nan() || clip < 0.0 {
            return Err(format!("its clip is {clip}, which is not 0 or more"));
        }
        let layers = words.layers(names.len(), paths)?;
        let range = words.numbers(2)?;
        if let Some(word) = words.rest.next() {
            return Err(format!("'{word}' follows the range"));
        }
        let range: [f32; 2] = [range[0], range[1]];
        if range[0] >= range[1] {
            return Err(format!("its range begins with {}, which is not below {}", range[0], range[1]));
        }
        if !(range[1] - range[0]).is_finite() {
            return Err(format!("its range from {} to {} is too wide", range[0], range[1]));
        }
        Ok(Self { paths, interval, shift, scale, clip, layers, range, values: Default::default() })
    }

    pub fn paths(&self) -> usize {
        self.paths
    }

    /// Numbers of an observation.
    pub fn inputs(&self) -> usize {
        self.shift.len()
    }

    /// Simulated time of a step in the training.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The weights, 0 to 1, of the paths after this observation.
    pub fn weights(&mut self, observation: &[f32], weights: &mut [f32]) {
        let [values, next] = &mut self.values;
        values.clear();
        let scaled = observation.iter().zip(&self.shift).zip(&self.scale);
        values.extend(scaled.map(|((x, shift), scale)| ((x - shift) * scale).clamp(-self.clip, self.clip)));
        for layer in &self.layers {
            layer.apply(values, next);
            core::mem::swap(values, next);
        }
        let [low, high] = self.range;
        for (weight, value) in weights.iter_mut().zip(values.iter()) {
            // A network whose sums are not finite excludes nothing.
            *weight = if value.is_finite() { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
        }
    }
}

impl Layer {
    fn apply(&self, values: &[f32], results: &mut Vec<f32>) {
        results.clear();
        for row in self.rows.chunks_exact(self.inputs + 1) {
            let (weights, bias) = row.split_at(self.inputs);
            let sum: f32 = weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
            let sum = sum + bias[0];
            results.push(match self.activation {
                // Of libm, so that it is the same on all machines.
                Activation::Tanh => libm::tanhf(sum),
                Activation::Relu => sum.max(0.0),
                Activation::Linear => sum,
            });
        }
    }
}

/// The words of a text that are left.
struct Words<'a> {
    rest: SplitWhitespace<'a>,
    /// The last keyword, for errors.
    last: &'a str,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.rest.next().ok_or_else(|| format!("it ends after {}", self.last))
    }

    fn keyword(&mut self, wanted: &str) -> Result<(), String> {
        let found = self.next()?;
        if found != wanted {
            return Err(format!("it has '{found}' where '{wanted}' is expected"));
        }
        self.last = found;
        Ok(())
    }

    fn number<T: FromStr + Display>(&mut self) -> Result<T, String> {
        let word = self.next()?;
        word.parse().map_err(|_| format!("'{word}' after {} is not a number", self.last))
    }

    fn in_range(&mut self, least: usize, most: usize) -> Result<usize, String> {
        let number = self.number()?;
        let wrong = || format!("{number} after {} is not {least} to {most}", self.last);
        (least..=most).contains(&number).then_some(number).ok_or_else(wrong)
    }

    fn numbers(&mut self, count: usize) -> Result<Vec<f32>, String> {
        let finite = |number: f32| if number.is_finite() { Ok(number) } else { Err(format!("{number} is not finite")) };
        (0..count).map(|_| self.number().and_then(finite)).collect()
    }

    /// The format, and what a network is for: the number of paths and the interval.
    fn head(&mut self) -> Result<(usize, Duration), String> {
        self.keyword("anabranch-network")?;
        if self.number::<u32>()? != 1 {
            return Err("its format is not 1".to_owned());
        }
        self.keyword("paths")?;
        let paths = self.in_range(1, MOST_PATHS)?;
        self.keyword("interval")?;
        let interval: f64 = self.number()?;
        if !(0.001..=10.0).contains(&interval) {
            return Err(format!("an interval is 0.001 to 10 s, and not {interval}"));
        }
        Ok((paths, Duration::from_secs_f64(interval)))
    }

    /// The layers, to the word `range`.
    fn layers(&mut self, inputs: usize, outputs: usize) -> Result<Vec<Layer>, String> {
        let (mut layers, mut inputs) = (Vec::new(), inputs);
        while layers.len() <= MOST_LAYERS {
            match self.next()? {
                "layer" => {
                    self.last = "layer";
                    let width = self.in_range(1, MOST_WIDE)?;
                    let activation = self.activation()?;
                    layers.push(Layer { inputs, rows: self.numbers(width * (inputs + 1))?, activation });
                    inputs = width;
                }
                "range" if inputs == outputs && !layers.is_empty() => {
                    self.last = "range";
                    return Ok(layers);
                }
                "range" => return Err(format!("its last layer does not have {outputs} numbers, one for each path")),
                word => return Err(format!("it has '{word}' where 'layer' or 'range' is expected")),
            }
        }
        Err(format!("it has more than {MOST_LAYERS} layers"))
    }

    fn activation(&mut self) -> Result<Activation, String> {
        match self.next()? {
            "tanh" => Ok(Activation::Tanh),
            "relu" => Ok(Activation::Relu),
            "linear" => Ok(Activation::Linear),
            word => Err(format!("'{word}' is none of tanh, relu, linear")),
        }
    }
}
