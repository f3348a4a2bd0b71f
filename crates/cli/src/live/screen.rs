//! Layout of the live view: one line per connection and per path.

use super::history::{History, PathHistory, REMEMBERED};
use super::sample::{ConnectionSample, PathSample};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// Levels of a sparkline.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Rows per page.
const PAGE: usize = 10;

#[derive(Clone, Debug)]
pub struct Screen {
    title: String,
    /// The first visible row.
    first: usize,
}

impl Screen {
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), first: 0 }
    }

    /// Handles scrolling keys.
    pub fn key(&mut self, key: KeyCode) {
        self.first = match key {
            KeyCode::Up | KeyCode::Char('k') => self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first + 1,
            KeyCode::PageUp => self.first.saturating_sub(PAGE),
            KeyCode::PageDown => self.first + PAGE,
            KeyCode::Home => 0,
            _ => self.first,
        };
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>, history: &History) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head(history)).style(Style::new().add_modifier(Modifier::BOLD)), head);
        self.table(frame, body, history);
        let keys = Line::from("q quit, arrows scroll").style(Style::new().fg(Color::DarkGray));
        frame.render_widget(Paragraph::new(keys), foot);
    }

    fn head(&self, history: &History) -> String {
        let (up, down) = history.total();
        let (count, shown) = (history.sample.count, history.sample.connections.len());
        let few = if count > shown { format!(" ({shown} shown)") } else { String::new() };
        let noun = if count == 1 { "connection" } else { "connections" };
        let title = &self.title;
        format!("{title}  {:.0} s  {count} {noun}{few}  sent {}  received {}", history.time, rate(up), rate(down))
    }

    fn table(&mut self, frame: &mut Frame<'_>, area: Rect, history: &History) {
        if history.sample.connections.is_empty() {
            frame.render_widget(Paragraph::new("no connections"), area);
            return;
        }
        let columns = Columns::of(area.width);
        let mut lines = Vec::new();
        for connection in &history.sample.connections {
            let (sent, received) = history.connection_rate(connection);
            lines.push(columns.connection(connection, sent, received));
            let all = sent + received;
            let paths = connection.paths.iter();
            lines.extend(paths.map(|path| columns.path(path, history.path(connection, path), all)));
        }
        let room = usize::from(area.height.saturating_sub(1));
        self.first = self.first.min(lines.len().saturating_sub(room));
        let shown = std::iter::once(columns.head()).chain(lines.into_iter().skip(self.first).take(room));
        frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), area);
    }
}

/// Widths of the two flexible columns.
#[derive(Clone, Copy, Debug)]
struct Columns {
    path: usize,
    spark: usize,
}

impl Columns {
    /// State, RTT, cwnd, sent, received, loss and share, with a space before each and before the sparkline.
    const OTHERS: usize = 11 + 8 + 8 + 9 + 9 + 7 + 6 + 8;

    fn of(width: u16) -> Self {
        let rest = usize::from(width).saturating_sub(Self::OTHERS);
        let path = (rest * 2 / 3).clamp(20, 48);
        Self { path, spark: rest.saturating_sub(path).clamp(8, REMEMBERED) }
    }

    fn head(&self) -> Line<'static> {
        let text = format!(
            "{:<width$} {:<11} {:>8} {:>8} {:>9} {:>9} {:>7} {:>6} rate",
            "path",
            "state",
            "RTT ms",
            "cwnd kB",
            "sent",
            "received",
            "loss",
            "share",
            width = self.path
        );
        Line::from(text).style(Style::new().fg(Color::DarkGray))
    }

    /// The description spans the columns that only paths have.
    fn connection(&self, connection: &ConnectionSample, sent: f64, received: f64) -> Line<'static> {
        let (width, words) = (self.path + 30, format!("{} {}", connection.remote, connection.protocol));
        let text = format!("{words:<width$.width$} {:>9} {:>9}", rate(sent), rate(received));
        Line::from(text).style(Style::new().add_modifier(Modifier::BOLD))
    }

    fn path(&self, path: &PathSample, history: Option<&PathHistory>, all: f64) -> Line<'static> {
        let (sent, received) = history.map(PathHistory::rate).unwrap_or_default();
        let share = if all > 0.0 { format!("{:.0} %", (sent + received) / all * 100.0) } else { String::new() };
        let colour = match path.state.as_ref() {
            "up" => Color::Green,
            "stalled" => Color::Red,
            _ => Color::Yellow,
        };
        let (width, words) = (self.path, format!("  {} to {}", path.name, path.remote.ip()));
        let numbers = format!(
            " {:>8} {:>8} {:>9} {:>9} {:>7} {share:>6} {}",
            path.rtt.map_or_else(String::new, |rtt| format!("{rtt:.1}")),
            format!("{:.0}", path.cwnd as f64 / 1e3),
            rate(sent),
            rate(received),
            format!("{:.1} %", path.loss * 100.0),
            history.map_or_else(String::new, |history| sparkline(history, self.spark))
        );
        Line::from(vec![
            Span::raw(format!("{words:<width$.width$} ")),
            Span::styled(format!("{:<11}", path.state), Style::new().fg(colour)),
            Span::raw(numbers),
        ])
    }
}

/// Bits per second in about four digits.
fn rate(bits: f64) -> String {
    match bits {
        ..1e3 => "0".to_owned(),
        ..1e6 => format!("{:.1} k", bits / 1e3),
        ..1e9 => format!("{:.1} M", bits / 1e6),
        _ => format!("{:.2} G", bits / 1e9),
    }
}

/// Recent rates, sum of both directions, scaled to the highest.
fn sparkline(history: &PathHistory, width: usize) -> String {
    let rates: Vec<f64> = history.rates.iter().map(|(up, down)| up + down).collect();
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let bar = |rate: &f64| {
        let level = if highest > 0.0 { (rate / highest * 7.0).round() as usize } else { 0 };
        BARS.get(level).copied().unwrap_or('█')
    };
    rates.iter().skip(rates.len().saturating_sub(width)).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn path(subflow: u32, name: &str, sent: u64) -> PathSample {
        PathSample {
            subflow,
            name: name.to_owned(),
            remote: "10.0.0.1:5201".parse().unwrap(),
            state: if subflow == 0 { "up" } else { "backup" }.into(),
            rtt: (subflow == 0).then_some(12.34),
            cwnd: 14_600,
            sent,
            received: 0,
            loss: 0.012,
        }
    }

    fn sample(sent: [u64; 2]) -> Sample {
        let paths = vec![path(0, "wlan0", sent[0]), path(1, "wwan0", sent[1])];
        let remote = "10.0.0.1:5201".parse().unwrap();
        let connection = ConnectionSample { id: 7, remote, protocol: "mptcp".to_owned(), paths };
        Sample { count: 3, connections: vec![connection] }
    }

    fn drawn(screen: &mut Screen, history: &History, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame, history)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn two_samples() -> History {
        let mut history = History::default();
        history.add(sample([0, 500_000]), 0.5);
        // In 0.5 s 750 kB on one path, 12 Mbit/s, and 250 kB on the other, 4 Mbit/s.
        history.add(sample([750_000, 750_000]), 1.0);
        history
    }

    #[test]
    fn paths_are_shown_by_their_names_with_rates_and_shares() {
        let lines = drawn(&mut Screen::new("perf"), &two_samples(), 110, 8);
        assert_eq!(lines[0], "perf  1 s  3 connections (1 shown)  sent 16.0 M  received 0");
        assert!(lines[1].starts_with("path"), "{lines:#?}");
        let end = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
        assert_eq!(end(&lines[3], "12.0 M"), end(&lines[1], "sent"), "{lines:#?}");
        assert_eq!(end(&lines[2], "16.0 M"), end(&lines[1], "sent"), "{lines:#?}");
        assert!(lines[2].starts_with("10.0.0.1:5201 mptcp"), "{lines:#?}");
        for word in ["  wlan0 to 10.0.0.1", " up ", "12.3", "15", "12.0 M", "1.2 %", "75 %", "▁█"] {
            assert!(lines[3].contains(word), "{word}: {lines:#?}");
        }
        for word in ["  wwan0 to 10.0.0.1", "backup", "4.0 M", "25 %"] {
            assert!(lines[4].contains(word), "{word}: {lines:#?}");
        }
        assert!(lines[7].starts_with("q quit"));
    }

    #[test]
    fn a_small_terminal_shows_what_fits_and_scrolls_to_the_rest_and_no_further() {
        let (mut screen, history) = (Screen::new("perf"), two_samples());
        let lines = drawn(&mut screen, &history, 60, 4);
        assert!(lines[2].starts_with("10.0.0.1"), "{lines:#?}");
        for _ in 0..9 {
            screen.key(KeyCode::Down);
        }
        let lines = drawn(&mut screen, &history, 60, 4);
        assert!(lines[2].starts_with("  wwan0"), "{lines:#?}");
        screen.key(KeyCode::Up);
        assert!(drawn(&mut screen, &history, 60, 4)[2].starts_with("  wlan0"));
        for (width, height) in [(1, 1), (2, 2), (0, 0), (300, 3)] {
            drawn(&mut screen, &history, width, height);
        }
    }

    #[test]
    fn nothing_to_show_is_said() {
        let lines = drawn(&mut Screen::new("serve"), &History::default(), 60, 4);
        assert_eq!(lines[1], "no connections");
    }
}
