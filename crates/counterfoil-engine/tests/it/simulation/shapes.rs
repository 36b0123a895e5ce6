//! The workflows of the simulation: random ones that the checker accepts, and the examples. They
//! are written as JSON, which is valid YAML.

use crate::dice::Dice;
use crate::simulation::builtin::builtin_state;
use counterfoil_contract::Registry;
use counterfoil_flow::{Workflow, check};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum depth of sub-workflows.
const DEEPEST: u32 = 2;

/// A workflow with its inputs.
pub(crate) struct Made {
    pub(crate) workflow: Workflow,
    pub(crate) inputs: Map<String, Value>,
    /// The source text, for error messages.
    pub(crate) text: String,
}

/// The example workflows, with their files.
pub(crate) fn examples(registry: &Registry) -> Vec<Made> {
    let text = include_str!("../../../../../examples/deliver/deliver.yaml");
    let files: BTreeMap<String, String> = [
        ("deliver.yaml", text),
        (
            "prompts/implementer.md",
            include_str!("../../../../../examples/deliver/prompts/implementer.md"),
        ),
        ("prompts/qa.md", include_str!("../../../../../examples/deliver/prompts/qa.md")),
        ("contracts/qa.yaml", include_str!("../../../../../examples/deliver/contracts/qa.yaml")),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .collect();
    let workflow = check("deliver.yaml", &files, registry).expect("the example passes");
    let inputs = Map::from_iter([("task".to_owned(), json!("Add a login page"))]);
    vec![Made { workflow, inputs, text: text.to_owned() }]
}

/// A random workflow. The error has the findings of the checker and the source text.
pub(crate) fn random(dice: &mut Dice, registry: &Registry) -> Result<Made, String> {
    let mut writer = Writer { dice, machines: Vec::new(), agents: BTreeMap::new() };
    let main = writer.machine(0, false);
    let Writer { machines, agents, .. } = writer;
    let mut whole = Map::from_iter([("workflow".to_owned(), json!("random"))]);
    whole.extend(main);
    whole.insert("agents".into(), Value::Object(agents.into_iter().collect()));
    if !machines.is_empty() {
        whole.insert("workflows".into(), Value::Object(machines.into_iter().collect()));
    }
    if dice.percent(35) {
        whole.insert("budget".into(), budget(dice));
    }
    if dice.percent(20) {
        let template = "{{ run.state }} {{ run.outcome }} {{ run.iteration }}{% for item in run.items %} {{ item.key }}{% endfor %}";
        whole.insert(
            "artifacts".into(),
            json!([{"path": "out/{{ run.date }}.md", "template": template}]),
        );
    }
    let text = serde_json::to_string_pretty(&whole).expect("it is JSON");
    let files = BTreeMap::from([("random.yaml".to_owned(), text.clone())]);
    let inputs = Map::from_iter([
        ("item".to_owned(), json!("the whole")),
        ("most".to_owned(), json!(dice.between(1, 4))),
    ]);
    match check("random.yaml", &files, registry) {
        Ok(workflow) => Ok(Made { workflow, inputs, text }),
        Err(rejected) => Err(format!("{rejected}\n{text}")),
    }
}

fn budget(dice: &mut Dice) -> Value {
    match dice.below(6) {
        0 => json!({"tokens": dice.between(100, 4000)}),
        5 => json!({"cost_usd": 0.25}),
        1 | 2 => json!({"attempts": dice.between(1, 12)}),
        3 => json!({"iterations": dice.between(1, 3)}),
        _ => json!({"time": format!("{}m", dice.between(1, 90))}),
    }
}

/// Generates a workflow, machine by machine.
struct Writer<'d> {
    dice: &'d mut Dice,
    machines: Vec<(String, Value)>,
    agents: BTreeMap<String, Value>,
}

/// A machine that is being generated.
struct Draft {
    states: Map<String, Value>,
    limits: Map<String, Value>,
    ends: BTreeSet<&'static str>,
    /// Whether the machine has a fork. There is at most one, since a contract names its states
    /// `left` and `right`.
    forked: bool,
    depth: u32,
    /// Whether it runs in a worktree, so that none of its states may request another.
    inside: bool,
}

impl Draft {
    /// The state with this end. It is created on first use.
    fn end(&mut self, name: &'static str) -> String {
        self.ends.insert(name);
        name.to_owned()
    }

    fn limit(&mut self, limit: Value) -> String {
        let name = format!("limit{}", self.limits.len() + 1);
        self.limits.insert(name.clone(), limit);
        name
    }

    fn state(&mut self, name: &str, state: Value) -> String {
        self.states.insert(name.to_owned(), state);
        name.to_owned()
    }
}

impl Writer<'_> {
    fn machine(&mut self, depth: u32, inside: bool) -> Map<String, Value> {
        let mut draft = Draft {
            states: Map::new(),
            limits: Map::new(),
            ends: BTreeSet::from(["done"]),
            forked: false,
            depth,
            inside,
        };
        let blocks = if depth == 0 { self.dice.between(1, 5) } else { self.dice.between(1, 2) };
        // From the last to the first, since each needs the name of the next.
        let mut next = "done".to_owned();
        for number in (0..blocks).rev() {
            let name = match self.dice.below(6) {
                0 => format!("b/{number}"),
                _ => format!("b{number}"),
            };
            next = self.block(&mut draft, &name, &next);
        }
        for end in draft.ends.clone() {
            let mut state = json!({"end": end});
            if depth > 0 && end == "done" {
                state["result"] = json!("topic");
            }
            draft.states.insert(end.to_owned(), state);
        }
        let task =
            json!({"id": "string", "after": ["string"], "rank": "integer", "size": "integer"});
        let mut machine = json!({
            "inputs": {"item": "string", "most": {"type": "integer", "default": 2}},
            "variables": {
                "topic": {"type": "red | green | blue", "initial": "red"},
                "note": "string?",
                "tasks": {"type": [task], "initial": []},
            },
            "start": next,
            "states": draft.states,
        });
        if !draft.limits.is_empty() {
            if depth == 0 && self.dice.percent(30) {
                let names: Vec<&String> = draft.limits.keys().collect();
                machine["iterations"] = json!(self.dice.pick(&names));
            }
            machine["limits"] = Value::Object(draft.limits);
        }
        if depth > 0 {
            machine["result"] = json!("red | green | blue");
        }
        match machine {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    fn agent(&mut self, contract: &str) -> String {
        let name = format!("{}-{}", contract, self.dice.between(1, 2));
        let mut agent = json!({
            "contract": format!("sim/{contract}"),
            "prompt": "Work on {{ item }}, about {{ topic }}.{% if note %} Mind this: {{ note }}{% endif %}",
        });
        if self.dice.percent(20) {
            agent["retries"] =
                json!({"transport": 1, "timeout": 2, "agent": 1, "contract": 1, "claim": 1});
        }
        if self.dice.percent(25) {
            agent["access"] = json!("read-only");
        } else if self.dice.percent(20) {
            agent["writes"] = json!(["src/**", "*.md"]);
        }
        if contract == "make" && self.dice.percent(30) {
            agent["claims"] =
                json!({"files": {"policy": "require", "match": "subset"}, "tests": "ignore"});
        }
        self.agents.entry(name.clone()).or_insert(agent);
        name
    }

    /// Generates a part of a machine that leads to a state, and returns its first state.
    fn block(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let deep = draft.depth < DEEPEST;
        match self.dice.below(13) {
            12 => self.checked(draft, name, next),
            0 | 1 => self.work(draft, name, next),
            2 => self.round(draft, name, next),
            3 => self.keyed(draft, name, next),
            4 => self.nested(draft, name, next),
            5 => self.ask(draft, name, next),
            6 => self.command(draft, name, next),
            7 if !draft.forked => self.fork(draft, name, next),
            8 if deep => self.call(draft, name, next),
            9 => self.exhausted_round(draft, name, next),
            _ => self.each(draft, name, next),
        }
    }

    fn max(&mut self) -> Value {
        if self.dice.percent(30) { json!("most") } else { json!(self.dice.between(1, 3)) }
    }

    /// The target of a failure: an end, or the next state.
    fn otherwise(&mut self, draft: &mut Draft, next: &str) -> String {
        match self.dice.below(5) {
            0 => draft.end("blocked"),
            1 => draft.end("failed"),
            2 => draft.end("exhausted"),
            _ => next.to_owned(),
        }
    }

    /// The optional settings of an agent's state.
    fn settings(&mut self, draft: &mut Draft, state: &mut Value, next: &str) {
        if self.dice.percent(20) {
            state["needs"] = json!(["docs/{{ topic }}.md", "README.md"]);
        }
        if self.dice.percent(20) {
            state["retries"] = json!({"transport": self.dice.below(3), "limit": self.dice.below(4), "permission": 1});
        }
        if self.dice.percent(30) {
            state["checks"] = json!(["test", "type-check"]);
        }
        let mut troubles = vec!["contract", "timeout", "blocked", "claim", "any"];
        if !draft.inside && self.dice.percent(35) {
            state["workspace"] = json!("worktree");
            troubles.push("conflict");
        }
        if self.dice.percent(40) {
            let mut on = Map::new();
            for trouble in troubles {
                if self.dice.percent(40) {
                    let to = self.otherwise(draft, next);
                    on.insert(trouble.to_owned(), json!({"go": to, "reason": "problem.reason"}));
                }
            }
            if !on.is_empty() {
                state["on"] = Value::Object(on);
            }
        }
    }

    fn work(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let agent = self.agent("make");
        let mut state = json!({"agent": agent, "go": next});
        if self.dice.percent(40) {
            let refuted = self.otherwise(draft, next);
            let mut guards = vec![
                json!({"when": "claims.files.verdict == \"refuted\"", "go": refuted, "reason": "claims.files.reason"}),
                json!({"when": "claims.tests.verdict != \"none\"", "go": next}),
            ];
            guards.push(json!({"go": next}));
            state = json!({"agent": agent, "next": guards});
        }
        self.settings(draft, &mut state, next);
        draft.state(name, state)
    }

    /// Checks without another step, and a branch on what came of them.
    fn checked(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let failed = self.otherwise(draft, next);
        let state = json!({
            "checks": ["test", "lint"],
            "next": [
                {
                    "when": "checks.test.status == \"failed\" && run.base_checks.test.status != \"failed\"",
                    "set": {"note": "checks.test.output"},
                    "go": failed,
                    "reason": "checks.test.reason",
                },
                {"when": "has(checks.lint.exit_code) && checks.lint.exit_code > 1", "go": failed},
                {"go": next},
            ],
        });
        draft.state(name, state)
    }

    /// A loop: work, check, repeat.
    fn round(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let (make, test) = (format!("{name}-make"), format!("{name}-test"));
        let then = self.otherwise(draft, next);
        let max = self.max();
        let limit = draft.limit(json!({"max": max, "then": then}));
        let maker = self.agent("make");
        let mut making = json!({"agent": maker, "go": test});
        self.settings(draft, &mut making, next);
        let checker = self.agent("check");
        let mut back = json!({"set": {"note": "result.note", "topic": "result.topic"}, "go": make});
        if self.dice.percent(50) {
            making["counts"] = json!(limit);
        } else {
            back["counts"] = json!(limit);
        }
        let testing = json!({
            "agent": checker,
            "next": [{"when": "result.passed", "set": {"note": null}, "go": next}, back],
        });
        draft.state(&make, making);
        draft.state(&test, testing);
        make
    }

    /// A loop with a limit for each topic.
    fn keyed(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let then = self.otherwise(draft, next);
        let (max, total) = (self.max(), self.dice.between(1, 6));
        let limit = draft.limit(json!({"max": max, "then": then, "per": "topic", "total": total}));
        let agent = self.agent("check");
        let state = json!({
            "agent": agent,
            "next": [
                {"when": "result.passed", "go": next},
                {"set": {"topic": "result.topic"}, "go": name, "counts": limit, "reason": "result.note"},
            ],
        });
        draft.state(name, state)
    }

    /// Nested loops: the outer one resets the counter of the inner one.
    fn nested(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let (inner, outer) = (name.to_owned(), format!("{name}-outer"));
        let then = self.otherwise(draft, next);
        let outer_limit = draft.limit(json!({"max": 2, "then": then}));
        let inner_limit = match self.dice.below(2) {
            0 => draft.limit(json!({"max": 2, "then": outer})),
            _ => draft.limit(json!({"max": 1, "then": outer, "per": "topic"})),
        };
        let (first, second) = (self.agent("check"), self.agent("check"));
        let state = json!({
            "agent": first,
            "next": [
                {"when": "result.passed", "go": outer},
                {"set": {"topic": "result.topic"}, "go": inner, "counts": inner_limit},
            ],
        });
        draft.state(&inner, state);
        let state = json!({
            "agent": second,
            "next": [
                {"when": "result.passed", "go": next},
                {"go": inner, "counts": outer_limit, "resets": [inner_limit]},
            ],
        });
        draft.state(&outer, state);
        inner
    }

    /// A loop that continues when its first limit is reached. That must not reset the second limit.
    fn exhausted_round(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let other = format!("{name}-other");
        let then = self.otherwise(draft, next);
        let (few, many) = (
            draft.limit(json!({"max": 1, "then": other})),
            draft.limit(json!({"max": 2, "then": then})),
        );
        let agent = self.agent("check");
        draft.state(name, json!({"next": [{"go": other, "counts": few, "resets": [many]}]}));
        let state = json!({
            "agent": agent,
            "next": [{"when": "result.passed && counts." .to_owned() + &many + " > 0", "go": next}, {"go": name, "counts": many}],
        });
        draft.state(&other, state);
        name.to_owned()
    }

    fn ask(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        if self.dice.percent(50) {
            let blocked = self.otherwise(draft, next);
            let limit = draft.limit(json!({"max": 2, "then": blocked}));
            let ask =
                json!({"question": "Go on with {{ item }}?", "choices": ["yes", "no", "again"]});
            let state = json!({
                "ask": ask,
                "next": [
                    {"when": "result.answer == \"yes\"", "go": next},
                    {"when": "result.answer == \"no\"", "go": blocked, "reason": "'they said no'"},
                    {"go": name, "counts": limit},
                ],
            });
            draft.state(name, state);
        } else {
            let asks = json!({
                "name": {"question": "What is it called?", "pattern": "[a-z]+"},
                "why": {"question": "Why {{ topic }}?"},
                "more": {"question": "Anything else?", "optional": true},
            });
            let next = json!([
                {"when": "has(result.more)", "set": {"note": "result.more"}, "go": next},
                {"set": {"note": "result.name"}, "go": next},
            ]);
            draft.state(name, json!({"asks": asks, "next": next}));
        }
        name.to_owned()
    }

    fn command(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let failed = self.otherwise(draft, next);
        if self.dice.percent(40) {
            return draft.state(name, builtin_state(self.dice, draft.depth == 0, next, &failed));
        }
        let mut state = json!({"command": ["make", "{{ topic }}"], "timeout": "5m"});
        let mut branches = vec![json!({"when": "result.ok", "go": next})];
        if self.dice.percent(50) {
            state["output"] = json!("sim/check");
            branches[0]["set"] = json!({"topic": "result.value.topic"});
        }
        if self.dice.percent(50) {
            state["on"] = json!({"any": failed});
        }
        if self.dice.percent(50) {
            let limit = draft.limit(json!({"max": 2, "then": failed}));
            branches.push(json!({"go": name, "counts": limit}));
        } else {
            branches.push(json!({"go": failed, "reason": "result.output"}));
        }
        state["next"] = json!(branches);
        draft.state(name, state)
    }

    fn fork(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        draft.forked = true;
        let agent = self.agent("fork");
        draft.state(name, json!({"agent": agent, "next": [{"goto": "result.where"}]}));
        draft.state("left", json!({"next": [{"when": "topic == \"red\"", "go": next}, {"go": next, "set": {"topic": "'red'"}}]}));
        let then = self.otherwise(draft, next);
        let limit = draft.limit(json!({"max": 2, "then": then}));
        draft.state("right", json!({"counts": limit, "go": name}));
        name.to_owned()
    }

    /// A sub-workflow.
    fn sub(&mut self, depth: u32, inside: bool) -> String {
        let machine = self.machine(depth + 1, inside);
        let name = format!("sub{}", self.machines.len() + 1);
        self.machines.push((name.clone(), Value::Object(machine)));
        name
    }

    fn call(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let own = !draft.inside && self.dice.percent(40);
        let sub = self.sub(draft.depth, draft.inside || own);
        let mut state = json!({"run": sub, "with": {"item": "item"}, "next": [{"set": {"topic": "result"}, "go": next}]});
        if own {
            state["workspace"] = json!("worktree");
        }
        if self.dice.percent(50) {
            let (blocked, any) = (self.otherwise(draft, next), self.otherwise(draft, next));
            state["on"] =
                json!({"blocked": {"go": blocked, "reason": "problem.reason"}, "any": any});
        }
        draft.state(name, state)
    }

    /// A plan and a fan-out over its items.
    fn each(&mut self, draft: &mut Draft, name: &str, next: &str) -> String {
        let plan = format!("{name}-plan");
        let planner = self.agent("plan");
        draft.state(
            &plan,
            json!({"agent": planner, "next": [{"set": {"tasks": "result.tasks"}, "go": name}]}),
        );
        let mut each = json!({"in": "tasks", "as": "task", "parallel": self.dice.between(1, 4)});
        if self.dice.percent(30) {
            each["workspace"] = json!(if draft.inside || self.dice.percent(40) {
                "repository"
            } else {
                "worktree"
            });
        }
        let own = match each["workspace"].as_str() {
            Some(place) => place == "worktree",
            None => each["parallel"] != json!(1),
        };
        if self.dice.percent(70) {
            each["key"] = json!("task.id");
            if self.dice.percent(60) {
                each["after"] = json!("task.after");
            }
        }
        if self.dice.percent(40) {
            each["rank"] = json!("task.rank");
        }
        if self.dice.percent(60) {
            each["failures"] = json!("collect");
        }
        if draft.depth < DEEPEST && self.dice.percent(50) {
            each["run"] = json!(self.sub(draft.depth, draft.inside || own));
            each["with"] = json!({"item": "task.id", "most": "task.size"});
            if self.dice.percent(30) {
                // Some sizes are zero, so that the inputs of the item cannot be computed.
                each["with"]["most"] = json!("12 / task.size");
            } else {
                each["with"]["most"] = json!("task.size > 0 ? task.size : 1");
            }
        } else {
            each["agent"] = json!(self.agent("check"));
            if self.dice.percent(20) {
                each["needs"] = json!(["tasks/{{ task.id }}.md"]);
            }
        }
        let otherwise = self.otherwise(draft, next);
        let mut state = json!({"each": each});
        if self.dice.percent(60) {
            state["on"] =
                json!({"order": otherwise, "any": {"go": otherwise, "reason": "problem.reason"}});
        }
        let back = if self.dice.percent(50) {
            let limit = draft.limit(json!({"max": 1, "then": otherwise}));
            json!({"go": plan, "counts": limit})
        } else {
            json!({"go": otherwise})
        };
        state["next"] = json!([{"when": "size(result.failed) == 0", "go": next}, back]);
        draft.state(name, state);
        plan
    }
}
