//! The order of runs in lists, and the places where pages end.

use super::{Error, Result, RunInfo, signed};
use rusqlite::Row;
use rusqlite::types::Value;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// By what runs are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RunSort {
    /// When they were created.
    #[default]
    Newest,
    /// The time of their last event. A run that goes on between two pages can be missing or listed
    /// twice.
    Updated,
    /// Their cost. Runs of unknown cost are last in both directions.
    Cost,
    /// Their duration.
    Duration,
}

impl RunSort {
    /// All of them.
    pub const EACH: [Self; 4] = [Self::Newest, Self::Updated, Self::Cost, Self::Duration];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Updated => "updated",
            Self::Cost => "cost",
            Self::Duration => "duration",
        }
    }

    /// The one with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|sort| sort.name() == name)
    }

    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Newest => "created_at",
            Self::Updated => "updated_at",
            Self::Cost => "cost_usd",
            Self::Duration => "wall_ms",
        }
    }
}

/// The order of runs. Those that are equal are ordered by their id. The default is the newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunOrder {
    /// By what they are ordered.
    pub by: RunSort,
    /// Whether the lowest is first.
    pub ascending: bool,
}

impl RunOrder {
    pub(super) fn direction(self) -> &'static str {
        if self.ascending { "asc" } else { "desc" }
    }

    /// The place of a row of number, id and column.
    pub(super) fn place(self, row: &Row<'_>) -> rusqlite::Result<RunCursor> {
        let key = match self.by {
            RunSort::Cost => Key::Cost(row.get(2)?),
            RunSort::Newest | RunSort::Updated | RunSort::Duration => Key::Number(row.get(2)?),
        };
        Ok(RunCursor { order: self, key, id: row.get(1)? })
    }
}

/// A place in the list of runs, after which the next page begins. As text it consists of letters
/// and digits.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCursor {
    order: RunOrder,
    key: Key,
    id: String,
}

/// The value by which the run at a cursor is ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Number(i64),
    /// None if it is unknown.
    Cost(Option<f64>),
}

/// Separates the parts of a cursor.
const SEPARATOR: &str = "~";
/// The key of an unknown cost.
const UNKNOWN: &str = "unknown";

impl RunCursor {
    /// The order to which the place belongs.
    pub fn order(&self) -> RunOrder {
        self.order
    }

    /// The place of a run in an order.
    pub fn at(order: RunOrder, run: &RunInfo) -> Self {
        let cost = run.summary.cost_usd;
        let key = match order.by {
            RunSort::Newest => Key::Number(run.created_at),
            RunSort::Updated => Key::Number(run.updated_at),
            RunSort::Duration => Key::Number(signed(run.summary.wall_ms)),
            RunSort::Cost => Key::Cost((!cost.is_nan()).then_some(cost)),
        };
        Self { order, key, id: run.id.clone() }
    }

    /// Compares two places of the same order: the one that is listed first is less.
    pub fn compare(&self, other: &Self) -> Ordering {
        let directed = |ordering: Ordering| {
            if self.order.ascending { ordering } else { ordering.reverse() }
        };
        let by_key = match (self.key, other.key) {
            (Key::Number(one), Key::Number(other)) => directed(one.cmp(&other)),
            (Key::Cost(Some(one)), Key::Cost(Some(other))) => directed(one.total_cmp(&other)),
            // An unknown cost is last in both directions.
            (Key::Cost(one), Key::Cost(other)) => one.is_none().cmp(&other.is_none()),
            (Key::Number(_), Key::Cost(_)) | (Key::Cost(_), Key::Number(_)) => Ordering::Equal,
        };
        by_key.then_with(|| directed(self.id.cmp(&other.id)))
    }

    /// Whether this place is before another one of the same order.
    pub fn is_before(&self, other: &Self) -> bool {
        self.compare(other).is_lt()
    }

    fn parse(text: &str) -> Option<Self> {
        let plain = String::from_utf8(hex::decode(text).ok()?).ok()?;
        let mut parts = plain.splitn(4, SEPARATOR);
        let by = RunSort::named(parts.next()?)?;
        let direction = parts.next()?;
        let order = [true, false].map(|ascending| RunOrder { by, ascending });
        let order = order.into_iter().find(|order| order.direction() == direction)?;
        let key = parts.next()?;
        let key = match by {
            RunSort::Cost if key == UNKNOWN => Key::Cost(None),
            RunSort::Cost => {
                let cost = f64::from_bits(u64::from_str_radix(key, 16).ok()?);
                if cost.is_nan() {
                    return None;
                }
                Key::Cost(Some(cost))
            }
            RunSort::Newest | RunSort::Updated | RunSort::Duration => {
                Key::Number(key.parse().ok()?)
            }
        };
        let id = parts.next().filter(|id| !id.is_empty())?.to_owned();
        Some(Self { order, key, id })
    }

    /// The condition on rows after this place.
    pub(super) fn rows_after(&self) -> (String, Vec<Value>) {
        let column = self.order.by.column();
        let beyond = if self.order.ascending { ">" } else { "<" };
        let id = Value::from(self.id.clone());
        match self.key {
            Key::Number(key) => (format!("({column}, id) {beyond} (?, ?)"), vec![key.into(), id]),
            Key::Cost(Some(cost)) => (
                format!("({column} IS NULL OR ({column}, id) {beyond} (?, ?))"),
                vec![cost.into(), id],
            ),
            Key::Cost(None) => (format!("({column} IS NULL AND id {beyond} ?)"), vec![id]),
        }
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, direction) = (self.order.by.name(), self.order.direction());
        let key = match self.key {
            Key::Number(key) => key.to_string(),
            Key::Cost(Some(cost)) => format!("{:016x}", cost.to_bits()),
            Key::Cost(None) => UNKNOWN.to_owned(),
        };
        let plain = [by, direction, &key, &self.id].join(SEPARATOR);
        formatter.write_str(&hex::encode(plain))
    }
}

impl FromStr for RunCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text).ok_or(Error::Cursor { why: "does not come from a page of the list" })
    }
}
