//! The view on a terminal.
//!
//! It samples and draws on its own thread, so that a busy stack and a slow terminal do not block each other. Nothing
//! else may be printed while it runs.

use super::history::History;
use super::sample::{MAX_CONNECTIONS, Sample, View};
use super::screen::Screen;
use anabranch_attach::asked_to_end;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_stack::Stack;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Sampling interval.
const SAMPLE: Duration = Duration::from_millis(500);

/// The view; dropping it restores the terminal.
pub struct Live {
    over: Arc<AtomicBool>,
    /// Notified when the user quits.
    quit: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Shows `stack` on the terminal with a title, e.g. the command.
    ///
    /// # Errors
    /// Standard output is not a terminal.
    pub fn of_stack(stack: &Stack, title: &str) -> Result<Self, Diagnostic> {
        Self::of_stacks(vec![stack.clone()], title)
    }

    /// To be called before anything is set up.
    ///
    /// # Errors
    /// Standard output is not a terminal.
    pub fn check() -> Result<(), Diagnostic> {
        let message = "this needs a terminal: leave the option out, or do not redirect";
        if is_on_a_terminal() { Ok(()) } else { Err(Diagnostic::option("--live", message)) }
    }

    /// Like [`Self::of_stack`], for several stacks of one host.
    ///
    /// # Errors
    /// As for [`Self::of_stack`].
    pub fn of_stacks(stacks: Vec<Stack>, title: &str) -> Result<Self, Diagnostic> {
        Self::check()?;
        Self::start(title, move || Sample::of_stacks(&stacks, MAX_CONNECTIONS).into())
    }

    /// Like [`Self::of_stack`], with samples from other programs.
    ///
    /// # Errors
    /// Standard output is not a terminal.
    pub fn of_others(title: &str, source: impl Fn() -> View + Send + 'static) -> Result<Self, Diagnostic> {
        if !is_on_a_terminal() {
            return Err(Diagnostic::plain("this needs a terminal; `anabranch status` prints the same once"));
        }
        Self::start(title, source)
    }

    fn start(title: &str, source: impl Fn() -> View + Send + 'static) -> Result<Self, Diagnostic> {
        // It also restores the terminal before a panic is printed.
        let mut terminal =
            ratatui::try_init().map_err(|error| Diagnostic::plain(format!("the terminal cannot be used: {error}")))?;
        let (over, quit) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (ends, asks, title) = (Arc::clone(&over), Arc::clone(&quit), title.to_owned());
        let work = move || {
            // A closed terminal ends the program too.
            if show(&mut terminal, &title, &source, &ends).is_ok() && ends.load(Ordering::Relaxed) {
                return;
            }
            asks.notify_one();
        };
        let thread = thread::Builder::new().name("live".to_owned()).spawn(work);
        match thread {
            Ok(thread) => Ok(Self { over, quit, thread: Some(thread) }),
            Err(error) => {
                ratatui::restore();
                Err(Diagnostic::plain(format!("no thread for the view: {error}")))
            }
        }
    }

    /// Completes when the user quits: by `q`, Escape, Ctrl-C, a signal, or a closed terminal.
    pub async fn quit(&self) {
        tokio::select! {
            () = self.quit.notified() => {}
            // Without signal handlers the keys still work.
            Ok(()) = asked_to_end() => {}
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was already reported.
            let _ = thread.join();
        }
        ratatui::restore();
    }
}

fn is_on_a_terminal() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// Draws until it is stopped or the user quits.
fn show(terminal: &mut DefaultTerminal, title: &str, source: &impl Fn() -> View, over: &AtomicBool) -> io::Result<()> {
    let began = Instant::now();
    let (mut history, mut screen) = (History::default(), Screen::new(title));
    let mut due = began;
    while !over.load(Ordering::Relaxed) {
        let now = Instant::now();
        if now >= due {
            history.add(source(), began.elapsed().as_secs_f64());
            due = now + SAMPLE;
        }
        terminal.draw(|frame| screen.draw(frame, &history))?;
        // Short, so that the command can end soon.
        let patience = due.saturating_duration_since(Instant::now()).min(Duration::from_millis(100));
        let mut waits = event::poll(patience)?;
        while waits {
            match event::read()? {
                Event::Key(key) if wants_to_end(key) => return Ok(()),
                Event::Key(key) if key.kind == KeyEventKind::Press => screen.key(key.code),
                // A resize is detected when drawing.
                _ => {}
            }
            waits = event::poll(Duration::ZERO)?;
        }
    }
    Ok(())
}

fn wants_to_end(key: KeyEvent) -> bool {
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}
