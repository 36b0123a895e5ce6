//! What is drawn, whatever it is drawn with: frames, nodes and arrows with short labels.

use crate::template::Template;
use crate::workflow::{
    Body, Each, End, Limit, Machine, Question, State, Step, Target, Term, Transition, Workflow,
};
use std::collections::{BTreeMap, BTreeSet};

/// How many characters of a guard, a command or a question are shown.
const SHOWN: usize = 40;

/// How many guards are shown on one arrow.
const GUARDS: usize = 4;

/// A workflow as it is drawn.
pub(super) struct Picture {
    /// Its name.
    pub(super) name: String,
    /// What it is for, in a line.
    pub(super) summary: String,
    /// The main machine, then the sub-workflows.
    pub(super) frames: Vec<Frame>,
    /// Which states run which sub-workflow.
    pub(super) calls: Vec<Call>,
}

/// A machine.
pub(super) struct Frame {
    /// The name of its cluster.
    pub(super) id: String,
    /// Its name; empty for the main machine.
    pub(super) name: String,
    /// Its states, after the dot that shows where it starts.
    pub(super) nodes: Vec<Node>,
    /// The ways between them, at most one of a kind between two states.
    pub(super) arrows: Vec<Arrow>,
}

/// A state.
pub(super) struct Node {
    /// Its name in the file that is written: letters, digits and `_`, unlike any other in the
    /// picture.
    pub(super) id: String,
    /// Its shape.
    pub(super) shape: Shape,
    /// What stands in it: its name, then what happens there.
    pub(super) lines: Vec<String>,
}

/// What a node looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The dot that leads to the first state.
    Start,
    /// An agent works.
    Agent,
    /// A command runs, or the engine does something itself.
    Command,
    /// Somebody is asked.
    Question,
    /// A sub-workflow or a fan-out.
    Nested,
    /// Only branches.
    Branch,
    /// The end.
    End(End),
}

/// A way from one state to another of the same frame, by their places in it.
pub(super) struct Arrow {
    /// From.
    pub(super) from: usize,
    /// To.
    pub(super) to: usize,
    /// Why it is taken.
    pub(super) kind: Kind,
    /// When it is taken; a line for each transition that leads this way.
    pub(super) lines: Vec<String>,
}

/// Why an arrow is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The step gave a result.
    Next,
    /// A limit is used up.
    UsedUp,
    /// The step gave no result.
    FailureKind,
}

/// A state that runs a sub-workflow.
pub(super) struct Call {
    /// The frame of the state.
    pub(super) frame: usize,
    /// The state, by its place in the frame.
    pub(super) node: usize,
    /// The frame that it runs.
    pub(super) runs: usize,
    /// Whether it runs once or for each item.
    pub(super) label: &'static str,
}

impl Picture {
    /// The picture of a workflow.
    pub(super) fn of(workflow: &Workflow) -> Self {
        let machines: Vec<&Machine> =
            std::iter::once(&workflow.main).chain(workflow.machines.values()).collect();
        let mut ids = Ids::default();
        let frames: Vec<Frame> = machines.iter().map(|machine| frame(machine, &mut ids)).collect();
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
                // The first frame is the main machine, which nothing runs.
                let runs = machines.iter().skip(1).position(|other| other.name == *name);
                calls.extend(runs.map(|runs| Call {
                    frame: at,
                    node: place + 1,
                    runs: runs + 1,
                    label,
                }));
            }
        }
        Self { name: shown(&workflow.name), summary: plain(&workflow.summary), frames, calls }
    }
}

/// The states in the order of the file.
fn states(machine: &Machine) -> Vec<(&str, &State)> {
    machine
        .order
        .iter()
        .filter_map(|name| Some((name.as_str(), machine.states.get(name)?)))
        .collect()
}

fn frame(machine: &Machine, ids: &mut Ids) -> Frame {
    let states = states(machine);
    let id = ids.fresh("in", if machine.name.is_empty() { "main" } else { &machine.name });
    let prefix = if machine.name.is_empty() { "s" } else { id.as_str() };
    let mut nodes =
        vec![Node { id: ids.fresh(prefix, "start"), shape: Shape::Start, lines: Vec::new() }];
    nodes.extend(states.iter().map(|(name, state)| Node {
        id: ids.fresh(prefix, name),
        shape: shape(&state.kind),
        lines: inside(name, state, machine),
    }));
    let places: BTreeMap<&str, usize> =
        states.iter().enumerate().map(|(at, (name, _))| (*name, at + 1)).collect();
    let mut arrows = Arrows { places, drawn: BTreeMap::new(), list: Vec::new() };
    if let Some(start) = arrows.places.get(machine.start.as_str()).copied() {
        arrows.add(0, start, Kind::Next, String::new());
    }
    for (at, (_, state)) in states.iter().enumerate() {
        leave(at + 1, state, machine, &mut arrows);
    }
    Frame { id, name: shown(&machine.name), nodes, arrows: arrows.list }
}

/// Every way out of a state.
fn leave(from: usize, state: &State, machine: &Machine, arrows: &mut Arrows<'_>) {
    let mut counted: BTreeSet<&str> = state.counts.as_deref().into_iter().collect();
    for transition in &state.next {
        let alone = state.next.len() == 1;
        arrows.lead(from, transition, Kind::Next, &guard(transition, alone), machine);
        counted.extend(transition.counts.as_deref());
    }
    for (trouble, transition) in &state.on {
        arrows.lead(from, transition, Kind::FailureKind, trouble.name(), machine);
        counted.extend(transition.counts.as_deref());
    }
    for name in counted {
        let then =
            machine.limits.get(name).and_then(|limit| arrows.places.get(limit.then.as_str()));
        if let Some(then) = then.copied() {
            arrows.add(from, then, Kind::UsedUp, format!("{} used up", shown(name)));
        }
    }
}

/// The arrows of a frame, those of a kind between the same two states drawn as one.
struct Arrows<'a> {
    places: BTreeMap<&'a str, usize>,
    drawn: BTreeMap<(usize, usize, Kind), usize>,
    list: Vec<Arrow>,
}

impl Arrows<'_> {
    fn lead(
        &mut self,
        from: usize,
        transition: &Transition,
        kind: Kind,
        guard: &str,
        machine: &Machine,
    ) {
        for name in transition.go.states() {
            let Some(to) = self.places.get(name.as_str()).copied() else { continue };
            let mut parts = vec![guard.to_owned()];
            if let Target::Computed(expression, _) = &transition.go {
                parts.push(format!("{} is {}", shown(expression.source()), shown(name)));
            }
            let limit =
                transition.counts.as_ref().and_then(|name| Some((name, machine.limits.get(name)?)));
            parts.extend(limit.map(|(name, limit)| bound(name, limit)));
            parts.extend(transition.resets.iter().map(|name| format!("resets {}", shown(name))));
            parts.retain(|part| !part.is_empty());
            self.add(from, to, kind, parts.join(", "));
        }
    }

    fn add(&mut self, from: usize, to: usize, kind: Kind, line: String) {
        let at = *self.drawn.entry((from, to, kind)).or_insert_with(|| {
            self.list.push(Arrow { from, to, kind, lines: Vec::new() });
            self.list.len() - 1
        });
        let lines = &mut self.list[at].lines;
        if line.is_empty() || lines.contains(&line) {
            return;
        }
        match lines.len() {
            count if count < GUARDS => lines.push(line),
            GUARDS => lines.push("…".to_owned()),
            _ => {}
        }
    }
}

fn guard(transition: &Transition, alone: bool) -> String {
    match &transition.when {
        Some(when) => shown(when.source()),
        None if alone => String::new(),
        None => "otherwise".to_owned(),
    }
}

/// A limit the way it bounds an arrow: `rounds ≤ 5`.
fn bound(name: &str, limit: &Limit) -> String {
    let max = shown(&said(&limit.max));
    let per =
        limit.per.as_ref().map(|per| format!(" per {}", shown(per.source()))).unwrap_or_default();
    format!("{} ≤ {max}{per}", shown(name))
}

/// A term as it is written.
fn said(term: &Term) -> String {
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

/// What stands in a node.
fn inside(name: &str, state: &State, machine: &Machine) -> Vec<String> {
    let what = match &state.kind {
        Step::Agent(work) => shown(&work.agent),
        Step::Command(step) => {
            let words: Vec<&str> = step.argv.iter().map(Template::source).collect();
            format!("$ {}", shown(&words.join(" ")))
        }
        Step::Read(step) => format!("read {}", shown(step.path.source())),
        Step::Changes(step) => format!("changes since {}", shown(&said(&step.since))),
        Step::Commit(step) => {
            format!(
                "commit {}",
                shown(step.message.source().trim().lines().next().unwrap_or_default())
            )
        }
        Step::Ask(questions) => asked(questions),
        Step::Each(each) => repeated(each),
        Step::Call { machine, .. } => format!("runs {}", shown(machine)),
        Step::Order(listing) => format!("orders {}", shown(listing.list.source())),
        Step::Route => String::new(),
        Step::End { outcome, .. } => outcome.name().to_owned(),
    };
    let counts =
        state.counts.as_ref().and_then(|name| Some(bound(name, machine.limits.get(name)?)));
    let mut lines = vec![shown(name)];
    // An end named as its outcome, an agent named as its state: once is enough.
    lines.extend(Some(what).filter(|what| !what.is_empty() && what != name));
    lines.extend(counts);
    lines
}

fn asked(questions: &[Question]) -> String {
    match questions {
        [only] => shown(only.text.source()),
        several => {
            let names: Vec<&str> = several.iter().map(|question| question.name.as_str()).collect();
            shown(&format!("asks {}", names.join(", ")))
        }
    }
}

fn repeated(each: &Each) -> String {
    let body = match &each.body {
        Body::Agent(work) => &work.agent,
        Body::Machine { machine, .. } => machine,
    };
    let at_once =
        if each.parallel > 1 { format!(", {} at once", each.parallel) } else { String::new() };
    format!("{} for each {}{at_once}", shown(body), shown(&each.listing.bind))
}

/// One line of a text, cut where it gets long.
fn shown(text: &str) -> String {
    let line = plain(text);
    if line.chars().count() <= SHOWN {
        return line;
    }
    let cut: String = line.chars().take(SHOWN - 1).collect();
    format!("{}…", cut.trim_end())
}

/// A text on one line, without the characters that no drawing can hold and those that turn the
/// direction of all that follows.
fn plain(text: &str) -> String {
    let kept: String = text
        .chars()
        .map(|c| match c {
            '\u{fffe}' | '\u{ffff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => ' ',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names for nodes that every drawing language takes: a prefix and what is left of the name, told
/// apart by a number.
#[derive(Default)]
struct Ids {
    taken: BTreeSet<String>,
}

impl Ids {
    fn fresh(&mut self, prefix: &str, name: &str) -> String {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let plain = format!("{prefix}_{name}");
        // One more try than there are names taken always finds one that is free.
        let more = (2..self.taken.len() + 3).map(|number| format!("{plain}_{number}"));
        let id = std::iter::once(plain.clone()).chain(more).find(|id| !self.taken.contains(id));
        let id = id.unwrap_or(plain);
        self.taken.insert(id.clone());
        id
    }
}
