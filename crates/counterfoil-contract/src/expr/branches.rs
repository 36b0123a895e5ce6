//! Whether a list of guards, of which the first that is true wins, leaves a case out or holds a
//! branch that never fires.
//!
//! Each guard becomes a formula over the cases of what it looks at, and all combinations of cases
//! are tried. What the checker cannot see into is taken to be independent of everything else, so
//! more combinations are tried than can occur: a case may be reported that never comes, but none
//! that can come is overlooked.

use super::cells::{Cell, cells};
use super::formula::{Formula, Kind, Reader};
use super::{Expression, Scope};
use std::collections::BTreeMap;

/// More combinations of cases than this are not tried.
const MOST_COMBINATIONS: usize = 20_000;

/// What a list of branches covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// A case in which no branch fires, in words.
    pub uncovered: Option<String>,
    /// The branches that never fire, by their index, and why in words. The words count branches
    /// from 1.
    pub dead: Vec<(usize, String)>,
}

/// Decides what a list of branches covers; the first whose guard is true fires, `None` is a branch
/// without a guard.
///
/// The scope is the one that holds before the first branch.
pub fn branches(guards: &[Option<&Expression>], scope: &Scope) -> Branches {
    let mut reader = Reader { scope, subjects: BTreeMap::new() };
    let formulas: Vec<Formula> = guards
        .iter()
        .map(|guard| guard.map_or(Formula::Always(true), |guard| reader.condition(guard.ast())))
        .collect();
    let subjects: Vec<Dimension> = reader
        .subjects
        .iter()
        .map(|(name, subject)| Dimension { name, kind: &subject.kind, cells: cells(subject) })
        .collect();
    let space = Space {
        nodes: formulas.iter().map(|formula| Node::of(formula, &subjects)).collect(),
        subjects,
    };
    match space.combinations() {
        Some(combinations) => space.decide(combinations),
        None => too_complex(&formulas),
    }
}

/// What can be said without trying combinations.
fn too_complex(formulas: &[Formula]) -> Branches {
    let always = formulas.iter().position(|formula| *formula == Formula::Always(true));
    let mut dead = Vec::new();
    for (index, formula) in formulas.iter().enumerate() {
        let before = match always {
            Some(always) if always < index => Some(always),
            _ => formulas[..index].iter().position(|earlier| earlier == formula),
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

/// What guards look at, with its cases.
struct Dimension<'r> {
    name: &'r str,
    kind: &'r Kind,
    cells: Vec<Cell>,
}

/// A formula whose tests are answered for each case.
enum Node {
    Always(bool),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Test(usize, Vec<bool>),
}

impl Node {
    fn of(formula: &Formula, subjects: &[Dimension<'_>]) -> Self {
        let node = |formula: &Formula| Box::new(Self::of(formula, subjects));
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
                        subjects[at].cells.iter().map(|cell| cell.answers(test)).collect(),
                    ),
                    None => Self::Always(false),
                }
            }
        }
    }

    fn holds(&self, combination: &[usize]) -> bool {
        match self {
            Self::Always(truth) => *truth,
            Self::Not(inner) => !inner.holds(combination),
            Self::And(left, right) => left.holds(combination) && right.holds(combination),
            Self::Or(left, right) => left.holds(combination) || right.holds(combination),
            Self::If(condition, yes, no) => {
                if condition.holds(combination) {
                    yes.holds(combination)
                } else {
                    no.holds(combination)
                }
            }
            Self::Test(subject, answers) => answers[combination[*subject]],
        }
    }
}

struct Space<'r> {
    subjects: Vec<Dimension<'r>>,
    nodes: Vec<Node>,
}

impl Space<'_> {
    /// How many combinations of cases there are; `None` if too many.
    fn combinations(&self) -> Option<usize> {
        self.subjects
            .iter()
            .try_fold(1_usize, |product, subject| product.checked_mul(subject.cells.len()))
            .filter(|product| *product <= MOST_COMBINATIONS)
    }

    fn decide(&self, combinations: usize) -> Branches {
        let count = self.nodes.len();
        let mut fires = vec![false; count];
        let mut is_ever_true = vec![false; count];
        // For each branch, which earlier ones are true whenever it is.
        let mut implied: Vec<Vec<bool>> = (0..count).map(|index| vec![true; index]).collect();
        let mut witness = None;
        let every: Vec<usize> = (0..self.subjects.len()).collect();
        let mut combination = vec![0; self.subjects.len()];
        for _ in 0..combinations {
            let truths: Vec<bool> =
                self.nodes.iter().map(|node| node.holds(&combination)).collect();
            match truths.iter().position(|truth| *truth) {
                Some(first) => fires[first] = true,
                None if witness.is_none() => witness = Some(combination.clone()),
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
        Branches { uncovered: witness.map(|witness| self.in_words(&witness)), dead: dead.collect() }
    }

    /// Goes on to the next combination of the cases of some subjects; after the last comes the
    /// first.
    fn advance(&self, combination: &mut [usize], subjects: &[usize]) {
        for subject in subjects.iter().rev() {
            combination[*subject] += 1;
            if combination[*subject] < self.subjects[*subject].cells.len() {
                return;
            }
            combination[*subject] = 0;
        }
    }

    /// A case without a branch in words: only what matters, which is what cannot be otherwise.
    fn in_words(&self, witness: &[usize]) -> String {
        let mut free: Vec<usize> = Vec::new();
        for subject in 0..self.subjects.len() {
            free.push(subject);
            if !self.is_uncovered(witness, &free) {
                free.pop();
            }
        }
        let words: Vec<String> = self
            .subjects
            .iter()
            .enumerate()
            .filter(|(index, _)| !free.contains(index))
            .map(|(index, subject)| {
                subject.cells[witness[index]].in_words(subject.name, subject.kind)
            })
            .collect();
        if words.is_empty() { "every case".into() } else { words.join(" and ") }
    }

    /// Whether no branch fires, whatever the free subjects are.
    fn is_uncovered(&self, witness: &[usize], free: &[usize]) -> bool {
        let mut combination = witness.to_vec();
        let combinations =
            free.iter().map(|subject| self.subjects[*subject].cells.len()).product::<usize>();
        (0..combinations).all(|_| {
            let uncovered = !self.nodes.iter().any(|node| node.holds(&combination));
            self.advance(&mut combination, free);
            uncovered
        })
    }
}
