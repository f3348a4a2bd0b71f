//! A partial choice of policies: some families are chosen, others left open.

use anabranch_policy::combination::{Choice, Combination, Family};
use std::collections::BTreeMap;

/// What is chosen in some of the families.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    chosen: BTreeMap<Family, Choice>,
}

impl Choices {
    /// Chooses in a family.
    pub fn choose(&mut self, family: Family, choice: Choice) {
        self.chosen.insert(family, choice);
    }

    /// What is chosen in these families of a combination.
    pub fn of(combination: &Combination, families: &[Family]) -> Self {
        let chosen = families.iter().map(|family| (*family, combination.choice(*family).clone()));
        Self { chosen: chosen.collect() }
    }

    /// Puts what is chosen in the place of what was.
    pub fn apply(&self, combination: &mut Combination) {
        for (family, choice) in self.iter() {
            *combination.choice_mut(family) = choice.clone();
        }
    }

    /// What is chosen, in order of the families.
    pub fn iter(&self) -> impl Iterator<Item = (Family, &Choice)> {
        self.chosen.iter().map(|(family, choice)| (*family, choice))
    }
}
