//! A partial choice of policies: some families are specified, others open.

use anabranch_policy::combination::{Choice, Combination, Family};
use std::collections::BTreeMap;

/// Policies by family.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    chosen: BTreeMap<Family, Choice>,
}

impl Choices {
    /// Sets the policy of a family.
    pub fn choose(&mut self, family: Family, choice: Choice) {
        self.chosen.insert(family, choice);
    }

    /// The policies of these families in a combination.
    pub fn of(combination: &Combination, families: &[Family]) -> Self {
        let chosen = families.iter().map(|family| (*family, combination.choice(*family).clone()));
        Self { chosen: chosen.collect() }
    }

    /// Replaces the policies of the specified families.
    pub fn apply(&self, combination: &mut Combination) {
        for (family, choice) in self.iter() {
            *combination.choice_mut(family) = choice.clone();
        }
    }

    /// The policies in order of the families.
    pub fn iter(&self) -> impl Iterator<Item = (Family, &Choice)> {
        self.chosen.iter().map(|(family, choice)| (*family, choice))
    }
}
