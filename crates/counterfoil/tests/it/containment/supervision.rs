//! Supervision of contained processes: timeouts, orderly ends, and what is left behind.

use super::project::{CONTAINING, TargetProject, is_available};
use crate::shell_project::{agent_workflow, assert_no_processes};

fn run(kind: &str, keys: &str, script: &str) -> (TargetProject, i32) {
    let project = TargetProject::new(&format!("contain = \"{kind}\"\n"), script);
    project.write("flow.yaml", agent_workflow(keys));
    let output = project.run_agent();
    let code = output.code.unwrap();
    assert_no_processes(&project.show_last());
    (project, code)
}

#[test]
fn what_a_contained_agent_leaves_running_is_ended() {
    // In a session of its own, without the marker, and in the background.
    let script = "env -u COUNTERFOIL_ATTEMPT setsid sh -c 'sleep 300' >/dev/null 2>&1 &\n\
                  sleep 300 &\necho '{\"ok\": true}'\n";
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let (_project, code) = run(kind, "", script);
        assert_eq!(code, 0, "{kind}");
    }
}

#[test]
fn a_contained_agent_that_takes_too_long_can_end_in_order_and_then_is_killed() {
    // The trap shows that it was asked to end before it was killed.
    let script =
        "trap 'echo asked > asked; exit 1' TERM\nsleep 300 &\nwhile :; do sleep 0.1; done\n";
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let (project, code) = run(kind, "timeout: 1s, retries: { timeout: 0 }", script);
        assert_ne!(code, 0, "{kind}");
        assert_eq!(project.read_or_empty("asked"), "asked\n", "{kind}");
    }
}

/// Kills every process above that is ours.
const KILLS_THE_RUN: &str = "p=$$\n\
    while [ \"$p\" -gt 1 ]; do\n\
      p=$(sed -n 's/^PPid:[^0-9]*//p' \"/proc/$p/status\")\n\
      case $(cat \"/proc/$p/comm\") in counterfoil*) kill -9 \"$p\" 2>> errors;; esac\n\
    done\n\
    echo '{\"ok\": true}'\n";

#[test]
fn a_contained_agent_cannot_end_the_run_with_landlock() {
    if is_available("landlock") {
        let (project, code) = run("landlock", "", KILLS_THE_RUN);
        assert_eq!(code, 0, "{}", project.read_or_empty("errors"));
        assert!(!project.read("errors").is_empty(), "it tried");
    }
}

#[test]
fn an_agent_can_end_the_run_with_bwrap_and_without_containment() {
    for kind in ["none", "bwrap"].into_iter().filter(|kind| *kind == "none" || is_available(kind)) {
        let project = TargetProject::new(&format!("contain = \"{kind}\"\n"), KILLS_THE_RUN);
        assert_eq!(project.run_agent().code, None, "{kind}: ended by a signal");
    }
}
