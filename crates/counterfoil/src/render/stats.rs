//! Statistics over all runs, as tables and CSV.

use super::color::Color;
use super::table::{self, Cell, Column, Row};
use anyhow::Result;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::ledger::{ClaimFigures, Dimension, Group, Key, ReplyFigures, Tally};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The number of violation codes listed in a cell.
const MAX_CODES: usize = 3;

/// The values of the requested dimensions, with their names.
fn key_values<'a>(key: &'a Key, by: &[Dimension]) -> Vec<(&'static str, &'a str)> {
    let all = [
        ("contract", &key.contract, Dimension::Contract),
        ("field", &key.field, Dimension::Field),
        ("agent", &key.agent, Dimension::Agent),
        ("player", &key.player, Dimension::Player),
        ("model", &key.model, Dimension::Model),
        ("version", &key.version, Dimension::Version),
    ];
    let requested = |dimension: Dimension| {
        by.contains(&dimension)
            || (dimension == Dimension::Player && by.contains(&Dimension::Agent))
    };
    let parts = all.into_iter().filter(|(_, _, dimension)| requested(*dimension));
    parts.map(|(name, part, _)| (name, part.as_deref().unwrap_or_default())).collect()
}

/// One line for each group below a header line.
pub(crate) fn csv(tally: &Tally, by: &[Dimension]) -> Result<String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let empty = Group {
        key: Key::default(),
        replies: ReplyFigures::default(),
        claims: ClaimFigures::default(),
    };
    // The columns are the members of the JSON object; the codes of a group become one cell.
    writer.write_record(members(&empty, by)?.keys())?;
    for group in &tally.groups {
        let codes = codes(&group.replies, usize::MAX);
        let cells = members(group, by)?.into_iter().map(|(_, member)| match member {
            Value::Null => String::new(),
            Value::String(text) => text,
            Value::Object(_) => codes.clone(),
            figure => figure.to_string(),
        });
        writer.write_record(cells)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn members(group: &Group, by: &[Dimension]) -> Result<Map<String, Value>> {
    Ok(serde_json::from_value(serde_json::to_value(group.report(by))?)?)
}

/// Two tables: verdicts on claims, and contract violations of replies.
pub(crate) fn tables(tally: &Tally, by: &[Dimension], style: Style) -> String {
    let runs = usize::try_from(tally.runs).unwrap_or(usize::MAX);
    let claims: u64 = tally.groups.iter().map(|group| group.claims.claims).sum();
    let claims = usize::try_from(claims).unwrap_or(usize::MAX);
    let mut text = format!("{} in {}.\n", pluralize(claims, "claim"), pluralize(runs, "run"));
    if claims > 0 {
        text.push_str(
            "Claims by verdict; the refutation rate is that of verified and refuted claims:\n\n",
        );
        text += &claims_table(tally, by, style);
    } else {
        text.push_str(
            "No claims were verified: the contracts declare none, or no result makes one.\n",
        );
    }
    text.push_str("\nReplies that violate their contract, and repairs per accepted attempt:\n\n");
    text + &replies_table(tally, by, style)
}

fn claims_table(tally: &Tally, by: &[Dimension], style: Style) -> String {
    let mut columns = titles(by);
    columns
        .extend(["REFUTED", "VERIFIED", "STALE", "UNVERIFIABLE", "CORRECTED"].map(Column::number));
    let rows = tally.groups.iter().filter(|group| group.claims.claims > 0).map(|group| {
        let claims = &group.claims;
        let mut cells = key_cells(&group.key, by);
        let refuted = share(claims.refuted, claims.verified + claims.refuted);
        cells.push(match claims.refuted {
            0 => refuted.into(),
            _ => Cell::colored(refuted, Color::Red),
        });
        let counts = [claims.verified, claims.stale, claims.unverifiable, claims.corrected];
        cells.extend(counts.map(|figure| Cell::from(figure.to_string())));
        Row(cells)
    });
    table::render(&columns, &rows.collect::<Vec<_>>(), 0, style)
}

fn replies_table(tally: &Tally, by: &[Dimension], style: Style) -> String {
    let by: Vec<Dimension> = by.iter().copied().filter(|by| *by != Dimension::Field).collect();
    let mut columns = titles(&by);
    columns.extend(
        ["VIOLATIONS", "ATTEMPTS", "ACCEPTED", "REPAIRS", "LOST TO CLAIM"].map(Column::number),
    );
    columns.push(Column::wrapping("CODES"));
    // Groups that differ only in the field have the same attempts.
    let same: BTreeMap<Key, &ReplyFigures> =
        tally.groups.iter().map(|group| (group.key.without_field(), &group.replies)).collect();
    let mut sorted: Vec<(Key, &ReplyFigures)> = same.into_iter().collect();
    let rate = |replies: &ReplyFigures| replies.violation_rate().unwrap_or(-1.0);
    sorted.sort_by(|(_, a), (_, b)| rate(b).total_cmp(&rate(a)).then(b.attempts.cmp(&a.attempts)));
    let rows = sorted.into_iter().map(|(key, replies)| {
        let mut cells = key_cells(&key, &by);
        cells.push(share(replies.violations, replies.replies).into());
        cells.extend(
            [replies.attempts, replies.accepted].map(|figure| Cell::from(figure.to_string())),
        );
        let repairs = replies.repairs_per_accepted().map(|rate| format!("{rate:.1} each"));
        cells.push(repairs.unwrap_or_else(|| "-".to_owned()).into());
        cells.push(replies.lost_to_claim.to_string().into());
        cells.push(codes(replies, MAX_CODES).into());
        Row(cells)
    });
    table::render(&columns, &rows.collect::<Vec<_>>(), 0, style)
}

fn titles(by: &[Dimension]) -> Vec<Column> {
    let title = |name: &str| match name {
        "contract" => "CONTRACT",
        "field" => "FIELD",
        "agent" => "AGENT",
        "player" => "PLAYER",
        "model" => "MODEL",
        _ => "VERSION",
    };
    key_values(&Key::default(), by)
        .into_iter()
        .map(|(name, _)| Column::wrapping(title(name)))
        .collect()
}

fn key_cells(key: &Key, by: &[Dimension]) -> Vec<Cell> {
    let or_dash = |part: &str| if part.is_empty() { "-".into() } else { Cell::from(part) };
    key_values(key, by).into_iter().map(|(_, part)| or_dash(part)).collect()
}

/// A percentage with its counts, because 1 of 2 means less than 500 of 1000.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{part} of {whole} ({}%)", (part * 100 + whole / 2) / whole),
    }
}

/// The most frequent violation codes with their counts.
fn codes(replies: &ReplyFigures, max: usize) -> String {
    let mut text = String::new();
    for (code, number) in replies.top_codes().into_iter().take(max) {
        let gap = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{gap}{code} ×{number}");
    }
    text
}
