//! The files of the page: those in this program, or of a folder.

use anabranch_settings::diagnostic::Diagnostic;
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/page.rs"));
}

/// Where the page is in a checkout.
const OF_CHECKOUT: &str = "playground/dist";

/// Greatest file that is served.
const MOST: u64 = 64 << 20;

pub enum Files {
    Embedded,
    Folder(PathBuf),
}

impl Files {
    /// The folder, or else the embedded page, or else that of the checkout in which the program runs.
    ///
    /// # Errors
    /// There is no page.
    pub fn open(folder: Option<&Path>) -> Result<Self, Diagnostic> {
        let has_page = |folder: &Path| folder.join("index.html").is_file();
        match folder {
            Some(folder) if has_page(folder) => Ok(Self::Folder(folder.to_owned())),
            Some(folder) => Err(Diagnostic::option("--page", format!("{} has no index.html", folder.display()))),
            None if !embedded::PAGE.is_empty() => Ok(Self::Embedded),
            None if has_page(Path::new(OF_CHECKOUT)) => Ok(Self::Folder(OF_CHECKOUT.into())),
            None => Err(Diagnostic::plain(
                "this program was built without the page: packages have it; in a checkout build it by \
                 `.ci/playground --build`, and run `anabranch play` there",
            )),
        }
    }

    /// The contents of a file by its path below the page; the empty path is `index.html`. None if there is none.
    pub fn read(&self, path: &str) -> Option<Cow<'static, [u8]>> {
        let path = if path.is_empty() { "index.html" } else { path };
        match self {
            Self::Embedded => {
                let found = embedded::PAGE.iter().find(|(name, _)| *name == path);
                found.map(|(_, contents)| Cow::Borrowed(*contents))
            }
            Self::Folder(folder) => {
                let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
                let file = folder.join(path);
                let fits = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MOST);
                if inside && fits { std::fs::read(file).ok().map(Cow::Owned) } else { None }
            }
        }
    }
}

/// The media type of a file.
pub fn media_type(path: &str) -> &'static str {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        None | Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some(_) => "application/octet-stream",
    }
}
