//! The one binary: scenarios in, tables, reports and captures out.
fn main() {}
