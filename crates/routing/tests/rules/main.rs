//! One router and neighbours whose packets the tests make: a test per rule, named by the section it comes from.

mod ageing;
mod bench;
mod exchange;
mod flooding;
mod hello;
mod hostile;
mod origination;
mod table;
