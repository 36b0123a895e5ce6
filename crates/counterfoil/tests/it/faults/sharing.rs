//! Several processes at one run: one drives it, the others get an error and can leave messages.

use crate::shell_project::{SHELL_AGENT, ShellProject, run_arguments};
use counterfoil_testkit::{RunningCommand, TIMEOUT, wait_until};

/// An agent that goes on as soon as it is let.
const PATIENT: &str = "touch up\nwhile [ ! -e go ]; do sleep 0.02; done\necho '{\"ok\": true}'\n";

fn up(project: &ShellProject) -> RunningCommand {
    let live = project.start(&run_arguments("flow.yaml", SHELL_AGENT));
    wait_until(TIMEOUT, "the agent is up", || project.repo().join("up").exists().then_some(()));
    live
}

#[test]
fn a_second_driver_is_told_who_drives() {
    let project = ShellProject::with_agent("", PATIENT);
    let live = up(&project);
    let driver = format!("driven by process {}", live.pid());
    project.run(&["resume", "last"]).expect(2, &[&driver, "wait for it, or end that process"]);
    assert_eq!(project.show_last()["outcome"], "running");
    project.write("go", "");
    live.wait().expect(0, &[]);
    project.assert_intact();
    assert_eq!(project.show_last()["attempts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_is_cancelled_from_another_process() {
    let project = ShellProject::with_agent("", PATIENT);
    let live = up(&project);
    project.run(&["cancel", "last"]).expect(0, &["cancellation requested"]);
    let output = live.wait();
    output.expect(130, &["cancelled by "]);
    assert_eq!(output.json()["outcome"], "cancelled");
    project.assert_intact();
    project.run(&["resume", "last"]).expect(2, &["ended as cancelled"]);
}

#[test]
fn a_question_is_answered_from_another_process_while_the_run_is_driven() {
    let project = ShellProject::new();
    project.write("agent.sh", PATIENT);
    project.write(
        "flow.yaml",
        "workflow: both\nagents: { worker: { contract: acme/ok, prompt: prompts/work.md } }\ncontracts: [contracts]\n\
         variables: { parts: { type: [string], initial: [ask, work] } }\nstart: before\nstates:\n\
         \x20 before: { command: [sh, -c, 'echo ran >> before'], go: both }\n\
         \x20 both: { each: { in: parts, as: part, key: part, parallel: 2, workspace: repository, run: one, with: { part: part } }, go: end }\n\
         \x20 end: { end: done }\n\
         workflows:\n\
         \x20 one:\n\
         \x20   inputs: { part: string }\n\
         \x20   start: which\n\
         \x20   states:\n\
         \x20     which: { next: [{ when: part == 'ask', go: approve }, { go: work }] }\n\
         \x20     approve: { ask: { question: Go on?, choices: [yes, no] }, go: end }\n\
         \x20     work: { agent: worker, go: end }\n\
         \x20     end: { end: done }\n",
    );
    let live = up(&project);
    let question = project.show_last()["questions"][0]["id"].as_str().unwrap().to_owned();
    project.run(&["answer", "last", &question, "perhaps"]).expect(2, &["one of yes, no"]);
    project.run(&["answer", "last", &question, "yes"]).expect(0, &["recorded"]);
    wait_until(TIMEOUT, "its driver has taken the answer", || {
        (project.count_events("answered") == 1).then_some(())
    });
    project.run(&["answer", "last", &question, "no"]).expect(2, &["is not open"]);
    project.write("go", "");
    let output = live.wait();
    output.expect(0, &[]);
    assert_eq!(output.json()["outcome"], "done");
    project.assert_intact();
}
