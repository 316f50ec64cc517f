//! Which line endings end records. One kind ends them all in most files; where there are several kinds,
//! each is asked whether the record it ends is whole, since a lone `\n` may as well stand inside a field.

use super::table::Lines;
use super::windows::Window;
use howdah_model::Eol;

/// Line endings counted, quoted or not: `\n`, `\r\n`, `\r`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Endings {
    lf: usize,
    crlf: usize,
    cr: usize,
}

impl Endings {
    fn add(&mut self, eol: Eol) {
        match eol {
            Eol::Lf => self.lf += 1,
            Eol::CrLf => self.crlf += 1,
            Eol::Cr => self.cr += 1,
        }
    }

    /// Every line ending of the windows.
    pub(super) fn of_text<'a, 'w: 'a>(windows: impl Iterator<Item = &'a Window<'w>>) -> Endings {
        let mut endings = Endings::default();
        for window in windows {
            let text = &window.text[window.from..];
            for at in memchr::memchr2_iter(b'\n', b'\r', text) {
                let pair = at > 0 && text[at - 1] == b'\r';
                match (text[at], text.get(at + 1)) {
                    (b'\n', _) if !pair => endings.add(Eol::Lf),
                    (b'\r', Some(b'\n')) => endings.add(Eol::CrLf),
                    // The last byte of a window may be half of a pair.
                    (b'\r', None) if !window.at_end => {}
                    (b'\r', _) => endings.add(Eol::Cr),
                    _ => {}
                }
            }
        }
        endings
    }

    /// The only kind there is; `\n` where there is none; `None` for several kinds.
    pub(super) fn only(self) -> Option<Eol> {
        match (self.lf, self.crlf, self.cr) {
            (_, 0, 0) => Some(Eol::Lf),
            (0, _, 0) => Some(Eol::CrLf),
            (0, 0, _) => Some(Eol::Cr),
            _ => None,
        }
    }

    /// The most frequent kind.
    fn usual(self) -> Eol {
        let kinds = [(self.lf, Eol::Lf), (self.crlf, Eol::CrLf), (self.cr, Eol::Cr)];
        kinds.into_iter().rev().max_by_key(|(count, _)| *count).map_or(Eol::Lf, |(_, eol)| eol)
    }
}

/// What ends the records that were cut at every kind of line ending; `None` for several kinds.
pub(super) fn settle<'a, 'w: 'a>(
    cut: impl Iterator<Item = (&'a Lines, &'a Window<'w>)> + Clone,
    width: usize,
) -> Option<Eol> {
    let mut ends = Endings::default();
    for (lines, window) in cut.clone() {
        // A quote that is astray may have let out a line ending that is data.
        for line in lines.lines.iter().filter(|line| !line.flawed) {
            if let Some(eol) = ending(&window.text[line.start..line.start + line.length]) {
                ends.add(eol);
            }
        }
    }
    if let Some(eol) = ends.only() {
        return Some(eol);
    }
    let usual = ends.usual();
    let (mut real, mut data) = (Endings::default(), Endings::default());
    for (lines, window) in cut {
        judge(lines, window, width, usual, (&mut real, &mut data));
    }
    let mut kept = Endings::default();
    for (eol, real, data) in
        [(Eol::Lf, real.lf, data.lf), (Eol::CrLf, real.crlf, data.crlf), (Eol::Cr, real.cr, data.cr)]
    {
        if eol == usual || (real > 0 && real >= data) {
            kept.add(eol);
        }
    }
    kept.only()
}

/// Runs of lines that end in unusual ways, together with the line that ends as usual: if these are one
/// record of the usual width, and none of them is alone, the line endings are data.
fn judge(
    lines: &Lines,
    window: &Window,
    width: usize,
    usual: Eol,
    (real, data): (&mut Endings, &mut Endings),
) {
    let mut run: Vec<(usize, Eol)> = Vec::new();
    for line in &lines.lines {
        let eol = ending(&window.text[line.start..line.start + line.length]);
        if let Some(eol) = eol.filter(|eol| *eol != usual && !line.flawed) {
            run.push((line.width, eol));
            continue;
        }
        let joined = line.width + run.iter().map(|(width, _)| width - 1).sum::<usize>();
        let pieces = width > 1 && joined == width && line.width != width;
        let pieces = pieces && run.iter().all(|(piece, _)| *piece != width);
        for (_, eol) in run.drain(..) {
            if pieces { data.add(eol) } else { real.add(eol) }
        }
    }
    for (_, eol) in run {
        real.add(eol);
    }
}

fn ending(record: &[u8]) -> Option<Eol> {
    match record {
        [.., b'\r', b'\n'] => Some(Eol::CrLf),
        [.., b'\n'] => Some(Eol::Lf),
        [.., b'\r'] => Some(Eol::Cr),
        _ => None,
    }
}
