//! The format-independent content of a diagram: clusters, nodes and arrows with short labels.

use crate::template::Template;
use crate::workflow::{
    Body, Each, End, Limit, Machine, Question, State, Step, Target, Term, Transition, Workflow,
};
use counterfoil_contract::text::{Form, neutralize};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of a label: a guard, a command or a question.
const MAX_LABEL_CHARS: usize = 40;

/// The maximum number of lines of an arrow's label.
const MAX_ARROW_LINES: usize = 4;

/// The diagram of a workflow.
pub(super) struct Diagram {
    /// The name of the workflow.
    pub(super) name: String,
    /// The summary of the workflow, on one line.
    pub(super) summary: String,
    /// The main machine, then the sub-workflows.
    pub(super) clusters: Vec<Cluster>,
    /// The states that run sub-workflows.
    pub(super) calls: Vec<Call>,
}

/// A machine: the main workflow or a sub-workflow.
pub(super) struct Cluster {
    /// The identifier, unique in the diagram.
    pub(super) id: String,
    /// The name of the sub-workflow, as a label; empty for the main machine.
    pub(super) name: String,
    /// The name of the machine as in the file; empty for the main machine.
    pub(super) machine: String,
    /// The start marker, then the states.
    pub(super) nodes: Vec<Node>,
    /// The arrows, at most one of a kind between two states.
    pub(super) arrows: Vec<Arrow>,
}

/// A node: a state or the start marker.
pub(super) struct Node {
    /// The identifier, unique in the diagram: letters, digits and `_`.
    pub(super) id: String,
    /// The name of the state as in the file; empty for the start marker.
    pub(super) state: String,
    /// The shape, which shows the kind of step.
    pub(super) shape: Shape,
    /// The lines of the label: the name of the state, then its step.
    pub(super) lines: Vec<String>,
}

/// The shape of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The start marker.
    Start,
    /// A step of an agent.
    Agent,
    /// A command or a built-in step.
    Command,
    /// A question to a person.
    Question,
    /// A sub-workflow or a fan-out.
    Nested,
    /// A branch without a step.
    Branch,
    /// An end with its outcome.
    End(End),
}

/// An arrow between two nodes of the same cluster, given by their indexes.
pub(super) struct Arrow {
    /// The index of the source node.
    pub(super) from: usize,
    /// The index of the target node.
    pub(super) to: usize,
    /// The kind of transition.
    pub(super) kind: ArrowKind,
    /// The label: a line for each transition between the two nodes.
    pub(super) lines: Vec<String>,
}

/// The kind of transition that an arrow shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ArrowKind {
    /// A transition under `next`.
    Next,
    /// The `then` of a limit that is used up.
    UsedUp,
    /// A transition under `on`.
    Failure,
}

/// A state that runs a sub-workflow.
pub(super) struct Call {
    /// The index of the cluster that contains the state.
    pub(super) cluster: usize,
    /// The index of the state's node in that cluster.
    pub(super) node: usize,
    /// The index of the cluster that the state runs.
    pub(super) runs: usize,
    /// The label, which tells whether it runs once or for each item.
    pub(super) label: &'static str,
}

impl Diagram {
    /// Creates the diagram of a workflow.
    pub(super) fn from_workflow(workflow: &Workflow) -> Self {
        let machines: Vec<&Machine> = machines(workflow).collect();
        let mut ids = Ids::default();
        let clusters: Vec<Cluster> =
            machines.iter().map(|machine| cluster(machine, &mut ids)).collect();
        let mut calls = Vec::new();
        for (at, machine) in machines.iter().enumerate() {
            for (place, (_, state)) in states(machine).into_iter().enumerate() {
                let (name, label) = match &state.kind {
                    Step::Call { machine, .. } => (machine, "runs"),
                    Step::Each(each) => match &each.body {
                        Body::Machine { machine, .. } => (machine, "runs for each"),
                        Body::Agent(_) => continue,
                    },
                    _ => continue,
                };
                // The first cluster is the main machine, which no state runs.
                let runs = machines.iter().skip(1).position(|other| other.name == *name);
                calls.extend(runs.map(|runs| Call {
                    cluster: at,
                    node: place + 1,
                    runs: runs + 1,
                    label,
                }));
            }
        }
        Self {
            name: shorten(&workflow.name),
            summary: single_line(&workflow.summary),
            clusters,
            calls,
        }
    }
}

/// The machines in the order of the clusters: the main one, then the sub-workflows.
pub(super) fn machines(workflow: &Workflow) -> impl Iterator<Item = &Machine> {
    std::iter::once(&workflow.main).chain(workflow.machines.values())
}

/// The states in the order of the file.
pub(super) fn states(machine: &Machine) -> Vec<(&str, &State)> {
    machine
        .order
        .iter()
        .filter_map(|name| Some((name.as_str(), machine.states.get(name)?)))
        .collect()
}

fn cluster(machine: &Machine, ids: &mut Ids) -> Cluster {
    let states = states(machine);
    let id = ids.fresh("in", if machine.name.is_empty() { "main" } else { &machine.name });
    let prefix = if machine.name.is_empty() { "s" } else { id.as_str() };
    let mut nodes = vec![Node {
        id: ids.fresh(prefix, "start"),
        state: String::new(),
        shape: Shape::Start,
        lines: Vec::new(),
    }];
    nodes.extend(states.iter().map(|(name, state)| Node {
        id: ids.fresh(prefix, name),
        state: (*name).to_owned(),
        shape: shape(&state.kind),
        lines: node_lines(name, state, machine),
    }));
    let indexes: BTreeMap<&str, usize> =
        states.iter().enumerate().map(|(at, (name, _))| (*name, at + 1)).collect();
    let mut arrows = Arrows { indexes, drawn: BTreeMap::new(), list: Vec::new() };
    if let Some(start) = arrows.indexes.get(machine.start.as_str()).copied() {
        arrows.add(0, start, ArrowKind::Next, String::new());
    }
    for (at, (_, state)) in states.iter().enumerate() {
        add_exits(at + 1, state, machine, &mut arrows);
    }
    Cluster {
        id,
        name: shorten(&machine.name),
        machine: machine.name.clone(),
        nodes,
        arrows: arrows.list,
    }
}

/// Adds an arrow for every transition of a state, and for the limits that it counts.
fn add_exits(from: usize, state: &State, machine: &Machine, arrows: &mut Arrows<'_>) {
    let mut counted: BTreeSet<&str> = state.counts.as_deref().into_iter().collect();
    for transition in &state.next {
        let alone = state.next.len() == 1;
        arrows.add_transition(
            from,
            transition,
            ArrowKind::Next,
            &guard(transition, alone),
            machine,
        );
        counted.extend(transition.counts.as_deref());
    }
    for (failure, transition) in &state.on {
        arrows.add_transition(from, transition, ArrowKind::Failure, failure.name(), machine);
        counted.extend(transition.counts.as_deref());
    }
    for name in counted {
        let then =
            machine.limits.get(name).and_then(|limit| arrows.indexes.get(limit.then.as_str()));
        if let Some(then) = then.copied() {
            arrows.add(from, then, ArrowKind::UsedUp, format!("{} used up", shorten(name)));
        }
    }
}

/// Collects the arrows of a cluster. Those of the same kind between the same nodes are merged.
struct Arrows<'a> {
    indexes: BTreeMap<&'a str, usize>,
    drawn: BTreeMap<(usize, usize, ArrowKind), usize>,
    list: Vec<Arrow>,
}

impl Arrows<'_> {
    fn add_transition(
        &mut self,
        from: usize,
        transition: &Transition,
        kind: ArrowKind,
        guard: &str,
        machine: &Machine,
    ) {
        for name in transition.go.states() {
            let Some(to) = self.indexes.get(name.as_str()).copied() else { continue };
            let mut parts = vec![guard.to_owned()];
            if let Target::Computed(expression, _) = &transition.go {
                parts.push(format!("{} is {}", shorten(expression.source()), shorten(name)));
            }
            let limit =
                transition.counts.as_ref().and_then(|name| Some((name, machine.limits.get(name)?)));
            parts.extend(limit.map(|(name, limit)| limit_label(name, limit)));
            parts.extend(transition.resets.iter().map(|name| format!("resets {}", shorten(name))));
            parts.retain(|part| !part.is_empty());
            self.add(from, to, kind, parts.join(", "));
        }
    }

    fn add(&mut self, from: usize, to: usize, kind: ArrowKind, line: String) {
        let at = *self.drawn.entry((from, to, kind)).or_insert_with(|| {
            self.list.push(Arrow { from, to, kind, lines: Vec::new() });
            self.list.len() - 1
        });
        let lines = &mut self.list[at].lines;
        if line.is_empty() || lines.contains(&line) {
            return;
        }
        match lines.len() {
            count if count < MAX_ARROW_LINES => lines.push(line),
            MAX_ARROW_LINES => lines.push("…".to_owned()),
            _ => {}
        }
    }
}

fn guard(transition: &Transition, alone: bool) -> String {
    match &transition.when {
        Some(when) => shorten(when.source()),
        None if alone => String::new(),
        None => "otherwise".to_owned(),
    }
}

/// The label of a limit, such as `rounds ≤ 5`.
fn limit_label(name: &str, limit: &Limit) -> String {
    let max = shorten(&term_source(&limit.max));
    let per =
        limit.per.as_ref().map(|per| format!(" per {}", shorten(per.source()))).unwrap_or_default();
    format!("{} ≤ {max}{per}", shorten(name))
}

/// The source text of a term.
fn term_source(term: &Term) -> String {
    match term {
        Term::Literal(value) => value.to_string(),
        Term::Computed(expression) => expression.source().to_owned(),
    }
}

fn shape(step: &Step) -> Shape {
    match step {
        Step::Agent(_) => Shape::Agent,
        Step::Command(_) | Step::Read(_) | Step::Changes(_) | Step::Commit(_) => Shape::Command,
        Step::Ask(_) => Shape::Question,
        Step::Each(_) | Step::Call { .. } => Shape::Nested,
        Step::Route | Step::Order(_) => Shape::Branch,
        Step::End { outcome, .. } => Shape::End(*outcome),
    }
}

/// The lines of a node's label.
fn node_lines(name: &str, state: &State, machine: &Machine) -> Vec<String> {
    let what = match &state.kind {
        Step::Agent(work) => shorten(&work.agent),
        Step::Command(step) => {
            let words: Vec<&str> = step.argv.iter().map(Template::source).collect();
            format!("$ {}", shorten(&words.join(" ")))
        }
        Step::Read(step) => format!("read {}", shorten(step.path.source())),
        Step::Changes(step) => format!("changes since {}", shorten(&term_source(&step.since))),
        Step::Commit(step) => {
            format!(
                "commit {}",
                shorten(step.message.source().trim().lines().next().unwrap_or_default())
            )
        }
        Step::Ask(questions) => question_label(questions),
        Step::Each(each) => each_label(each),
        Step::Call { machine, .. } => format!("runs {}", shorten(machine)),
        Step::Order(listing) => format!("orders {}", shorten(listing.list.source())),
        Step::Route => String::new(),
        Step::End { outcome, .. } => outcome.name().to_owned(),
    };
    let counts =
        state.counts.as_ref().and_then(|name| Some(limit_label(name, machine.limits.get(name)?)));
    let mut lines = vec![shorten(name)];
    // Skip the step if it repeats the name, as for an end named after its outcome.
    lines.extend(Some(what).filter(|what| !what.is_empty() && what != name));
    lines.extend(counts);
    lines
}

fn question_label(questions: &[Question]) -> String {
    match questions {
        [only] => shorten(only.text.source()),
        several => {
            let names: Vec<&str> = several.iter().map(|question| question.name.as_str()).collect();
            shorten(&format!("asks {}", names.join(", ")))
        }
    }
}

fn each_label(each: &Each) -> String {
    let body = match &each.body {
        Body::Agent(work) => &work.agent,
        Body::Machine { machine, .. } => machine,
    };
    let at_once = match &each.parallel {
        Term::Literal(number) if number.as_u64() == Some(1) => String::new(),
        many => format!(", {} at once", shorten(&term_source(many))),
    };
    format!("{} for each {}{at_once}", shorten(body), shorten(&each.listing.bind))
}

/// A text on one line, shortened to the maximum length of a label.
pub(super) fn shorten(text: &str) -> String {
    let line = single_line(text);
    if line.chars().count() <= MAX_LABEL_CHARS {
        return line;
    }
    let cut: String = line.chars().take(MAX_LABEL_CHARS - 1).collect();
    format!("{}…", cut.trim_end())
}

/// A text on one line. Characters that could change what is shown of it are escaped, and
/// noncharacters, which XML cannot contain, are left out.
pub(super) fn single_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    neutralize(&line.replace(['\u{fffe}', '\u{ffff}'], ""), Form::Line).into_owned()
}

/// Creates identifiers that are valid in every format: a prefix, the name with special characters
/// replaced, and a number if needed to be unique.
#[derive(Default)]
struct Ids {
    taken: BTreeSet<String>,
}

impl Ids {
    fn fresh(&mut self, prefix: &str, name: &str) -> String {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let plain = format!("{prefix}_{name}");
        // There are more candidates than identifiers in use, so one of them is free.
        let more = (2..self.taken.len() + 3).map(|number| format!("{plain}_{number}"));
        let id = std::iter::once(plain.clone()).chain(more).find(|id| !self.taken.contains(id));
        let id = id.unwrap_or(plain);
        self.taken.insert(id.clone());
        id
    }
}
