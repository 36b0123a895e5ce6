//! Renders reports for people: the code, the line of the raw output with carets, the expected and
//! the received value, and a hint.

use crate::code::Code;
use crate::report::{Report, Status, Violation};
use crate::source::Span;
use crate::text::{Form, escape_control, neutralize, pluralize};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, Severity, SourceCode, SourceSpan, SpanContents,
};
use std::fmt::{self, Display, Write};

/// Options for rendering.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether to use colours and bold text.
    pub color: bool,
    /// Whether to use box-drawing characters instead of ASCII.
    pub unicode: bool,
    /// The available width, in columns.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, unicode: true, width: 100 }
    }
}

/// The maximum number of violations to render; the rest is counted.
const MAX_SHOWN: usize = 20;

/// Renders a report. `name` is the name of the file and `text` its content.
pub fn render(report: &Report, name: &str, text: &str, style: Style) -> String {
    let mut out = String::new();
    for violation in report.violations.iter().take(MAX_SHOWN) {
        out.push_str(&render_violation(violation, name, text, style));
    }
    let more = report.violations.len().saturating_sub(MAX_SHOWN) + report.left_out.violations;
    if more > 0 {
        let _ = writeln!(out, "  … and {}\n", pluralize(more, "more violation"));
    }
    for warning in report.warnings.iter().take(MAX_SHOWN) {
        out.push_str(&render_violation(warning, name, text, style));
    }
    if let Some(line) = passed_over(report) {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "{}", neutralize(&summary(report), Form::Text));
    out
}

/// The candidates before the one that was rejected, which do not count because of it.
fn passed_over(report: &Report) -> Option<String> {
    // Two valid results are named by their violation.
    let differ = report.violations.iter().any(|one| one.code == Code::DifferingResults);
    let is_rejected = report.status == Status::Rejected && !differ;
    let last = report.provenance.span.filter(|_| is_rejected)?;
    let earlier = report.provenance.passed_over.iter().filter(|span| span.start < last.start);
    let places: Vec<String> =
        earlier.map(|span| format!("{}:{}", span.line, span.column)).collect();
    (!places.is_empty())
        .then(|| format!("passed over, because the last attempt decides: {}", places.join(", ")))
}

/// The summary of a report: status, counts and where to read more.
pub fn summary(report: &Report) -> String {
    let count = |number: usize, noun: &str| {
        format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
    };
    let contract = escape_control(&report.contract);
    let mut line = match report.status {
        Status::Accepted => format!("accepted: {contract}"),
        Status::Rejected => {
            let stage =
                report.stage.map(|stage| format!(" ({})", stage.name())).unwrap_or_default();
            format!(
                "rejected: {contract}, {}{stage}",
                count(report.violations.len() + report.left_out.violations, "violation")
            )
        }
        Status::Absent => format!("absent: {contract}, no result in the text"),
    };
    let provenance = &report.provenance;
    for (number, noun) in [
        (provenance.repairs.len() + report.left_out.repairs, "repair"),
        (provenance.coercions.len() + report.left_out.coercions, "coercion"),
        (report.warnings.len() + report.left_out.warnings, "warning"),
        (report.rejected_items.len() + report.left_out.rejected_items, "item left out"),
    ] {
        if number > 0 {
            let _ = write!(
                line,
                ", {}",
                count(number, noun).replace("item left outs", "items left out")
            );
        }
    }
    if let Some(violation) = report.violations.first() {
        let _ = write!(line, "\nmore: counterfoil explain {}", violation.code);
    }
    line
}

/// Renders one violation or warning.
pub fn render_violation(violation: &Violation, name: &str, text: &str, style: Style) -> String {
    // For a rule, show the values that it read; its expression matters only to its author.
    let label = match violation {
        Violation { rule: Some(_), received, .. } if !received.is_empty() => {
            Some(format!("here {received}"))
        }
        Violation { expected, .. } if !expected.is_empty() => Some(format!("expected {expected}")),
        _ => None,
    };
    // The message of a rule may have several lines; any other has those only of names.
    let form = if violation.rule.is_some() { Form::Text } else { Form::Line };
    let message = neutralize(violation.message.trim_end(), form);
    let shown = Note {
        code: violation.code.as_str(),
        message: &message,
        label: label.as_deref(),
        hint: &violation.hint,
        span: violation.span,
    };
    render_note(&shown, name, text, style)
}

/// A message with a position. Violations and all other findings are rendered through it.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    /// The code. A code that begins with `W` is a warning.
    pub code: &'a str,
    /// The message. It may have several lines.
    pub message: &'a str,
    /// The label under the caret, on one line.
    pub label: Option<&'a str>,
    /// How to fix it, on one line; may be empty.
    pub hint: &'a str,
    /// The position in the text, if known.
    pub span: Option<Span>,
}

/// Renders a note with the affected line. Characters of the note, the name and the text that could
/// change what a terminal shows are escaped. So are line feeds where words belong on one line.
pub fn render_note(note: &Note<'_>, name: &str, text: &str, style: Style) -> String {
    let theme = match (style.color, style.unicode) {
        (true, true) => GraphicalTheme::unicode(),
        (false, true) => GraphicalTheme::unicode_nocolor(),
        (true, false) => GraphicalTheme::ascii(),
        (false, false) => GraphicalTheme::none(),
    };
    // What is rendered is safe: only the escape sequences of the theme are added to it.
    let line = |text: &str| escape_control(text.trim_end());
    let (code, hint, name) = (line(note.code), line(note.hint), escape_control(name));
    let (message, label) = (neutralize(note.message, Form::Text), note.label.map(line));
    let note = &Note {
        code: &code,
        message: &message,
        label: label.as_deref(),
        hint: &hint,
        span: note.span,
    };
    let handler =
        GraphicalReportHandler::new_themed(theme).with_width(style.width.max(40)).with_links(false);
    let excerpt = note
        .span
        .filter(|_| !text.is_empty())
        .map(|span| Excerpt::new(&name, text, span, style.width.max(40)));
    let shown = RenderedNote { note, excerpt };
    let mut out = String::new();
    if handler.render_report(&mut out, &shown).is_err() {
        let _ = writeln!(out, "{}: {}", note.code, note.message);
    }
    out.push('\n');
    out
}

#[derive(Debug)]
struct RenderedNote<'a> {
    note: &'a Note<'a>,
    excerpt: Option<Excerpt>,
}

impl Display for RenderedNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.note.code, self.note.message)
    }
}

impl std::error::Error for RenderedNote<'_> {}

impl Diagnostic for RenderedNote<'_> {
    fn severity(&self) -> Option<Severity> {
        Some(if self.note.code.starts_with('W') { Severity::Warning } else { Severity::Error })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        (!self.note.hint.is_empty()).then(|| Box::new(&self.note.hint) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        let label = self.note.label.map(str::to_owned);
        Some(Box::new(std::iter::once(LabeledSpan::new(label, excerpt.start, excerpt.length))))
    }
}

/// The line of a span, cropped to the available width.
#[derive(Debug)]
struct Excerpt {
    name: String,
    text: String,
    first_line: usize,
    column: usize,
    start: usize,
    length: usize,
}

impl Excerpt {
    fn new(name: &str, text: &str, span: Span, width: usize) -> Self {
        let at = char_boundary_before(text, span.start);
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let end = char_boundary_before(text, span.end).clamp(at, line_end);
        // Leave room for the margin.
        let room = width.saturating_sub(12).max(20);
        let (from, to) = crop(text, (line_start, line_end), (at, end), room);
        let mut shown = String::new();
        if from > line_start {
            shown.push('…');
        }
        push_printable(&text[from..at], &mut shown);
        let start = shown.len();
        push_printable(&text[at..end.min(to)], &mut shown);
        let length = shown.len() - start;
        push_printable(&text[end.min(to)..to], &mut shown);
        if to < line_end {
            shown.push('…');
        }
        Self {
            name: name.to_owned(),
            text: shown,
            first_line: span.line,
            column: span.column,
            start,
            length,
        }
    }
}

/// The part of a line to show. It includes the start of the span.
fn crop(text: &str, line: (usize, usize), span: (usize, usize), room: usize) -> (usize, usize) {
    let chars = |from: usize, to: usize| text[from..to].chars().count();
    if chars(line.0, line.1.min(char_boundary_before(text, line.0 + room * 4))) <= room
        && line.1 - line.0 <= room * 4
    {
        return line;
    }
    let mut from = span.0;
    let mut lead = 0;
    while from > line.0 && lead < room / 3 {
        from = char_boundary_before(text, from - 1);
        lead += 1;
    }
    let mut to = from;
    for (count, character) in text[from..line.1].chars().enumerate() {
        if count >= room {
            break;
        }
        to += character.len_utf8();
    }
    (from, to)
}

fn char_boundary_before(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Appends text on one line, with unsafe characters escaped. A tab takes one column.
fn push_printable(text: &str, out: &mut String) {
    out.push_str(&neutralize(&text.replace('\t', " "), Form::Line));
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            self.first_line - 1 + inner.line(),
            if inner.column() == self.start { self.column - 1 } else { inner.column() },
            inner.line_count(),
        )))
    }
}
