//! Exhaustiveness and reachability of a list of guarded branches, of which the first whose guard is
//! true fires.
//!
//! Each guard becomes a formula over the cases of its subjects, and all combinations of cases are
//! enumerated. Subexpressions that the analysis cannot interpret count as independent of everything
//! else. The enumeration therefore covers more combinations than can occur: an impossible case may
//! be reported, but a possible one is never missed.

use super::cases::{Case, cases};
use super::formula::{Formula, FormulaBuilder, Kind};
use super::{Expression, Scope};
use std::collections::{BTreeMap, HashMap};

/// The maximum number of combinations of cases to enumerate.
const MAX_COMBINATIONS: usize = 20_000;

/// The maximum number of guards to evaluate, and of pairs of branches to compare.
const MAX_EVALUATED: usize = 25_000_000;

/// The result of the analysis of a list of branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// A description of a case in which no branch fires.
    pub uncovered: Option<String>,
    /// The branches that never fire: their index, and the reason as a message. Messages number
    /// branches from 1.
    pub dead: Vec<(usize, String)>,
}

/// Analyses a list of branches. The first branch whose guard is true fires; `None` is a branch
/// without a guard.
///
/// `scope` is the scope before the first branch.
pub fn branches(guards: &[Option<&Expression>], scope: &Scope) -> Branches {
    let mut builder = FormulaBuilder { scope, subjects: BTreeMap::new() };
    let formulas: Vec<Formula> = guards
        .iter()
        .map(|guard| guard.map_or(Formula::Always(true), |guard| builder.condition(guard.ast())))
        .collect();
    let subjects: Vec<Dimension> = builder
        .subjects
        .iter()
        .map(|(name, subject)| Dimension { name, kind: &subject.kind, cases: cases(subject) })
        .collect();
    let space = CaseSpace {
        nodes: formulas.iter().map(|formula| Node::from_formula(formula, &subjects)).collect(),
        subjects,
    };
    let branches = space.nodes.len();
    let is_small = |combinations: &usize| {
        branches.saturating_mul(branches.max(*combinations)) <= MAX_EVALUATED
    };
    match space.combinations().filter(is_small) {
        Some(combinations) => space.decide(combinations),
        None => too_complex(&formulas),
    }
}

/// The result when there are too many combinations to enumerate.
fn too_complex(formulas: &[Formula]) -> Branches {
    let always = formulas.iter().position(|formula| *formula == Formula::Always(true));
    let mut dead = Vec::new();
    // By their text, so that each is not compared with every other.
    let mut first: HashMap<String, usize> = HashMap::new();
    for (index, formula) in formulas.iter().enumerate() {
        let before = match always {
            Some(always) if always < index => Some(always),
            _ => Some(*first.entry(format!("{formula:?}")).or_insert(index))
                .filter(|earlier| *earlier < index),
        };
        if let Some(before) = before {
            dead.push((index, fires_first(before)));
        }
    }
    let uncovered = always.is_none().then(|| {
        "the guards are too complex to prove that one is always true: add a branch without a guard".to_owned()
    });
    Branches { uncovered, dead }
}

fn fires_first(index: usize) -> String {
    format!("branch {} always fires first", index + 1)
}

/// A subject of guards with its cases.
struct Dimension<'r> {
    name: &'r str,
    kind: &'r Kind,
    cases: Vec<Case>,
}

/// A formula with the result of each test precomputed for every case.
enum Node {
    Always(bool),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Test(usize, Vec<bool>),
}

impl Node {
    fn from_formula(formula: &Formula, subjects: &[Dimension<'_>]) -> Self {
        let node = |formula: &Formula| Box::new(Self::from_formula(formula, subjects));
        match formula {
            Formula::Always(truth) => Self::Always(*truth),
            Formula::Not(inner) => Self::Not(node(inner)),
            Formula::And(left, right) => Self::And(node(left), node(right)),
            Formula::Or(left, right) => Self::Or(node(left), node(right)),
            Formula::If(condition, yes, no) => Self::If(node(condition), node(yes), node(no)),
            Formula::Test(name, test) => {
                match subjects.iter().position(|subject| subject.name == name) {
                    Some(at) => Self::Test(
                        at,
                        subjects[at].cases.iter().map(|case| case.satisfies(test)).collect(),
                    ),
                    None => Self::Always(false),
                }
            }
        }
    }

    fn is_true(&self, combination: &[usize]) -> bool {
        match self {
            Self::Always(truth) => *truth,
            Self::Not(inner) => !inner.is_true(combination),
            Self::And(left, right) => left.is_true(combination) && right.is_true(combination),
            Self::Or(left, right) => left.is_true(combination) || right.is_true(combination),
            Self::If(condition, yes, no) => {
                if condition.is_true(combination) {
                    yes.is_true(combination)
                } else {
                    no.is_true(combination)
                }
            }
            Self::Test(subject, results) => results[combination[*subject]],
        }
    }
}

struct CaseSpace<'r> {
    subjects: Vec<Dimension<'r>>,
    nodes: Vec<Node>,
}

impl CaseSpace<'_> {
    /// The number of combinations of cases; `None` if it exceeds the limit.
    fn combinations(&self) -> Option<usize> {
        self.subjects
            .iter()
            .try_fold(1_usize, |product, subject| product.checked_mul(subject.cases.len()))
            .filter(|product| *product <= MAX_COMBINATIONS)
    }

    fn decide(&self, combinations: usize) -> Branches {
        let count = self.nodes.len();
        let mut fires = vec![false; count];
        let mut is_ever_true = vec![false; count];
        // For each branch, which earlier branches are true whenever it is.
        let mut implied: Vec<Vec<bool>> = (0..count).map(|index| vec![true; index]).collect();
        let mut uncovered = None;
        let every: Vec<usize> = (0..self.subjects.len()).collect();
        let mut combination = vec![0; self.subjects.len()];
        for _ in 0..combinations {
            let truths: Vec<bool> =
                self.nodes.iter().map(|node| node.is_true(&combination)).collect();
            match truths.iter().position(|truth| *truth) {
                Some(first) => fires[first] = true,
                None if uncovered.is_none() => uncovered = Some(combination.clone()),
                None => {}
            }
            for index in (0..count).filter(|index| truths[*index]) {
                is_ever_true[index] = true;
                for (implied, truth) in implied[index].iter_mut().zip(&truths) {
                    *implied &= truth;
                }
            }
            self.advance(&mut combination, &every);
        }
        let dead = (0..count).filter(|index| !fires[*index]).map(|index| {
            let why = if !is_ever_true[index] {
                "the guard is never true".to_owned()
            } else if let Some(before) = implied[index].iter().position(|implied| *implied) {
                fires_first(before)
            } else {
                "covered by the branches before it".to_owned()
            };
            (index, why)
        });
        Branches {
            uncovered: uncovered.map(|uncovered| self.describe(&uncovered)),
            dead: dead.collect(),
        }
    }

    /// Advances to the next combination of the cases of some subjects; wraps around after the last.
    fn advance(&self, combination: &mut [usize], subjects: &[usize]) {
        for subject in subjects.iter().rev() {
            combination[*subject] += 1;
            if combination[*subject] < self.subjects[*subject].cases.len() {
                return;
            }
            combination[*subject] = 0;
        }
    }

    /// Describes an uncovered case, using only the subjects that matter for it.
    fn describe(&self, uncovered: &[usize]) -> String {
        let mut free: Vec<usize> = Vec::new();
        for subject in 0..self.subjects.len() {
            free.push(subject);
            if !self.is_uncovered(uncovered, &free) {
                free.pop();
            }
        }
        let parts: Vec<String> = self
            .subjects
            .iter()
            .enumerate()
            .filter(|(index, _)| !free.contains(index))
            .map(|(index, subject)| {
                subject.cases[uncovered[index]].to_text(subject.name, subject.kind)
            })
            .collect();
        if parts.is_empty() { "every case".into() } else { parts.join(" and ") }
    }

    /// Whether no branch fires for any values of the free subjects.
    fn is_uncovered(&self, uncovered: &[usize], free: &[usize]) -> bool {
        let mut combination = uncovered.to_vec();
        let combinations =
            free.iter().map(|subject| self.subjects[*subject].cases.len()).product::<usize>();
        (0..combinations).all(|_| {
            let uncovered = !self.nodes.iter().any(|node| node.is_true(&combination));
            self.advance(&mut combination, free);
            uncovered
        })
    }
}
