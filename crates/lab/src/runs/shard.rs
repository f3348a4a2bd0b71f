//! Part of the runs, for one of several machines.

use std::fmt;
use std::str::FromStr;

/// Every N-th run, beginning with the I-th.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// From 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl Shard {
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether a run belongs to it, by its index.
    pub fn has(self, place: usize) -> bool {
        place % self.of as usize == self.number as usize - 1
    }

    /// How many of `runs` belong to it.
    pub fn count(self, runs: usize) -> usize {
        (0..runs).filter(|place| self.has(*place)).count()
    }

    /// Name of its file, without extension.
    pub fn file(self) -> String {
        if self == Self::WHOLE { "runs".to_owned() } else { format!("runs-{}-of-{}", self.number, self.of) }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (number, of) = text.split_once('/')?;
            let shard = Self { number: number.trim().parse().ok()?, of: of.trim().parse().ok()? };
            (1 <= shard.number && shard.number <= shard.of).then_some(shard)
        };
        read().ok_or_else(|| "a shard is I/N, with I from 1 to N, as in 2/8".to_owned())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_belongs_to_one_shard() {
        let shards: Vec<Shard> = (1..=3).map(|number| Shard { number, of: 3 }).collect();
        for place in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(place)).count(), 1);
        }
        assert_eq!(shards.iter().map(|shard| shard.count(10)).collect::<Vec<_>>(), [4, 3, 3]);
    }

    #[test]
    fn a_shard_is_read_as_it_is_shown() {
        for text in ["1/1", "2/8"] {
            assert_eq!(text.parse::<Shard>().map(|shard| shard.to_string()).as_deref(), Ok(text));
        }
        for wrong in ["0/2", "3/2", "1", "a/b", "1/0"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
