//! The shape of the machine: what can be reached, what leads to an end, and that every cycle is
//! bounded.

use crate::draft::{MachineDraft, Reader};
use crate::finding::Code;
use crate::tree::Node;
use crate::workflow::{Limit, State, Step};
use std::collections::{BTreeMap, BTreeSet};

/// A way from one state to another.
struct Edge<'a> {
    from: usize,
    to: usize,
    /// The limits that taking it counts.
    counts: Vec<&'a str>,
    resets: &'a [String],
    /// The limit that is used up when this way is taken instead of another.
    used_up: Option<&'a str>,
    node: &'a Node,
}

pub(super) fn check(
    reader: &mut Reader<'_>,
    draft: &MachineDraft<'_>,
    start: &str,
    states: &BTreeMap<String, State>,
    limits: &BTreeMap<String, Limit>,
) {
    let names: Vec<&str> = draft.states.iter().map(|(name, _)| name.text).collect();
    let index: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let edges = edges(draft, states, limits, &index);
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    let mut back: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    for edge in &edges {
        out[edge.from].push(edge.to);
        back[edge.to].push(edge.from);
    }
    let from = index.get(start).copied().into_iter().collect();
    let reached = spread(from, &out);
    let is_end = |at: &usize| {
        matches!(states.get(names[*at]).map(|state| &state.kind), Some(Step::End { .. }))
    };
    let ends: Vec<usize> = (0..names.len()).filter(is_end).collect();
    let ending = spread(ends, &back);
    for (at, (name, _)) in draft.states.iter().enumerate() {
        if !reached.contains(&at) {
            let message = format!("state '{}' cannot be reached from '{start}'", name.text);
            reader.report(
                Code::Unreachable,
                name.node,
                message,
                "lead a transition to it, or take it out",
            );
        } else if !ending.contains(&at) {
            let message = format!("no end can be reached from '{}'", name.text);
            reader.report(Code::NoWayOut, name.node, message, "lead it to a state with `end: …`");
        }
    }
    for cycle in unbounded(&edges, names.len()) {
        let path = cycle_path(&cycle, &edges);
        let shown: Vec<&str> = path.iter().map(|at| names[edges[*at].from]).collect();
        let first = shown.first().copied().unwrap_or_default();
        // A cycle that no end can be reached from was reported as that.
        if path.iter().all(|at| !ending.contains(&edges[*at].from)) {
            continue;
        }
        // The edge that leads back to the state that stands first in the file closes the loop.
        let closing = path.iter().min_by_key(|at| edges[**at].to).map(|at| &edges[*at]);
        let Some(closing) = closing else { continue };
        let message = format!("nothing bounds the cycle {} → {first}", shown.join(" → "));
        let used_up = path.iter().find_map(|at| edges[*at].used_up);
        let hint = if let Some(limit) = used_up {
            format!(
                "the limit '{limit}' leads into it once it is used up, and counts nothing then: let `then` lead out"
            )
        } else if limits.is_empty() {
            "declare a limit and count it here: limits: { rounds: { max: 5, then: … } } and `counts: rounds`"
                .to_owned()
        } else {
            format!(
                "count a limit on one of its transitions (`counts: {}`) that no transition of the cycle resets",
                limits.keys().next().map(String::as_str).unwrap_or_default()
            )
        };
        reader.report(Code::NoLimit, closing.node, message, hint);
    }
}

fn edges<'a>(
    draft: &'a MachineDraft<'_>,
    states: &'a BTreeMap<String, State>,
    limits: &'a BTreeMap<String, Limit>,
    index: &BTreeMap<&str, usize>,
) -> Vec<Edge<'a>> {
    let mut edges = Vec::new();
    for (from, (name, state_draft)) in draft.states.iter().enumerate() {
        let Some(state) = states.get(name.text) else { continue };
        let next = state.next.iter().zip(state_draft.next.iter().map(|transition| transition.node));
        let on = state.on.iter().filter_map(|(trouble, transition)| {
            let drafted = state_draft.on.iter().find(|(name, _)| name.text == trouble.name())?;
            Some((transition, drafted.1.node))
        });
        for (transition, node) in next.chain(on) {
            for target in transition.go.states() {
                let Some(&to) = index.get(target.as_str()) else { continue };
                let entry = states.get(target).and_then(|state| state.counts.as_deref());
                let counts: Vec<&str> =
                    transition.counts.as_deref().into_iter().chain(entry).collect();
                // A limit that is used up leads elsewhere, and that way counts nothing and sets
                // nothing back.
                for limit in &counts {
                    if let Some(&to) =
                        limits.get(*limit).and_then(|limit| index.get(limit.then.as_str()))
                    {
                        edges.push(Edge {
                            from,
                            to,
                            counts: Vec::new(),
                            resets: &[],
                            used_up: Some(*limit),
                            node,
                        });
                    }
                }
                edges.push(Edge {
                    from,
                    to,
                    counts,
                    resets: &transition.resets,
                    used_up: None,
                    node,
                });
            }
        }
    }
    edges
}

fn spread(mut open: Vec<usize>, out: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut seen: BTreeSet<usize> = open.iter().copied().collect();
    while let Some(at) = open.pop() {
        for &to in &out[at] {
            if seen.insert(to) {
                open.push(to);
            }
        }
    }
    seen
}

/// The cycles that nothing bounds, as sets of edges. In a set of states that reach each other, a
/// limit that no edge of the set resets bounds every cycle through the edges that count it: without
/// these edges, what is left must be bounded in the same way.
fn unbounded(edges: &[Edge<'_>], states: usize) -> Vec<Vec<usize>> {
    let mut bad = Vec::new();
    let mut set: Vec<usize> = (0..edges.len()).collect();
    // Each round takes at least one limit out of every component, so there are no more rounds than
    // limits.
    while !set.is_empty() {
        let mut left = Vec::new();
        for component in components(&set, edges, states) {
            let resets: BTreeSet<&str> = component
                .iter()
                .flat_map(|at| edges[*at].resets.iter().map(String::as_str))
                .collect();
            let rest: Vec<usize> = component
                .iter()
                .copied()
                .filter(|at| edges[*at].counts.iter().all(|limit| resets.contains(limit)))
                .collect();
            if rest.len() == component.len() {
                bad.push(component);
            } else {
                left.extend(rest);
            }
        }
        set = left;
    }
    bad.sort();
    bad
}

/// The edges inside each strongly connected component that has any. Iterative, since a machine may
/// have many states.
fn components(set: &[usize], edges: &[Edge<'_>], states: usize) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); states];
    for &at in set {
        out[edges[at].from].push(edges[at].to);
    }
    let (mut number, mut low, mut component) =
        (vec![NEW; states], vec![NEW; states], vec![NEW; states]);
    let (mut next, mut count) = (0, 0);
    let mut stack = Vec::new();
    for root in 0..states {
        if number[root] != NEW || out[root].is_empty() {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((at, child)) = work.pop() {
            if child == 0 {
                (number[at], low[at]) = (next, next);
                next += 1;
                stack.push(at);
            } else {
                let done = out[at][child - 1];
                if component[done] == NEW {
                    low[at] = low[at].min(low[done]);
                }
            }
            match out[at].get(child) {
                Some(&to) => {
                    work.push((at, child + 1));
                    if number[to] == NEW {
                        work.push((to, 0));
                    } else if component[to] == NEW {
                        low[at] = low[at].min(number[to]);
                    }
                }
                None if low[at] == number[at] => {
                    while let Some(member) = stack.pop() {
                        component[member] = count;
                        if member == at {
                            break;
                        }
                    }
                    count += 1;
                }
                None => {}
            }
        }
    }
    let mut inside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &at in set {
        let (from, to) = (component[edges[at].from], component[edges[at].to]);
        if from == to && from != NEW {
            inside.entry(from).or_default().push(at);
        }
    }
    inside.into_values().collect()
}

/// One shortest cycle through the first edge of a strongly connected set.
fn cycle_path(set: &[usize], edges: &[Edge<'_>]) -> Vec<usize> {
    let Some(&first) = set.first() else { return Vec::new() };
    let (goal, begin) = (edges[first].from, edges[first].to);
    let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &at in set {
        out.entry(edges[at].from).or_default().push(at);
    }
    let mut came: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([begin]);
    let mut seen = BTreeSet::from([begin]);
    while let Some(at) = open.pop_front() {
        if at == goal {
            break;
        }
        for &edge in out.get(&at).into_iter().flatten() {
            if seen.insert(edges[edge].to) {
                came.insert(edges[edge].to, edge);
                open.push_back(edges[edge].to);
            }
        }
    }
    let mut path = Vec::new();
    let mut at = goal;
    while at != begin {
        let Some(&edge) = came.get(&at) else { break };
        path.push(edge);
        at = edges[edge].from;
    }
    path.push(first);
    path.reverse();
    path
}
