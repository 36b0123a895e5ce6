//! What an attempt changed in the files: a component of the pages that show it, and the part of a page
//! that is loaded when it is opened.

use super::run::now::is_at_work;
use crate::folders::RunPlace;
use crate::format;
use crate::problem::Problem;
use crate::site::Site;
use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse, Response};
use counterfoil_contract::text::pluralize;
use counterfoil_engine::{Attempt, DiffBody, FileDiff, FilesDiff, RunReport};
use counterfoil_flow::ChangedFiles;
use std::sync::{Arc, PoisonError};

/// The longest part of a line that is shown, in characters.
const MAX_LINE_CHARS: usize = 400;

/// How much of a difference is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The most files.
    files: usize,
    /// The most lines of a file.
    file_lines: usize,
    /// The most lines of all files.
    lines: usize,
    /// A file with more lines is closed, and those after it.
    open_lines: usize,
}

/// The bounds on the page of an attempt.
pub(super) const ON_PAGE: Bounds =
    Bounds { files: 100, file_lines: 400, lines: 3000, open_lines: 60 };
/// The bounds beside a question.
const BESIDE: Bounds = Bounds { files: 20, file_lines: 80, lines: 400, open_lines: 0 };

/// Why nothing is known of what an interrupted attempt changed.
const INTERRUPTED: &str = "It was interrupted before it was observed what changed.";

/// The section of a page with the files that an attempt changed.
#[derive(Template)]
#[template(path = "diff.html")]
pub(super) struct DiffSection {
    changed: Changed,
}

impl DiffSection {
    pub(super) fn new(
        site: &Site,
        place: &RunPlace,
        report: &RunReport,
        attempt: &Attempt,
        bounds: Bounds,
    ) -> Self {
        Self { changed: changed(site, place, report, attempt, bounds) }
    }
}

/// The files that an attempt changed.
#[derive(Default)]
struct Changed {
    /// The number of files, as recorded.
    total: u64,
    /// Why there is no difference.
    note: String,
    /// The files without their differences: how each changed, and its path.
    names: Vec<(&'static str, String)>,
    files: Vec<File>,
    /// The files that are not listed.
    left_out: usize,
    /// The address of the whole text.
    raw: String,
}

/// A file with its difference.
struct File {
    id: String,
    path: String,
    kind: &'static str,
    /// The numbers of new lines and of those that are gone; none of a file without lines.
    counts: Option<(usize, usize)>,
    /// Why there are no lines.
    note: String,
    lines: Vec<Line>,
    more_lines: usize,
    is_open: bool,
}

impl Changed {
    /// The files that are not listed, in words.
    fn more_files(&self) -> String {
        pluralize(self.left_out, "more file")
    }
}

impl File {
    /// The lines that are not shown, in words.
    fn more(&self) -> String {
        pluralize(self.more_lines, if self.lines.is_empty() { "line" } else { "more line" })
    }

    /// The new lines, in words; empty of a file without lines.
    fn added(&self) -> String {
        self.counts.map(|(added, _)| pluralize(added, "line")).unwrap_or_default()
    }

    /// The lines that are gone, in words; empty of a file without lines.
    fn removed(&self) -> String {
        self.counts.map(|(_, removed)| pluralize(removed, "line")).unwrap_or_default()
    }
}

struct Line {
    class: &'static str,
    text: String,
}

/// The files that an attempt changed, within bounds.
fn changed(
    site: &Site,
    place: &RunPlace,
    report: &RunReport,
    attempt: &Attempt,
    bounds: Bounds,
) -> Changed {
    let id = format::attempt_id(&attempt.path, attempt.n);
    let total = attempt.changed.as_ref().map_or(0, |changed| changed.total);
    let without = |note: String| Changed {
        total,
        note,
        names: attempt.changed.as_ref().map(names).unwrap_or_default(),
        ..Changed::default()
    };
    if is_at_work(attempt, report) {
        return without("What it changes is shown when it has ended.".to_owned());
    }
    if attempt.outcome.is_none() {
        return without(INTERRUPTED.to_owned());
    }
    match &*site.diffs.of(place, &id) {
        Err(why) => without(format!("The record cannot be read: {}", format::text(why))),
        Ok(Some(diff)) => {
            let (run, attempt) = (format::encode(&place.run), format::encode(&id));
            let raw = format!("/api/v1/runs/{run}/attempts/{attempt}/diff");
            let shown = shown(diff, &format!("{run}.{attempt}"), raw, bounds);
            Changed { total: total.max((diff.files.len() + diff.left_out) as u64), ..shown }
        }
        Ok(None) => without(
            match &attempt.changed {
                None if attempt.is_lost => INTERRUPTED,
                None => "It was not observed what changed: there is no snapshot.",
                Some(changed) if changed.total == 0 => "No files were changed.",
                Some(_) => {
                    "There is no record of the contents. Those of a worktree are recorded when it is \
                     merged, and old records are removed when the state folder is cleaned."
                }
            }
            .to_owned(),
        ),
    }
}

fn names(changed: &ChangedFiles) -> Vec<(&'static str, String)> {
    let ChangedFiles { added, modified, deleted, renamed, .. } = changed;
    let named = |kind, paths: &[String]| -> Vec<_> {
        paths.iter().map(|path| (kind, format::cell(path))).collect()
    };
    let renamed = renamed.iter().map(|(old, new)| format!("{old} → {new}")).collect::<Vec<_>>();
    let kinds = [
        named("added", added),
        named("modified", modified),
        named("deleted", deleted),
        named("renamed", &renamed),
    ];
    kinds.into_iter().flatten().collect()
}

/// The differences within bounds. Files and lines beyond them are counted.
fn shown(diff: &FilesDiff, id: &str, raw: String, bounds: Bounds) -> Changed {
    let (mut left, mut is_open) = (bounds.lines, bounds.open_lines > 0);
    let files = diff.files.iter().take(bounds.files).enumerate().map(|(at, file)| {
        let file = one(file, format!("diff-{id}.{at}"), left.min(bounds.file_lines));
        left -= file.lines.len();
        is_open &= file.lines.len() + file.more_lines <= bounds.open_lines;
        File { is_open, ..file }
    });
    let files: Vec<File> = files.collect();
    let left_out = diff.left_out + diff.files.len() - files.len();
    Changed { files, left_out, raw, ..Changed::default() }
}

fn one(file: &FileDiff, id: String, max_lines: usize) -> File {
    let kind = match (file.existed, file.exists) {
        (false, _) => "added",
        (_, false) => "deleted",
        _ => "modified",
    };
    let mut shown = File {
        id,
        path: format::cell(&file.path),
        kind,
        counts: None,
        note: String::new(),
        lines: Vec::new(),
        more_lines: 0,
        is_open: false,
    };
    match &file.body {
        DiffBody::Binary => "no text".clone_into(&mut shown.note),
        DiffBody::TooLarge { bytes } => {
            shown.note = format!("too large to compare here: {bytes} bytes");
        }
        DiffBody::Text { hunks, .. } if hunks.is_empty() => {
            "the same text".clone_into(&mut shown.note);
        }
        DiffBody::Text { added, removed, hunks } => {
            shown.counts = Some((*added, *removed));
            let mut lines = hunks.split_terminator('\n');
            shown.lines = lines.by_ref().take(max_lines).map(line).collect();
            shown.more_lines = lines.count();
        }
    }
    shown
}

fn line(raw: &str) -> Line {
    let class = match raw.as_bytes().first() {
        Some(b'+') => "added",
        Some(b'-') => "removed",
        Some(b'@') => "place",
        _ => "same",
    };
    let mut text: String = raw.chars().take(MAX_LINE_CHARS).collect();
    if text.len() < raw.len() {
        text.push('…');
    }
    Line { class, text: format::text(&text) }
}

/// A part of a page that is loaded when it is opened.
#[derive(Template)]
#[template(path = "diff-fragment.html")]
struct Fragment {
    changed: Changed,
}

/// Answers with what an attempt changed, as a part of a page.
pub(crate) async fn diff_fragment(
    State(site): State<Arc<Site>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    let made = match path {
        Ok(Path((run, attempt))) => {
            site.blocking(move |site| {
                let place = site.folders.find(&run)?;
                let view = site.folders.view(&place)?;
                let report = view.lock().unwrap_or_else(PoisonError::into_inner).report()?;
                let found = super::find_attempt(&report, &attempt).ok_or_else(|| {
                    Problem::not_found(format!("run {} has no attempt {attempt}", place.run))
                })?;
                super::filled(&Fragment { changed: changed(site, &place, &report, found, BESIDE) })
            })
            .await
        }
        Err(error) => Err(Problem::bad_request(format!("the address: {}", error.body_text()))),
    };
    match made {
        Ok(html) => Html(html).into_response(),
        Err(problem) => {
            let note = format::text(problem.detail());
            let changed = Changed { note, ..Changed::default() };
            super::filled(&Fragment { changed }).map_or_else(Problem::into_answer, |html| {
                (problem.status(), Html(html)).into_response()
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(files: usize, lines: usize) -> FilesDiff {
        let hunks = format!("@@ -0,0 +1,{lines} @@\n{}", "+x\n".repeat(lines));
        let file = |n| FileDiff {
            path: format!("f{n:03}"),
            existed: false,
            exists: true,
            body: DiffBody::Text { added: lines, removed: 0, hunks: hunks.clone() },
        };
        FilesDiff { files: (0..files).map(file).collect(), left_out: 7 }
    }

    #[test]
    fn what_is_left_out_is_counted_exactly() {
        let bounds = Bounds { files: 3, file_lines: 5, lines: 8, open_lines: 0 };
        let page = shown(&diff(10, 9), "x", String::new(), bounds);
        let counts: Vec<_> =
            page.files.iter().map(|file| (file.lines.len(), file.more_lines)).collect();
        assert_eq!(counts, [(5, 5), (3, 7), (0, 10)]);
        assert_eq!(page.left_out, 14);
        assert!(page.files.iter().all(|file| file.counts == Some((9, 0)) && !file.is_open));
    }

    #[test]
    fn long_files_and_those_after_them_are_closed() {
        let bounds = Bounds { files: 9, file_lines: 50, lines: 500, open_lines: 20 };
        let mut all = diff(3, 5);
        all.files[1] = diff(1, 30).files.remove(0);
        let open: Vec<bool> =
            shown(&all, "x", String::new(), bounds).files.iter().map(|file| file.is_open).collect();
        assert_eq!(open, [true, false, false]);
    }

    #[test]
    fn a_line_is_marked_by_its_sign_and_shows_hidden_characters() {
        let shown = |raw| {
            let Line { class, text } = line(raw);
            format!("{class} {text}")
        };
        assert_eq!(shown("+a\u{202e}b"), "added +a\\u{202e}b");
        assert_eq!(shown("-<b>"), "removed -<b>");
        assert_eq!(shown("@@ -1 +1 @@"), "place @@ -1 +1 @@");
        assert_eq!(shown("\\ No newline at end of file"), "same \\ No newline at end of file");
        assert_eq!(line(&"x".repeat(9000)).text.chars().count(), MAX_LINE_CHARS + 1);
    }
}
