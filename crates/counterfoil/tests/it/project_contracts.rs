//! The contracts in the folder `contracts` beside `counterfoil.toml`: commands find them by their
//! ids, list them and complete them, and one that is broken is in nobody's way.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};

const GATE: &str = "\
contract: acme/gate
version: 1
summary: Whether to go on
fields: { ok: boolean }
examples: [{ ok: false }]
";
const GOOD: &str = "{\"ok\": true}";
const BROKEN: &str = "contract: acme/broken\nversion: 1\nfields: { ok: boolean }\nrules: [{ id: a, check: result.no }]\n";

fn project() -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("counterfoil.toml", "");
    project.write("contracts/gate.yaml", GATE);
    project.write("good.txt", GOOD);
    project
}

/// The candidates for the last word, as bash gets them, or with their help as fish does.
fn complete(project: &TestProject, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = project.command(&[&["--", "counterfoil"], words].concat());
    command.env("COUNTERFOIL_COMPLETE", shell);
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_IFS", "\n");
    command.output().stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_contract_of_the_project_is_found_by_its_id() {
    let project = project();
    project.run(&["check", "good.txt", "--contract", "acme/gate"]).expect(0, &["\"ok\": true"]);
    project.run(&["check", "good.txt", "--contract", "acme/gate@1"]).expect(0, &[]);
    project.run(&["contract", "show", "acme/gate"]).expect(0, &["contract: acme/gate"]);
    project.run(&["contract", "prompt", "acme/gate"]).expect(0, &["ok"]);
    project
        .run(&["contract", "lint", "acme/gate"])
        .expect(0, &["contracts/gate.yaml: acme/gate@1"]);
    project.run(&["contract", "lint", "acme/gate@1"]).expect(0, &["acme/gate@1 is valid"]);
    // From a folder below, too.
    project.write("src/answer.txt", GOOD);
    let mut below = project.command(&["check", "answer.txt", "--contract", "acme/gate"]);
    assert_eq!(below.current_dir(project.path("src")).output().code, Some(0));
    // A line of a batch names contracts of both kinds.
    let line = |contract: &str| json!({"contract": contract, "text": GOOD}).to_string() + "\n";
    project.write("batch.jsonl", line("acme/gate") + &line("execution-loop/qa") + &line("acme/no"));
    let batch = project.run(&["check", "--batch", "batch.jsonl"]);
    batch.expect(3, &["3 lines: 1 accepted", "1 not understood"]);
    assert!(batch.stdout.contains("no contract is called 'acme/no'"), "{batch:?}");
}

#[test]
fn a_command_that_does_not_search_the_project_says_how_to_name_its_folder() {
    let project = project();
    project.write("empty/notes.md", "nothing");
    project.commit_all("start");
    let says = ["no contract is called 'acme/gate'", "name it with --contracts contracts"];
    for id in ["acme/gate", "acme/gate@1"] {
        project.run(&["verify", "good.txt", "--base", "HEAD", "--contract", id]).expect(2, &says);
        project.run(&["replay", "empty", "--contract", id]).expect(2, &says);
    }
    let unknown = project.run(&["verify", "good.txt", "--base", "HEAD", "--contract", "zzz/zzz"]);
    unknown.expect(2, &["no contract is called 'zzz/zzz'"]);
    assert!(!unknown.stderr.contains("the project has it"), "{unknown:?}");
    let named = ["verify", "good.txt", "--base", "HEAD", "--contracts", "contracts"];
    project.run(&[&named[..], &["--contract", "acme/gate"]].concat()).expect(0, &[]);
}

#[test]
fn without_a_configuration_the_folder_has_to_be_named_and_that_is_said() {
    let project = project();
    std::fs::remove_file(project.path("counterfoil.toml")).unwrap();
    let says = ["no contract is called 'acme/gate'", "name it with --contracts contracts"];
    project.run(&["check", "good.txt", "--contract", "acme/gate"]).expect(2, &says);
    project.run(&["contract", "show", "acme/gate"]).expect(2, &says);
}

#[test]
fn a_link_to_nothing_is_in_nobodys_way() {
    let project = project();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, project.path(name)).unwrap();
    };
    link("kim@host.1:2", "contracts/.#gate.yaml");
    let check = ["check", "good.txt", "--contract", "acme/gate", "--contracts", "contracts"];
    for arguments in [&check as &[&str], &check[..4], &["contract", "lint", "contracts"]] {
        let output = project.run(arguments);
        output.expect(0, &[]);
        assert!(!output.stderr.contains("warning"), "{arguments:?}: {output:?}");
    }
    link("nothing.yaml", "contracts/gone.yaml");
    link("round.yaml", "contracts/round.yaml");
    for arguments in [
        &check as &[&str],
        &check[..4],
        &["contract", "lint", "contracts"],
        &["contract", "list"],
        &["contract", "list", "--contracts", "contracts"],
    ] {
        project.run(arguments).expect(
            0,
            &[
                "warning: contracts/gone.yaml is skipped: it is a link to nothing",
                "warning: contracts/round.yaml is skipped: it is a link to nothing",
            ],
        );
    }
    project.write(
        "flow.yaml",
        "workflow: flow\nversion: 1\ncontracts: [contracts]\nstart: done\nstates: { done: { end: done } }\n",
    );
    // A folder is read by the check of a folder and for the workflow in it; each link is named once.
    for path in ["flow.yaml", "./flow.yaml", "."] {
        let output = project.run(&["workflow", "check", path]);
        output.expect(0, &["is skipped: it is a link to nothing"]);
        for name in ["gone.yaml is skipped", "round.yaml is skipped"] {
            assert_eq!(output.stderr.matches(name).count(), 1, "{path}: {}", output.stderr);
        }
    }
    // What is named is meant.
    project.run(&["contract", "lint", "contracts/gone.yaml"]).expect(2, &["there is no file"]);
}

#[test]
fn a_name_that_is_near_to_one_of_the_project_is_suggested() {
    let project = project();
    for arguments in [
        &["check", "good.txt", "--contract", "acme/gaet"] as &[&str],
        &["contract", "show", "acme/gaet"],
        &["contract", "lint", "acme/gaet"],
    ] {
        project.run(arguments).expect(2, &["did you mean 'acme/gate'?"]);
    }
    project.run(&["contract", "lint", "execution-loop/qa"]).expect(2, &["built-in contract"]);
    project.run(&["contract", "lint", "zzz"]).expect(2, &["there is no file or folder zzz"]);
}

#[test]
fn a_path_is_a_path_and_a_built_in_contract_is_the_built_in_one() {
    let project = project();
    project.write("acme/gate/other.yaml", GATE.replace("acme/gate", "acme/other"));
    project.run(&["contract", "lint", "acme/gate"]).expect(0, &["acme/other@1 is valid"]);
    project.write("contracts/qa.yaml", GATE.replace("acme/gate", "execution-loop/qa"));
    let shown = project.run(&["contract", "show", "execution-loop/qa"]);
    assert!(shown.stdout.contains("dod_achieved"), "{shown:?}");
    project.run(&["contract", "show", "contracts/qa.yaml"]).expect(0, &["Whether to go on"]);
    // Without its configuration, a folder is no project.
    std::fs::remove_file(project.path("counterfoil.toml")).unwrap();
    project.run(&["contract", "show", "acme/gate"]).expect(2, &["no contract is called"]);
}

#[test]
fn the_list_ends_with_the_contracts_of_the_project() {
    let project = project();
    let newer = GATE.replace("version: 1", "version: 2").replace("go on", "go on with it");
    project.write("contracts/newer/gate.yaml", newer);
    let list = project.run(&["contract", "list"]);
    list.expect(0, &[]);
    assert_eq!(list.stderr, "");
    let last = list.stdout.lines().last().unwrap();
    assert!(last.starts_with("acme/gate ") && last.contains(" v2 "), "{last}");
    assert!(last.ends_with("Whether to go on with it (contracts/newer/gate.yaml)"), "{last}");
    let rows = project.run(&["contract", "list", "--format", "json"]).json();
    let (own, others) = rows.as_array().unwrap().split_last().unwrap();
    assert_eq!(
        (&own["id"], &own["path"]),
        (&json!("acme/gate"), &json!("contracts/newer/gate.yaml"))
    );
    assert!(others.iter().all(|row| row.get("path").is_none()));
    // What --contracts names is listed once, as before.
    for folder in ["contracts", "."] {
        let rows = project.run(&["contract", "list", "--contracts", folder, "--format", "json"]);
        let rows = rows.json();
        let own: Vec<&Value> =
            rows.as_array().unwrap().iter().filter(|row| row["id"] == "acme/gate").collect();
        assert_eq!(own.len(), 1, "{folder}: {rows}");
        assert!(own[0].get("path").is_none(), "{folder}: {rows}");
    }
}

#[test]
fn a_broken_contract_is_a_warning_in_the_list_and_hides_no_other() {
    let project = project();
    project.write("contracts/broken.yaml", BROKEN);
    project.write("contracts/half.yaml", "contract: acme/half\nfields: { ok: boolean }\n");
    project.write("contracts/syntax.yaml", "contract: [\n");
    project.write("contracts/taken.yaml", GATE);
    let list = project.run(&["contract", "list"]);
    list.expect(
        0,
        &[
            "warning: contracts/broken.yaml does not load",
            "warning: contracts/half.yaml is skipped",
            "warning: contracts/syntax.yaml does not load",
            "warning: contracts/taken.yaml does not load",
            "acme/gate@1 is defined twice",
            "(contracts/gate.yaml)",
        ],
    );
    assert!(!list.stdout.contains("acme/broken"), "{list:?}");
    // It can be linted by its id, and built-in contracts do not need the others.
    project
        .run(&["contract", "lint", "acme/broken"])
        .expect(1, &["contracts/broken.yaml does not"]);
    project.run(&["contract", "lint", "acme/half"]).expect(1, &["contracts/half.yaml does not"]);
    project.run(&["contract", "show", "execution-loop/qa"]).expect(0, &[]);
    project.run(&["contract", "show", "acme/gate"]).expect(2, &["contracts/syntax.yaml"]);
}

#[test]
fn shells_complete_contracts_of_the_project_programs_and_codes() {
    let project = project();
    for words in [
        &["check", "--contract", "acme"] as &[&str],
        &["contract", "show", "acme"],
        &["contract", "lint", "acme"],
    ] {
        assert_eq!(complete(&project, "bash", words), ["acme/gate"], "{words:?}");
        assert_eq!(complete(&project, "fish", words), ["acme/gate\tcontracts/gate.yaml"]);
    }
    let paths = complete(&project, "bash", &["contract", "lint", "con"]);
    assert_eq!(paths, ["contracts/"]);
    assert_eq!(complete(&project, "bash", &["run", "x", "--agent", "cl"]), ["claude"]);
    assert_eq!(complete(&project, "fish", &["resume", "--agent", "qa=com"]), ["qa=command:"]);
    assert_eq!(complete(&project, "bash", &["replay", "--agent", "g"]), ["gemini"]);
    assert_eq!(complete(&project, "bash", &["explain", "C0101"]), ["C0101"]);
    assert_eq!(complete(&project, "bash", &["explain", "F0203"]), ["F0203"]);
}

#[test]
fn what_a_shell_or_a_terminal_would_obey_is_not_completed() {
    let project = project();
    for (file, id) in [
        ("contracts/one.yaml", "\"acme/a; touch made\""),
        ("contracts/two.yaml", "\"acme/b$(touch made)\""),
        ("contracts/three.yaml", "\"acme/c\\e[31m\""),
        ("contracts/four.yaml", "\"acme/d\\nacme/e\""),
        ("contracts/five \u{1b}[31m\n.yaml", "acme/named"),
        ("acme\u{1b}[31m.yaml", "acme/not-here"),
    ] {
        project.write(file, format!("contract: {id}\nversion: 1\nfields: {{ ok: boolean }}\n"));
    }
    for shell in ["bash", "fish", "zsh"] {
        for words in [&["check", "--contract", "acme"], &["contract", "lint", "acme"]] {
            let candidates = complete(&project, shell, words);
            assert_eq!(candidates.len(), 2, "{shell}: {candidates:?}");
            let is_own =
                |line: &String| line.starts_with("acme/gate") || line.starts_with("acme/named");
            assert!(candidates.iter().all(is_own), "{candidates:?}");
            assert!(!candidates.concat().contains('\u{1b}'), "{candidates:?}");
        }
    }
}
