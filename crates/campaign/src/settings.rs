//! Settings of a side of a history: named settings with a few values each. The first value of each is the plainest; a
//! failing history is shrunk by restoring it.

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
    /// The first value of each setting.
    pub fn plain(table: Table) -> Self {
        Self { table, chosen: vec![0; table.len()] }
    }

    /// Random values: about half of them plain, so that unusual ones are combined in many pairs.
    pub fn random(table: Table, luck: &mut Luck) -> Self {
        let mut draw = |values: &[u32]| if luck.one_in(2) { 0 } else { luck.below(values.len() as u64) as u8 };
        Self { table, chosen: table.iter().map(|(_, values)| draw(values)).collect() }
    }

    /// The value of the setting at this index of its table.
    ///
    /// # Panics
    /// If the table is shorter.
    pub fn value(&self, place: usize) -> u32 {
        self.table[place].1[usize::from(self.chosen[place])]
    }

    /// Sets a value by name.
    ///
    /// # Errors
    /// Names the name or value that is not in the table.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), String> {
        let place = self.table.iter().position(|(known, _)| *known == name).ok_or(format!("no setting {name}"))?;
        let values = self.table[place].1;
        let index = values.iter().position(|known| *known == value).ok_or(format!("{name} is one of {values:?}"))?;
        self.chosen[place] = index as u8;
        Ok(())
    }

    /// Names and values of all settings that are not plain.
    pub fn odd(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let odd = self.table.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen != 0);
        odd.map(|((name, values), chosen)| (*name, values[usize::from(*chosen)]))
    }

    /// Indices of all settings that are not plain.
    pub fn odd_places(&self) -> Vec<usize> {
        (0..self.chosen.len()).filter(|place| self.chosen[*place] != 0).collect()
    }

    /// Sets the setting of this name to plain.
    pub fn set_plain(&mut self, name: &str) {
        let place = self.table.iter().position(|(known, _)| *known == name);
        place.into_iter().for_each(|place| self.chosen[place] = 0);
    }

    /// Sets one to plain.
    pub fn make_plain(&mut self, place: usize) {
        self.chosen[place] = 0;
    }
}

/// Declares an enum of the indices of a table, and the table.
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
