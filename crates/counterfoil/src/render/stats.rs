//! Statistics over all runs, as tables and CSV.

use super::color::Color;
use super::lines;
use super::table::{self, Cell, Column, Row};
use anyhow::Result;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::ledger::{ClaimFigures, Dimension, Group, Key, ReplyFigures, Tally};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// The number of violation codes listed in a cell.
const MAX_CODES: usize = 3;
/// The indentation of figures below their names.
const INDENT: usize = 4;

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
    let mut text = format!("{} in {}\n", pluralize(claims, "claim"), pluralize(runs, "run"));
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
    let columns = ["REFUTED", "VERIFIED", "STALE", "UNVERIFIABLE", "CORRECTED"].map(Column::number);
    let rows = tally.groups.iter().filter(|group| group.claims.claims > 0).map(|group| {
        let claims = &group.claims;
        let refuted = share(claims.refuted, claims.verified + claims.refuted);
        let mut figures = vec![match claims.refuted {
            0 => Cell::from(refuted),
            _ => Cell::colored(refuted, Color::Red),
        }];
        let counts = [claims.verified, claims.stale, claims.unverifiable, claims.corrected];
        figures.extend(counts.map(|figure| Cell::from(figure.to_string())));
        (names(&group.key, by), figures)
    });
    table_of(&titles(by), &columns, rows, style)
}

fn replies_table(tally: &Tally, by: &[Dimension], style: Style) -> String {
    let by: Vec<Dimension> = by.iter().copied().filter(|by| *by != Dimension::Field).collect();
    let figures = ["VIOLATIONS", "ATTEMPTS", "ACCEPTED", "REPAIRS", "LOST TO CLAIM"];
    let mut columns = figures.map(Column::number).to_vec();
    columns.push(Column::wrapping("CODES"));
    // Groups that differ only in the field have the same attempts.
    let same: BTreeMap<Key, &ReplyFigures> =
        tally.groups.iter().map(|group| (group.key.without_field(), &group.replies)).collect();
    let mut sorted: Vec<(Key, &ReplyFigures)> = same.into_iter().collect();
    let rate = |replies: &ReplyFigures| replies.violation_rate().unwrap_or(-1.0);
    sorted.sort_by(|(_, a), (_, b)| rate(b).total_cmp(&rate(a)).then(b.attempts.cmp(&a.attempts)));
    let rows = sorted.into_iter().map(|(key, replies)| {
        let repairs = replies.repairs_per_accepted().map(|rate| format!("{rate:.1} each"));
        let figures = [
            share(replies.violations, replies.replies),
            replies.attempts.to_string(),
            replies.accepted.to_string(),
            repairs.unwrap_or_else(|| "-".to_owned()),
            replies.lost_to_claim.to_string(),
            codes(replies, MAX_CODES),
        ];
        (names(&key, &by), figures.map(Cell::from).to_vec())
    });
    table_of(&titles(&by), &columns, rows, style)
}

/// A table of names and figures. If both do not fit side by side, the names stand above their figures:
/// no name is broken.
fn table_of(
    titles: &[&'static str],
    columns: &[Column],
    rows: impl Iterator<Item = (Vec<String>, Vec<Cell>)>,
    style: Style,
) -> String {
    let (names, figures): (Vec<Vec<String>>, Vec<Vec<Cell>>) = rows.unzip();
    let beside: Vec<Column> =
        titles.iter().copied().map(Column::fixed).chain(columns.iter().copied()).collect();
    let whole = names.iter().zip(&figures).map(|(names, figures)| {
        let names = names.iter().map(|name| Cell::from(name.as_str()));
        Row(names.chain(figures.iter().cloned()).collect())
    });
    let whole: Vec<Row> = whole.collect();
    let unlimited = Style { color: false, width: usize::MAX, ..style };
    let widest = table::render(&beside, &whole, 0, unlimited);
    let widest = widest.lines().map(UnicodeWidthStr::width).max();
    if widest.is_none_or(|widest| widest <= style.width) {
        return table::render(&beside, &whole, 0, style);
    }
    let figures: Vec<Row> = figures.into_iter().map(Row).collect();
    let (headings, rows) = table::parts(columns, &figures, INDENT, style);
    let mut text = lines::lines("", &titles.join(", "), style) + &headings;
    for (names, row) in names.iter().zip(&rows) {
        text += &lines::lines("", &names.join(", "), style);
        text += row;
    }
    text
}

fn titles(by: &[Dimension]) -> Vec<&'static str> {
    let title = |name: &str| match name {
        "contract" => "CONTRACT",
        "field" => "FIELD",
        "agent" => "AGENT",
        "player" => "PLAYER",
        "model" => "MODEL",
        _ => "VERSION",
    };
    key_values(&Key::default(), by).into_iter().map(|(name, _)| title(name)).collect()
}

fn names(key: &Key, by: &[Dimension]) -> Vec<String> {
    let or_dash = |part: &str| if part.is_empty() { "-".to_owned() } else { part.to_owned() };
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
