//! What only a person decides: an attempt does not answer, cancel, resume or undo, however it hides
//! where it comes from. The record says who decided, and from where.

use crate::PROGRAM;
use crate::runs::project::{GOOD, WorkflowProject, one_step, replies};

const ASK: &str = "
workflow: ask
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: approve
states:
  approve: { ask: { question: \"Shall it go out?\", choices: [proceed, reject] }, go: work }
  work: { agent: worker, go: done }
  done: { end: done }
";

/// A project with a run that waits for an answer, and a workflow `one.yaml` with an agent.
fn waiting() -> (WorkflowProject, String) {
    let project = WorkflowProject::new(ASK, &replies(&[GOOD]));
    project.write("one.yaml", one_step(""));
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("waiting", None, 4));
    let run = ran.run_id().to_owned();
    (project, run)
}

/// Runs `one.yaml` with an agent that executes a shell script. Returns what the script wrote to
/// the file `told`.
#[track_caller]
fn told_by_agent(project: &WorkflowProject, script: &str) -> String {
    project.write_program("agent", &format!("{script}\necho '{{\"ok\": true}}'"));
    let ran =
        project.run_json(&["run", "one.yaml", "--agent", "command:./agent", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.stderr);
    project.read("told")
}

#[test]
fn an_attempt_decides_nothing_however_it_hides() {
    let (project, run) = waiting();
    let state = project.state().display().to_string();
    // Outside of the repository, which is observed.
    let elsewhere = tempfile::TempDir::new().unwrap();
    let copy = elsewhere.path().join("other-name").display().to_string();
    std::fs::copy(PROGRAM, &copy).unwrap();
    let answer = format!("answer {run} approve proceed --state {state}");
    let ways = [
        format!("{PROGRAM} {answer}"),
        format!("COUNTERFOIL_ATTEMPT= {PROGRAM} {answer}"),
        format!("env -u COUNTERFOIL_ATTEMPT {PROGRAM} {answer}"),
        format!("env -i {PROGRAM} {answer}"),
        format!("env -i setsid --wait {PROGRAM} {answer}"),
        format!("env -i {copy} {answer}"),
        // The tag is taken off too.
        format!("env -i bash -c 'ulimit -S -x unlimited; env -i {PROGRAM} {answer}'"),
        format!("{PROGRAM} cancel {run} --state {state}"),
        format!("{PROGRAM} resume {run} --state {state}"),
        format!("{PROGRAM} undo {run} --state {state}"),
        // A server would act for anyone who asks it.
        format!("{PROGRAM} serve --port 0 --state {state}"),
        format!("env -i {PROGRAM} ui --no-open --state {state}"),
        format!("{PROGRAM} run flow.yaml --resume-last --agent script:script.yaml --state {state}"),
    ];
    for way in ways {
        let told = told_by_agent(&project, &format!("{way} >told 2>&1\necho \"code $?\" >>told"));
        assert!(told.contains("is refused inside of an attempt"), "{way}: {told}");
        assert!(told.contains("only a person decides"), "{way}: {told}");
        assert!(told.ends_with("code 2\n"), "{way}: {told}");
    }
    let shown = project.run_json(&["show", &run, "--format", "json"]);
    assert_eq!(shown.report["outcome"], "waiting");
}

/// A daemon of the attempt: its parents are gone, its environment is empty, its session is new, and
/// the tag is taken off. The engine has adopted it.
#[test]
fn a_daemon_of_an_attempt_decides_nothing() {
    let (project, run) = waiting();
    let state = project.state().display().to_string();
    let told = told_by_agent(
        &project,
        &format!(
            "bash -c 'ulimit -S -x unlimited; env -i setsid bash -c \"\
               (sleep 0.2; {PROGRAM} answer {run} approve proceed --state {state} >told.part 2>&1; \
                echo code \\$? >>told.part; mv told.part told) & exit\"'\n\
             while [ ! -e told ]; do sleep 0.05; done"
        ),
    );
    assert!(
        told.contains("is refused inside of an attempt") && told.ends_with("code 2\n"),
        "{told}"
    );
    assert_eq!(project.count_events("answered"), 0);
}

/// A person's own scripts are not an attempt, with or without a terminal.
#[test]
fn a_script_that_runs_and_answers_is_not_refused() {
    for wrapper in ["sh", "nohup sh", "setsid --wait sh"] {
        let project = WorkflowProject::new(ASK, &replies(&[GOOD]));
        let script = format!(
            "{PROGRAM} run flow.yaml --agent script:script.yaml; \
             {PROGRAM} answer last approve proceed && {PROGRAM} resume last"
        );
        let mut words: Vec<&str> = wrapper.split(' ').collect();
        words.extend(["-c", &script]);
        let output = project.command_of(words[0], &words[1..]).output();
        assert_eq!(output.code, Some(0), "{wrapper}: {output:?}");
    }
}

#[test]
fn the_record_says_who_decided_and_from_where() {
    let (project, run) = waiting();
    assert_eq!(project.run(&["answer", &run, "approve", "proceed"]).code, Some(0));
    let events = project.events_of(&run);
    let answered = events.iter().find(|event| event["kind"] == "answered").unwrap();
    assert_eq!(answered["by"], "kim");
    let from = &answered["from"];
    for field in ["user", "host", "program"] {
        assert!(from[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {answered}");
    }
    assert!(from["pid"].as_u64().is_some_and(|pid| pid > 1), "{answered}");
    let shown = project.run(&["show", &run]).stdout;
    let user = from["user"].as_str().unwrap();
    let host = from["host"].as_str().unwrap();
    assert!(shown.contains(&format!("answered by kim as {user}@{host}")), "{shown}");
}
