//! Reads the boxes of tasks in a Markdown text: `- [x] T001 …`, `| T002 | [ ] |`, `☐ T003`.
//!
//! The first id of a line counts, and its box: the one that the line begins with, the one in front
//! of the id or behind it, or the one that the line or a cell ends with. An open box right before
//! another id is that one's. Ticked is x or a tick, and nothing else. A note that is optional, or
//! that only refers to a task, has no box of it.

use crate::pattern::Pattern;
use std::sync::LazyLock;

/// The ids of tasks whose box is open. A box with words in front of the id may be about something
/// else: it does not count if the task has one of its own.
pub(crate) fn open_tasks(text: &str) -> Vec<String> {
    let boxes = boxes(text);
    let has_own = |id: &str| boxes.iter().any(|one| one.is_own && one.id == id);
    let open = boxes.iter().filter(|one| !one.is_ticked && (one.is_own || !has_own(&one.id)));
    distinct(open.map(|one| one.id.clone()))
}

/// The ids of tasks with a box that is ticked.
pub(crate) fn ticked_tasks(text: &str) -> Vec<String> {
    distinct(boxes(text).into_iter().filter(|one| one.is_ticked).map(|one| one.id))
}

fn distinct(ids: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for id in ids {
        if known.insert(id.clone()) {
            seen.push(id);
        }
    }
    seen
}

struct TaskBox {
    id: String,
    is_ticked: bool,
    /// Whether no words stand before the id.
    is_own: bool,
}

fn boxes(text: &str) -> Vec<TaskBox> {
    let text = text.to_ascii_uppercase();
    let mut boxes: Vec<TaskBox> = text.replace('_', " ").lines().filter_map(first_box).collect();
    let before_ids = PATTERNS.open_before_id.captures_iter(&text).filter_map(|found| found.get(1));
    boxes.extend(before_ids.map(|id| TaskBox {
        id: id.as_str().to_owned(),
        is_ticked: false,
        is_own: true,
    }));
    boxes
}

/// The box of the first id of a line.
fn first_box(line: &str) -> Option<TaskBox> {
    let id = PATTERNS.id.find(line)?;
    let (before, after) = (&line[..id.start()], &line[id.end()..]);
    let states = [
        (&PATTERNS.open_first, before, false),
        (&PATTERNS.ticked_first, before, true),
        (&PATTERNS.open_in_front, before, false),
        (&PATTERNS.ticked_in_front, before, true),
        (&PATTERNS.open_behind, after, false),
        (&PATTERNS.ticked_behind, after, true),
    ];
    let (.., is_ticked) = states.into_iter().find(|(pattern, part, _)| pattern.is_match(part))?;
    let words = PATTERNS.word.find_iter(before).map(|word| word.as_str());
    let mut words = words.filter(|word| !["TASK", "TODO", "DONE", "US"].contains(word));
    let first = words.next();
    let is_note = first.is_some_and(|word| NOTES.contains(&word))
        || (first.is_some() && PATTERNS.reference.is_match(before));
    (!is_note).then(|| TaskBox { id: id.as_str().to_owned(), is_ticked, is_own: first.is_none() })
}

/// The first words of notes.
const NOTES: [&str; 10] = [
    "OPTIONAL",
    "OPTIONALLY",
    "NOTE",
    "LATER",
    "FUTURE",
    "STRETCH",
    "MAYBE",
    "IDEA",
    "NICE",
    "FOLLOW",
];

static PATTERNS: LazyLock<Patterns> = LazyLock::new(Patterns::new);

struct Patterns {
    id: Pattern,
    open_first: Pattern,
    ticked_first: Pattern,
    open_in_front: Pattern,
    ticked_in_front: Pattern,
    open_behind: Pattern,
    ticked_behind: Pattern,
    open_before_id: Pattern,
    word: Pattern,
    /// The end of words that refer to a task.
    reference: Pattern,
}

impl Patterns {
    fn new() -> Self {
        let pattern = |source: &str| Pattern::new(source);
        let ticked = r"(\[\s*(X|DONE|☑|✅|✔|✓)\s*\]|[☑✅✔✓])";
        // With blanks or marks inside; an empty pair of brackets may be a link.
        let open = r"(\[[^\[\]\p{L}\p{N}☑✅✔✓]{1,5}\]|[☐⬜□])";
        let open_or_empty = r"(\[[^\[\]\p{L}\p{N}☑✅✔✓]{0,5}\]|[☐⬜□])";
        let marks = r"[^\p{L}\p{N}\[☐⬜□☑✅✔✓]*";
        let number = r"([\p{L}\p{N}]{1,3}[.):] *)?";
        let last = r"\s*([|]|$)";
        Self {
            id: pattern(r"(?-u:\b)T[0-9]{3,}(?-u:\b)"),
            open_first: pattern(&format!("^{marks}{number}{open_or_empty}")),
            ticked_first: pattern(&format!("^{marks}{number}{ticked}")),
            open_in_front: pattern(&format!(r"{open}[^\p{{L}}\p{{N}}]*$")),
            ticked_in_front: pattern(&format!(r"{ticked}[^\p{{L}}\p{{N}}]*$")),
            open_behind: pattern(&format!("^{marks}{open_or_empty}|{open}{last}")),
            ticked_behind: pattern(&format!("^{marks}{ticked}|{ticked}{last}")),
            open_before_id: pattern(
                r"(?:\[[^\[\]\p{L}\p{N}☑✅✔✓]{1,5}\]|[☐⬜□])[ \t|*`]*(T[0-9]{3,})(?-u:\b)",
            ),
            word: pattern(r"\p{L}{2,}"),
            reference: pattern(
                r"[^\p{L}](AFTER|BEFORE|ONCE|WHEN|UNTIL|SEE|LIKE|ON|OF|TO|FOR|FROM|WITH|BY|IN|AS)[^\p{L}\p{N}]*$",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_open_unless_they_are_ticked() {
        for text in [
            "- [ ] T002 search",
            "- [  ] T002",
            "* [] T002: search",
            "[ ] T002",
            "1. [ ] **T002** search",
            "- T002 [ ]",
            "| [ ] | T002 |",
            "| T002 | search | [ ] |",
            "- [ ] task_T002",
            "- [-] T002",
            "- ☐ T002",
            "> - [ ] t002",
            "- [x] part one of it\n  - [ ] T002 the rest",
            "- [x] T001 [ ] T002",
            "- [\u{a0}] T002 rank",
            "- T002 rank the results [ ]",
            "| 2 | [ ] | T002 |",
            "- [ ] 任务T002：rank",
            "- [ ] rank (T002)",
            "- [~] T002 rank",
            "- [_] T002 rank",
            "☐ T002 rank",
            "2) [ ] T002 rank",
            "- [x] T002 part one\n- [ ] T002 part two",
            "| [x] T001 | [ ] T002 |",
        ] {
            assert_eq!(open_tasks(text), ["T002"], "{text}");
        }
        for text in [
            "- [x] T002 search",
            "- [X] T002",
            "- [✓] T002 rank",
            "☑ T002",
            "- ✅ T002 rank",
            "| T002 | ✅ |",
            "| [x] | T002 |",
            "- [x] rank (T002)",
            "- T002 [done]",
            "- T002 [x]",
            "- [x] T002 [P] [US1] return [ ] if empty (T003 ranks)",
        ] {
            assert_eq!(
                (open_tasks(text), ticked_tasks(text)),
                (vec![], vec!["T002".to_owned()]),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_box_of_a_task_is_none() {
        for text in [
            "T002 search",
            "- T002 search",
            "- [ ] Optional: a cache after T002",
            "- [ ] Measure it after T002",
            "- [ ] TX002",
            "- T002 return [] if empty",
            "All done.",
        ] {
            assert_eq!((open_tasks(text), ticked_tasks(text)), (vec![], vec![]), "{text}");
        }
        // Its own box counts, not one with words before the id.
        assert_eq!(open_tasks("- [x] T002 search\n- [ ] Docs T002"), [""; 0]);
    }
}
