//! Nothing runs here. The tests of this crate read the source of all the others (`tests/house`).
