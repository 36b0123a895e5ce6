//! The cases of a subject of guards: a partition of its values that is just fine enough to decide
//! every test in the guards.

use super::formula::{Kind, Subject, Test};
use super::path::quoted;
use super::types::Type;
use std::cmp::Ordering;

/// One case of a subject: a set of values on which every test has the same result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Case {
    Missing,
    Null,
    Bool(bool),
    Text(String),
    /// Any string except these.
    OtherText(Vec<String>),
    Point(f64),
    /// The numbers strictly between two bounds; only the integers if `whole`.
    Between {
        low: f64,
        high: f64,
        whole: bool,
    },
    Order(Ordering),
    Other,
}

/// The cases of a subject. Together they cover every value that it can have.
pub(super) fn cases(subject: &Subject) -> Vec<Case> {
    match &subject.kind {
        Kind::Pair { .. } => {
            [Ordering::Less, Ordering::Equal, Ordering::Greater].map(Case::Order).into()
        }
        Kind::Count => numbers(subject, -1.0, Numbers::Whole),
        Kind::Value { ty, may_be_missing } => {
            let mut cases = Vec::new();
            if *may_be_missing {
                cases.push(Case::Missing);
            }
            for alternative in ty.alternatives() {
                let more = match alternative {
                    Type::Null => vec![Case::Null],
                    Type::Bool => booleans(),
                    Type::Int => numbers(subject, f64::NEG_INFINITY, Numbers::Whole),
                    Type::Double => numbers(subject, f64::NEG_INFINITY, Numbers::All),
                    Type::String(Some(values)) => values.iter().cloned().map(Case::Text).collect(),
                    Type::String(None) => texts(subject),
                    Type::List(_) | Type::Object(_) | Type::Map(_) => vec![Case::Other],
                    Type::Any | Type::Union(_) => {
                        let mut all = vec![Case::Null, Case::Other];
                        all.extend(booleans());
                        all.extend(texts(subject));
                        all.extend(numbers(subject, f64::NEG_INFINITY, Numbers::All));
                        all
                    }
                };
                for case in more {
                    if !cases.contains(&case) {
                        cases.push(case);
                    }
                }
            }
            if cases.is_empty() {
                cases.push(Case::Other);
            }
            cases
        }
    }
}

fn booleans() -> Vec<Case> {
    [true, false].map(Case::Bool).into()
}

fn texts(subject: &Subject) -> Vec<Case> {
    let mut named: Vec<String> = Vec::new();
    for text in &subject.texts {
        if !named.contains(text) {
            named.push(text.clone());
        }
    }
    let mut cases: Vec<Case> = named.iter().cloned().map(Case::Text).collect();
    cases.push(Case::OtherText(named));
    cases
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Whole,
    All,
}

/// The numbers above `floor`, split at the numbers that occur in the guards.
fn numbers(subject: &Subject, floor: f64, which: Numbers) -> Vec<Case> {
    let whole = which == Numbers::Whole;
    // Adding zero turns -0.0 into 0.0.
    let mut cuts: Vec<f64> =
        subject.numbers.iter().map(|cut| cut + 0.0).filter(|cut| *cut > floor).collect();
    cuts.sort_by(f64::total_cmp);
    cuts.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let mut cases = Vec::new();
    let mut low = floor;
    for high in cuts.into_iter().chain([f64::INFINITY]) {
        // There may be no integer between two finite bounds.
        if !whole || !low.is_finite() || low.floor() + 1.0 < high {
            cases.push(Case::Between { low, high, whole });
        }
        if high.is_finite() && (!whole || high.fract() == 0.0) {
            cases.push(Case::Point(high));
        }
        low = high;
    }
    cases
}

impl Case {
    /// Whether the test is true in this case.
    pub(super) fn satisfies(&self, test: &Test) -> bool {
        match (test, self) {
            (Test::Present, case) => *case != Case::Missing,
            (Test::Null, case) => *case == Case::Null,
            (Test::Bool(wanted), Case::Bool(flag)) => wanted == flag,
            (Test::Text(wanted), Case::Text(text)) => wanted == text,
            (Test::Number(number, orders), Case::Point(at)) => {
                at.partial_cmp(number).is_some_and(|ordering| orders.contains(ordering))
            }
            // The guards' numbers are the bounds of intervals, so none lies inside one.
            (Test::Number(number, orders), Case::Between { low, .. }) => {
                orders.contains(if number <= low { Ordering::Greater } else { Ordering::Less })
            }
            (Test::Pair(orders), Case::Order(ordering)) => orders.contains(*ordering),
            _ => false,
        }
    }

    /// Describes the case for a message.
    pub(super) fn to_text(&self, name: &str, kind: &Kind) -> String {
        match self {
            Case::Missing => format!("{name} is missing"),
            Case::Null => format!("{name} = null"),
            Case::Bool(flag) => format!("{name} = {flag}"),
            Case::Text(text) => format!("{name} = {}", quoted(text)),
            Case::OtherText(texts) => match texts.as_slice() {
                [] => format!("{name} is a string"),
                [text] => format!("{name} is not {}", quoted(text)),
                texts => {
                    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
                    format!("{name} is none of {}", texts.join(", "))
                }
            },
            Case::Point(at) => format!("{name} = {at}"),
            Case::Between { low, high, whole } => {
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
            Case::Order(ordering) => {
                let Kind::Pair { left, right } = kind else { return name.to_owned() };
                let sign = match ordering {
                    Ordering::Less => '<',
                    Ordering::Equal => '=',
                    Ordering::Greater => '>',
                };
                format!("{left} {sign} {right}")
            }
            Case::Other => format!("{name} is something else"),
        }
    }
}
