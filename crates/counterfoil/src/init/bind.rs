//! Which contract an agent is likely to hand back, by names. No I/O.

use std::collections::BTreeSet;

/// So many candidates are named.
const MOST: usize = 4;
/// Names that are as near as this are named.
const NEAR: f64 = 0.9;

/// A contract that can be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Its id.
    pub(crate) id: String,
    /// The agent that it is for.
    pub(crate) agent: Option<String>,
}

/// What is proposed for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// One contract has the agent's name.
    Bound(String),
    /// Some contracts have the name, or one like it: somebody must choose.
    Unsure(Vec<String>),
    /// No contract is like it.
    Nothing,
}

/// What is proposed for an agent of this name.
pub(crate) fn propose(agent: &str, offers: &[Offer]) -> Proposal {
    let agent = plain(agent);
    let names = |offer: &Offer| {
        let tail = offer.id.rsplit('/').next().unwrap_or(&offer.id);
        [Some(plain(tail)), offer.agent.as_deref().map(plain)]
            .into_iter()
            .flatten()
            .collect::<BTreeSet<_>>()
    };
    let exact: Vec<String> = offers
        .iter()
        .filter(|offer| names(offer).contains(&agent))
        .map(|offer| offer.id.clone())
        .collect();
    if let [one] = exact.as_slice() {
        return Proposal::Bound(one.clone());
    }
    let mut near: Vec<(f64, &str)> = offers
        .iter()
        .filter(|offer| !exact.contains(&offer.id))
        .map(|offer| {
            let likeness =
                names(offer).iter().map(|name| likeness(&agent, name)).fold(0.0, f64::max);
            (likeness, offer.id.as_str())
        })
        .filter(|(likeness, _)| *likeness >= NEAR)
        .collect();
    near.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
    let mut candidates = exact;
    candidates.extend(near.into_iter().map(|(_, id)| id.to_owned()));
    candidates.truncate(MOST);
    if candidates.is_empty() { Proposal::Nothing } else { Proposal::Unsure(candidates) }
}

/// How alike two names are: a name that holds all words of the other is as near as it gets without
/// being the same.
fn likeness(agent: &str, name: &str) -> f64 {
    let words = |text: &str| text.split('-').map(str::to_owned).collect::<BTreeSet<_>>();
    let (ours, theirs) = (words(agent), words(name));
    if ours.is_subset(&theirs) || theirs.is_subset(&ours) {
        return 1.0;
    }
    strsim::jaro_winkler(agent, name)
}

/// A name as it is compared: `Code_Reviewer` and `CodeReviewer` are `code-reviewer`. What a plugin
/// puts before it does not count.
fn plain(name: &str) -> String {
    let name = name.rsplit(':').next().unwrap_or(name);
    let mut plain = String::new();
    let mut lower = false;
    for char in name.chars() {
        if char.is_uppercase() && lower {
            plain.push('-');
        }
        lower = char.is_lowercase();
        plain.extend(if matches!(char, '_' | ' ' | '.') {
            vec!['-']
        } else {
            char.to_lowercase().collect()
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers() -> Vec<Offer> {
        let offer = |(id, agent): (&str, Option<&str>)| Offer {
            id: id.into(),
            agent: agent.map(str::to_owned),
        };
        [
            ("execution-loop/qa", Some("qa")),
            ("execution-loop/implementer", Some("implementer")),
            ("review-fix/implementation-result", Some("implementer")),
            ("feature-pipeline/code-reviewer", None),
            ("review-fix/review-result", Some("unified-reviewer")),
        ]
        .map(offer)
        .to_vec()
    }

    #[test]
    fn only_one_contract_of_the_very_name_is_bound() {
        let unsure =
            |ids: &[&str]| Proposal::Unsure(ids.iter().map(|id| (*id).to_owned()).collect());
        for (agent, proposal) in [
            ("qa", Proposal::Bound("execution-loop/qa".into())),
            ("QA", Proposal::Bound("execution-loop/qa".into())),
            ("CodeReviewer", Proposal::Bound("feature-pipeline/code-reviewer".into())),
            ("code_reviewer", Proposal::Bound("feature-pipeline/code-reviewer".into())),
            ("tools:code-reviewer", Proposal::Bound("feature-pipeline/code-reviewer".into())),
            ("unified-reviewer", Proposal::Bound("review-fix/review-result".into())),
            (
                "implementer",
                unsure(&["execution-loop/implementer", "review-fix/implementation-result"]),
            ),
            ("qa-engineer", unsure(&["execution-loop/qa"])),
            ("code-revewer", unsure(&["feature-pipeline/code-reviewer"])),
            ("translator", Proposal::Nothing),
            ("", Proposal::Nothing),
        ] {
            assert_eq!(propose(agent, &offers()), proposal, "{agent}");
        }
    }
}
