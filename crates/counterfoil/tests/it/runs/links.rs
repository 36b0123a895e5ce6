//! Symbolic links in the folder of a workflow, in folders of contracts, and at the places of
//! artifacts: they are followed only inside.

use crate::runs::project::{GOOD, WorkflowProject, one_step, replies};
use std::os::unix::fs::symlink;

/// A workflow with a prompt, a contract and a template in files.
fn with_files() -> WorkflowProject {
    let flow = one_step("").replace("\"Do it.\"", "prompts/work.md")
        + "artifacts: [{ path: out/status.md, template: templates/status.md }, \
           { path: out/log.md, template: \"- {{ run.state }}\\n\", append: true }]\n";
    let project = WorkflowProject::new(&flow, &replies(&[GOOD]));
    project.write("prompts/work.md", "Do it.\n");
    project.write("templates/status.md", "at {{ run.state }}\n");
    project
}

/// Puts a link in the place of a file or folder. What was there is kept beside it.
fn replace_by_link(project: &WorkflowProject, name: &str, target: &str) {
    let path = project.path(name);
    std::fs::rename(&path, project.path(format!("{name}.kept"))).unwrap();
    symlink(target, path).unwrap();
}

#[test]
fn files_of_a_workflow_are_not_read_through_links_out_of_its_folder() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("work.md"), "the secret\n").unwrap();
    std::fs::write(outside.path().join("step.yaml"), "contract: a/b\nversion: 1\n").unwrap();
    for (name, target, told) in [
        ("prompts/work.md", "work.md", "prompts/work.md leads out of"),
        ("prompts", "", "prompts/work.md leads out of"),
        ("templates/status.md", "work.md", "templates/status.md leads out of"),
        ("contracts/step.yaml", "step.yaml", "contracts/step.yaml leads out of"),
        ("contracts", "", "contracts leads out of"),
    ] {
        let project = with_files();
        replace_by_link(&project, name, outside.path().join(target).to_str().unwrap());
        for command in [
            &["workflow", "check", "flow.yaml"][..],
            &["run", "flow.yaml", "--agent", "script:script.yaml"],
        ] {
            let output = project.run(command);
            assert!(!output.is_success(), "{name}: {output:?}");
            let words = output.stderr.replace('│', " ");
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(told), "{name}: {}", output.stderr);
            assert!(words.contains("by a symbolic link; copy what it links to"), "{name}: {words}");
            assert!(!output.stderr.contains("the secret"), "{name}: {}", output.stderr);
        }
    }
}

#[test]
fn links_inside_of_the_folder_are_followed() {
    let project = with_files();
    replace_by_link(&project, "prompts/work.md", "work.md.kept");
    replace_by_link(&project, "templates", "templates.kept");
    replace_by_link(&project, "contracts/tasks.yaml", "../shared/tasks.yaml");
    project.write("shared/tasks.yaml", project.read("contracts/tasks.yaml.kept"));
    symlink("flow.yaml", project.path("linked.yaml")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    // A person names the workflow, so it may be a link to anywhere.
    std::fs::rename(project.path("flow.yaml"), elsewhere.path().join("flow.yaml")).unwrap();
    symlink(elsewhere.path().join("flow.yaml"), project.path("flow.yaml")).unwrap();
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(project.read("out/status.md"), "at done\n");
}

#[test]
fn a_folder_of_contracts_is_not_left_by_links() {
    let project = with_files();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("more")).unwrap();
    let contract = project.read("contracts/step.yaml").replace("scene/step", "scene/other");
    std::fs::write(outside.path().join("more/other.yaml"), contract).unwrap();
    let list = ["contract", "list", "--contracts", "contracts"];
    for (target, link) in [("more", "folder"), ("more/other.yaml", "other.yaml")] {
        symlink(outside.path().join(target), project.path("contracts").join(link)).unwrap();
        let output = project.run(&list);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(
            output.stderr.contains(&format!("{link} leads out of the folder contracts")),
            "{output:?}"
        );
        std::fs::remove_file(project.path("contracts").join(link)).unwrap();
    }
    symlink("step.yaml", project.path("contracts/again.yaml")).unwrap();
    let output = project.run(&list);
    assert!(output.is_success() && output.stdout.matches("scene/step").count() == 1, "{output:?}");
}

#[test]
fn artifacts_are_not_written_through_links_out_of_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    let theirs = outside.path().join("theirs.md");
    let places = ["out", "out/status.md", "out/log.md"];
    for (place, is_folder) in places.iter().map(|place| (*place, *place == "out")) {
        std::fs::write(&theirs, "theirs\n").unwrap();
        let project = with_files();
        if !is_folder {
            std::fs::create_dir(project.path("out")).unwrap();
        }
        let target = if is_folder { outside.path() } else { &theirs };
        symlink(target, project.path(place)).unwrap();
        let ran = project.run_workflow();
        assert_eq!(ran.ended().0, "blocked", "{place}: {ran:?}");
        assert!(ran.reason().contains("by a symbolic link"), "{place}: {}", ran.reason());
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "theirs\n");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "{place}");
    }
    let project = with_files();
    std::fs::create_dir(project.path("real")).unwrap();
    symlink("real", project.path("out")).unwrap();
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    assert_eq!(project.read("real/status.md"), "at done\n");
}
