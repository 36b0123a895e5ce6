//! The pack gated-team: the replies of its agents, and a module for each of its aspects.

mod asks;
mod changed_later;
mod commands;
mod contracts;
mod elsewhere;
mod false_checks;
mod false_done;
mod fixes;
mod gates;
mod paths;
mod prompts;
mod readings;
mod sessions;
mod truth;
mod unbuilt;

use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// The name of every session here. Its folder begins with the day.
const SLUG: &str = "play";

/// What an agent says who is done.
fn ok() -> Value {
    json!({
        "status": "OK", "summary": "It is done.",
        "artifacts": {"commands_to_run": [], "notes": []},
        "gates": {"meets_definition_of_done": true, "needs_review": false, "needs_tests": false, "security_concerns": []},
        "next": {"recommended_agent": "Orchestrator", "recommended_task_id": "same", "reason": "It is done"}
    })
}

/// The same, otherwise in these parts.
fn but(part: &Value) -> Value {
    let mut said = ok();
    laid_over(&mut said, part);
    said
}

fn laid_over(value: &mut Value, part: &Value) {
    match (value, part) {
        (Value::Object(known), Value::Object(parts)) => {
            for (name, part) in parts {
                laid_over(known.entry(name).or_insert(Value::Null), part);
            }
        }
        (value, part) => *value = part.clone(),
    }
}

/// Words of an agent with this status.
fn status(status: &str, summary: &str) -> Value {
    but(&json!({"status": status, "summary": summary}))
}

/// A gate that rejects a task.
fn held_back(summary: &str) -> Value {
    but(
        &json!({"status": "BLOCKED", "summary": summary, "gates": {"meets_definition_of_done": false}}),
    )
}

/// A line of shell that writes a file of the session.
fn doc(file: &str, text: &str) -> String {
    format!(
        "f=$(echo .agents-work/*_{SLUG})/{file}; mkdir -p \"$(dirname \"$f\")\"; cat > \"$f\" <<'END'\n{text}\nEND\n"
    )
}

/// What decides whether the work is accepted: a line of shell.
fn acceptance(check: &str) -> String {
    json!({"criteria": [{"id": "AC-1", "description": "it works", "checks": [check]}]}).to_string()
}

fn task(id: &str, after: &[&str]) -> Value {
    json!({
        "id": id, "title": format!("Build part {id}"), "goal": format!("Part {id} is there"), "depends_on": after,
        "checks": ["cmd: test -f src/lib.rs"], "done_when": ["it is there"], "risk_flags": ["none"]
    })
}

/// The parts of a session, one for each state, all of them good.
trait Team: Sized {
    fn team() -> Self;
    fn intake(self) -> Self;
    fn intake_with(self, acceptance: &str) -> Self;
    fn design(self) -> Self;
    fn plan(self, tasks: &[Value]) -> Self;
    fn codes(self) -> Self;
    fn passes(self, gates: &[&str]) -> Self;
    fn documented(self) -> Self;
    /// Intake, design, and a plan of one task.
    fn planned(self) -> Self;
    /// Everything from the integration to the end.
    fn released(self) -> Self;
    fn play(&self) -> ScenarioRun;
    /// The same, with commands of agents that match a pattern allowed.
    fn play_allowing(&self, pattern: &str) -> ScenarioRun;
}

impl Team for Scenario {
    fn team() -> Self {
        Self::new("gated-team")
    }

    fn intake(self) -> Self {
        self.intake_with(&acceptance("cmd: test -f src/lib.rs"))
    }

    fn intake_with(self, acceptance: &str) -> Self {
        let files = doc("spec.md", "# Spec") + &doc("acceptance.json", acceptance);
        self.says("SpecAgent", ok()).exec(&files)
    }

    fn design(self) -> Self {
        self.says("Architect", ok()).exec(&doc("architecture.md", "# Architecture"))
    }

    fn plan(self, tasks: &[Value]) -> Self {
        self.says("Planner", ok()).exec(&doc("tasks.yaml", &json!({"tasks": tasks}).to_string()))
    }

    fn codes(self) -> Self {
        let coded = but(&json!({"artifacts": {"files_changed": ["src/part.rs"]}}));
        self.says("Coder", coded).exec("echo '// more' >> src/part.rs")
    }

    fn passes(self, gates: &[&str]) -> Self {
        gates.iter().fold(self, |scenario, gate| scenario.says(gate, ok()))
    }

    fn documented(self) -> Self {
        self.says("Docs", ok())
            .writes("README.md", "# Play\n\nNow with parts.\n")
            .exec(&doc("report.md", "# Report"))
    }

    fn planned(self) -> Self {
        self.intake().design().plan(&[task("T-001", &[])])
    }

    fn released(self) -> Self {
        self.passes(&["Integrator"]).documented().passes(&["Integrator"])
    }

    fn play(&self) -> ScenarioRun {
        self.run(&["--task", "Add parts", "--input", &format!("slug={SLUG}")])
    }

    fn play_allowing(&self, pattern: &str) -> ScenarioRun {
        let (slug, allow) = (format!("slug={SLUG}"), format!("allow={pattern}"));
        self.run(&["--task", "Add parts", "--input", &slug, "--input", &allow])
    }
}

/// The directory of the session: the day on which the run began, and the slug.
fn folder(ran: &ScenarioRun) -> String {
    ran.variables()["folder"].as_str().unwrap().to_owned()
}

/// A file of the session.
fn session(ran: &ScenarioRun, file: &str) -> String {
    format!("{}/{file}", folder(ran))
}

/// The session's status, which must satisfy its contract.
fn status_of(ran: &ScenarioRun) -> Value {
    let text = ran.read(&session(ran, "status.json"));
    holds("gated-team/status", &text);
    serde_json::from_str(&text).unwrap()
}

/// Asserts that a text satisfies a contract.
fn holds(contract: &str, text: &str) {
    let report = counterfoil_packs::registry_for(contract).get(contract).unwrap().check(text);
    assert!(
        report.violations.is_empty() && report.value.is_some(),
        "{contract}: {:?}\n{text}",
        report.violations
    );
}

/// The way of the run itself, without that of its sub-workflows: `FROM>TO`.
fn way(ran: &ScenarioRun) -> Vec<String> {
    ran.transitions().into_iter().filter(|step| !step.contains(": ")).collect()
}

/// Whether the run went from one state to the other.
fn went(ran: &ScenarioRun, step: &str) -> bool {
    way(ran).iter().any(|taken| taken == step)
}

/// How often it went so.
fn times(ran: &ScenarioRun, step: &str) -> usize {
    way(ran).iter().filter(|taken| *taken == step).count()
}

/// Who was asked, in order: `STATE#n`.
fn asked(ran: &ScenarioRun) -> Vec<String> {
    ran.attempts().iter().map(|attempt| attempt.split(' ').next().unwrap().to_owned()).collect()
}

/// The agents that were asked.
fn agents(ran: &ScenarioRun) -> Vec<&str> {
    let attempts = ran.report["attempts"].as_array().unwrap();
    attempts.iter().map(|attempt| attempt["agent"].as_str().unwrap()).collect()
}

/// Ended as blocked, with this in the reason, and status.json says so.
fn blocked(ran: &ScenarioRun, why: &str) {
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains(why), "{ran:?}");
    let status = status_of(ran);
    assert_eq!(status["current_state"], "BLOCKED");
    assert!(status["blocked_tasks"][0]["reason"].as_str().unwrap().contains(why), "{status:#}");
}

/// Ended as done.
fn done(ran: &ScenarioRun) {
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(status_of(ran)["current_state"], "DONE");
}

/// Waits for a person; the question that is open.
fn waits(ran: &ScenarioRun) -> &Value {
    assert_eq!(ran.ended(), ("waiting", None, 4), "{ran:?}");
    assert_eq!(ran.report["state"], "ASK_USER");
    assert_eq!(status_of(ran)["current_state"], "ASK_USER");
    &ran.report["questions"][0]
}
