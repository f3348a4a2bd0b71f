//! Entries of the families' tables: name, source and constructor of a member.
//!
//! Help texts, documentation, the scenario reader and the test matrix are generated from the tables and from what the
//! members read, so adding an algorithm is one file and one line.

pub use crate::setting::{Choice, Milliseconds, Number, Parameter, Seconds, Setting, Switch, Written};
pub use crate::settings::{Reader, SettingError, Settings};

/// An algorithm of a family `P`.
pub struct Member<P: ?Sized + 'static> {
    /// Its name, as in a scenario file and on the command line.
    pub name: &'static str,
    /// The algorithm in one sentence.
    pub summary: &'static str,
    /// Its publication.
    pub source: &'static str,
    pub build: fn(&mut Reader<'_>) -> Result<Box<P>, SettingError>,
}

impl<P: ?Sized> Member<P> {
    pub fn parameters(&self) -> Vec<Parameter> {
        Reader::parameters(self.build)
    }
}

impl<P: ?Sized> core::fmt::Debug for Member<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Member").field("name", &self.name).finish_non_exhaustive()
    }
}

pub fn find<P: ?Sized>(table: &'static [Member<P>], name: &str) -> Option<&'static Member<P>> {
    table.iter().find(|member| member.name == name)
}

/// Builds the member called `name`, which must accept all settings.
pub fn build<P: ?Sized>(table: &'static [Member<P>], name: &str, settings: &Settings) -> Result<Box<P>, SettingError> {
    let member = find(table, name).ok_or_else(|| SettingError::UnknownMember {
        name: name.to_owned(),
        known: table.iter().map(|m| m.name).collect::<Vec<_>>().join(", "),
    })?;
    settings.read(member.build)
}

#[cfg(test)]
mod tests;
