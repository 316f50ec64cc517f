//! Progress on stderr while a load runs: bars where somebody watches, plain lines where not.
//!
//! A listener of the engine's events like any other; it counts, and redraws a few times a second.

use crate::account;
use crate::printer::{self, Printer};
use crate::shaping;
use crate::units::{show_bytes, show_count, show_rows, show_seconds};
use howdah_engine::model::{Codec, Event, Listener, Plan};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Files that are drawn at once; the others show up as these finish.
const BARS_MAX: usize = 12;
/// How often a plain line is written.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How often it is looked whether one is due, where no event asks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the total is redrawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Draws what happens.
pub struct Progress {
    printer: Printer,
    state: Mutex<State>,
}

struct State {
    started: Instant,
    drawn: Instant,
    screen: Option<MultiProgress>,
    total: Option<ProgressBar>,
    files: Vec<File>,
    /// Files that have a bar. There may be many files, and this is asked for every block that is read.
    bars: usize,
    rows: u64,
    /// Of these, stored by another run, which says nothing about how fast this one is.
    rows_before: u64,
    bytes_stored: u64,
    bytes_known: Option<u64>,
    sessions: String,
    paused: Option<String>,
    /// What the load is at while no rows are copied.
    phase: Option<String>,
    ended: bool,
}

/// Ends what it stands for when it is dropped.
pub struct Telling(JoinHandle<()>);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct File {
    location: String,
    stored_bytes: Option<u64>,
    bytes_read: u64,
    /// Passed over, as they are in the table already.
    bytes_skipped: u64,
    /// Of those read, in the table. Not known where the file is compressed: what is stored is counted in plain bytes.
    bytes_in: Option<u64>,
    rows: u64,
    bar: Option<ProgressBar>,
    done: bool,
}

impl File {
    fn new(location: String, stored_bytes: Option<u64>, is_plain: bool) -> File {
        File {
            location,
            stored_bytes,
            bytes_read: 0,
            bytes_skipped: 0,
            bytes_in: is_plain.then_some(0),
            rows: 0,
            bar: None,
            done: false,
        }
    }

    /// Of the bytes read, those whose rows are in the table; of a compressed file those read.
    fn bytes_in(&self) -> u64 {
        match self.bytes_in {
            Some(bytes) if !self.done => bytes.min(self.bytes_read),
            _ => self.bytes_read,
        }
    }

    /// In the table, or passed over. Never all of the file before its last chunk is in.
    fn bytes_passed(&self) -> u64 {
        let passed = self.bytes_in() + self.bytes_skipped;
        let most = self.stored_bytes.filter(|_| !self.done).map(|all| all.saturating_sub(1));
        most.map_or(passed, |most| passed.min(most))
    }
}

impl Progress {
    /// Draws bars if somebody watches, else writes lines; nothing but warnings with `--quiet`.
    pub fn new(printer: Printer) -> Progress {
        let screen = printer.draws().then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        // A terminal that cannot move its cursor (TERM=dumb) gets lines.
        let screen = screen.filter(|screen| !screen.is_hidden());
        Progress { printer, state: Mutex::new(State::new(screen)) }
    }
}

impl Listener for Progress {
    fn on_event(&self, event: &Event) {
        if self.printer.quiet() {
            if let Event::Warning { message } = event {
                self.printer.warn(message);
            }
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Planned { plan } => {
                for line in shaping::found(plan) {
                    self.line(&state, &line);
                }
                state.begin(plan);
            }
            Event::Read { file_no, bytes } => state.read(*file_no, *bytes),
            Event::Skipped { file_no, bytes } => state.skipped(*file_no, *bytes),
            Event::Stored { file_no, rows, bytes, before } => {
                state.stored(*file_no, *rows, if *before { None } else { Some(*bytes) });
            }
            Event::Lost { file_no, rows } => state.lost(*file_no, *rows),
            Event::FileDone { file_no } => {
                let line = state.file_done(*file_no);
                self.line(&state, &line);
            }
            Event::Sessions { open, waits } => state.sessions = show_sessions(*open, waits),
            Event::Retry { reason, delay } => {
                let line = format!("trying again in {}: {reason}", show_seconds(delay.as_secs_f64()));
                self.line(&state, &line);
            }
            Event::Paused { reason } => {
                if let Some(reason) = reason {
                    self.line(&state, &format!("paused: {reason}"));
                }
                state.paused.clone_from(reason);
            }
            Event::Phase { what } => {
                state.phase.clone_from(what);
                state.sessions.clear();
            }
            Event::Notice { message } => self.line(&state, message),
            Event::Warning { message } => self.line(&state, &format!("warning: {message}")),
            Event::Done { .. } => state.end(),
            _ => {}
        }
        self.tell_total(&mut state);
    }
}

impl Progress {
    /// Tells how far the load is also while nothing happens, until this is dropped.
    pub fn keep_telling(self: &Arc<Self>) -> Telling {
        let progress = Arc::clone(self);
        Telling(tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let mut state = progress.state.lock().unwrap_or_else(PoisonError::into_inner);
                progress.tell_total(&mut state);
            }
        }))
    }

    fn tell_total(&self, state: &mut State) {
        let every = if state.screen.is_some() { DRAW_EVERY } else { LINE_EVERY };
        if self.printer.quiet() || state.ended || state.files.is_empty() || state.drawn.elapsed() < every {
            return;
        }
        state.drawn = Instant::now();
        let line = state.total_line();
        match &state.total {
            Some(total) => {
                total.set_position(state.bytes_passed());
                total.set_message(printer::line(&line).into_owned());
            }
            None => self.line(state, &line),
        }
    }

    fn line(&self, state: &State, line: &str) {
        let line = printer::line(line);
        match &state.screen {
            // Above the bars.
            Some(screen) => drop(screen.println(line)),
            None => self.printer.say(&line),
        }
    }
}

impl State {
    fn new(screen: Option<MultiProgress>) -> State {
        let now = Instant::now();
        State {
            started: now,
            drawn: now,
            screen,
            total: None,
            files: Vec::new(),
            bars: 0,
            rows: 0,
            rows_before: 0,
            bytes_stored: 0,
            bytes_known: None,
            sessions: String::new(),
            paused: None,
            phase: None,
            ended: false,
        }
    }

    fn begin(&mut self, plan: &Plan) {
        self.files = plan
            .files
            .iter()
            .map(|file| File::new(file.location.clone(), file.stored_bytes, file.codec == Codec::None))
            .collect();
        self.bytes_known = plan.files.iter().map(|file| file.stored_bytes).sum();
        if let Some(screen) = &self.screen {
            let total = screen.add(ProgressBar::new(self.bytes_known.unwrap_or(0)));
            total.set_style(style(self.bytes_known.is_some(), "total"));
            self.total = Some(total);
        }
    }

    fn read(&mut self, file_no: u32, bytes: u64) {
        let Some(file) = self.files.get_mut(file_no as usize) else { return };
        file.bytes_read += bytes;
        if let (Some(screen), Some(total), None, false) = (&self.screen, &self.total, &file.bar, file.done)
            && self.bars < BARS_MAX
        {
            let bar = screen.insert_before(total, ProgressBar::new(file.stored_bytes.unwrap_or(0)));
            bar.set_style(style(file.stored_bytes.is_some(), &name(&file.location)));
            file.bar = Some(bar);
            self.bars += 1;
        }
        if let Some(bar) = &file.bar {
            bar.set_position(file.bytes_passed());
        }
    }

    fn skipped(&mut self, file_no: u32, bytes: u64) {
        if let Some(file) = self.files.get_mut(file_no as usize) {
            file.bytes_skipped += bytes;
        }
    }

    /// `bytes` of what this run has stored; none of what another one had.
    fn stored(&mut self, file_no: u32, rows: u64, bytes: Option<u64>) {
        self.rows += rows;
        match bytes {
            Some(bytes) => self.bytes_stored += bytes,
            None => self.rows_before += rows,
        }
        if let Some(file) = self.files.get_mut(file_no as usize) {
            file.rows += rows;
            if let (Some(bytes_in), Some(bytes)) = (&mut file.bytes_in, bytes) {
                *bytes_in += bytes;
            }
            if let Some(bar) = &file.bar {
                bar.set_message(show_rows(file.rows));
                bar.set_position(file.bytes_passed());
            }
        }
    }

    fn lost(&mut self, file_no: u32, rows: u64) {
        self.rows = self.rows.saturating_sub(rows);
        if let Some(file) = self.files.get_mut(file_no as usize) {
            file.rows = file.rows.saturating_sub(rows);
        }
    }

    fn file_done(&mut self, file_no: u32) -> String {
        let Some(file) = self.files.get_mut(file_no as usize) else { return String::new() };
        file.done = true;
        if let Some(bar) = file.bar.take() {
            bar.finish_and_clear();
            self.bars -= 1;
        }
        format!(
            "{}: {} from {}",
            account::short(&file.location),
            show_rows(file.rows),
            show_bytes(file.bytes_read)
        )
    }

    fn end(&mut self) {
        self.ended = true;
        for file in &mut self.files {
            if let Some(bar) = file.bar.take() {
                bar.finish_and_clear();
            }
        }
        if let Some(total) = self.total.take() {
            total.finish_and_clear();
        }
    }

    fn bytes_read(&self) -> u64 {
        self.files.iter().map(|file| file.bytes_read).sum()
    }

    fn bytes_passed(&self) -> u64 {
        self.files.iter().map(File::bytes_passed).sum()
    }

    fn bytes_in(&self) -> u64 {
        self.files.iter().map(File::bytes_in).sum()
    }

    fn total_line(&self) -> String {
        if let Some(phase) = &self.phase {
            return format!("{}, {phase}", show_rows(self.rows));
        }
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        let (read, passed) = (self.bytes_read(), self.bytes_passed());
        let mut line = format!(
            "{}, {} rows/s, {}/s",
            show_rows(self.rows),
            show_count((self.rows.saturating_sub(self.rows_before) as f64 / seconds) as u64),
            show_bytes((self.bytes_stored as f64 / seconds) as u64),
        );
        if let Some(all) = self.bytes_known.filter(|all| *all > 0 && read > 0) {
            let is_done = self.files.iter().all(|file| file.done);
            if self.screen.is_none() {
                // Rounded down: all is said of all alone.
                let percent = (passed as f64 / all as f64).min(1.0) * 100.0;
                line.push_str(&format!(", {} %", percent.floor()));
            }
            // As fast as what came in so far; while nothing has, or all was sent and waits, nobody knows.
            let (came, waits) = (self.bytes_in(), all.saturating_sub(passed) <= self.files.len() as u64);
            if is_done || came > 0 && !waits {
                let left = all.saturating_sub(passed) as f64 * seconds / came as f64;
                line.push_str(&format!(", {} left", show_seconds(left)));
            }
        } else {
            line.push_str(&format!(", {} read", show_bytes(read)));
        }
        if let Some(reason) = &self.paused {
            line.push_str(", paused: ");
            line.push_str(reason);
        } else if !self.sessions.is_empty() {
            line.push_str(", ");
            line.push_str(&self.sessions);
        }
        line
    }
}

fn show_sessions(open: u32, waits: &[(String, u32)]) -> String {
    let shown: Vec<String> = waits.iter().map(|(wait, sessions)| format!("{sessions} {wait}")).collect();
    let sessions = if open == 1 { "session" } else { "sessions" };
    if shown.is_empty() {
        format!("{open} {sessions}")
    } else {
        format!("{open} {sessions} ({})", shown.join(", "))
    }
}

/// The last part of a location, as far as it fits.
fn name(location: &str) -> String {
    const SHOWN: usize = 28;
    let name = location.rsplit('/').next().unwrap_or(location);
    let name = printer::line(name);
    let from = name.chars().count().saturating_sub(SHOWN);
    name.chars().skip(from).collect()
}

fn style(known: bool, name: &str) -> ProgressStyle {
    // Braces in a file's name are text, not a template.
    let name = format!("{name:<28}").replace('{', "{{").replace('}', "}}");
    let bar = if known { "{bar:24} {percent:>3} %" } else { "{binary_bytes}" };
    ProgressStyle::with_template(&format!("{name} {bar}  {{wide_msg}}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(bytes: u64) -> State {
        let mut state = State::new(None);
        state.files = vec![File::new("a.csv".to_owned(), Some(bytes), true)];
        state.bytes_known = Some(bytes);
        state.started = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        state
    }

    #[test]
    fn what_another_run_has_stored_counts_for_the_share_and_not_for_the_speed() {
        let mut state = state(1000);
        state.skipped(0, 600);
        state.stored(0, 6000, None);
        state.read(0, 200);
        state.stored(0, 2000, Some(200));
        let line = state.total_line();
        let rate = line.split(", ").nth(1).unwrap().trim_end_matches(" rows/s");
        let rate: u32 = rate.parse().unwrap();
        assert!(line.starts_with("8,000 rows, ") && (150..=200).contains(&rate), "{line}");
        assert!(line.contains(", 80 %, 10.") && line.ends_with(" s left"), "{line}");
    }

    #[test]
    fn what_was_sent_is_not_taken_for_stored() {
        let mut state = state(1000);
        state.read(0, 1000);
        let line = state.total_line();
        assert!(line.contains(", 0 %") && !line.contains("left"), "{line}");
        state.stored(0, 3000, Some(500));
        let line = state.total_line();
        assert!(line.contains(", 50 %, 10.") && line.ends_with(" s left"), "{line}");
        // A compressed file, of which it is not known how much is in.
        let files = vec![File::new("a.csv.gz".to_owned(), Some(1000), false)];
        let mut state = State { files, ..state };
        state.read(0, 1000);
        let line = state.total_line();
        assert!(line.contains(", 99 %") && !line.contains("left"), "{line}");
        state.file_done(0);
        let line = state.total_line();
        assert!(line.contains(", 100 %, 0"), "{line}");
    }

    #[test]
    fn a_file_is_drawn_when_another_one_has_ended() {
        let mut state = State::new(Some(MultiProgress::with_draw_target(ProgressDrawTarget::hidden())));
        state.total = Some(ProgressBar::hidden());
        let files = 0..BARS_MAX + 2;
        state.files = files.map(|no| File::new(no.to_string(), Some(9), true)).collect();
        let drawn = |state: &State| state.files.iter().map(|file| file.bar.is_some()).collect::<Vec<_>>();
        let mut wanted = vec![true; BARS_MAX];
        wanted.extend([false, false]);
        for no in (0..).take(BARS_MAX + 2) {
            state.read(no, 1);
        }
        assert_eq!(drawn(&state), wanted);
        state.file_done(3);
        for no in (0..).take(BARS_MAX + 2) {
            state.read(no, 1);
        }
        (wanted[3], wanted[BARS_MAX]) = (false, true);
        assert_eq!(drawn(&state), wanted);
    }

    #[test]
    fn while_no_rows_are_copied_it_is_said_what_the_load_is_at() {
        let mut state = state(1000);
        state.read(0, 1000);
        state.stored(0, 5000, Some(1000));
        state.phase = Some("building 3 indexes".to_owned());
        assert_eq!(state.total_line(), "5,000 rows, building 3 indexes");
    }
}
