//! Suggests a contract for an agent by comparing names. No I/O.

use std::collections::BTreeSet;

/// The most candidates that are listed for one agent.
const MAX_CANDIDATES: usize = 4;
/// The least similarity at which a contract is listed as a candidate.
const MIN_SIMILARITY: f64 = 0.9;

/// A contract that can be bound to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AvailableContract {
    /// The id of the contract.
    pub(crate) id: String,
    /// The agent that the contract is written for.
    pub(crate) agent: Option<String>,
    /// Whether the project itself defines it.
    pub(crate) is_own: bool,
}

/// The suggestion for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Suggestion {
    /// Exactly one contract has the name of the agent.
    Exact(String),
    /// Several contracts have this name or a similar one. The user must choose.
    Ambiguous(Vec<String>),
    /// No contract has a similar name.
    NoMatch,
}

/// Suggests a contract for the agent of this name.
pub(crate) fn suggest(agent: &str, contracts: &[AvailableContract]) -> Suggestion {
    let agent = normalize(agent);
    let names = |contract: &AvailableContract| {
        [Some(normalize(name_of(&contract.id))), contract.agent.as_deref().map(normalize)]
            .into_iter()
            .flatten()
            .collect::<BTreeSet<_>>()
    };
    let named: Vec<&AvailableContract> =
        contracts.iter().filter(|contract| names(contract).contains(&agent)).collect();
    // A project means its own contracts, whatever ours are called.
    let own: Vec<&AvailableContract> = named.iter().copied().filter(|one| one.is_own).collect();
    if let ([one], _) | (_, [one]) = (own.as_slice(), named.as_slice()) {
        return Suggestion::Exact(one.id.clone());
    }
    let exact: Vec<String> = named.into_iter().map(|contract| contract.id.clone()).collect();
    let mut similar: Vec<(f64, &str)> = contracts
        .iter()
        .filter(|contract| !exact.contains(&contract.id))
        .map(|contract| {
            let score =
                names(contract).iter().map(|name| similarity(&agent, name)).fold(0.0, f64::max);
            (score, contract.id.as_str())
        })
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    similar.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
    let mut candidates = exact;
    candidates.extend(similar.into_iter().map(|(_, id)| id.to_owned()));
    candidates.truncate(MAX_CANDIDATES);
    if candidates.is_empty() { Suggestion::NoMatch } else { Suggestion::Ambiguous(candidates) }
}

/// Whether a contract has the name of an agent; it may also be for an agent of that name.
pub(crate) fn is_named_like(id: &str, agent: &str) -> bool {
    normalize(name_of(id)) == normalize(agent)
}

/// The name of a contract: its id without the pack.
fn name_of(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// The similarity of two names, from 0 to 1. It is 1 if one name contains all words of the other.
fn similarity(agent: &str, name: &str) -> f64 {
    let words = |text: &str| text.split('-').map(str::to_owned).collect::<BTreeSet<_>>();
    let (ours, theirs) = (words(agent), words(name));
    if ours.is_subset(&theirs) || theirs.is_subset(&ours) {
        return 1.0;
    }
    strsim::jaro_winkler(agent, name)
}

/// A name in the form in which names are compared: `Code_Reviewer` and `CodeReviewer` become
/// `code-reviewer`. A plugin prefix (`plugin:name`) is dropped.
fn normalize(name: &str) -> String {
    let name = name.rsplit(':').next().unwrap_or(name);
    let mut normalized = String::new();
    let mut after_lowercase = false;
    for char in name.chars() {
        if char.is_uppercase() && after_lowercase {
            normalized.push('-');
        }
        after_lowercase = char.is_lowercase();
        normalized.extend(if matches!(char, '_' | ' ' | '.') {
            vec!['-']
        } else {
            char.to_lowercase().collect()
        });
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contracts() -> Vec<AvailableContract> {
        let contract = |(id, agent): (&str, Option<&str>)| AvailableContract {
            id: id.into(),
            agent: agent.map(str::to_owned),
            is_own: false,
        };
        [
            ("execution-loop/qa", Some("qa")),
            ("execution-loop/implementer", Some("implementer")),
            ("review-fix/implementation-result", Some("implementer")),
            ("feature-pipeline/code-reviewer", None),
            ("review-fix/review-result", Some("unified-reviewer")),
        ]
        .map(contract)
        .to_vec()
    }

    #[test]
    fn only_an_unambiguous_name_is_exact() {
        let ambiguous =
            |ids: &[&str]| Suggestion::Ambiguous(ids.iter().map(|id| (*id).to_owned()).collect());
        for (agent, expected) in [
            ("qa", Suggestion::Exact("execution-loop/qa".into())),
            ("QA", Suggestion::Exact("execution-loop/qa".into())),
            ("CodeReviewer", Suggestion::Exact("feature-pipeline/code-reviewer".into())),
            ("code_reviewer", Suggestion::Exact("feature-pipeline/code-reviewer".into())),
            ("tools:code-reviewer", Suggestion::Exact("feature-pipeline/code-reviewer".into())),
            ("unified-reviewer", Suggestion::Exact("review-fix/review-result".into())),
            (
                "implementer",
                ambiguous(&["execution-loop/implementer", "review-fix/implementation-result"]),
            ),
            ("qa-engineer", ambiguous(&["execution-loop/qa"])),
            ("code-revewer", ambiguous(&["feature-pipeline/code-reviewer"])),
            ("translator", Suggestion::NoMatch),
            ("", Suggestion::NoMatch),
        ] {
            assert_eq!(suggest(agent, &contracts()), expected, "{agent}");
        }
    }

    #[test]
    fn a_contract_of_the_project_comes_before_those_of_the_packs() {
        let own = |id: &str, agent: &str| AvailableContract {
            id: id.to_owned(),
            agent: Some(agent.to_owned()),
            is_own: true,
        };
        let mut all = contracts();
        all.push(own("acme/implementer", "implementer"));
        let exact = Suggestion::Exact("acme/implementer".to_owned());
        assert_eq!(suggest("implementer", &all), exact);
        // Of two the user must choose.
        all.push(own("acme/other", "implementer"));
        assert!(matches!(suggest("implementer", &all), Suggestion::Ambiguous(_)));
    }
}
