//! Work that an agent hides from git, on purpose or in passing: a reviewer sees it nevertheless, and
//! a commit has it, or says that it has not.

use super::DirtyProject;
use crate::verification::project::replies;
use serde_json::{Value, json};

/// A step that runs commands, then what a reviewer would be shown, then a commit of everything.
fn reviewed_and_committed(project: &DirtyProject, exec: &str, files: &[&str]) -> Value {
    project.write_workflow(
        "variables: { seen: { type: [string], initial: [] }, text: { type: string, initial: '' }, ok: { type: boolean, initial: false }, said: { type: string, initial: '' } }",
        "work",
        "  work: { agent: worker, go: look }\n  \
           look: { changes: { since: \"'HEAD'\" }, next: [{ set: { seen: \"result.files.map(f, f.change + ' ' + f.path)\", text: \"result.chunks.map(c, c.text).join('')\" }, go: keep }] }\n  \
           keep: { commit: { message: Work, paths: ['.'] }, next: [{ set: { ok: result.ok, said: result.output }, go: end }] }",
    );
    project.write_script(&[replies(&json!({"files": files}), json!({"exec": exec}))]);
    project.run_script().report.clone()
}

fn committed(project: &DirtyProject, file: &str) -> String {
    project.git(&["show", &format!("HEAD:{file}")])
}

#[test]
fn what_the_index_or_the_settings_hide_is_reviewed_and_committed() {
    for (name, hides) in [
        ("nothing", "true"),
        ("assume-unchanged", "git update-index --assume-unchanged a.rs"),
        ("skip-worktree", "git update-index --skip-worktree a.rs"),
        ("exclude", "printf 'new.rs\\n*.rs\\n' >> .git/info/exclude"),
        (
            "a file of excludes",
            "printf '*.rs\\n' > ../ex; git config core.excludesFile \"$PWD/../ex\"",
        ),
        ("attributes", "printf '* -diff\\n*.rs binary\\n' > .git/info/attributes"),
        (
            "a file of attributes",
            "printf '* -diff\\n' > ../at; git config core.attributesFile \"$PWD/../at\"",
        ),
        ("untracked files", "git config status.showUntrackedFiles no"),
        (
            "stat",
            "git config core.checkStat minimal; git config core.trustctime false; touch -r b.rs a.rs; git update-index --refresh",
        ),
        (
            "a sparse checkout",
            "git config core.sparseCheckout true; echo /b.rs > .git/info/sparse-checkout; git update-index --skip-worktree a.rs",
        ),
        ("ignored submodules", "git config diff.ignoreSubmodules all"),
        ("a monitor", "git config core.fsmonitor true; git config core.untrackedCache true"),
        (
            "an index without it",
            "rm .git/index; git read-tree HEAD; git update-index --assume-unchanged a.rs",
        ),
    ] {
        let project = DirtyProject::new();
        let exec = format!("echo 'fn evil() {{}}' >> a.rs; echo 'fn new() {{}}' > new.rs; {hides}");
        let report = reviewed_and_committed(&project, &exec, &["a.rs", "new.rs"]);
        assert_eq!(report["outcome"], "done", "{name}: {report:#}");
        let seen = report["variables"]["seen"].to_string();
        assert!(seen.contains("modified a.rs") && seen.contains("added new.rs"), "{name}: {seen}");
        let text = report["variables"]["text"].as_str().unwrap();
        assert!(text.contains("+fn evil() {}") && text.contains("+fn new() {}"), "{name}: {text}");
        assert_eq!(report["variables"]["ok"], true, "{name}: {report:#}");
        assert!(committed(&project, "a.rs").contains("evil"), "{name}: {report:#}");
        assert!(committed(&project, "new.rs").contains("new"), "{name}: {report:#}");
    }
}

#[test]
fn settings_that_change_what_is_committed_are_those_of_the_start() {
    for (name, does) in [
        ("the executable bit", "chmod +x a.rs; git config core.fileMode false"),
        ("the ends of lines", "printf 'a\\r\\nb\\r\\n' > a.rs; git config core.autocrlf input"),
        (
            "the ends of lines by attributes",
            "printf 'a\\r\\nb\\r\\n' > a.rs; echo '* text=auto' > .git/info/attributes",
        ),
    ] {
        let project = DirtyProject::new();
        let report = reviewed_and_committed(&project, does, &["a.rs"]);
        let seen = report["variables"]["seen"].to_string();
        assert!(seen.contains("modified a.rs"), "{name}: {report:#}");
        let mode = project.git(&["ls-tree", "HEAD", "a.rs"]);
        let is_faithful = if name.contains("bit") {
            mode.starts_with("100755")
        } else {
            committed(&project, "a.rs") == "a\r\nb\r\n"
        };
        // What cannot be kept from happening is said.
        let said = report["variables"]["said"].as_str().unwrap();
        assert!(
            is_faithful && report["variables"]["ok"] == true
                || report["variables"]["ok"] == false
                    && said.contains("the commit does not have these files as they are"),
            "{name}: {mode} {report:#}"
        );
    }
}

#[test]
fn a_repository_made_in_a_folder_hides_nothing_from_a_reviewer() {
    let project = DirtyProject::new();
    let exec = "mkdir new; cd new; git init -q; echo 'fn evil() {}' > evil.rs; echo '*' > .git/info/exclude";
    let report = reviewed_and_committed(&project, exec, &["new/evil.rs"]);
    let variables = &report["variables"];
    assert!(variables["text"].as_str().unwrap().contains("+fn evil() {}"), "{report:#}");
    let said = variables["said"].as_str().unwrap();
    assert!(said.contains("'new/' is left out: it is a nested repository"), "{report:#}");
}

#[test]
fn nothing_is_committed_with_the_work_tree_of_another_folder() {
    let project = DirtyProject::new();
    let head = project.git(&["rev-parse", "HEAD"]);
    let exec =
        "echo 'fn evil() {}' >> a.rs; mkdir ../other; git config core.worktree \"$PWD/../other\"";
    let report = reviewed_and_committed(&project, exec, &["a.rs"]);
    assert!(report["variables"]["text"].as_str().unwrap().contains("+fn evil() {}"), "{report:#}");
    assert_ne!(report["outcome"], "done", "{report:#}");
    assert!(report.to_string().contains("remove `core.worktree` from its settings"), "{report:#}");
    assert_eq!(project.git(&["--work-tree=.", "rev-parse", "HEAD"]), head);
}

/// The blob that is compared with is in a folder that an agent can write to.
#[test]
fn an_object_that_was_replaced_shows_no_false_patch() {
    let project = DirtyProject::new();
    let exec = "echo 'fn evil() {}' >> a.rs; old=$(git rev-parse HEAD:a.rs); new=$(git hash-object -w a.rs); \
        f=.git/objects/$(echo $old | cut -c1-2)/$(echo $old | cut -c3-); chmod u+w $f; \
        cp .git/objects/$(echo $new | cut -c1-2)/$(echo $new | cut -c3-) $f; git replace $old $new";
    let report = reviewed_and_committed(&project, exec, &["a.rs"]);
    assert_ne!(report["outcome"], "done", "{report:#}");
    assert!(report.to_string().contains("a.rs: git cannot read its blob"), "{report:#}");
}

/// New ignore rules are part of the changes. What they hide is shown, and not committed.
#[test]
fn new_ignore_rules_hide_nothing_from_a_reviewer() {
    for rules in
        ["printf 'evil.rs\\n' >> .gitignore", "mkdir -p sub; printf '*\\n' > sub/.gitignore"]
    {
        let project = DirtyProject::new();
        let place = if rules.contains("sub") { "sub/evil.rs" } else { "evil.rs" };
        let exec = format!("{rules}; echo 'fn evil() {{}}' > {place}");
        let hides = if rules.contains("sub") { "sub/.gitignore" } else { ".gitignore" };
        let report = reviewed_and_committed(&project, &exec, &[place, hides]);
        assert_eq!(report["outcome"], "done", "{report:#}");
        let text = report["variables"]["text"].as_str().unwrap();
        assert!(text.contains("+fn evil() {}") && text.contains(hides), "{text}");
        let listed = project.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        assert!(!listed.contains("evil.rs"), "{listed}");
        assert!(listed.contains(hides), "{listed}");
    }
}

/// An agent that adds a build folder to the ignore rules is an honest one.
#[test]
fn a_build_folder_that_is_ignored_from_now_on_is_not_in_the_way() {
    let project = DirtyProject::new();
    let exec = "echo out/ >> .gitignore; mkdir out; seq 1300000 > out/big.txt; echo 'fn more() {}' >> a.rs";
    let report = reviewed_and_committed(&project, exec, &["a.rs", ".gitignore", "out/big.txt"]);
    assert_eq!(report["outcome"], "done", "{report:#}");
    let seen = report["variables"]["seen"].to_string();
    assert!(seen.contains("modified a.rs") && !seen.contains("big.txt"), "{seen}");
    assert!(!project.git(&["ls-tree", "-r", "--name-only", "HEAD"]).contains("big.txt"));
    assert_eq!(report["variables"]["ok"], true, "{report:#}");
}

#[test]
fn a_tag_does_not_take_the_place_of_a_branch() {
    let project = DirtyProject::new();
    project.write_workflow(
        "",
        "work",
        "  work: { agent: worker, go: look }\n  look: { changes: { since: \"'other'\" }, go: end }",
    );
    let exec = "echo 'fn evil() {}' >> a.rs; git stash create > ../c; git tag other $(cat ../c)";
    project.write_script(&[replies(&json!({"files": ["a.rs"]}), json!({"exec": exec}))]);
    let report = project.run_script().report.clone();
    assert_ne!(report["outcome"], "done", "{report:#}");
    assert!(
        report.to_string().contains("'other' names refs/heads/other and refs/tags/other"),
        "{report:#}"
    );
}
