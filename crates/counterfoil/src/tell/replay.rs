//! Recordings in words: what was exported, and what came of replaying.

use super::{many, one_line};
use counterfoil_agents::recording::{Difference, Recording};
use counterfoil_contract::diagnostic::Style;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// How much is shown of a value or a text.
const LONGEST: usize = 80;
/// How many differences of one attempt are shown.
const MOST: usize = 12;

/// What came of replaying one attempt.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Replayed {
    /// As people call it.
    pub(crate) name: String,
    /// The program whose events were read; none for a plain text.
    pub(crate) program: Option<String>,
    /// The contract it was judged by, as `id@version`.
    pub(crate) contract: Option<String>,
    /// Where that is from: named, current or recorded.
    pub(crate) judged_by: Option<&'static str>,
    /// The contract it was recorded with.
    pub(crate) recorded_with: Option<String>,
    /// How the attempt ends.
    pub(crate) outcome: Option<String>,
    /// By which way the result came.
    pub(crate) channel: Option<String>,
    /// The codes of what was wrong with the last reply.
    pub(crate) codes: Vec<String>,
    /// The final text, where it stands in events.
    #[serde(rename = "text")]
    pub(crate) said: Option<String>,
    /// Why it failed.
    #[serde(rename = "reason")]
    pub(crate) why: Option<String>,
    /// What else there is to say.
    pub(crate) notes: Vec<String>,
    /// Against what was recorded.
    #[serde(flatten)]
    pub(crate) came: Result,
    /// Whether the recording has it now.
    pub(crate) updated: bool,
}

/// How it compares with what was recorded.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "result")]
pub(crate) enum Result {
    /// As it was.
    Same,
    /// Not as it was.
    Changed {
        /// What differs.
        differences: Vec<Difference>,
    },
    /// Nothing was recorded.
    New,
    /// It cannot be judged.
    Broken {
        /// Why.
        problem: String,
    },
}

impl Replayed {
    /// One that cannot be judged.
    pub(crate) fn broken(name: String, why: String) -> Self {
        Self {
            name,
            program: None,
            contract: None,
            judged_by: None,
            recorded_with: None,
            outcome: None,
            channel: None,
            codes: Vec::new(),
            said: None,
            why: None,
            notes: Vec::new(),
            came: Result::Broken { problem: why },
            updated: false,
        }
    }

    /// What it was judged by, and what with it was recorded, if that is another.
    fn by(&self) -> String {
        let Some(contract) = &self.contract else { return String::new() };
        match &self.recorded_with {
            Some(before) if before != contract => {
                format!(" by {contract} (recorded with {before})")
            }
            _ if self.judged_by == Some("recorded") => format!(" by {contract} as it was recorded"),
            _ => format!(" by {contract}"),
        }
    }
}

/// How many of each.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) same: usize,
    pub(crate) changed: usize,
    pub(crate) new: usize,
    pub(crate) broken: usize,
}

impl Counts {
    pub(crate) fn of(all: &[Replayed]) -> Self {
        let mut counts = Self::default();
        for one in all {
            *match one.came {
                Result::Same => &mut counts.same,
                Result::Changed { .. } => &mut counts.changed,
                Result::New => &mut counts.new,
                Result::Broken { .. } => &mut counts.broken,
            } += 1;
        }
        counts
    }
}

/// A line for each, what changed below it, and a summary.
pub(crate) fn told(all: &[Replayed], counts: &Counts, style: Style) -> String {
    let mut out = String::new();
    for one in all {
        let (word, color) = match one.came {
            Result::Same => ("same", 32),
            Result::Changed { .. } => ("changed", 31),
            Result::New => ("new", 36),
            Result::Broken { .. } => ("broken", 31),
        };
        let mark = if style.color {
            format!("\u{1b}[{color}m{word:<8}\u{1b}[0m")
        } else {
            format!("{word:<8}")
        };
        let outcome =
            one.outcome.as_deref().map(|outcome| format!(": {outcome}")).unwrap_or_default();
        let updated = if one.updated { ", recorded" } else { "" };
        let _ = writeln!(out, "{mark} {}{outcome}{}{updated}", super::clean(&one.name), one.by());
        match &one.came {
            Result::Same => {}
            Result::Broken { problem } => {
                let _ = writeln!(out, "         {}", super::clean(problem));
            }
            Result::Changed { differences } => {
                for difference in differences.iter().take(MOST) {
                    let _ = writeln!(out, "         {}", line(difference, style));
                }
                if differences.len() > MOST {
                    let _ = writeln!(out, "         and {} more", differences.len() - MOST);
                }
            }
            Result::New => {
                if let Some(words) =
                    one.why.as_ref().or(one.said.as_ref()).filter(|words| !words.trim().is_empty())
                {
                    let _ = writeln!(out, "         {}", cut(&one_line(words)));
                }
            }
        }
    }
    let _ = writeln!(out, "{}", summary(counts));
    out
}

/// How many of each, in words.
fn summary(counts: &Counts) -> String {
    let all = counts.same + counts.changed + counts.new + counts.broken;
    let parts = [
        (counts.same, "as recorded"),
        (counts.changed, "changed"),
        (counts.new, "new"),
        (counts.broken, "could not be judged"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    format!("{} replayed: {}", many(all, "attempt"), parts.join(", "))
}

/// One difference: where, what it was, what it is.
pub(crate) fn line(difference: &Difference, style: Style) -> String {
    let reply = difference.reply.map(|number| format!("reply {number} ")).unwrap_or_default();
    let place = match &difference.pointer {
        Some(pointer) if !pointer.is_empty() => format!("value {pointer}"),
        _ => difference.what.clone(),
    };
    let arrow = if style.unicode { "→" } else { "->" };
    format!(
        "{reply}{}: {} {arrow} {}",
        cut(&place),
        shown(difference.before.as_ref()),
        shown(difference.after.as_ref())
    )
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text))
            if text.chars().all(|char| char.is_alphanumeric() || "-_".contains(char)) =>
        {
            cut(text)
        }
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            cut(&one_line(&words.join(", ")))
        }
        Some(value) => cut(&one_line(&value.to_string())),
    }
}

fn cut(text: &str) -> String {
    let text = super::clean(text);
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// What was exported, and how many secrets of which kind were taken out of it; never which.
pub(crate) fn exported(
    recording: &Recording,
    files: usize,
    counts: Option<&BTreeMap<String, usize>>,
    folder: &Path,
) -> String {
    let replies: usize = recording.attempts.iter().map(|attempt| attempt.replies.len()).sum();
    let mut out = format!(
        "recorded run {} of {}: {} with {}, {}\n",
        recording.run,
        recording.workflow,
        many(recording.attempts.len(), "attempt"),
        if replies == 1 { "1 reply".to_owned() } else { format!("{replies} replies") },
        many(files, "file"),
    );
    match counts {
        None => out.push_str("secrets were left in: keep it to yourself\n"),
        Some(counts) if counts.is_empty() => {
            out.push_str("no secrets were found; look through it before you hand it on\n");
        }
        Some(counts) => {
            let kinds: Vec<String> =
                counts.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
            let _ = writeln!(
                out,
                "taken out: {}; look through it before you hand it on",
                kinds.join(", ")
            );
        }
    }
    for what in &recording.left_out {
        let _ = writeln!(out, "left out: {what}");
    }
    let _ = writeln!(
        out,
        "judge it again with `counterfoil replay {}`",
        super::quoted(&folder.display().to_string())
    );
    out
}
