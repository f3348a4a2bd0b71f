//! The commit of this build.

/// The commit the program was built from.
pub fn commit() -> String {
    env!("ANABRANCH_COMMIT").to_owned()
}
