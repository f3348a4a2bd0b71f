//! Layout of the live view: a line for each uplink, connection, path and flow of datagrams.

use super::history::{History, REMEMBERED, Rates};
use super::sample::{ConnectionSample, Counted, PathSample};
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
        let sample = &history.view.connections;
        let (count, shown) = (sample.count, sample.connections.len());
        let few = if count > shown { format!(" ({shown} shown)") } else { String::new() };
        let noun = if count == 1 { "connection" } else { "connections" };
        let title = &self.title;
        format!("{title}  {:.0} s  {count} {noun}{few}  sent {}  received {}", history.time, rate(up), rate(down))
    }

    fn table(&mut self, frame: &mut Frame<'_>, area: Rect, history: &History) {
        let columns = Columns::of(area.width);
        let lines = columns.all(history);
        if lines.is_empty() {
            frame.render_widget(Paragraph::new("no connections"), area);
            return;
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

    /// A line for each uplink, then for connections with their paths, then for flows.
    fn all(&self, history: &History) -> Vec<Line<'static>> {
        let view = &history.view;
        let mut lines: Vec<_> = view.uplinks.iter().map(|one| self.uplink(one, history.counted(one))).collect();
        for connection in &view.connections.connections {
            let (sent, received) = history.connection_rate(connection);
            lines.push(self.connection(connection, sent, received));
            let all = sent + received;
            let paths = connection.paths.iter();
            lines.extend(paths.map(|path| self.path(path, history.path(connection, path), all)));
        }
        lines.extend(view.flows.iter().map(|one| self.flow(one, history.counted(one))));
        lines.extend(view.notes.iter().map(|note| Line::from(note.clone())));
        lines
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

    fn path(&self, path: &PathSample, rates: Option<&Rates>, all: f64) -> Line<'static> {
        let (sent, received) = rates.map(Rates::rate).unwrap_or_default();
        let name = format!("  {} to {}", path.name, path.remote.ip());
        let cells = Cells {
            rtt: path.rtt,
            cwnd: format!("{:.0}", path.cwnd as f64 / 1e3),
            loss: Some(path.loss),
            share: if all > 0.0 { format!("{:.0} %", (sent + received) / all * 100.0) } else { String::new() },
        };
        self.row(&name, &path.state, &cells, rates)
    }

    fn uplink(&self, one: &Counted, rates: Option<&Rates>) -> Line<'static> {
        let cells = Cells { rtt: one.rtt, loss: one.loss, ..Cells::default() };
        self.row(&one.name, one.state, &cells, rates)
    }

    /// The name spans the columns that a flow does not have.
    fn flow(&self, one: &Counted, rates: Option<&Rates>) -> Line<'static> {
        let (width, name) = (self.path + 30, &one.name);
        let (sent, received) = rates.map(Rates::rate).unwrap_or_default();
        let bars = rates.map_or_else(String::new, |rates| sparkline(rates, self.spark));
        let (sent, received) = (rate(sent), rate(received));
        Line::from(format!("{name:<width$.width$} {sent:>9} {received:>9} {:>7} {:>6} {bars}", "", ""))
    }

    fn row(&self, name: &str, state: &str, cells: &Cells, rates: Option<&Rates>) -> Line<'static> {
        let (sent, received) = rates.map(Rates::rate).unwrap_or_default();
        let colour = match state {
            "up" => Color::Green,
            "stalled" | "down" | "silent" => Color::Red,
            _ => Color::Yellow,
        };
        let width = self.path;
        let numbers = format!(
            " {:>8} {:>8} {:>9} {:>9} {:>7} {:>6} {}",
            cells.rtt.map_or_else(String::new, |rtt| format!("{rtt:.1}")),
            cells.cwnd,
            rate(sent),
            rate(received),
            cells.loss.map_or_else(String::new, |loss| format!("{:.1} %", loss * 100.0)),
            cells.share,
            rates.map_or_else(String::new, |rates| sparkline(rates, self.spark))
        );
        Line::from(vec![
            Span::raw(format!("{name:<width$.width$} ")),
            Span::styled(format!("{state:<11}"), Style::new().fg(colour)),
            Span::raw(numbers),
        ])
    }
}

/// Cells of a row that not all rows have.
#[derive(Clone, Debug, Default)]
struct Cells {
    /// Milliseconds.
    rtt: Option<f64>,
    cwnd: String,
    /// Ratio, 0 to 1.
    loss: Option<f64>,
    share: String,
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
fn sparkline(rates: &Rates, width: usize) -> String {
    let rates: Vec<f64> = rates.latest.iter().map(|(up, down)| up + down).collect();
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let bar = |rate: &f64| {
        let level = if highest > 0.0 { (rate / highest * 7.0).round() as usize } else { 0 };
        BARS.get(level).copied().unwrap_or('█')
    };
    rates.iter().skip(rates.len().saturating_sub(width)).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Sample, View};
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
        history.add(sample([0, 500_000]).into(), 0.5);
        // In 0.5 s 750 kB on one path, 12 Mbit/s, and 250 kB on the other, 4 Mbit/s.
        history.add(sample([750_000, 750_000]).into(), 1.0);
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
    fn uplinks_stand_before_connections_and_flows_behind_them_with_their_own_rates() {
        let counted = |name: &str, state, sent| Counted {
            name: name.to_owned(),
            state,
            rtt: Some(20.0),
            loss: None,
            sent,
            received: 0,
        };
        let view = |sent| View {
            connections: sample([0, 0]),
            uplinks: vec![counted("wlan0", "up", 2 * sent), counted("wwan0", "down", 0)],
            flows: vec![counted("udp 10.0.0.7:4000 to 192.0.2.1:53", "", sent)],
            notes: vec!["warning: a middlebox".to_owned()],
        };
        let mut history = History::default();
        history.add(view(0), 0.5);
        history.add(view(62_500), 1.0); // 1 Mbit/s
        let lines = drawn(&mut Screen::new("top"), &history, 110, 10);
        assert!(lines[2].starts_with("wlan0") && lines[2].contains("2.0 M") && lines[2].contains("20.0"), "{lines:#?}");
        assert!(lines[3].starts_with("wwan0") && lines[3].contains("down"), "{lines:#?}");
        assert!(lines[4].starts_with("10.0.0.1:5201"), "{lines:#?}");
        assert!(lines[7].starts_with("udp 10.0.0.7:4000 to 192.0.2.1:53") && lines[7].contains("1.0 M"), "{lines:#?}");
        assert_eq!(lines[8], "warning: a middlebox");
        // Connections alone count as such: datagrams are in none.
        assert!(lines[0].ends_with("sent 0  received 0"), "{lines:#?}");
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
