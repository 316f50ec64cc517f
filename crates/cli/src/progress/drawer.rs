//! Writes what there is to show, on a thread of its own: a terminal or a pipe that takes nothing holds up
//! nobody else.

use super::{DRAW_EVERY, LOOK_EVERY, Line, Screen, Shared, View};
use crate::printer::{self, Printer};
use crate::units::show_rows;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Draws until the process ends.
pub(super) fn draw(shared: &Arc<Shared>, mut canvas: Canvas) {
    let wait = if canvas.screen.is_some() { DRAW_EVERY } else { LOOK_EVERY };
    let mut state = shared.state.lock();
    loop {
        shared.changed.wait_while_for(&mut state, |state| !state.due, wait);
        let view = state.view();
        (state.due, state.writing_since) = (false, Some(Instant::now()));
        drop(state);
        canvas.show(view, || shared.state.lock().writing_since = Some(Instant::now()));
        state = shared.state.lock();
        state.writing_since = None;
        shared.shown.notify_all();
    }
}

/// Where it is drawn: on a screen, or line below line.
pub(super) struct Canvas {
    printer: Printer,
    screen: Option<MultiProgress>,
    total: Option<ProgressBar>,
    /// By the number of their file.
    bars: HashMap<usize, ProgressBar>,
}

impl Canvas {
    pub(super) fn new(printer: Printer, screen: Option<MultiProgress>) -> Canvas {
        Canvas { printer, screen, total: None, bars: HashMap::new() }
    }

    /// Says so of each line that was taken.
    fn show(&mut self, view: View, taken: impl Fn()) {
        for line in &view.lines {
            self.line(line);
            taken();
        }
        let Some(screen) = self.screen.clone() else { return };
        let (total, bars) = match view.screen {
            Screen::Unchanged => return,
            Screen::Cleared => (None, Vec::new()),
            Screen::Drawn(total, bars) => (Some(total), bars),
        };
        self.bars.retain(|no, bar| {
            let stays = bars.iter().any(|shown| shown.file_no == *no);
            if !stays {
                bar.finish_and_clear();
            }
            stays
        });
        let Some(shown) = total else {
            if let Some(total) = self.total.take() {
                total.finish_and_clear();
            }
            return;
        };
        // While the load is planned, it is not known how much there is to do.
        let all = shown.bytes_known.unwrap_or(0);
        if let Some(other) = self.total.take_if(|total| total.length() != Some(all)) {
            other.finish_and_clear();
        }
        let total = self.total.get_or_insert_with(|| {
            let total = screen.add(ProgressBar::new(all));
            total.set_style(style(shown.bytes_known.is_some(), "total"));
            total
        });
        for shown in bars {
            let bar = self.bars.entry(shown.file_no).or_insert_with(|| {
                let bar = screen.insert_before(total, ProgressBar::new(shown.stored_bytes.unwrap_or(0)));
                bar.set_style(style(shown.stored_bytes.is_some(), &name(&shown.location)));
                bar
            });
            bar.set_message(show_rows(shown.rows));
            bar.set_position(shown.bytes_passed);
        }
        total.set_position(shown.bytes_passed);
        total.set_message(printer::line(&shown.line).into_owned());
    }

    fn line(&self, line: &Line) {
        match &self.screen {
            // Above the bars.
            Some(screen) => drop(screen.println(printer::line(&line.in_full()))),
            None => line.write(&self.printer),
        }
    }
}

impl Line {
    /// Writes it where nothing is drawn.
    pub(super) fn write(&self, printer: &Printer) {
        match self {
            Line::Warning(text) => printer.warn(text),
            Line::Remark(text) | Line::FileDone(text) => printer.say(&printer::line(text)),
        }
    }

    fn in_full(&self) -> String {
        match self {
            Line::Warning(text) => format!("warning: {text}"),
            Line::Remark(text) | Line::FileDone(text) => text.clone(),
        }
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
