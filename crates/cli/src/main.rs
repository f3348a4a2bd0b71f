//! The one binary: scenarios in, tables, reports and captures out.

mod combination;
mod diagnostic;
mod metric;
mod scenario;
fn main() {}
