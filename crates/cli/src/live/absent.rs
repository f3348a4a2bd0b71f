//! In place of the view, where it is not built in.

use std::convert::Infallible;

/// A view that never is.
pub struct Live(Infallible);

impl Live {
    /// Completes never, as there is no view to quit.
    pub async fn quit(&self) {
        match self.0 {}
    }
}
