//! What every page has: its head and its end, and text as HTML.

use crate::summary;

const STYLE: &str = include_str!("style.css");

/// The head of a page: its title, and a line on what it is.
pub fn opening(title: &str, what: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Anabranch: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header><h1>Anabranch</h1><p>{} Commit {}.</p></header>\n",
        escape(title),
        escape(what),
        escape(&summary::commit())
    )
}

/// The end of a page.
pub fn closing() -> &'static str {
    "</main>\n</body>\n</html>\n"
}

/// Text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
