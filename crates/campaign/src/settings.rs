//! What each side of a history is set to: a list of named settings, each one of a few values. The first value of each is
//! the plainest, so that a failing history is made smaller by going back to it.

use crate::luck::Luck;

/// A setting's name and its values, the plainest first.
pub type Table = &'static [(&'static str, &'static [u32])];

/// One value of each setting of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    table: Table,
    chosen: Vec<u8>,
}

impl Settings {
    /// The plainest.
    pub fn plain(table: Table) -> Self {
        Self { table, chosen: vec![0; table.len()] }
    }

    /// Random ones: about half of them plain, so that the odd ones meet in many pairs.
    pub fn random(table: Table, luck: &mut Luck) -> Self {
        let mut draw = |values: &[u32]| if luck.one_in(2) { 0 } else { luck.below(values.len() as u64) as u8 };
        Self { table, chosen: table.iter().map(|(_, values)| draw(values)).collect() }
    }

    /// The value of the setting in this place of its table.
    ///
    /// # Panics
    /// If the table is shorter.
    pub fn value(&self, place: usize) -> u32 {
        self.table[place].1[usize::from(self.chosen[place])]
    }

    /// Sets by name.
    ///
    /// # Errors
    /// Says which name or value is not in the table.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), String> {
        let place = self.table.iter().position(|(known, _)| *known == name).ok_or(format!("no setting {name}"))?;
        let values = self.table[place].1;
        let index = values.iter().position(|known| *known == value).ok_or(format!("{name} is one of {values:?}"))?;
        self.chosen[place] = index as u8;
        Ok(())
    }

    /// Names and values of all that are not plain.
    pub fn odd(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let odd = self.table.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen != 0);
        odd.map(|((name, values), chosen)| (*name, values[usize::from(*chosen)]))
    }

    /// The places of all that are not plain.
    pub fn odd_places(&self) -> Vec<usize> {
        (0..self.chosen.len()).filter(|place| self.chosen[*place] != 0).collect()
    }

    /// Makes the one of this name plain.
    pub fn set_plain(&mut self, name: &str) {
        let place = self.table.iter().position(|(known, _)| *known == name);
        place.into_iter().for_each(|place| self.chosen[place] = 0);
    }

    /// Makes one plain.
    pub fn make_plain(&mut self, place: usize) {
        self.chosen[place] = 0;
    }
}

/// Declares the names of the places of a table, and the table.
macro_rules! settings {
    ($(#[$about:meta])* $kind:ident, $table:ident; $($(#[$doc:meta])* $place:ident $name:literal $values:tt;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $kind { $($(#[$doc])* $place),* }
        /// Their names and values.
        pub const $table: $crate::settings::Table = &[$(($name, &$values)),*];
    };
}
pub(crate) use settings;
