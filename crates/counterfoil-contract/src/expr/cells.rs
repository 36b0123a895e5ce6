//! The cases of what a guard looks at: enough to tell apart all that the guards ask, and no more.

use super::formula::{Kind, Subject, Test};
use super::path::quoted;
use super::types::Type;
use std::cmp::Ordering;

/// One case of a subject.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Missing,
    Null,
    Bool(bool),
    Text(String),
    /// A text that is none of these.
    OtherText(Vec<String>),
    Point(f64),
    /// The numbers between two, or the integers.
    Between {
        low: f64,
        high: f64,
        whole: bool,
    },
    Order(Ordering),
    Other,
}

/// The cases of a subject, which leave out no value it can have.
pub(super) fn cells(subject: &Subject) -> Vec<Cell> {
    match &subject.kind {
        Kind::Pair { .. } => {
            [Ordering::Less, Ordering::Equal, Ordering::Greater].map(Cell::Order).into()
        }
        Kind::Count => numbers(subject, -1.0, Numbers::Whole),
        Kind::Value { ty, may_be_missing } => {
            let mut cells = Vec::new();
            if *may_be_missing {
                cells.push(Cell::Missing);
            }
            for alternative in ty.alternatives() {
                let more = match alternative {
                    Type::Null => vec![Cell::Null],
                    Type::Bool => booleans(),
                    Type::Int => numbers(subject, f64::NEG_INFINITY, Numbers::Whole),
                    Type::Double => numbers(subject, f64::NEG_INFINITY, Numbers::All),
                    Type::String(Some(values)) => values.iter().cloned().map(Cell::Text).collect(),
                    Type::String(None) => texts(subject),
                    Type::List(_) | Type::Object(_) | Type::Map(_) => vec![Cell::Other],
                    Type::Any | Type::Union(_) => {
                        let mut all = vec![Cell::Null, Cell::Other];
                        all.extend(booleans());
                        all.extend(texts(subject));
                        all.extend(numbers(subject, f64::NEG_INFINITY, Numbers::All));
                        all
                    }
                };
                for cell in more {
                    if !cells.contains(&cell) {
                        cells.push(cell);
                    }
                }
            }
            if cells.is_empty() {
                cells.push(Cell::Other);
            }
            cells
        }
    }
}

fn booleans() -> Vec<Cell> {
    [true, false].map(Cell::Bool).into()
}

fn texts(subject: &Subject) -> Vec<Cell> {
    let mut named: Vec<String> = Vec::new();
    for text in &subject.texts {
        if !named.contains(text) {
            named.push(text.clone());
        }
    }
    let mut cells: Vec<Cell> = named.iter().cloned().map(Cell::Text).collect();
    cells.push(Cell::OtherText(named));
    cells
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Whole,
    All,
}

/// The numbers above `floor`, split at those that the guards name.
fn numbers(subject: &Subject, floor: f64, which: Numbers) -> Vec<Cell> {
    let whole = which == Numbers::Whole;
    // Adding zero makes one of the two zeros there are.
    let mut cuts: Vec<f64> =
        subject.numbers.iter().map(|cut| cut + 0.0).filter(|cut| *cut > floor).collect();
    cuts.sort_by(f64::total_cmp);
    cuts.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let mut cells = Vec::new();
    let mut low = floor;
    for high in cuts.into_iter().chain([f64::INFINITY]) {
        // Between finite ends there may be no integer.
        if !whole || !low.is_finite() || low.floor() + 1.0 < high {
            cells.push(Cell::Between { low, high, whole });
        }
        if high.is_finite() && (!whole || high.fract() == 0.0) {
            cells.push(Cell::Point(high));
        }
        low = high;
    }
    cells
}

impl Cell {
    /// The answer to a test in this case.
    pub(super) fn answers(&self, test: &Test) -> bool {
        match (test, self) {
            (Test::Present, cell) => *cell != Cell::Missing,
            (Test::Null, cell) => *cell == Cell::Null,
            (Test::Bool(wanted), Cell::Bool(flag)) => wanted == flag,
            (Test::Text(wanted), Cell::Text(text)) => wanted == text,
            (Test::Number(number, orders), Cell::Point(at)) => {
                at.partial_cmp(number).is_some_and(|ordering| orders.holds(ordering))
            }
            // Every number that is named is a cut: none lies inside.
            (Test::Number(number, orders), Cell::Between { low, .. }) => {
                orders.holds(if number <= low { Ordering::Greater } else { Ordering::Less })
            }
            (Test::Pair(orders), Cell::Order(ordering)) => orders.holds(*ordering),
            _ => false,
        }
    }

    /// The case in words.
    pub(super) fn in_words(&self, name: &str, kind: &Kind) -> String {
        match self {
            Cell::Missing => format!("{name} is missing"),
            Cell::Null => format!("{name} = null"),
            Cell::Bool(flag) => format!("{name} = {flag}"),
            Cell::Text(text) => format!("{name} = {}", quoted(text)),
            Cell::OtherText(texts) => match texts.as_slice() {
                [] => format!("{name} is a string"),
                [text] => format!("{name} is not {}", quoted(text)),
                texts => {
                    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
                    format!("{name} is none of {}", texts.join(", "))
                }
            },
            Cell::Point(at) => format!("{name} = {at}"),
            Cell::Between { low, high, whole } => {
                let only = low.floor() + 1.0;
                let has_low = low.is_finite() && !(matches!(kind, Kind::Count) && *low < 0.0);
                match (has_low, high.is_finite()) {
                    (_, true) if *whole && low.is_finite() && only + 1.0 >= *high => {
                        format!("{name} = {only}")
                    }
                    (true, true) => format!("{low} < {name} < {high}"),
                    (true, false) => format!("{name} > {low}"),
                    (false, true) => format!("{name} < {high}"),
                    (false, false) => format!("{name} is a number"),
                }
            }
            Cell::Order(ordering) => {
                let Kind::Pair { left, right } = kind else { return name.to_owned() };
                let sign = match ordering {
                    Ordering::Less => '<',
                    Ordering::Equal => '=',
                    Ordering::Greater => '>',
                };
                format!("{left} {sign} {right}")
            }
            Cell::Other => format!("{name} is something else"),
        }
    }
}
