//! Pages of the list of runs. A page begins after the last run of the page before it, and not at a
//! number, so that runs that are added meanwhile shift nothing.

mod order;

pub use order::{RunCursor, RunOrder, RunSort};

use super::error::{Error, Result};
use super::reading::lease_holder;
use super::record::RunInfo;
use super::work::{signed, unsigned};
use super::{Journal, now};
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use schemars::JsonSchema;
use serde::Serialize;

/// How many runs one call examines at most, if not all of them are on the page.
const MAX_EXAMINED: usize = 1000;

/// The runs that have not ended and need the answer to an open question. One that was answered goes
/// on when it is resumed, also without the answers to questions that are still open.
const NEEDS_ANSWER: &str = "(outcome = 'waiting' \
                            OR (questions > 0 AND (outcome IS NULL OR outcome = 'interrupted')))";
/// The runs that have not ended and have a driver, which may be dead.
const HELD: &str = "(holder IS NOT NULL \
                    AND (outcome IS NULL OR outcome IN ('waiting', 'answered', 'interrupted')))";
/// The runs that can go on and do not wait for an answer. They may have a live driver.
const UNFINISHED: &str = "(outcome IS NULL OR outcome IN ('answered', 'interrupted'))";
/// The runs that have not ended.
const NOT_ENDED: &str = "(outcome IS NULL OR outcome IN ('waiting', 'answered', 'interrupted'))";
/// The runs that ended in another way than done or cancelled.
const FAILED: &str = "(outcome NOT IN ('done', 'cancelled', 'waiting', 'answered', 'interrupted'))";

/// A view of the list of runs. A run can be in several of them. One whose row was altered by another
/// program is where its row puts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RunGroup {
    /// All runs.
    #[default]
    All,
    /// Those that have not ended and need the answer to an open question.
    NeedsAnswer,
    /// Those that have not ended and go on only if a person does something: they need an answer, or
    /// no live process drives them.
    NeedsPerson,
    /// Those that have not ended and that a live process drives.
    Running,
    /// Those that have not ended, that no live process drives and that do not wait for an answer.
    Interrupted,
    /// Those that ended in another way than done or cancelled.
    Failed,
}

impl RunGroup {
    /// All groups.
    pub const EACH: [Self; 6] = [
        Self::All,
        Self::NeedsAnswer,
        Self::NeedsPerson,
        Self::Running,
        Self::Interrupted,
        Self::Failed,
    ];

    /// The name of the group.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::NeedsAnswer => "needs-answer",
            Self::NeedsPerson => "needs-person",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }

    /// The group with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|group| group.name() == name)
    }

    /// The condition on rows. Rows of runs that are not in the group may meet it.
    fn condition(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::NeedsAnswer => Some(NEEDS_ANSWER),
            Self::NeedsPerson => Some(NOT_ENDED),
            Self::Running => Some(HELD),
            Self::Interrupted => Some(UNFINISHED),
            Self::Failed => Some(FAILED),
        }
    }
}

/// The condition that a text which the run got as an input contains a text: such an input is its task.
/// The inputs are in its first event. One that cannot be read has none.
const INPUT_CONTAINS: &str = "\
EXISTS (SELECT 1 FROM events, json_each(\
CASE WHEN json_valid(CAST(events.body AS TEXT)) THEN CAST(events.body AS TEXT) ELSE '{}' END, \
'$.\"run-started\".inputs') AS input \
WHERE events.run = runs.number AND events.seq = 1 \
AND input.type = 'text' AND instr(lower(input.value), ?) > 0)";

/// Which runs to list: those that meet all conditions. The default lists all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The view.
    pub group: RunGroup,
    /// The outcomes, as [`RunInfo::outcome`] returns them; empty for any.
    pub outcomes: Vec<String>,
    /// The name of the workflow.
    pub workflow: Option<String>,
    /// A text that is part of the id, the workflow, the state, the reason or an input that is a text,
    /// such as the task. The case of ASCII letters does not matter.
    pub text: Option<String>,
    /// Only runs with open questions, whether they have ended or not.
    pub questions: bool,
    /// Only runs that were created at this time or later, in milliseconds since 1970.
    pub created_from: Option<i64>,
    /// Only runs that were created before this time, in milliseconds since 1970.
    pub created_before: Option<i64>,
}

impl RunFilter {
    /// Whether the database cannot tell: it does not know which processes are alive and which rows
    /// were altered.
    fn reads_rows(&self) -> bool {
        let needs_life =
            matches!(self.group, RunGroup::NeedsPerson | RunGroup::Running | RunGroup::Interrupted);
        needs_life || !self.outcomes.is_empty()
    }

    /// Whether a run that meets the conditions on rows is to be listed.
    fn admits(&self, run: &RunInfo) -> bool {
        let in_group = match self.group {
            RunGroup::All | RunGroup::NeedsAnswer | RunGroup::Failed => true,
            RunGroup::NeedsPerson => run.needs_answer() || !run.is_driven(),
            RunGroup::Running => run.is_driven(),
            RunGroup::Interrupted => !run.is_driven(),
        };
        let outcome = run.outcome();
        in_group
            && (self.outcomes.is_empty() || self.outcomes.iter().any(|wanted| wanted == outcome))
    }
}

/// A page of the list of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPage {
    /// The runs, in order. There can be fewer than the limit, or none, although there is a next
    /// page: one call examines a limited number of runs.
    pub runs: Vec<RunInfo>,
    /// Where the next page begins; none if this is the last one.
    pub next: Option<RunCursor>,
}

/// The number of runs in each group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunCounts {
    /// All runs.
    pub all: u64,
    /// Those that have not ended and need the answer to an open question.
    pub needs_answer: u64,
    /// Those that have not ended and go on only if a person does something: they need an answer, or
    /// no live process drives them.
    pub needs_person: u64,
    /// Those that have not ended and that a live process drives.
    pub running: u64,
    /// Those that have not ended, that no live process drives and that do not wait for an answer.
    pub interrupted: u64,
    /// Those that ended in another way than done or cancelled.
    pub failed: u64,
}

impl RunCounts {
    /// The number of runs in a group.
    pub fn of(&self, group: RunGroup) -> u64 {
        match group {
            RunGroup::All => self.all,
            RunGroup::NeedsAnswer => self.needs_answer,
            RunGroup::NeedsPerson => self.needs_person,
            RunGroup::Running => self.running,
            RunGroup::Interrupted => self.interrupted,
            RunGroup::Failed => self.failed,
        }
    }
}

/// The conditions on rows, with their parameters.
#[derive(Debug, Default)]
struct Selection {
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl Selection {
    fn new(filter: &RunFilter, after: Option<&RunCursor>) -> Self {
        let mut selection = Self::default();
        if let Some(condition) = filter.group.condition() {
            selection.add(condition, []);
        }
        selection.add_outcomes(&filter.outcomes);
        if let Some(workflow) = &filter.workflow {
            selection.add("workflow = ?", [workflow.clone().into()]);
        }
        if let Some(text) = &filter.text {
            // Other than with LIKE, no character of the text is special, and it can have any length.
            let columns = ["id", "workflow", "state", "reason"];
            let contain = columns.map(|column| format!("instr(lower({column}), ?) > 0"));
            let text = Value::from(text.to_ascii_lowercase());
            selection.add(
                format!("({} OR {INPUT_CONTAINS})", contain.join(" OR ")),
                vec![text; columns.len() + 1],
            );
        }
        if filter.questions {
            selection.add("questions > 0", []);
        }
        if let Some(from) = filter.created_from {
            selection.add("created_at >= ?", [from.into()]);
        }
        if let Some(before) = filter.created_before {
            selection.add("created_at < ?", [before.into()]);
        }
        if let Some(cursor) = after {
            let (condition, values) = cursor.rows_after();
            selection.add(condition, values);
        }
        selection
    }

    fn add(&mut self, condition: impl Into<String>, values: impl IntoIterator<Item = Value>) {
        self.conditions.push(condition.into());
        self.values.extend(values);
    }

    /// Adds the condition on rows whose outcome may be one of these.
    fn add_outcomes(&mut self, outcomes: &[String]) {
        let (mut any, mut stored) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            match outcome.as_str() {
                "running" => any.push("(outcome IS NULL AND holder IS NOT NULL)".to_owned()),
                "interrupted" => {
                    any.push("outcome IS NULL".to_owned());
                    stored.push(Value::from(outcome.clone()));
                }
                "altered" => any.push("TRUE".to_owned()),
                _ => stored.push(Value::from(outcome.clone())),
            }
        }
        any.sort();
        any.dedup();
        if !stored.is_empty() {
            any.push(format!("outcome IN ({})", vec!["?"; stored.len()].join(", ")));
        }
        if !any.is_empty() {
            self.add(format!("({})", any.join(" OR ")), stored);
        }
    }

    /// The query for number, id and key of the rows.
    fn query(&self, order: RunOrder, limit: usize) -> String {
        let (column, direction) = (order.by.column(), order.direction());
        let conditions = match self.conditions.as_slice() {
            [] => String::new(),
            conditions => format!("WHERE {} ", conditions.join(" AND ")),
        };
        let nulls = if order.by == RunSort::Cost { " NULLS LAST" } else { "" };
        let limit = signed(limit as u64);
        format!(
            "SELECT number, id, {column} FROM runs {conditions}\
             ORDER BY {column} {direction}{nulls}, id {direction} LIMIT {limit}"
        )
    }
}

impl Journal {
    /// A page of at most `limit` runs, and at least one: the first page, or the one after a place.
    /// The runs that a filter admits are listed once each, also if runs are added meanwhile.
    ///
    /// # Errors
    ///
    /// The place belongs to another order, or the journal cannot be read.
    pub fn runs_page(
        &self,
        filter: &RunFilter,
        order: RunOrder,
        after: Option<&RunCursor>,
        limit: usize,
    ) -> Result<RunPage> {
        if after.is_some_and(|cursor| cursor.order() != order) {
            return Err(Error::Cursor { why: "belongs to another order" });
        }
        let limit = limit.max(1);
        let most = if filter.reads_rows() { limit.max(MAX_EXAMINED) } else { limit };
        let selection = Selection::new(filter, after);
        // One more shows whether there is a next page.
        let keys = selection.query(order, most.saturating_add(1));
        // The database sorts the keys only. The rows are read one by one.
        let info = format!("{} WHERE number = ?1", self.info_query());
        self.read(|connection| {
            let mut info = connection.prepare_cached(&info)?;
            let mut keys = connection.prepare(&keys)?;
            // While this query is open, the other one reads the same state of the journal.
            let mut rows = keys.query(params_from_iter(selection.values))?;
            let mut page = RunPage::default();
            let mut examined = 0;
            let mut last = None;
            while let Some(row) = rows.next()? {
                if page.runs.len() == limit || examined == most {
                    page.next = last;
                    break;
                }
                let number: i64 = row.get(0)?;
                let run = info.query_row([number], |row| self.info(row))?;
                last = Some(order.place(row)?);
                examined += 1;
                if filter.admits(&run) {
                    page.runs.push(run);
                }
            }
            Ok(page)
        })
    }

    /// The names of the workflows of all runs, in order.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn workflow_names(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            let mut names = connection
                .prepare_cached("SELECT DISTINCT workflow FROM runs ORDER BY workflow")?;
            names.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// The number of runs in each group.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn run_counts(&self) -> Result<RunCounts> {
        let count = format!(
            "SELECT count(*), count(*) FILTER (WHERE {NEEDS_ANSWER}), \
             count(*) FILTER (WHERE {UNFINISHED}), count(*) FILTER (WHERE {FAILED}), \
             count(*) FILTER (WHERE {NOT_ENDED}) FROM runs"
        );
        let held = format!(
            "SELECT {UNFINISHED}, holder, pid, started, boot, namespace, since, heartbeat, \
             coalesce({NEEDS_ANSWER}, FALSE) FROM runs WHERE {HELD}"
        );
        self.read(|connection| {
            // Both queries read the same state of the journal.
            let snapshot = connection.unchecked_transaction()?;
            let mut counts = snapshot.prepare_cached(&count)?.query_row([], |row| {
                Ok(RunCounts {
                    all: unsigned(row.get(0)?),
                    needs_answer: unsigned(row.get(1)?),
                    running: 0,
                    interrupted: unsigned(row.get(2)?),
                    failed: unsigned(row.get(3)?),
                    needs_person: unsigned(row.get(4)?),
                })
            })?;
            let mut held = snapshot.prepare_cached(&held)?;
            let mut rows = held.query([])?;
            while let Some(row) = rows.next()? {
                let is_live = lease_holder(row, 1)?.is_some_and(|holder| {
                    holder.is_valid(&self.inner.here, now(), self.inner.stale_after())
                });
                if is_live {
                    let (is_unfinished, needs_answer): (bool, bool) = (row.get(0)?, row.get(8)?);
                    counts.running += 1;
                    counts.interrupted =
                        counts.interrupted.saturating_sub(u64::from(is_unfinished));
                    counts.needs_person =
                        counts.needs_person.saturating_sub(u64::from(!needs_answer));
                }
            }
            Ok(counts)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(journal: &Journal, query: &str, values: Vec<Value>) -> String {
        let explain = format!("EXPLAIN QUERY PLAN {query}");
        let steps = journal.read(|connection| {
            let mut explain = connection.prepare(&explain)?;
            let steps = explain.query_map(params_from_iter(values), |row| row.get(3))?;
            steps.collect::<rusqlite::Result<Vec<String>>>()
        });
        steps.unwrap().join("; ")
    }

    #[test]
    fn the_newest_runs_are_found_with_an_index_and_without_sorting() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        for ascending in [false, true] {
            let order = RunOrder { by: RunSort::Newest, ascending };
            let text = hex::encode(format!("newest~{}~7~run-1", order.direction()));
            let cursor: RunCursor = text.parse().unwrap();
            for after in [None, Some(&cursor)] {
                let selection = Selection::new(&RunFilter::default(), after);
                let query = selection.query(order, 50);
                let plan = plan(&journal, &query, selection.values);
                assert!(plan.contains("COVERING INDEX runs_newest"), "{plan}");
                assert!(!plan.contains("B-TREE"), "{plan}");
                let is_search = plan.contains("SEARCH") && plan.contains("created_at");
                assert_eq!(is_search, after.is_some(), "{plan}");
            }
        }
    }

    #[test]
    fn driven_runs_are_found_with_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let plan = plan(&journal, &format!("SELECT pid FROM runs WHERE {HELD}"), Vec::new());
        assert!(plan.contains("INDEX runs_held"), "{plan}");
    }
}
