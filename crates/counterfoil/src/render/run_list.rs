//! The list of runs.

use super::table::{self, Column, Row};
use super::text::{one_line, timestamp, usage_suffix};
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::lists;
use std::collections::BTreeSet;

/// The shortest prefix of a run id that is shown.
const MIN_ID: usize = 13;

/// One line for each run; `reopened` has the ids of those that were reopened. Lines are never wrapped, so that `grep` finds whole rows.
pub(crate) fn run_list(runs: &[RunInfo], reopened: &BTreeSet<&str>) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let columns = ["RUN", "STARTED", "WORKFLOW", "OUTCOME", "STATE", "USED", "REASON"];
    let id_length = distinct_prefix(runs);
    let rows: Vec<Row> =
        runs.iter().map(|run| row(run, id_length, reopened.contains(run.id.as_str()))).collect();
    let unlimited = Style { color: false, unicode: true, width: usize::MAX };
    table::render(&columns.map(Column::fixed), &rows, 0, unlimited)
}

fn row(run: &RunInfo, id_length: usize, reopened: bool) -> Row {
    let summary = &run.summary;
    let cause = summary.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let again = if reopened { ", reopened" } else { "" };
    Row(vec![
        run.id.chars().take(id_length).collect::<String>().into(),
        timestamp(run.created_at).into(),
        run.workflow.clone().into(),
        format!("{}{cause}{again}", lists::outcome(run)).into(),
        summary.state.clone().into(),
        usage_suffix(&lists::usage(run)).trim_start_matches(", ").into(),
        one_line(&summary.reason).into(),
    ])
}

/// The length of the id prefix that tells all runs apart. Ids begin with the time.
fn distinct_prefix(runs: &[RunInfo]) -> usize {
    let mut ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    ids.sort_unstable();
    let common = |pair: &[&str]| {
        pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b).count() + 1
    };
    ids.windows(2).map(common).max().unwrap_or(0).max(MIN_ID)
}
