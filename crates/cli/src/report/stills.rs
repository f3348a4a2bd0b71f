//! Shows what a viewer saw at the same instants, side by side: a strip of stills for each instant, one still per combination.

use super::html::escape;
use crate::record::{Moment, Outcome};
use std::fmt::Write;

/// The strips, or a sentence on why there are none; nothing for an experiment without a video.
pub fn strips(outcome: &Outcome) -> String {
    let Some(pictures) = &outcome.pictures else { return String::new() };
    let mut html = String::from("<figure>\n<h3>The picture at the same instant</h3>\n");
    for moment in &pictures.moments {
        strip(&mut html, moment);
    }
    html.push_str("<figcaption>\n");
    let text = match (&pictures.missing, pictures.moments.is_empty()) {
        (Some(reason), _) => format!("Not computed: {reason}"),
        (None, true) => {
            "All combinations showed the same pictures in the first run, those of a video that lost nothing.".to_owned()
        }
        (None, false) => {
            "Frames of the first run: those at which all combinations together lose most, at least ten \
             seconds apart, so the worst and not the usual. Number: PSNR of Y against the source. Pictures: Big Buck Bunny, \
             (c) 2008 Blender Foundation, CC BY 3.0, cut and coded anew."
                .to_owned()
        }
    };
    let _ = writeln!(html, "<p class=\"reading\">{}</p>", escape(&text));
    html.push_str("</figcaption>\n</figure>\n");
    html
}

fn strip(html: &mut String, moment: &Moment) {
    let _ =
        writeln!(html, "<p class=\"reading\">{:.1} s (frame {})</p>\n<div class=\"stills\">", moment.at, moment.frame);
    for still in &moment.stills {
        let (label, psnr) = (escape(&still.label), still.psnr);
        let data = base64(&still.png);
        let _ = writeln!(
            html,
            "<div><img src=\"data:image/png;base64,{data}\" alt=\"{label}\"><p>{label} <small>{psnr:.1} dB</small></p></div>"
        );
    }
    html.push_str("</div>\n");
}

/// Bytes as text (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for letter in 0..4 {
            let place = (bits >> (18 - 6 * letter) & 63) as usize;
            text.push(if letter <= three.len() { char::from(LETTERS[place]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn text_of_bytes_is_that_of_the_standard() {
        // RFC 4648, section 10.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
