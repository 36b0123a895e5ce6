//! Checks the graph of states: every state is reachable, an end is reachable from it, and every
//! cycle is bounded by a limit.

use super::machine::join_limited;
use crate::ast::{self, Reader};
use crate::finding::Code;
use crate::workflow::{Limit, State, Step};
use crate::yaml_tree::Node;
use counterfoil_contract::text::truncate;
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of the names of states that a finding lists.
const MAX_NAMED: usize = 200;

/// An edge from one state to another.
struct Edge<'a> {
    from: usize,
    to: usize,
    /// The limits that the transition counts.
    counts: Vec<&'a str>,
    resets: &'a [String],
    /// The limit that is used up, if this is the edge to its `then`.
    used_up: Option<&'a str>,
    node: &'a Node,
}

pub(super) fn check(
    reader: &mut Reader<'_>,
    decl: &ast::Machine<'_>,
    start: &str,
    states: &BTreeMap<String, State>,
    limits: &BTreeMap<String, Limit>,
) {
    let names: Vec<&str> = decl.states.iter().map(|(name, _)| name.text).collect();
    let index: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let edges = edges(decl, states, limits, &index);
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    let mut back: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    for edge in &edges {
        out[edge.from].push(edge.to);
        back[edge.to].push(edge.from);
    }
    // A state of which the form is wrong may be meant to lead anywhere.
    let is_unclear = |at: usize| decl.states.get(at).is_some_and(|(_, state)| state.is_unclear);
    let mut from_start = BTreeSet::new();
    if let Some(at) = index.get(start) {
        mark(*at, &out, &mut from_start);
    }
    if from_start.iter().any(|at| is_unclear(*at)) {
        from_start = (0..names.len()).collect();
    }
    let mut to_end = BTreeSet::new();
    for (at, name) in names.iter().enumerate() {
        let is_end = matches!(states.get(*name).map(|state| &state.kind), Some(Step::End { .. }));
        if is_end || is_unclear(at) {
            mark(at, &back, &mut to_end);
        }
    }
    let unreachable: BTreeSet<usize> =
        (0..names.len()).filter(|at| !from_start.contains(at)).collect();
    for at in first_of(&unreachable, &out) {
        if reader.at_limit() {
            break;
        }
        report_unreachable(reader, decl, start, at, &unreachable, &out);
    }
    let without_end: BTreeSet<usize> = from_start.difference(&to_end).copied().collect();
    for at in first_of(&without_end, &back) {
        let Some((name, _)) = decl.states.get(at) else { continue };
        let message = format!("no end state is reachable from '{}'", name.text);
        reader.report(
            Code::NoEndReachable,
            name.node,
            message,
            "add a transition to a state with `end: …`",
        );
    }
    // Its transitions may be meant to count a limit.
    let edges: Vec<Edge<'_>> = edges.into_iter().filter(|edge| !is_unclear(edge.from)).collect();
    for cycle in unbounded(&edges, names.len()) {
        let path = cycle_path(&cycle, &edges);
        let states_in_cycle: Vec<&str> = path.iter().map(|at| names[edges[*at].from]).collect();
        let first = states_in_cycle.first().copied().unwrap_or_default();
        // A cycle without a reachable end has been reported as such.
        if path.iter().all(|at| !to_end.contains(&edges[*at].from)) {
            continue;
        }
        // Report at the edge back to the state of the cycle that is first in the file.
        let closing = path.iter().min_by_key(|at| edges[**at].to).map(|at| &edges[*at]);
        let Some(closing) = closing else { continue };
        let message =
            format!("no limit bounds the cycle {} → {first}", states_in_cycle.join(" → "));
        let used_up = path.iter().find_map(|at| edges[*at].used_up);
        let hint = if let Some(limit) = used_up {
            format!(
                "`then` of the limit '{limit}' leads back into the cycle: set it to a state outside the cycle"
            )
        } else if limits.is_empty() {
            "declare a limit and count it here: limits: { rounds: { max: 5, then: … } } and `counts: rounds`"
                .to_owned()
        } else {
            format!(
                "count a limit on one of its transitions (`counts: {}`), and do not reset it within the cycle",
                limits.keys().next().map(String::as_str).unwrap_or_default()
            )
        };
        reader.report(Code::NoLimit, closing.node, message, hint);
    }
}

fn edges<'a>(
    decl: &'a ast::Machine<'_>,
    states: &'a BTreeMap<String, State>,
    limits: &'a BTreeMap<String, Limit>,
    index: &BTreeMap<&str, usize>,
) -> Vec<Edge<'a>> {
    let mut edges = Vec::new();
    for (from, (name, state_decl)) in decl.states.iter().enumerate() {
        let Some(state) = states.get(name.text) else { continue };
        let next = state.next.iter().zip(state_decl.next.iter().map(|transition| transition.node));
        let on = state.on.iter().filter_map(|(failure, transition)| {
            let declared = state_decl.on.iter().find(|(name, _)| name.text == failure.name())?;
            Some((transition, declared.1.node))
        });
        for (transition, node) in next.chain(on) {
            for target in transition.go.states() {
                let Some(&to) = index.get(target.as_str()) else { continue };
                let entry = states.get(target).and_then(|state| state.counts.as_deref());
                let counts: Vec<&str> =
                    transition.counts.as_deref().into_iter().chain(entry).collect();
                // When a limit is used up, the run continues with `then`. That edge counts and
                // resets nothing.
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

/// Adds a state and all that are reachable from it. Those that were added before are known to be
/// followed.
fn mark(from: usize, out: &[Vec<usize>], seen: &mut BTreeSet<usize>) {
    let mut open = Vec::new();
    if seen.insert(from) {
        open.push(from);
    }
    while let Some(at) = open.pop() {
        for &to in &out[at] {
            if seen.insert(to) {
                open.push(to);
            }
        }
    }
}

/// The states of a set from which all of it is reachable, as few as possible: of each group that
/// nothing else in the set leads to, the first in the file. To mend these mends the others.
fn first_of(set: &BTreeSet<usize>, out: &[Vec<usize>]) -> BTreeSet<usize> {
    // Of each such group this has one state, the first, and of other groups perhaps some.
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::new();
    for &at in set {
        if !seen.contains(&at) {
            candidates.push(at);
            mark(at, out, &mut seen);
        }
    }
    // A candidate of another group is reachable from one that comes after it.
    let mut seen = BTreeSet::new();
    let mut first = BTreeSet::new();
    for at in candidates.into_iter().rev() {
        if !seen.contains(&at) {
            first.insert(at);
            mark(at, out, &mut seen);
        }
    }
    first
}

/// Reports a state that is unreachable, and names those that are so because of it.
fn report_unreachable(
    reader: &mut Reader<'_>,
    decl: &ast::Machine<'_>,
    start: &str,
    at: usize,
    unreachable: &BTreeSet<usize>,
    out: &[Vec<usize>],
) {
    let Some((name, _)) = decl.states.get(at) else { return };
    let mut below = BTreeSet::new();
    mark(at, out, &mut below);
    let others = below.intersection(unreachable).filter(|other| **other != at);
    let others = others.filter_map(|other| decl.states.get(*other)).map(|(name, _)| name.text);
    let so_are = match join_limited(others) {
        none if none.is_empty() => String::new(),
        others => {
            format!(", and so are those that it leads to: {}", truncate(&others, MAX_NAMED))
        }
    };
    let message = format!("state '{}' is unreachable from '{start}'{so_are}", name.text);
    reader.report(Code::Unreachable, name.node, message, "add a transition to it, or remove it");
}

/// The unbounded cycles, as sets of edges. In a strongly connected component, a limit that no edge of
/// the component resets bounds every cycle through the edges that count it. The remaining edges are
/// examined again in the same way.
fn unbounded(edges: &[Edge<'_>], states: usize) -> Vec<Vec<usize>> {
    let mut cycles = Vec::new();
    let mut set: Vec<usize> = (0..edges.len()).collect();
    // Each round removes at least one limit from every component, so there are at most as many rounds
    // as limits.
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
                cycles.push(component);
            } else {
                left.extend(rest);
            }
        }
        set = left;
    }
    cycles.sort();
    cycles
}

/// The edges inside each strongly connected component that has any (Tarjan's algorithm, iterative,
/// because a machine may have many states).
fn components(set: &[usize], edges: &[Edge<'_>], states: usize) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); states];
    for &at in set {
        out[edges[at].from].push(edges[at].to);
    }
    let component = component_of_each(&out);
    let mut inside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &at in set {
        let (from, to) = (component[edges[at].from], component[edges[at].to]);
        if from == to && from != NEW {
            inside.entry(from).or_default().push(at);
        }
    }
    inside.into_values().collect()
}

/// What no component has been found for.
const NEW: usize = usize::MAX;

/// The number of the strongly connected component of each node of a graph, given the nodes that
/// each leads to. A node that leads nowhere and that nothing leads to has none.
pub(super) fn component_of_each(out: &[Vec<usize>]) -> Vec<usize> {
    let states = out.len();
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
    component
}

/// One shortest cycle through the first edge of a strongly connected set.
fn cycle_path(set: &[usize], edges: &[Edge<'_>]) -> Vec<usize> {
    let Some(&first) = set.first() else { return Vec::new() };
    let (goal, begin) = (edges[first].from, edges[first].to);
    let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &at in set {
        out.entry(edges[at].from).or_default().push(at);
    }
    let mut reached_by: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([begin]);
    let mut seen = BTreeSet::from([begin]);
    while let Some(at) = open.pop_front() {
        if at == goal {
            break;
        }
        for &edge in out.get(&at).into_iter().flatten() {
            if seen.insert(edges[edge].to) {
                reached_by.insert(edges[edge].to, edge);
                open.push_back(edges[edge].to);
            }
        }
    }
    let mut path = Vec::new();
    let mut at = goal;
    while at != begin {
        let Some(&edge) = reached_by.get(&at) else { break };
        path.push(edge);
        at = edges[edge].from;
    }
    path.push(first);
    path.reverse();
    path
}
