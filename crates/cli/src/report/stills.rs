//! Stills of the same instants side by side: one strip per instant, one still per contender.

use anabranch_lab::record::{Moment, Outcome, Still};
use maud::{Markup, html};

/// The strips, or the reason for their absence; empty for an experiment without a video.
pub fn strips(outcome: &Outcome) -> Markup {
    let Some(pictures) = &outcome.pictures else { return Markup::default() };
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
    html! {
        figure {
            h3 { "The picture at the same instant" }
            @for moment in &pictures.moments { (strip(moment)) }
            figcaption { p.reading { (text) } }
        }
    }
}

fn strip(moment: &Moment) -> Markup {
    html! {
        p.reading { (format!("{:.1} s (frame {})", moment.at, moment.frame)) }
        div.stills {
            @for (still, labels) in different(&moment.stills) {
                div {
                    img src={ "data:image/png;base64," (base64(&still.png)) } alt=(labels);
                    p { (labels) " " small { (format!("{:.1} dB", still.psnr)) } }
                }
            }
        }
    }
}

/// Each distinct picture with the labels of all contenders that show it.
fn different(stills: &[Still]) -> Vec<(&Still, String)> {
    let mut found: Vec<(&Still, String)> = Vec::new();
    for still in stills {
        match found.iter_mut().find(|(known, _)| known.png == still.png) {
            Some((_, labels)) => {
                labels.push_str(", ");
                labels.push_str(&still.label);
            }
            None => found.push((still, still.label.clone())),
        }
    }
    found
}

/// Base64 (RFC 4648, section 4).
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
    use super::*;

    #[test]
    fn text_of_bytes_is_that_of_the_standard() {
        // RFC 4648, section 10.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn who_shows_the_same_picture_shares_it() {
        let still = |label: &str, png: &[u8]| Still { label: label.to_owned(), png: png.to_vec(), psnr: 33.5 };
        let stills = [still("MPTCP", b"one"), still("MO-PR", b"other"), still("recPR", b"one")];
        let labels: Vec<String> = different(&stills).into_iter().map(|(_, labels)| labels).collect();
        assert_eq!(labels, ["MPTCP, recPR", "MO-PR"]);
    }
}
