//! A router and neighbours simulated by the tests: a test per rule, named by the rule's section.

mod ageing;
mod bench;
mod exchange;
mod flooding;
mod grace;
mod hello;
mod hostile;
mod origination;
mod restart;
mod table;
