//! Common parts of pages: head, end, legends and tables.

use super::canvas;
use super::marks::key;
use super::picture::Picture;
use anabranch_lab::build::commit;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// A complete page.
pub fn page(title: &str, what: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Anabranch: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header { h1 { "Anabranch" } p { (what) " Commit " (commit()) "." } }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

pub fn picture(svg: &str) -> Markup {
    PreEscaped(svg.to_owned())
}

/// Legend of colours; empty without items.
pub fn legend<'a>(items: impl IntoIterator<Item = (&'a str, usize)>) -> Markup {
    let items: Vec<(&str, String)> = items.into_iter().map(|(label, at)| (label, canvas::css_colour(at))).collect();
    html! {
        @if !items.is_empty() {
            ul.legend {
                @for (label, colour) in &items { li { span style={ "background:" (colour) } {} (label) } }
            }
        }
    }
}

/// Legend of curves with their markers; empty without items.
pub fn marks<'a>(items: impl IntoIterator<Item = (&'a str, usize)>) -> Markup {
    let items: Vec<(&str, usize)> = items.into_iter().collect();
    html! {
        @if !items.is_empty() {
            ul.legend { @for (label, at) in &items { li { (key(*at)) (label) } } }
        }
    }
}

/// Charts, `columns` side by side if there is space; `title` is for screen readers.
pub fn pictures(title: &str, pictures: &[Picture], columns: usize) -> Markup {
    html! {
        div.pictures.grid[columns > 1] style={ "--columns:" (columns.clamp(1, 3)) } role="img" aria-label=(title) {
            @for picture in pictures { (picture.html()) }
        }
    }
}

/// A table of numbers that scrolls horizontally.
pub fn numbers(head: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for name in head { th.number { (name) } } } }
                tbody { @for row in rows { tr { @for cell in row { td.number { (cell) } } } } }
            }
        }
    }
}
