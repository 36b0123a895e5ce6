//! Paths on the command line begin at the current folder, those in a file at that file; and a program
//! that is not there is said before the run. So is a task without a word.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;

/// A repository with a workflow in a folder, and a program that answers beside that folder.
fn project() -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write(
        "contracts/ok.yaml",
        "contract: acme/ok\nversion: 1\nfields: { ok: boolean }\nexamples: [{ ok: true }]\n",
    );
    project.write(
        "flow.yaml",
        "workflow: flow\ninputs: { task: string }\nagents:\n  worker: { contract: acme/ok, prompt: \"{{ task }}\" }\n\
         contracts: [contracts]\nstart: work\nstates:\n  work: { agent: worker, go: done }\n  done: { end: done }\n",
    );
    project.write_program("bin/agent.sh", "cat > /dev/null; echo '{\"ok\": true}'");
    project.write("sub/inner/note.txt", "here\n");
    project.commit_all("start");
    project
}

fn run(project: &TestProject, folder: &str, agent: &[&str]) -> counterfoil_testkit::CommandOutput {
    let depth = folder.split('/').filter(|part| !part.is_empty()).count();
    let workflow = format!("{}flow.yaml", "../".repeat(depth));
    let mut command = project.command(&["run", &workflow, "--task", "Do it"]);
    command.args(agent).current_dir(project.path(folder)).output()
}

#[test]
fn a_path_on_the_command_line_begins_at_the_current_folder() {
    let project = project();
    run(&project, "", &["--agent", "command:bin/agent.sh"]).expect(0, &[]);
    run(&project, "sub/inner", &["--agent", "command:../../bin/agent.sh"]).expect(0, &[]);
    let wrong = run(&project, "sub/inner", &["--agent", "command:bin/agent.sh"]);
    wrong.expect(2, &["sub/inner/bin/agent.sh does not exist"]);
}

#[test]
fn a_path_in_the_configuration_begins_at_its_folder() {
    let project = project();
    project.write("counterfoil.toml", "agent = \"command:./bin/agent.sh\"\n");
    project.commit_all("configuration");
    run(&project, "", &[]).expect(0, &[]);
    run(&project, "sub/inner", &[]).expect(0, &[]);
    project.write("replies.yaml", "replies:\n  - { agent: worker, text: '{\"ok\": true}' }\n");
    project.write("counterfoil.toml", "agent = \"script:replies.yaml\"\n");
    project.commit_all("script");
    run(&project, "sub/inner", &[]).expect(0, &[]);
}

#[test]
fn a_configuration_below_the_repository_is_not_read_and_that_is_said() {
    let project = project();
    project.write("sub/counterfoil.toml", "agent = \"command:../bin/agent.sh\"\n");
    project.commit_all("configuration");
    let said = run(&project, "sub/inner", &["--agent", "command:../../bin/agent.sh"]);
    said.expect(0, &["sub/counterfoil.toml is not read", "--repo "]);
    let quiet =
        run(&project, "sub/inner", &["--agent", "command:../../bin/agent.sh", "--repo", "."]);
    assert!(!quiet.stderr.contains("is not read"), "{}", quiet.stderr);
    let quiet = run(&project, "", &["--agent", "command:bin/agent.sh"]);
    assert!(!quiet.stderr.contains("is not read"), "{}", quiet.stderr);
}

#[test]
fn a_program_that_is_missing_is_said_before_the_run() {
    let project = project();
    project.write("notes.txt", "not a program\n");
    for (spec, expected) in [
        (
            "command:no-such-agent --print",
            "the agent's program `no-such-agent` cannot be started: it is not on PATH",
        ),
        ("acp:no-such-agent", "it is not on PATH"),
        ("command:./no-such-agent", "no-such-agent does not exist"),
        ("command:./notes.txt", "notes.txt is not an executable file"),
    ] {
        run(&project, "", &["--agent", spec]).expect(2, &[expected]);
    }
    project.run(&["runs"]).expect(0, &["no runs yet"]);
}

#[test]
fn an_empty_task_starts_no_agent() {
    let project = project();
    project.write("empty.md", " \n\n");
    for task in ["", "  \n", "@empty.md"] {
        let arguments = ["run", "flow.yaml", "--task", task, "--agent", "command:bin/agent.sh"];
        project.run(&arguments).expect(2, &["the input 'task' is empty", "--task TEXT"]);
    }
    assert_eq!(project.run(&["runs"]).stdout, "no runs\n");
}
