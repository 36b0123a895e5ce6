//! Entering a state: the command that its step needs.

use super::{
    AgentWork, AttemptRequest, AttemptWork, Command, CommandWork, EarlierAttempt, FileCheck,
    QuotedValue, end, eval_scope, initial_values, path_of,
};
use crate::event::{AskedQuestion, CLAIMS_VERIFIED, Event, PlannedItem};
use crate::fan_out::{Item, topological_order};
use crate::problem::Problem;
use crate::run_state::{Frame, RunState, join, question_visits};
use crate::scope::EvalScope;
use crate::step_rule::BoundRule;
use crate::workflow::{
    Body, Dispatch, Each, End, FailureKind, Failures, Listing, MAX_PARALLEL, Machine, Question,
    State, StateClaims, Step, StepRule, Term, Workflow,
};
use counterfoil_contract::claim::{ClaimPolicy, EffectiveClaim};
use counterfoil_contract::expr::Type;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A frame that entered its state.
pub(super) struct Entry<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) run: &'a RunState,
    pub(super) id: &'a str,
    pub(super) frame: &'a Frame,
    pub(super) not_before: Option<i64>,
    pub(super) context: bool,
}

/// Opens the main frame.
pub(super) fn open_main(workflow: &Workflow, run: &RunState) -> Event {
    Opening { workflow, run, frame: "", parent: None, item: None }.event(
        &workflow.main,
        &run.inputs,
        Some(1),
    )
}

/// A frame to open.
struct Opening<'a> {
    workflow: &'a Workflow,
    run: &'a RunState,
    frame: &'a str,
    parent: Option<&'a str>,
    item: Option<&'a str>,
}

impl Opening<'_> {
    fn event(
        &self,
        machine: &Machine,
        given: &Map<String, Value>,
        iteration: Option<u64>,
    ) -> Event {
        let (inputs, variables) = initial_values(machine, given);
        let (state, counts) = self.first_entry(machine, &inputs, &variables);
        Event::FrameOpened {
            frame: self.frame.to_owned(),
            parent: self.parent.map(str::to_owned),
            machine: machine.name.clone(),
            item: self.item.map(str::to_owned),
            state,
            inputs,
            variables,
            counts,
            iteration,
        }
    }

    /// The first state and its counters. The first entry counts like every other; a limit of zero
    /// is exhausted immediately.
    fn first_entry(
        &self,
        machine: &Machine,
        inputs: &Map<String, Value>,
        variables: &Map<String, Value>,
    ) -> (String, BTreeMap<String, u64>) {
        let nothing = (machine.start.clone(), BTreeMap::new());
        let counted = machine.states.get(&machine.start).and_then(|state| state.counts.as_ref());
        let Some((name, limit)) = counted.and_then(|name| machine.limits.get_key_value(name))
        else {
            return nothing;
        };
        let frame = Frame::opened(&machine.name, &machine.start, inputs, variables);
        let Some(scope) = EvalScope::new(self.workflow, self.run, &frame) else { return nothing };
        let (max, total) =
            super::maxima(self.run, machine, name, limit, &scope).unwrap_or_default();
        if max == 0 || (limit.per.is_some() && total == 0) {
            return (limit.then.clone(), BTreeMap::new());
        }
        let counter = match &limit.per {
            None => Some(name.clone()),
            // A key that cannot be computed here fails in the next step that needs it.
            Some(per) => scope
                .evaluate(per)
                .ok()
                .map(|key| format!("{name}[{}]", crate::value::to_text(&key))),
        };
        (machine.start.clone(), counter.map(|counter| (counter, 1)).into_iter().collect())
    }
}

/// Opens the frame of an item.
pub(super) fn open_item(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
    state: &State,
    item: &Item,
) -> Result<Event, String> {
    let Step::Each(each) = &state.kind else { return Err("the state is not a fan-out".to_owned()) };
    let path = [path_of(workflow, run, id, frame), vec![item.key.clone()]].concat();
    if let Some(parked) = run.parked.get(&join(&path)) {
        return Ok(Event::FrameOpened {
            frame: join(&path),
            parent: Some(id.to_owned()),
            machine: parked.machine.clone(),
            item: Some(item.key.clone()),
            state: parked.state.clone(),
            inputs: parked.inputs.clone(),
            variables: parked.variables.clone(),
            counts: parked.counters.clone(),
            iteration: None,
        });
    }
    match &each.body {
        Body::Agent(_) => Ok(Event::FrameOpened {
            frame: join(&path),
            parent: Some(id.to_owned()),
            machine: frame.machine.clone(),
            item: Some(item.key.clone()),
            state: frame.state.clone(),
            inputs: Map::from_iter([(each.listing.bind.clone(), item.value.clone())]),
            variables: Map::new(),
            counts: BTreeMap::new(),
            iteration: None,
        }),
        Body::Machine { machine, with } => {
            let scope = eval_scope(workflow, run, frame, state)?.with(
                &each.listing.bind,
                &item.value,
                &each.listing.item,
            );
            let given = evaluate_terms(&scope, with)?;
            let machine =
                workflow.machine(machine).ok_or_else(|| format!("no sub-workflow '{machine}'"))?;
            let frame = join(&path);
            let opening =
                Opening { workflow, run, frame: &frame, parent: Some(id), item: Some(&item.key) };
            Ok(opening.event(machine, &given, None))
        }
    }
}

fn evaluate_terms(
    scope: &EvalScope<'_>,
    with: &[(String, Term)],
) -> Result<Map<String, Value>, String> {
    with.iter().map(|(name, term)| Ok((name.clone(), scope.term(term)?))).collect()
}

/// The paths of the files that must exist before an agent starts.
fn needed_files(dispatch: &Dispatch, scope: &EvalScope<'_>) -> Result<Vec<String>, String> {
    let none = BTreeMap::new();
    dispatch.needs.iter().map(|need| scope.render(need, &none)).collect()
}

/// The claims of a step that are not ignored, with the findings that it was asked to fix.
fn verified_claims(
    step: &StateClaims,
    scope: &EvalScope<'_>,
) -> Result<Vec<EffectiveClaim>, String> {
    let counted = step
        .policies
        .claims
        .iter()
        .filter(|effective| effective.claim.policy != ClaimPolicy::Ignore);
    let with_findings = |claim: &EffectiveClaim| {
        let findings =
            step.findings.get(&claim.name).map(|findings| scope.evaluate(findings)).transpose()?;
        Ok(EffectiveClaim { findings, ..claim.clone() })
    };
    counted.map(with_findings).collect()
}

/// Binds a rule of a step to the values that it reads, except for the result.
fn bind_rule(
    rule: &StepRule,
    scope: &EvalScope<'_>,
    more: &BTreeMap<String, Value>,
) -> Result<BoundRule, String> {
    let mut known = scope.known(&rule.check);
    for read in rule.check.reads() {
        let root = read.split('.').next().unwrap_or_default();
        if let Some(value) = more.get(root).filter(|_| !known.iter().any(|(name, ..)| name == root))
        {
            let ty = rule.with.get(root).cloned().unwrap_or(Type::Any);
            known.push((root.to_owned(), value.clone(), ty));
        }
    }
    let message = scope.render(&rule.message, more)?;
    Ok(BoundRule {
        id: rule.id.clone(),
        check: rule.check.clone(),
        message,
        at: rule.at.clone(),
        known,
    })
}

/// Escapes the texts of a value for use in a glob.
fn escape_glob(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(globset::escape(&text)),
        Value::Array(items) => items.into_iter().map(escape_glob).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(name, value)| (name, escape_glob(value))).collect()
        }
        other => other,
    }
}

impl Entry<'_> {
    pub(super) fn enter(&self, state: &State) -> Result<Command, String> {
        if !state.checks.is_empty() && self.frame.planned_checks.is_none() {
            return self.look_before(state);
        }
        match &state.kind {
            Step::Agent(dispatch) => self.dispatch(dispatch, state),
            Step::Command(command) => {
                let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
                let none = BTreeMap::new();
                let render = |template| scope.render(template, &none);
                let work = CommandWork {
                    argv: command.argv.iter().map(&render).collect::<Result<_, _>>()?,
                    input: command.input.as_ref().map(&render).transpose()?.unwrap_or_default(),
                    output: command.output.clone(),
                    workspace: self.workspace(),
                    cwd: command.cwd.as_ref().map(&render).transpose()?,
                    timeout_ms: command.timeout_ms,
                };
                Ok(self.start(AttemptWork::Command(Box::new(work))))
            }
            Step::Read(step) => self.read(step, state),
            Step::Changes(step) => self.changes(step, state),
            Step::Commit(step) => self.commit(step, state),
            Step::Ask(questions) => self.ask(state, questions),
            Step::Each(each) => self.fan_out(state, each),
            Step::Order(listing) => self.order(state, listing),
            Step::Call { machine, with, .. } => {
                let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
                let given = evaluate_terms(&scope, with)?;
                let callee = self
                    .workflow
                    .machine(machine)
                    .ok_or_else(|| format!("no sub-workflow '{machine}'"))?;
                let frame = join(&path_of(self.workflow, self.run, self.id, self.frame));
                let (workflow, run) = (self.workflow, self.run);
                let opening =
                    Opening { workflow, run, frame: &frame, parent: Some(self.id), item: None };
                Ok(Command::Record(opening.event(callee, &given, None)))
            }
            Step::Route => {
                if let Some(command) = self.checks_alone(state) {
                    return Ok(command);
                }
                let nothing = Value::Object(Map::new());
                super::transitions::next(
                    self.workflow,
                    self.run,
                    self.id,
                    self.frame,
                    state,
                    &nothing,
                )
            }
            Step::End { outcome, reason, result, exit } => {
                self.end(state, *outcome, reason.as_ref(), result.as_ref(), *exit)
            }
        }
    }

    fn end(
        &self,
        state: &State,
        outcome: End,
        reason: Option<&Term>,
        result: Option<&Term>,
        exit: Option<u8>,
    ) -> Result<Command, String> {
        let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
        let reason = match reason {
            Some(term) => crate::value::to_text(&scope.term(term)?),
            None => self.frame.reason.clone(),
        };
        let value = result.map(|term| scope.term(term)).transpose()?;
        let mut ended = end(self.id, self.frame, outcome, None, reason, value);
        if let Command::Record(Event::RunEnded { exit: code, .. }) = &mut ended {
            *code = exit;
        }
        Ok(ended)
    }

    pub(super) fn start(&self, work: AttemptWork) -> Command {
        let path = path_of(self.workflow, self.run, self.id, self.frame);
        let name = join(&path);
        let n = self.run.visits.get(&name).copied().unwrap_or(0) + 1;
        let attempt = format!("{name}#{n}");
        let before = self.frame.first.as_ref();
        let before = before.filter(|first| first.workspace == self.workspace());
        Command::StartAttempt(Box::new(AttemptRequest {
            first: before.map_or_else(|| attempt.clone(), |first| first.attempt.clone()),
            attempt,
            frame: self.id.to_owned(),
            path,
            n,
            not_before: self.not_before,
            bundle: self.run.bundle.clone(),
            machine: self.frame.machine.clone(),
            state: self.frame.state.clone(),
            work,
        }))
    }

    pub(super) fn dispatch(&self, dispatch: &Dispatch, state: &State) -> Result<Command, String> {
        let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
        if !self.context && !dispatch.needs.is_empty() {
            return Ok(self.check_files(needed_files(dispatch, &scope)?, Vec::new()));
        }
        let Some(role) = self.workflow.agents.get(&dispatch.agent) else {
            return Err(format!("the workflow has no agent '{}'", dispatch.agent));
        };
        let more: BTreeMap<String, Value> =
            evaluate_terms(&scope, &dispatch.with)?.into_iter().collect();
        let asked = scope
            .render(&dispatch.prompt, &more)
            .map_err(|why| format!("the prompt cannot be rendered: {why}"))?;
        let of_the_engine = |name: &String| matches!(name.as_str(), "run" | "counts");
        let reads = dispatch.prompt.reads().into_iter().filter(|name| !of_the_engine(name));
        let quotes = reads.filter_map(|name| {
            let given = more.get(&name);
            let value = given.or_else(|| scope.value(&name))?;
            let input = given.is_none()
                && !self.frame.variables.contains_key(&name)
                && self.frame.inputs.contains_key(&name);
            QuotedValue::can_hold_result(value).then(|| QuotedValue {
                value: value.clone(),
                input,
                name,
            })
        });
        let mut work = AgentWork {
            agent: dispatch.agent.clone(),
            quotes: quotes.collect(),
            prompt: format!(
                "{}{}",
                asked.trim_end(),
                super::observed::section(self.run, self.frame)
            ),
            earlier: self.earlier(dispatch),
            contract: role.contract.clone(),
            access: role.access,
            workspace: self.workspace(),
            claims: Vec::new(),
            rules: dispatch
                .rules
                .iter()
                .map(|rule| bind_rule(rule, &scope, &more))
                .collect::<Result<_, _>>()?,
            writes: None,
            protect: Vec::new(),
            protected: ClaimPolicy::Ignore,
            tests: ClaimPolicy::Ignore,
            bounds: dispatch.bounds.clone(),
        };
        if self.run.decide >= CLAIMS_VERIFIED {
            let policies = &dispatch.claims.policies;
            work.claims = verified_claims(&dispatch.claims, &scope)?;
            work.writes.clone_from(&role.writes);
            work.protect = protected_paths(self.workflow, self.run)?;
            (work.protected, work.tests) = (policies.protected, policies.tests);
        }
        Ok(self.start(AttemptWork::Agent(Box::new(work))))
    }

    /// The interrupted attempt from which the next one goes on: one of this visit, in the same folder.
    fn earlier(&self, dispatch: &Dispatch) -> Option<EarlierAttempt> {
        let interruption = self.frame.interruption.as_ref()?;
        if interruption.workspace != self.workspace() {
            return None;
        }
        let spec = self.run.agents.get(&dispatch.agent).map(|assigned| &assigned.spec);
        let conversation = self.frame.conversation.as_ref();
        let conversation = conversation.filter(|past| Some(&past.spec) == spec).cloned();
        // Whoever changed nothing and said nothing leaves nothing to go on from.
        (conversation.is_some() || !interruption.left_nothing).then(|| EarlierAttempt {
            reason: interruption.reason.clone(),
            changed: interruption.changed.clone(),
            conversation,
        })
    }

    /// Looks at what a step with checks needs before it starts: its files, and how the checks are
    /// configured. They are read before the first attempt of the step, so that no attempt can
    /// change them.
    fn look_before(&self, state: &State) -> Result<Command, String> {
        let paths = match &state.kind {
            Step::Agent(dispatch) => {
                let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
                needed_files(dispatch, &scope)?
            }
            _ => Vec::new(),
        };
        Ok(self.check_files(paths, state.checks.clone()))
    }

    fn check_files(&self, paths: Vec<String>, checks: Vec<String>) -> Command {
        Command::CheckFiles(FileCheck {
            frame: self.id.to_owned(),
            workspace: self.workspace(),
            paths,
            checks,
            not_before: self.not_before,
        })
    }

    /// The workspace of the frame, or of a parent frame.
    pub(super) fn workspace(&self) -> Option<String> {
        self.run.workspace_of(self.frame).map(str::to_owned)
    }

    fn ask(&self, state: &State, questions: &[Question]) -> Result<Command, String> {
        let scope = eval_scope(self.workflow, self.run, self.frame, state)?;
        let base = join(&path_of(self.workflow, self.run, self.id, self.frame));
        let none = BTreeMap::new();
        let asked = questions.iter().map(|question| {
            let name = match questions {
                [_] => base.clone(),
                _ => format!("{base}.{}", question.name),
            };
            let before = self.run.visits.get(&question_visits(&name)).copied().unwrap_or(0);
            let id = if before == 0 { name } else { format!("{name}#{}", before + 1) };
            Ok(AskedQuestion {
                id,
                name: question.name.clone(),
                question: scope.render(&question.text, &none)?,
                form: question.form.clone(),
                optional: question.optional,
            })
        });
        let questions = asked.collect::<Result<_, String>>()?;
        Ok(Command::Record(Event::Asked { frame: self.id.to_owned(), questions }))
    }

    /// The items of a list, each with its key, dependencies and rank.
    fn planned(&self, state: &State, listing: &Listing) -> Result<Vec<PlannedItem>, String> {
        let list =
            eval_scope(self.workflow, self.run, self.frame, state)?.evaluate(&listing.list)?;
        let Value::Array(values) = list else {
            return Err(format!("`{}` is not a list", listing.list.source()));
        };
        let mut items = Vec::with_capacity(values.len());
        for (at, value) in values.into_iter().enumerate() {
            let scope = eval_scope(self.workflow, self.run, self.frame, state)?.with(
                &listing.bind,
                &value,
                &listing.item,
            );
            let key = match &listing.key {
                Some(key) => crate::value::to_text(&scope.evaluate(key)?),
                None => (at + 1).to_string(),
            };
            let after = match &listing.after {
                Some(after) => match scope.evaluate(after)? {
                    Value::Array(keys) => keys.iter().map(crate::value::to_text).collect(),
                    _ => Vec::new(),
                },
                None => Vec::new(),
            };
            let rank = listing.rank.as_ref().map(|rank| scope.evaluate(rank)).transpose()?;
            drop(scope);
            items.push(PlannedItem {
                key,
                after,
                rank: rank.and_then(|rank| rank.as_i64()),
                value,
            });
        }
        Ok(items)
    }

    fn fan_out(&self, state: &State, each: &Each) -> Result<Command, String> {
        let items = self.planned(state, &each.listing)?;
        let problem = topological_order(&items).err();
        let parallel =
            eval_scope(self.workflow, self.run, self.frame, state)?.term(&each.parallel)?;
        // A number outside of the range means the nearest one inside.
        let parallel = parallel.as_i64().and_then(|many| u32::try_from(many.max(1)).ok());
        Ok(Command::Record(Event::FannedOut {
            frame: self.id.to_owned(),
            items,
            parallel: parallel.unwrap_or(MAX_PARALLEL).min(MAX_PARALLEL),
            strict: each.failures == Failures::Stop,
            problem,
        }))
    }

    fn order(&self, state: &State, listing: &Listing) -> Result<Command, String> {
        let mut items = self.planned(state, listing)?;
        let (workflow, run, id, frame) = (self.workflow, self.run, self.id, self.frame);
        let order = match topological_order(&items) {
            Ok(order) => order,
            Err(reason) => {
                let problem = Problem::new(FailureKind::Order, &reason);
                return super::failed_step(workflow, run, id, frame, state, &problem);
            }
        };
        let sorted: Vec<Value> =
            order.into_iter().map(|at| std::mem::take(&mut items[at].value)).collect();
        super::transitions::next(workflow, run, id, frame, state, &json!({"items": sorted}))
    }
}

/// The globs of paths that no agent may write, rendered with the values of the main frame.
pub(super) fn protected_paths(workflow: &Workflow, run: &RunState) -> Result<Vec<String>, String> {
    let patterns = &workflow.paths.protect;
    let root = run.frames.get("").filter(|_| !patterns.is_empty());
    let Some(scope) = root.and_then(|root| EvalScope::new(workflow, run, root)) else {
        return Ok(Vec::new());
    };
    let rendered = patterns.iter().filter_map(|pattern| {
        let source = pattern.source();
        let known = |name: String| Some((name.clone(), scope.value(&name)?.clone()));
        let values: BTreeMap<String, Value> =
            pattern.reads().into_iter().filter_map(known).collect();
        // An exception with an empty value would match everything.
        if source.starts_with('!') && values.values().any(|value| value == "") {
            return None;
        }
        let values = values.into_iter().map(|(name, value)| (name, escape_glob(value))).collect();
        let rendered = scope.render(pattern, &values);
        Some(match rendered {
            // Only the text of the workflow can make an exception, not a value.
            Ok(glob) if glob.starts_with('!') && !source.starts_with('!') => {
                Ok(format!("\\{glob}"))
            }
            Ok(glob) => Ok(glob),
            Err(why) => Err(format!("`protect` cannot be rendered: {why}")),
        })
    });
    rendered.collect()
}
