//! The clip through ffmpeg: golden pixels and scores, and our metrics compared with ffmpeg's. Without ffmpeg, every
//! test here is reported as ignored, with the reason.

use anabranch_media::ffmpeg::FfmpegError;
use anabranch_media::lossy::{Received, received};
use anabranch_media::metrics::score::{FrameScore, Score, Scorer};
use anabranch_media::metrics::{Plane, similarity};
use anabranch_media::{Dependency, Ffmpeg, Film, FilmError, FrameType, Quality, clip, film};
use libtest_mimic::{Arguments, Failed, Trial};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const SIZE: (u32, u32) = (clip::WIDTH, clip::HEIGHT);
const LUMA: usize = (clip::WIDTH * clip::HEIGHT) as usize;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = Ffmpeg::find().err();
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trial = |name: &str, test: fn(&Ffmpeg) -> Result<(), Failed>| {
        Trial::test(name, move || test(&Ffmpeg::find()?)).with_ignored_flag(missing.is_some())
    };
    let film = Film::find().err();
    if let Some(reason) = film.as_ref().filter(|_| missing.is_none()) {
        eprintln!("skipped the test of the film: {reason}");
    }
    // A wrong file name is reported as such, not only as a skipped test.
    let no_film = missing.is_some() || matches!(film, Some(FilmError::Unnamed));
    let coded = Trial::test("the_film_is_coded_to_the_frames_that_come_along", || film_coded(&Ffmpeg::find()?));
    let uncompressed =
        Trial::test("the_clip_is_scored_against_the_uncompressed_original_too", || uncompressed(&Ffmpeg::find()?));
    let trials = vec![
        coded.with_ignored_flag(no_film),
        uncompressed.with_ignored_flag(no_film),
        trial("the_clip_and_its_original_decode_to_the_pixels_they_always_had", golden_pixels),
        trial("a_lossless_run_scores_the_reference_in_every_frame", lossless),
        trial("losing_a_b_a_p_or_an_i_frame_changes_what_depends_on_it_and_nothing_else", one_lost),
        trial("what_is_lost_at_the_beginning_and_at_the_end_shifts_nothing", ends),
        trial("our_psnr_and_ssim_are_those_of_ffmpegs_filters", against_filters),
        trial("the_figures_of_the_clip_are_golden", golden_figures),
        trial("passes_scored_together_have_the_figures_of_each_by_itself_in_every_frame", together),
        trial("a_run_that_takes_too_long_is_ended_and_a_broken_stream_is_one_sentence", failures),
        trial("a_lost_frame_is_shown_as_the_one_before_it", concealed),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check(holds: bool, what: impl Into<String>) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(what.into().into()) }
}

/// Hash of all planes, and the concatenated luma planes.
fn shown(
    decode: impl FnOnce(&mut dyn FnMut(usize, &[u8])) -> Result<(), FfmpegError>,
) -> Result<(String, Vec<u8>), Failed> {
    let (mut hash, mut luma) = (Sha256::new(), Vec::new());
    decode(&mut |_, frame| {
        hash.update(frame);
        luma.extend_from_slice(&frame[..LUMA]);
    })?;
    Ok((hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), luma))
}

fn undamaged(ffmpeg: &Ffmpeg) -> Result<(String, Vec<u8>), Failed> {
    shown(|show| ffmpeg.decode_whole(clip::MPEG4, SIZE, clip::FRAMES, show))
}

fn original(ffmpeg: &Ffmpeg) -> Result<(String, Vec<u8>), Failed> {
    shown(|show| ffmpeg.decode_whole(clip::ORIGINAL, SIZE, clip::FRAMES, show))
}

/// The clip without the frames with these display indices.
fn without(lost: &[usize]) -> Result<Received, Failed> {
    let order = clip::trace().display_order();
    let mut arrived = vec![true; clip::FRAMES];
    lost.iter().for_each(|&display| arrived[order[display]] = false);
    Ok(received(&clip::stream(), 1, &arrived)?)
}

/// Display indices whose luma differs.
fn changed(one: &[u8], other: &[u8]) -> Vec<usize> {
    let pairs = one.chunks(LUMA).zip(other.chunks(LUMA)).enumerate();
    pairs.filter(|(_, (one, other))| one != other).map(|(index, _)| index).collect()
}

fn golden_pixels(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let (clip, _) = undamaged(ffmpeg)?;
    check(clip == "bbc624b4123f6ac97a1ad4dcddb26c325d7efe09890ca41c22bcfec9f271f5e5", format!("clip {clip}"))?;
    let (original, _) = original(ffmpeg)?;
    check(
        original == "6db646f7b689eb8714e5d20ecd15ec6f30fe0eec9b56d5cc1acbdbcad809b57e",
        format!("original {original}"),
    )
}

fn lossless(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    // Two passes, to include the transition between them.
    let twice = received(&clip::stream(), 2, &[true; 2 * clip::FRAMES])?;
    let (_, luma) = shown(|show| ffmpeg.decode(&twice, show))?;
    let (_, once) = undamaged(ffmpeg)?;
    check(luma.len() == 2 * once.len(), "4,000 frames")?;
    check(luma[..once.len()] == once && luma[once.len()..] == once, "each is the clip as it was coded")?;
    // Scores follow from pixels; those of some frames are checked too.
    let some = 100 * LUMA;
    let scorer = Scorer::new(SIZE, original(ffmpeg)?.1[..some].to_vec(), once[..some].to_vec())?;
    let scores: Result<Vec<FrameScore>, _> =
        luma[..some].chunks(LUMA).enumerate().map(|(index, frame)| scorer.frame(index, frame)).collect();
    check(Score::of(&scores?) == scorer.reference(), "the score is the reference")
}

fn one_lost(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let (_, whole) = undamaged(ffmpeg)?;
    for (lost, expected) in [(91, 91..=91), (93, 91..=98), (90, 88..=98)] {
        let (_, luma) = shown(|show| ffmpeg.decode(&without(&[lost]).expect("flags"), show))?;
        let changed = changed(&luma, &whole);
        check(changed == expected.clone().collect::<Vec<_>>(), format!("losing {lost} changed {changed:?}"))?;
        let modelled = Dependency::new(&clip::trace()).damage(clip::trace().display_order()[lost]);
        check(modelled == changed.len(), format!("the model says {modelled}"))?;
    }
    Ok(())
}

fn ends(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let (_, whole) = undamaged(ffmpeg)?;
    let (_, first) = shown(|show| ffmpeg.decode(&without(&[0]).expect("flags"), show))?;
    let changed_first = changed(&first, &whole);
    check(changed_first.iter().all(|&place| place < 9), format!("without the first frame: {changed_first:?}"))?;
    let (_, last) = shown(|show| ffmpeg.decode(&without(&[1998, 1999]).expect("flags"), show))?;
    let changed_last = changed(&last, &whole);
    check(changed_last.iter().all(|&place| place > 1995), format!("without the last two: {changed_last:?}"))?;
    let nothing = received(&clip::stream(), 1, &[false; clip::FRAMES])?;
    let (_, grey) = shown(|show| ffmpeg.decode(&nothing, show))?;
    check(grey.len() == whole.len() && grey.iter().all(|&sample| sample == 128), "nothing is grey")
}

fn film_coded(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let quality = Film::find()?.quality(ffmpeg, 1)?;
    let reference = quality.reference();
    check(reference.frames == film::FRAMES, format!("{} frames", reference.frames))?;
    let off = (reference.mean_of_psnr - 39.036_4).abs().max(100.0 * (reference.ssim_gaussian - 0.943_991).abs());
    check(off < 1e-3, format!("{} dB, {}", reference.mean_of_psnr, reference.ssim_gaussian))
}

fn uncompressed(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let original = Film::find()?.original_of_clip(ffmpeg)?;
    let quality = Quality::of_clip(ffmpeg.clone())?.with_uncompressed(original.clone())?;
    let lossless = quality.uncompressed_reference().ok_or("there is one")?;
    let golden = [
        ("mean of PSNR-Y", lossless.mean_of_psnr, 33.074_1, 1e-4),
        ("PSNR-Y of the mean", lossless.psnr_of_mean, 32.378_3, 1e-4),
    ];
    let wrong = golden.iter().find(|(_, got, expected, off)| (got - expected).abs() > *off);
    check(wrong.is_none(), format!("{lossless:?}"))?;
    // Each separately, by the shown frames.
    let mut arrived = vec![true; clip::FRAMES];
    arrived[100..120].fill(false);
    let scores = quality.frames_of_passes(std::slice::from_ref(&arrived))?;
    let against = Scorer::new(SIZE, original, undamaged(ffmpeg)?.1)?;
    let (mut index, mut wrong) = (0, None);
    let expected: Vec<FrameScore> = scores.of_uncompressed(0).collect();
    ffmpeg.decode(&quality.received(&arrived)?, |place, planes| {
        let same = against.frame(place, planes).is_ok_and(|score| Some(&score) == expected.get(index));
        if !same {
            wrong = Some(place);
        }
        index += 1;
    })?;
    check(index == clip::FRAMES && wrong.is_none(), format!("{index} frames, {wrong:?} differs"))
}

fn concealed(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let (_, luma) = shown(|show| ffmpeg.decode(&without(&[91]).expect("flags"), show))?;
    check(luma[91 * LUMA..92 * LUMA] == luma[90 * LUMA..91 * LUMA], "frame 90 is shown twice")
}

/// Mean of the values after `key` that one of ffmpeg's filters prints for each frame.
fn filter_figures(filter: &str, key: &str) -> Result<Vec<f64>, Failed> {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
    let program = std::env::var_os("ANABRANCH_FFMPEG").unwrap_or_else(|| "ffmpeg".into());
    let output = std::process::Command::new(program)
        .args(["-hide_banner", "-nostdin", "-loglevel", "fatal", "-r", "30", "-i"])
        .arg(assets.join("bbb_qcif.m4v"))
        .args(["-r", "30", "-i"])
        .arg(assets.join("bbb_qcif_original.h264"))
        .args(["-lavfi", &format!("[0]setpts=N[a];[1]setpts=N[b];[a][b]{filter}=stats_file=-")])
        .args(["-f", "null", "-"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = |line: &str| line.split(key).nth(1)?.split_whitespace().next()?.parse().ok();
    let figures: Vec<f64> = text.lines().filter_map(figure).collect();
    check(figures.len() == clip::FRAMES, format!("{} figures of {filter}", figures.len()))?;
    Ok(figures)
}

fn against_filters(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let (original, coded) = (original(ffmpeg)?.1, undamaged(ffmpeg)?.1);
    let (errors, similarities) = (filter_figures("psnr", "mse_y:")?, filter_figures("ssim", "Y:")?);
    let plane = |samples| Plane::new(samples, SIZE.0 as usize, SIZE.1 as usize).expect("a luma plane");
    for (index, frames) in original.chunks(LUMA).zip(coded.chunks(LUMA)).enumerate() {
        let (one, other) = (plane(frames.0), plane(frames.1));
        let error = anabranch_media::metrics::difference::mean_squared_error(one, other);
        // It prints two digits.
        check((error - errors[index]).abs() <= 0.0051, format!("frame {index}: error {error}, not {}", errors[index]))?;
        let similarity = similarity::blocks(one, other);
        // It prints six, of single precision with rounded constants.
        let off = (similarity - similarities[index]).abs();
        check(off < 1e-5, format!("frame {index}: {similarity}, not {}", similarities[index]))?;
    }
    Ok(())
}

fn golden_figures(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let quality = Quality::of_clip(ffmpeg.clone())?;
    let score = quality.score(&[true; clip::FRAMES])?;
    check(score == quality.reference(), "nothing lost is the reference")?;
    // One lost B frame in two passes has little effect, an I frame more, half of all frames a lot.
    let lost = |display: &[usize]| {
        let order = clip::trace().display_order();
        let mut arrived = vec![true; 2 * clip::FRAMES];
        display.iter().for_each(|&display| arrived[order[display]] = false);
        Ok::<f64, Failed>(quality.score(&arrived)?.mean_of_psnr)
    };
    let (b, p, i) = (lost(&[91])?, lost(&[93])?, lost(&[90])?);
    check(score.mean_of_psnr > b && b > p && p > i, format!("{} > {b} > {p} > {i}", score.mean_of_psnr))?;
    let stills = quality.stills(&[true; clip::FRAMES], &[1000, 3])?;
    check(stills.len() == 2 && stills.iter().all(|still| still.starts_with(b"\x89PNG")), "two stills")?;
    let none = quality.stills(&[true; clip::FRAMES], &[2000]).expect_err("it has 2,000").to_string();
    check(none == "there is no frame 2000: the video has 2000, counted from 0", none)?;
    let golden = [
        ("mean of PSNR-Y", score.mean_of_psnr, 33.613_06, 1e-4),
        ("PSNR-Y of the mean", score.psnr_of_mean, 33.010_1, 1e-4),
        ("SSIM 8x8", score.ssim_blocks, 0.910_763, 2e-6),
        ("SSIM Gaussian", score.ssim_gaussian, 0.901_287, 1e-6),
        ("VQM", score.vqm, 1.182_055, 1e-5),
        ("opinion", score.opinion, 3.954_5, 1e-9),
    ];
    let wrong: Vec<String> = golden
        .iter()
        .filter(|(_, got, expected, off)| (got - expected).abs() > *off)
        .map(|(name, got, expected, _)| format!("{name}: {got}, not {expected}"))
        .collect();
    check(wrong.is_empty(), wrong.join("; "))
}

/// Passes of the first 43 groups with frames lost singly or in runs, from a few to nearly all, and special cases:
/// nothing lost or everything, no I frame at all, B frames alone, a start without its I frame.
fn lossy_passes() -> Vec<Vec<bool>> {
    let mut state = 1_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1 << 31)
    };
    let mut passes = vec![vec![true; SOME], vec![false; SOME]];
    for (share, run) in [(0.001, 1), (0.01, 6), (0.05, 1), (0.1, 4), (0.3, 1), (0.5, 20), (0.95, 1), (0.99, 1)] {
        for _ in 0..2 {
            let mut pass = vec![true; SOME];
            for frame in 0..SOME {
                if draw() < share / f64::from(run) {
                    pass[frame..(frame + run as usize).min(SOME)].fill(false);
                }
            }
            passes.push(pass);
        }
    }
    let types: Vec<FrameType> = clip::trace().frames().iter().map(|frame| frame.frame_type).collect();
    let only = |kept: &dyn Fn(usize) -> bool| (0..SOME).map(kept).collect::<Vec<bool>>();
    passes.push(only(&|frame| types[frame] == FrameType::B));
    passes.push(only(&|frame| types[frame] != FrameType::I));
    passes.push(only(&|frame| types[frame] != FrameType::P));
    passes.push(only(&|frame| frame > 0 && (types[frame] != FrameType::I || frame > 100)));
    passes.push(only(&|frame| frame != 1));
    passes.push(only(&|frame| frame == SOME - 1));
    passes
}

/// Frames of 43 groups, the first of which has seven in coding order.
const SOME: usize = 7 + 42 * 9;

fn together(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let mut stream = clip::stream();
    stream.pictures.truncate(SOME);
    let quality = Quality::against(ffmpeg.clone(), stream, original(ffmpeg)?.1[..SOME * LUMA].to_vec())?;
    let passes = lossy_passes();
    let scores = quality.frames_of_passes(&passes)?;
    for (number, pass) in passes.iter().enumerate() {
        let (each, together) = (quality.frames(pass)?, scores.of(number).collect::<Vec<_>>());
        let differs = each.iter().zip(&together).position(|(each, together)| each != together);
        check(
            each.len() == together.len() && differs.is_none(),
            format!("pass {number} differs in frame {differs:?}"),
        )?;
    }
    // The transport's error is zero without losses, and otherwise depends on the shown frames.
    let errors = |pass: usize| scores.of_transport(pass).collect::<Vec<f64>>();
    check(errors(0) == vec![0.0; SOME], "nothing is lost")?;
    let mut expected = Vec::new();
    let (_, coded) = undamaged(ffmpeg)?;
    ffmpeg.decode(&quality.received(&passes[6])?, |place, planes| {
        let squares = planes[..LUMA].iter().zip(&coded[place * LUMA..]).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2));
        expected.push(squares.sum::<u64>() as f64 / LUMA as f64);
    })?;
    check(errors(6) == expected && expected.iter().any(|error| *error > 0.0), "errors against the video as coded")?;
    let short = quality.frames_of_passes(&[vec![true; 5]]).expect_err("a pass has more").to_string();
    check(short == "5 frames are said to have arrived or not, but 1 passes of the stream have 385", short)
}

fn failures(ffmpeg: &Ffmpeg) -> Result<(), Failed> {
    let whole = without(&[])?;
    let hurried = ffmpeg.clone().within(Duration::from_millis(1));
    let late = hurried.decode(&whole, |_, _| {}).expect_err("it takes longer");
    check(matches!(late, FfmpegError::Late(_)), late.to_string())?;
    let short = ffmpeg.decode_whole(clip::MPEG4, SIZE, clip::FRAMES + 1, |_, _| {}).expect_err("one is missing");
    check(short.to_string() == "ffmpeg gave 2000 frames where there are 2001", short.to_string())?;
    let long = ffmpeg.decode_whole(clip::MPEG4, SIZE, clip::FRAMES - 1, |_, _| {}).err();
    check(long == Some(FfmpegError::Frames { got: 2000, expected: 1999 }), format!("{long:?}"))?;
    let garbage = ffmpeg.decode_whole(b"no video", SIZE, 1, |_, _| {}).expect_err("it cannot be decoded");
    check(garbage.to_string().starts_with("ffmpeg failed: "), garbage.to_string())?;
    check(!garbage.to_string().contains('\n'), "one sentence")
}
