//! The commit of this build.

pub fn commit() -> String {
    env!("ANABRANCH_COMMIT").to_owned()
}
