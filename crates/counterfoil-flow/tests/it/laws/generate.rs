//! Random workflows: states of all kinds, guards over random contracts, variables, limits,
//! fan-outs, sub-workflows. They are built so that most pass the checker; what it refuses is not
//! run.

use super::dice::Dice;
use super::expressions::{Kind, Seen, There, condition, term};
use counterfoil_contract::{Definition, Registry};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A workflow's file and the contracts it needs.
pub(crate) struct Generated {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) registry: Registry,
}

/// What an agent hands back.
#[derive(Clone)]
struct Agreed {
    id: String,
    fields: Vec<(String, Kind, There)>,
}

impl Agreed {
    fn any(dice: &mut Dice, at: usize) -> Self {
        let fields = (0..2 + dice.below(4)).map(|n| {
            let there = if dice.chance(30) { There::Sometimes } else { There::Always };
            (format!("f{n}"), Kind::any(dice), there)
        });
        Self { id: format!("made/c{at}"), fields: fields.collect() }
    }

    fn definition(&self) -> Definition {
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(name, kind, there)| {
                let mark = if *there == There::Sometimes { "?" } else { "" };
                format!("  {name}{mark}: {}\n", kind.written())
            })
            .collect();
        let text = format!("contract: {}\nversion: 1\nfields:\n{}", self.id, fields.concat());
        Definition::from_yaml(&text, "made").unwrap()
    }

    fn seen(&self, root: &str) -> Vec<Seen> {
        self.fields
            .iter()
            .map(|(name, kind, there)| Seen::new(format!("{root}.{name}"), kind.clone(), *there))
            .collect()
    }
}

/// What a sub-workflow takes and gives.
#[derive(Clone)]
struct Part {
    name: String,
    inputs: Vec<(String, Kind)>,
    result: Option<Kind>,
}

struct Maker<'d> {
    dice: &'d mut Dice,
    contracts: Vec<Agreed>,
    /// The agents by name, with their contracts.
    agents: Vec<(String, Agreed)>,
    parts: Vec<Part>,
    /// The agents and sub-workflows that something uses.
    used: BTreeSet<String>,
}

/// A random workflow.
pub(crate) fn workflow(dice: &mut Dice) -> Generated {
    let contracts: Vec<Agreed> = (0..2 + dice.below(2)).map(|at| Agreed::any(dice, at)).collect();
    let agents: Vec<(String, Agreed)> = (0..=dice.below(2))
        .map(|at| (format!("agent{at}"), dice.pick(&contracts).clone()))
        .collect();
    let parts: Vec<Part> = (0..dice.below(3))
        .map(|at| Part {
            name: format!("part{at}"),
            inputs: (0..dice.below(3)).map(|n| (format!("i{n}"), Kind::any(dice))).collect(),
            result: dice.chance(60).then(|| Kind::any(dice)),
        })
        .collect();
    let mut maker = Maker { dice, contracts, agents, parts, used: BTreeSet::new() };
    let whole = maker.whole();
    let mut registry = Registry::new();
    for contract in &maker.contracts {
        registry.add(contract.definition()).unwrap();
    }
    Generated { files: BTreeMap::from([("made.yaml".to_owned(), whole.to_string())]), registry }
}

impl Maker<'_> {
    fn whole(&mut self) -> Value {
        let mut inputs =
            vec![("most".to_owned(), Kind::Whole), ("things".to_owned(), Kind::Things)];
        inputs.extend((0..self.dice.below(2)).map(|at| (format!("in{at}"), Kind::any(self.dice))));
        let main = self.machine(&inputs, None, 0);
        let mut whole = Map::from_iter([("workflow".to_owned(), json!("made"))]);
        whole.extend(main);
        let parts = self.parts.clone();
        let mut machines = Map::new();
        for (at, part) in parts.iter().enumerate() {
            // Only those behind it can run a later one, so what is not used now never is.
            if self.used.contains(&part.name) {
                let machine = self.machine(&part.inputs, part.result.as_ref(), at + 1);
                machines.insert(part.name.clone(), Value::Object(machine));
            }
        }
        whole.insert("workflows".to_owned(), Value::Object(machines));
        let mut agents = self.agents.clone();
        agents.retain(|(name, _)| self.used.contains(name));
        let agents = agents.iter().map(|(name, contract)| {
            let mut agent =
                json!({"contract": contract.id, "prompt": "Do it. {{ run.iteration }}"});
            if self.dice.chance(30) {
                agent["retries"] =
                    json!({"transport": self.dice.below(3), "contract": self.dice.below(5)});
            }
            (name.clone(), agent)
        });
        whole.insert("agents".to_owned(), Value::Object(agents.collect()));
        if self.dice.chance(50) {
            let artifact = json!({"path": "out/{{ run.date }}.md", "template": "{{ run.state }} {{ run.items | length }} {{ most }}"});
            whole.insert("artifacts".to_owned(), json!([artifact]));
        }
        Value::Object(whole)
    }

    /// A machine; those from `inner` on may be run by it, so that none contains itself.
    fn machine(
        &mut self,
        inputs: &[(String, Kind)],
        result: Option<&Kind>,
        inner: usize,
    ) -> Map<String, Value> {
        let count = 2 + self.dice.below(5);
        let names: Vec<String> =
            (0..count).map(|at| format!("s{at}")).chain(["done".to_owned()]).collect();
        let limits: Vec<String> = (0..=self.dice.below(2)).map(|at| format!("l{at}")).collect();
        let mut variables: Vec<(String, Kind, There)> = (0..self.dice.below(4))
            .map(|at| {
                let there = if self.dice.chance(40) { There::OrNull } else { There::Always };
                (format!("v{at}"), Kind::any(self.dice), there)
            })
            .collect();
        // A variable that names states that lie ahead of all others can be a target anywhere.
        let targets = Kind::Word(vec!["done".to_owned(), "lost".to_owned()]);
        variables.push(("then".to_owned(), targets, There::Always));
        let mut seen: Vec<Seen> = inputs
            .iter()
            .map(|(name, kind)| Seen::new(name, kind.clone(), There::Always))
            .collect();
        seen.extend(
            variables.iter().map(|(name, kind, there)| Seen::new(name, kind.clone(), *there)),
        );
        seen.push(Seen::new("run.iteration", Kind::Whole, There::Always));
        let keyed = self.dice.chance(25);
        if !keyed {
            seen.push(Seen::new("counts.l0", Kind::Whole, There::Always));
        }
        let place =
            Place { names: &names, limits: &limits, variables: &variables, seen: &seen, inner };
        let mut states = Map::new();
        for (at, name) in names.iter().take(count).enumerate() {
            states.insert(name.clone(), self.state(at, &place));
        }
        let mut done = json!({"end": "done"});
        if let Some(kind) = result {
            done["result"] = term(self.dice, &seen, kind, There::Always);
        }
        states.insert("done".to_owned(), done);
        let ending = ["failed", "blocked", "exhausted"][self.dice.below(3)];
        states
            .insert("lost".to_owned(), json!({"end": ending, "reason": "'lost at ' + run.state"}));
        let limit = |(at, name): (usize, &String)| {
            let max = if self.dice.chance(30) && inputs.iter().any(|(name, _)| name == "most") {
                json!("most")
            } else {
                json!(1 + self.dice.below(3))
            };
            let then = if self.dice.chance(20) { "done" } else { "lost" };
            let mut limit = json!({"max": max, "then": then});
            if at == 0 && keyed {
                limit["per"] = json!("run.state");
                limit["total"] = json!(2 + self.dice.below(5));
            }
            (name.clone(), limit)
        };
        let limits: Map<String, Value> = limits.iter().enumerate().map(limit).collect();
        let mut machine = Map::from_iter([
            ("start".to_owned(), json!(names[0])),
            ("states".to_owned(), Value::Object(states)),
            ("limits".to_owned(), Value::Object(limits)),
        ]);
        let inputs = inputs.iter().map(|(name, kind)| (name.clone(), kind.form()));
        machine.insert("inputs".to_owned(), Value::Object(inputs.collect()));
        let variables = variables.iter().map(|(name, kind, there)| {
            let form = match there {
                There::OrNull => json!({"type": kind.form(), "optional": true}),
                _ => json!({"type": kind.form(), "initial": kind.value(self.dice)}),
            };
            (name.clone(), form)
        });
        machine.insert("variables".to_owned(), Value::Object(variables.collect()));
        if let Some(kind) = result {
            machine.insert("result".to_owned(), kind.form());
        }
        machine
    }

    fn state(&mut self, at: usize, place: &Place<'_>) -> Value {
        let (mut state, results, partial) = self.step(at, place);
        let mut seen = place.seen.to_vec();
        seen.extend(results.clone());
        let mut next = Vec::new();
        for _ in 0..self.dice.below(3) {
            let guard = condition(self.dice, &seen, 2);
            let mut transition = self.transition(at, place, &seen);
            transition["when"] = json!(guard);
            next.push(transition);
        }
        // The last leads on, so that every state is reached and everything is covered.
        let set = self.set(place, &seen);
        next.push(json!({"go": place.names[at + 1], "set": set}));
        if at == 0 {
            // Every limit is counted somewhere, and the way to `lost` is open.
            for limit in place.limits {
                let guard = condition(self.dice, &seen, 1);
                let to = if self.dice.chance(15) { "lost" } else { &place.names[1] };
                next.insert(0, json!({"when": guard, "go": to, "counts": limit}));
            }
        }
        state["next"] = json!(next);
        if let Some(failures) = partial {
            let mut on = Map::new();
            for failure in failures {
                if self.dice.chance(35) {
                    on.insert(failure.to_owned(), self.answer(at, place, &results));
                }
            }
            if !on.is_empty() {
                state["on"] = Value::Object(on);
            }
        }
        if self.dice.chance(15) {
            state["counts"] = json!(self.dice.pick(place.limits));
        }
        state
    }

    /// A transition on failure, which may read the valid part of a rejected result.
    fn answer(&mut self, at: usize, place: &Place<'_>, results: &[Seen]) -> Value {
        let mut answer = self.transition(at, place, place.seen);
        if self.dice.chance(50) {
            answer["reason"] = json!("problem.outcome + ': ' + problem.reason");
        }
        let inner: Vec<&Seen> =
            results.iter().filter(|one| one.path.starts_with("result.")).collect();
        let flags: Vec<&(String, Kind, There)> =
            place.variables.iter().filter(|(_, kind, _)| *kind == Kind::Flag).collect();
        if let (Some((name, _, _)), false) = (flags.first(), inner.is_empty()) {
            let read = self.dice.pick(&inner);
            let salvaged = Seen::new(
                read.path.replacen("result", "problem.partial", 1),
                read.kind.clone(),
                read.there,
            );
            let test = condition(self.dice, &[salvaged], 0);
            answer["set"] = json!({name.as_str(): format!("has(problem.partial) && ({test})")});
        }
        answer
    }

    fn set(&mut self, place: &Place<'_>, seen: &[Seen]) -> Value {
        let mut set = Map::new();
        for (name, kind, there) in place.variables {
            if self.dice.chance(30) {
                set.insert(name.clone(), term(self.dice, seen, kind, *there));
            }
        }
        Value::Object(set)
    }

    fn transition(&mut self, at: usize, place: &Place<'_>, seen: &[Seen]) -> Value {
        let mut transition = json!({"set": self.set(place, seen)});
        if self.dice.chance(15) {
            transition["goto"] = json!("then");
            return transition;
        }
        let to = self.dice.below(place.names.len());
        transition["go"] = json!(place.names[to]);
        // The way back counts; now and then that is forgotten, and the checker must see it.
        if to <= at && !self.dice.chance(4) {
            let limit = self.dice.pick(place.limits).clone();
            if self.dice.chance(15) {
                let others: Vec<&String> =
                    place.limits.iter().filter(|other| **other != limit).collect();
                transition["resets"] = json!(others);
            }
            transition["counts"] = json!(limit);
        }
        transition
    }

    /// Something that the engine does itself.
    fn builtin(&mut self, words: &str) -> (Value, Vec<Seen>, Option<Vec<&'static str>>) {
        let text = |path: &str| Seen::new(path, Kind::Text, There::Always);
        match self.dice.below(4) {
            0 => (json!({"read": words}), vec![text("result.text")], Some(vec!["blocked", "any"])),
            1 => {
                let contract = self.dice.pick(&self.contracts).clone();
                let state = json!({"read": "{{ run.state }}.yaml", "contract": contract.id});
                (state, contract.seen("result"), Some(vec!["blocked", "contract", "any"]))
            }
            2 => {
                let mut changes = json!({});
                if self.dice.chance(50) {
                    changes = json!({"since": "run.base == '' ? 'HEAD' : run.base", "split": 100});
                }
                let seen = vec![
                    text("result.base"),
                    Seen::new("result.added", Kind::Whole, There::Always),
                ];
                (json!({"changes": changes}), seen, Some(vec!["blocked", "any"]))
            }
            _ => {
                let mut commit = json!({"message": words});
                if self.dice.chance(50) {
                    commit["paths"] = json!("run.changed.filter(path, path != 'a.rs')");
                }
                let seen = vec![
                    Seen::new("result.ok", Kind::Flag, There::Always),
                    text("result.commit"),
                    text("result.output"),
                ];
                (
                    json!({"commit": commit, "timeout": "1m"}),
                    seen,
                    Some(vec!["blocked", "timeout", "any"]),
                )
            }
        }
    }

    /// What happens in a state, what it gives, and the failures it knows.
    fn step(
        &mut self,
        at: usize,
        place: &Place<'_>,
    ) -> (Value, Vec<Seen>, Option<Vec<&'static str>>) {
        const AGENT: [&str; 9] = [
            "contract",
            "claim",
            "agent",
            "transport",
            "limit",
            "permission",
            "timeout",
            "blocked",
            "any",
        ];
        let prompt = self.prompt(place);
        let parts: Vec<Part> = self.parts.iter().skip(place.inner).cloned().collect();
        match self.dice.below(10) {
            0..3 => {
                let (name, contract) = self.dice.pick(&self.agents).clone();
                self.used.insert(name.clone());
                let mut state = json!({"agent": name, "prompt": prompt});
                if self.dice.chance(20) {
                    state["needs"] = json!(["docs/{{ run.state }}.md"]);
                }
                let mut seen = contract.seen("result");
                let verdicts = ["verified", "refuted", "stale", "unverifiable", "none"];
                let verdicts = verdicts.iter().map(|&word| word.to_owned()).collect();
                seen.push(Seen::new("claims.tests.verdict", Kind::Word(verdicts), There::Always));
                seen.push(Seen::new("claims.protected.reason", Kind::Text, There::Always));
                if self.dice.chance(30) {
                    seen.extend(checks(&mut state));
                }
                (state, seen, Some(AGENT.to_vec()))
            }
            3 if self.dice.chance(50) => self.builtin(&prompt),
            3 => {
                let mut state = json!({"command": ["make", prompt], "timeout": "5m"});
                let mut seen = vec![
                    Seen::new("result.ok", Kind::Flag, There::Always),
                    Seen::new("result.exit_code", Kind::Whole, There::Always),
                    Seen::new("result.output", Kind::Text, There::Always),
                ];
                let mut failures = vec!["timeout", "any"];
                if self.dice.chance(20) {
                    seen.extend(checks(&mut state));
                }
                if self.dice.chance(50) {
                    let contract = self.dice.pick(&self.contracts).clone();
                    state["output"] = json!(contract.id);
                    seen.extend(contract.seen("result.value"));
                    failures.push("contract");
                }
                (state, seen, Some(failures))
            }
            4 | 5 => {
                let words: Vec<String> =
                    vec!["yes".to_owned(), "no".to_owned(), "later".to_owned()];
                if self.dice.chance(50) {
                    let state = json!({"ask": {"question": prompt, "choices": words}});
                    return (
                        state,
                        vec![Seen::new("result.answer", Kind::Word(words), There::Always)],
                        None,
                    );
                }
                let state = json!({"asks": {
                    "first": {"question": prompt, "pattern": "[a-c]+"},
                    "second": {"question": "And then?", "optional": true, "choices": words},
                    "third": {"question": "Why?", "optional": self.dice.chance(50)},
                }});
                let third = if state["asks"]["third"]["optional"] == true {
                    There::Sometimes
                } else {
                    There::Always
                };
                let seen = vec![
                    Seen::new("result.first", Kind::Text, There::Always),
                    Seen::new("result.second", Kind::Word(words), There::Sometimes),
                    Seen::new("result.third", Kind::Text, third),
                ];
                (state, seen, None)
            }
            6 | 7 => self.each(&parts, place, at),
            8 if !parts.is_empty() => {
                let part = self.dice.pick(&parts).clone();
                let state = json!({"run": part.name, "with": self.with(&part, place.seen)});
                let seen = part.result.map(|kind| Seen::new("result", kind, There::Always));
                (
                    state,
                    seen.into_iter().collect(),
                    Some(vec!["blocked", "failed", "exhausted", "any"]),
                )
            }
            _ => (json!({}), Vec::new(), None),
        }
    }

    fn each(
        &mut self,
        parts: &[Part],
        place: &Place<'_>,
        at: usize,
    ) -> (Value, Vec<Seen>, Option<Vec<&'static str>>) {
        let lists: Vec<&Seen> = place
            .seen
            .iter()
            .filter(|one| one.kind == Kind::Things && one.there == There::Always)
            .collect();
        let list = match lists.as_slice() {
            [] => "[{'id': 'one', 'rank': 1, 'after': ['one'].filter(x, x != 'one')}]".to_owned(),
            lists => self.dice.pick(lists).path.clone(),
        };
        let mut each =
            json!({"in": list, "as": format!("item{at}"), "parallel": 1 + self.dice.below(3)});
        let item = format!("item{at}");
        if self.dice.chance(60) {
            each["key"] = json!(format!("{item}.id"));
            if self.dice.chance(60) {
                each["after"] = json!(format!("{item}.after"));
            }
        }
        if self.dice.chance(40) {
            each["rank"] = json!(format!("{item}.rank"));
        }
        let mut seen = place.seen.to_vec();
        seen.push(Seen::new(format!("{item}.id"), Kind::Text, There::Always));
        seen.push(Seen::new(format!("{item}.rank"), Kind::Whole, There::Always));
        let mut results = vec![
            Seen::new("result.total", Kind::Whole, There::Always),
            Seen::new("size(result.failed)", Kind::Whole, There::Always),
            Seen::new("result.failed.map(one, one.key)", Kind::Texts, There::Always),
        ];
        if let (true, false) = (self.dice.chance(50), parts.is_empty()) {
            let part = self.dice.pick(parts).clone();
            each["run"] = json!(part.name);
            each["with"] = self.with(&part, &seen);
        } else {
            let agent = self.dice.pick(&self.agents).0.clone();
            each["agent"] = json!(agent);
            self.used.insert(agent);
            each["prompt"] = json!(format!("Do {{{{ {item}.id }}}} of {{{{ {item}.rank }}}}."));
            results.push(Seen::new("size(result.done)", Kind::Whole, There::Always));
        }
        let mut failures = vec!["order", "any"];
        if self.dice.chance(60) {
            each["failures"] = json!("collect");
        } else {
            failures.extend(["blocked", "failed", "exhausted"]);
        }
        (json!({"each": each}), results, Some(failures))
    }

    fn with(&mut self, part: &Part, seen: &[Seen]) -> Value {
        self.used.insert(part.name.clone());
        let inputs = part
            .inputs
            .iter()
            .map(|(name, kind)| (name.clone(), term(self.dice, seen, kind, There::Always)));
        Value::Object(inputs.collect())
    }

    /// A text that reads a few of the variables.
    fn prompt(&mut self, place: &Place<'_>) -> String {
        let mut prompt = "Do it:".to_owned();
        for _ in 0..self.dice.below(3) {
            let one = self.dice.pick(place.seen);
            let path = &one.path;
            prompt.push_str(&match (&one.kind, one.there) {
                (Kind::Things, There::Always) => {
                    format!(" {{% for t in {path} %}}{{{{ t.id }}}}{{% endfor %}}")
                }
                (Kind::Texts, There::Always) => format!(" {{{{ {path} | join(', ') }}}}"),
                (_, There::Always) => format!(" {{{{ {path} }}}}"),
                (Kind::Things | Kind::Texts, _) => {
                    format!(" {{% if {path} %}}{{{{ {path} | length }}}}{{% endif %}}")
                }
                (_, _) => format!(" {{{{ {path} | default('none', true) }}}}"),
            });
        }
        prompt
    }
}

/// What the states of a machine have in common.
struct Place<'a> {
    /// The states in order, `done` last.
    names: &'a [String],
    limits: &'a [String],
    variables: &'a [(String, Kind, There)],
    seen: &'a [Seen],
    inner: usize,
}

/// Lets checks follow a step, and says what its guards can see of them.
fn checks(state: &mut Value) -> Vec<Seen> {
    state["checks"] = json!(["test", "type-check"]);
    let words = ["passed", "failed", "not-configured"].map(str::to_owned).to_vec();
    vec![
        Seen::new("checks.test.status", Kind::Word(words.clone()), There::Always),
        Seen::new("checks.type_check.output", Kind::Text, There::Always),
        Seen::new("checks.test.exit_code", Kind::Whole, There::Sometimes),
        Seen::new("checks.test.failed", Kind::Whole, There::Sometimes),
        Seen::new("run.base_checks.type_check.status", Kind::Word(words), There::Always),
    ]
}
