//! Whether a list of guards, of which the first that is true wins, leaves a case out or holds a branch that never fires.

use super::{Expression, Scope};

/// What a list of branches covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// A case in which no branch fires, in words.
    pub uncovered: Option<String>,
    /// The branches that never fire, by their index, and why in words. The words count branches from 1.
    pub dead: Vec<(usize, String)>,
}

/// Decides what a list of branches covers; the first whose guard is true fires, `None` is a branch without a guard.
pub fn branches(guards: &[Option<&Expression>], _scope: &Scope) -> Branches {
    let first = guards.iter().position(Option::is_none);
    let uncovered = match first {
        Some(_) => None,
        None => Some(
            "the guards are too complex to prove that one is always true; add a branch without a guard"
                .into(),
        ),
    };
    let dead = first
        .map(|first| {
            (first + 1..guards.len())
                .map(move |index| (index, format!("branch {} always fires first", first + 1)))
        })
        .into_iter()
        .flatten()
        .collect();
    Branches { uncovered, dead }
}
