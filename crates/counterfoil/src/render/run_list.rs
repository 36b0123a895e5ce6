//! The list of runs.

use super::list::list;
use super::table::Column;
use super::text::{one_line, timestamp, usage_suffix};
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::lists;
use std::collections::BTreeMap;

/// The shortest prefix of a run id that is shown.
const MIN_ID: usize = 13;

/// The runs; `after` says in words, by the ids of runs, what happened to them after their end.
pub(crate) fn run_list(
    runs: &[RunInfo],
    after: &BTreeMap<&str, Vec<&'static str>>,
    style: Style,
) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let columns = [
        Column::fixed("RUN"),
        Column::fixed("STARTED"),
        Column::wrapping("WORKFLOW"),
        Column::wrapping("OUTCOME"),
        Column::wrapping("STATE"),
        Column::wrapping("USED"),
        Column::wrapping("REASON"),
    ];
    let id_length = distinct_prefix(runs);
    let words = |run: &RunInfo| after.get(run.id.as_str()).map_or(&[][..], Vec::as_slice);
    let rows: Vec<Vec<String>> = runs.iter().map(|run| row(run, id_length, words(run))).collect();
    // In a narrow terminal, what was used and the reason stand below.
    list(&columns, &rows, 5, style)
}

fn row(run: &RunInfo, id_length: usize, after: &[&str]) -> Vec<String> {
    let summary = &run.summary;
    let cause = summary.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let after: String = after.iter().map(|word| format!(", {word}")).collect();
    vec![
        run.id.chars().take(id_length).collect(),
        timestamp(run.created_at),
        run.workflow.clone(),
        format!("{}{cause}{after}", lists::outcome(run)),
        summary.state.clone(),
        usage_suffix(&lists::usage(run)).trim_start_matches(", ").to_owned(),
        one_line(&summary.reason),
    ]
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
