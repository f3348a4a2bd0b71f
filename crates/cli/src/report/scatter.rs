//! Renders one value over another on logarithmic axes, with the line of equality.

use super::canvas::{ChartError, INK, adopt, colour, styled, tidy};
use plotters::prelude::*;

/// Points of one colour: expected and measured values.
#[derive(Clone, PartialEq, Debug)]
pub struct Cloud {
    /// Index of the colour.
    pub colour: usize,
    /// Expected and measured, both above 0; other points are omitted.
    pub points: Vec<(f64, f64)>,
}

/// Renders the clouds, with faint lines `share` above and below the line of equality.
pub fn scatter(clouds: &[Cloud], labels: (&str, &str), share: f64, size: (u32, u32)) -> Result<String, ChartError> {
    let values = clouds.iter().flat_map(|cloud| cloud.points.iter()).flat_map(|(x, y)| [*x, *y]);
    let (low, high) = values.filter(|value| *value > 0.0).fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    let (low, high) = if low <= high { (low / 1.3, high * 1.3) } else { (1.0, 10.0) };
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(6)
            .margin_right(16)
            .x_label_area_size(46)
            .y_label_area_size(68)
            .build_cartesian_2d((low..high).log_scale(), (low..high).log_scale())?;
        styled(
            chart
                .configure_mesh()
                .x_label_formatter(&|x| tidy(*x))
                .y_label_formatter(&|y| tidy(*y))
                .x_desc(labels.0)
                .y_desc(labels.1),
        )
        .draw()?;
        for (factor, strength) in [(1.0, 0.7), (1.0 + share, 0.3), (1.0 - share, 0.3)] {
            let ends = [low.max(low / factor), high.min(high / factor)].map(|x| (x, x * factor));
            chart.draw_series(LineSeries::new(ends, INK.mix(strength)))?;
        }
        for cloud in clouds {
            let tint = colour(cloud.colour);
            let points = cloud.points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
            chart.draw_series(points.map(|point| Circle::new(*point, 4, tint.mix(0.8).filled())))?;
        }
        root.present()?;
    }
    Ok(adopt(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_above_zero_is_a_circle() {
        let cloud = Cloud { colour: 0, points: vec![(1.0, 1.1), (50.0, 49.0), (0.0, 3.0)] };
        let svg = scatter(&[cloud], ("emulated (Mbit/s)", "lab (Mbit/s)"), 0.15, (400, 400)).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("currentColor") && svg.contains("lab (Mbit/s)"));
    }

    #[test]
    fn nothing_is_drawn_as_empty_axes() {
        assert!(scatter(&[], ("x", "y"), 0.1, (300, 300)).unwrap().starts_with("<svg"));
    }
}
