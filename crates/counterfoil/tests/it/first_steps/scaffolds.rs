//! `new`: every scaffold is valid, runs to its end with its script, and overwrites nothing.

use crate::PROGRAM;
use counterfoil_testkit::{TestProject, read_tree};

const AGENT: &str = "\
---
name: reviewer
description: Reviews a change. Use it after every feature.
tools: Read, Grep
---
You review. Use {{ braces }} and {% tags %} as they are.

Answer with:

```json
{\"approved\": false, \"findings\": [{\"file\": \"src/a.rs\", \"line\": 3, \"note\": \"x\"}]}
```
";
const EXAMPLE: &str = r#"{"ok": true, "score": 7, "tags": [], "findings": [{"file": "a.rs", "line": 3}, {"file": "b.rs"}], "note": null}"#;

fn project() -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("agent.md", AGENT);
    project.write("answer.json", EXAMPLE);
    project.commit_all("start");
    project
}

/// Asserts that what a scaffold consists of is valid, and that its run is done.
#[track_caller]
fn assert_runs(project: &TestProject, contract: &str, workflow: &str) {
    project.run(&["contract", "lint", &format!("contracts/{contract}.yaml")]).expect(0, &[]);
    let file = format!("{workflow}.yaml");
    project.run(&["workflow", "check", &file]).expect(0, &[]);
    let script = format!("script:{workflow}.script.yaml");
    let output = project.run(&["run", &file, "--task", "Try it", "--agent", &script]);
    output.expect(0, &["done"]);
}

#[test]
fn every_scaffold_is_valid_and_runs_to_its_end() {
    let sources: [&[&str]; 5] = [
        &[],
        &["--from-agent", "agent.md"],
        &["--from-example", "answer.json"],
        &["--from-example", "answer.json", "--optional", "score,findings.line"],
        &["--from-agent", "agent.md", "--from-example", "answer.json"],
    ];
    let project = project();
    for (number, source) in sources.iter().enumerate() {
        let (contract, workflow) = (format!("c{number}"), format!("w{number}"));
        let new = |kind: &str, name: &str| {
            let arguments: Vec<&str> = ["new", kind, name].iter().chain(*source).copied().collect();
            project.run(&arguments).expect(0, &["wrote contracts/", "counterfoil run"]);
        };
        new("contract", &contract);
        assert_runs(&project, &contract, &format!("try-{contract}"));
        new("workflow", &workflow);
        assert_runs(&project, &workflow, &workflow);
    }
    // The subagent's words reach the prompt as they are.
    let run = project.show_last()["run"].as_str().unwrap().to_owned();
    let prompt = project.prompt(&run, "work_1.1");
    assert!(prompt.contains("Use {{ braces }} and {% tags %} as they are."), "{prompt}");
}

#[test]
fn a_contract_is_tried_with_the_instructions_of_its_subagent() {
    let project = project();
    project.write("model.md", AGENT.replace("tools: Read, Grep", "model: opus"));
    project.run(&["new", "contract", "review", "--from-agent", "model.md"]).expect(
        0,
        &[
            "taken from model.md: its instructions, word for word (prompts/try-review.md)",
            "; not taken: model\n",
            "wrote prompts/try-review.md",
        ],
    );
    assert_runs(&project, "review", "try-review");
    let run = project.show_last()["run"].as_str().unwrap().to_owned();
    let prompt = project.prompt(&run, "work_1.1");
    let (_, instructions) = AGENT.rsplit_once("---\n").unwrap();
    assert!(prompt.contains(instructions.trim()), "{prompt}");
    assert!(prompt.contains("The task: Try it"), "{prompt}");
}

#[test]
fn what_is_written_is_what_people_read() {
    let project = project();
    let before = read_tree(project.repo());
    let output = project.run(&["new", "workflow", "acme/review", "--from-agent", "agent.md"]);
    output.expect(0, &[]);
    let after = read_tree(project.repo());
    let written = after.keys().filter(|path| !before.contains_key(*path));
    let files: String = written
        .filter(|path| !path.starts_with("schemas"))
        .map(|path| format!("## {}\n{}\n", path.display(), project.read(path)))
        .collect();
    insta::assert_snapshot!(format!("{}\n{files}", output.stderr));
    project.run(&["new", "contract", "acme/plain"]).expect(0, &[]);
    insta::assert_snapshot!("plain", project.read("contracts/plain.yaml"));
}

#[test]
fn lint_says_that_an_example_is_still_that_of_the_scaffold() {
    let project = project();
    project.run(&["new", "contract", "acme/plain"]).expect(0, &[]);
    let lint = |file: &str| project.run(&["contract", "lint", file]);
    let file = "contracts/plain.yaml";
    lint(file).expect(0, &["acme/plain@1 is valid", "W0404 at examples[0].summary: 'EXAMPLE: "]);
    project.write(file, project.read(file).replace("EXAMPLE: ", ""));
    assert!(!lint(file).stderr.contains("W0404"));
    project.write("words.md", "Answer with:\n```json\n{\"ok\": true, \"why\": \"string\"}\n```\n");
    project.run(&["new", "contract", "acme/words", "--from-agent", "words.md"]).expect(0, &[]);
    lint("contracts/words.yaml").expect(0, &["W0404 at examples[0].why: 'string' stands for"]);
}

#[test]
fn a_workflow_uses_the_contract_of_its_name() {
    let project = project();
    project.run(&["new", "contract", "check", "--from-example", "answer.json"]).expect(0, &[]);
    let contract = project.read("contracts/check.yaml");
    project.run(&["new", "workflow", "check"]).expect(0, &["wrote check.yaml"]);
    assert_eq!(project.read("contracts/check.yaml"), contract);
    assert_runs(&project, "check", "check");
}

#[test]
fn whatever_can_be_an_id_can_be_a_name() {
    let project = project();
    for (kind, name, id, contract, workflow) in [
        ("contract", "my.org/review.v2", "my.org/review.v2", "review.v2", "try-review.v2"),
        ("contract", "acme/fix_it", "acme/fix_it", "fix_it", "try-fix_it"),
        ("contract", "1.0/2fa", "1.0/2fa", "2fa", "try-2fa"),
        ("contract", "acme/null", "acme/null", "null", "try-null"),
        ("workflow", "acme/plan.v2", "acme/plan.v2", "plan.v2", "plan.v2"),
        ("workflow", "acme/2", "acme/2", "2", "2"),
        ("workflow", "acme/true", "acme/true", "true", "true"),
        ("workflow", "acme/GUARD", "acme/guard", "guard", "guard"),
        ("workflow", "team/web/Fix", "team/web-fix", "web-fix", "web-fix"),
    ] {
        project.run(&["new", kind, name]).expect(0, &["wrote contracts/"]);
        let text = project.read(format!("contracts/{contract}.yaml"));
        assert!(text.contains(&format!("\ncontract: {id}\n")), "{name}: {text}");
        assert_runs(&project, contract, workflow);
    }
    let before = read_tree(project.repo());
    for name in ["Fix It", "acme/fix@1", "acme/.fix", "-fix", "a b/c"] {
        for kind in ["contract", "workflow"] {
            let message = format!("'{name}' is not an id; write NAME or NAMESPACE/NAME");
            // A name of an option is none of ours.
            project.run(&["new", kind, "--", name]).expect(2, &[message.as_str()]);
        }
    }
    project.run(&["new", "contract", "Fix"]).expect(2, &["'Fix' is not an id"]);
    assert_eq!(read_tree(project.repo()), before);
}

#[test]
fn nothing_is_overwritten() {
    let project = project();
    project.run(&["new", "contract", "fix"]).expect(0, &[]);
    project.write("contracts/fix.yaml", "mine\n");
    let before = read_tree(project.repo());
    project
        .run(&["new", "contract", "fix"])
        .expect(2, &["nothing was written", "contracts/fix.yaml"]);
    project
        .run(&["new", "workflow", "fix", "--from-example", "answer.json"])
        .expect(2, &["contracts/fix.yaml"]);
    assert_eq!(read_tree(project.repo()), before);
    project
        .run(&["new", "contract", "fix", "--dir", "other"])
        .expect(0, &["wrote other/contracts/fix.yaml"]);
}

#[test]
fn bad_arguments_say_what_is_wrong() {
    let project = project();
    project.write("list.json", "[1]");
    project.write("broken.json", "{");
    for (arguments, expected) in [
        (&["Fix It"] as &[&str], "is not an id"),
        (&["../fix"], "is not an id"),
        (&["fix", "--from-example", "list.json"], "holds no JSON object"),
        (&["fix", "--from-example", "broken.json"], "is not JSON"),
        (&["fix", "--from-example", "none.json"], "cannot open none.json"),
        (&["fix", "--from-example", "answer.json", "--optional", "scor"], "did you mean 'score'?"),
        (&["fix", "--optional", "a"], "--from-example"),
    ] {
        let all: Vec<&str> = ["new", "contract"].iter().chain(arguments).copied().collect();
        project.run(&all).expect(2, &[expected]);
    }
    assert!(!project.path("contracts").exists());
}

#[test]
fn what_an_example_obviously_claims_is_verified() {
    let project = project();
    let example = r#"{"files_changed": ["src/a.rs"], "tests_passing": true, "summary": "S."}"#;
    project.write("done.json", example);
    let new = project.run(&["new", "contract", "early", "--from-example", "done.json"]);
    let missing =
        "verified once counterfoil.toml has the check: tests_passing (by the check 'test')";
    new.expect(
        0,
        &["note: verified after each reply: files_changed (by the work tree)\n", missing],
    );
    project.write("counterfoil.toml", "[checks]\ntest = \"true\"\n");
    project.commit_all("checks");
    let new = project.run(&["new", "workflow", "fix", "--from-example", "done.json"]);
    new.expect(0, &["files_changed (by the work tree)", "tests_passing (by the check 'test'"]);
    assert_runs(&project, "fix", "fix");
    let workflow = project.read("fix.yaml");
    assert!(workflow.contains("when: result.tests_passing"), "{workflow}");
    // An agent that lies does not get through where claims are required.
    project.write("lie.sh", format!("echo '{example}'\n").replace("S.", "Done."));
    let lie = ["run", "fix.yaml", "--task", "x", "--agent", "command:sh lie.sh", "--strict-claims"];
    project.run(&lie).expect(3, &["files_changed refuted"]);
    // Nothing is promised where nothing is known.
    let new = project.run(&["new", "contract", "score", "--from-example", "answer.json"]);
    new.expect(0, &["no field is verified"]);
}

#[test]
fn a_run_is_only_done_if_the_result_says_so() {
    let project = project();
    project.write("counterfoil.toml", "[checks]\ntest = \"false\"\n");
    for (name, example, honest, reason) in [
        (
            "fixer",
            r#"{"files_changed": [], "tests_passing": true, "summary": "S."}"#,
            r#"{"files_changed": [], "tests_passing": false, "summary": "The tests fail."}"#,
            "The tests fail.",
        ),
        (
            "worker",
            r#"{"done": true, "note": "N."}"#,
            r#"{"done": false, "note": "Nothing."}"#,
            "done is not true",
        ),
    ] {
        project.write(format!("{name}.json"), example);
        project.write(format!("{name}.sh"), format!("echo '{honest}'\n"));
        let example = format!("{name}.json");
        let new = project.run(&["new", "workflow", name, "--from-example", &example]);
        new.expect(0, &["wrote"]);
        assert!(!new.stderr.contains("whatever the result says"), "{}", new.stderr);
        assert_runs(&project, name, name);
        let agent = format!("command:sh {name}.sh");
        let file = format!("{name}.yaml");
        let run =
            ["run", file.as_str(), "--task", "x", "--agent", agent.as_str(), "--strict-claims"];
        project.run(&run).expect(1, &["failed", reason]);
    }
    // Nothing is guarded by a field that says something else.
    project.write("score.json", r#"{"strict": true, "note": "N."}"#);
    project.run(&["new", "workflow", "score", "--from-example", "score.json"]).expect(
        0,
        &["note: the workflow ends as done whatever the result says: add guards with `when`"],
    );
    assert_runs(&project, "score", "score");
}

#[test]
fn what_an_agents_file_does_not_hold_is_said() {
    let project = project();
    let new = |file: &str| {
        project.run(&["new", "contract", "result", "--from-agent", file, "--dir", "made"])
    };
    project.write("empty.md", "---\nname: empty\n---\n");
    new("empty.md").expect(2, &["empty.md has no instructions"]);
    new("answer.json").expect(2, &["--from-example"]);
    assert!(!project.path("made").exists());
    project.write("broken.md", "You work.\n\n```json\n{\"ok\": true, ...}\n```\n");
    new("broken.md").expect(0, &["that cannot be read (key must be a string at line 4 column 14)"]);
}

#[test]
fn an_example_with_placeholders_gives_the_contract_its_fields_only() {
    let project = project();
    for (number, example) in [
        r#"{"summary": "...", "files_changed": ["src/a.rs", "..."], "tests_run": 3}"#,
        r#"{"ok": true, "summary": "<what you did>"}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let header = "---\nname: fixer\n---\nFix it.\n";
        project.write("fixer.md", format!("{header}\n```json\n{example}\n```\n"));
        for (kind, name) in [("contract", format!("c{number}")), ("workflow", format!("w{number}"))]
        {
            let new = project.run(&["new", kind, &name, "--from-agent", "fixer.md"]);
            new.expect(
                0,
                &[
                    "note: fixer.md:6: the result in this JSON block cannot be an example: `summary` \
                     still contains the placeholder",
                    "; the contract has its fields and no example\n",
                    "; the fields of its last JSON block\n",
                ],
            );
            let contract = project.read(format!("contracts/{name}.yaml"));
            assert!(contract.contains("summary") && !contract.contains("example"), "{contract}");
            let workflow = if kind == "contract" { format!("try-{name}") } else { name.clone() };
            assert_runs(&project, &name, &workflow);
        }
    }
    // An example that a person gives is refused, with the problems once.
    project.write("template.json", r#"{"ok": true, "summary": "..."}"#);
    let refused = project.run(&["new", "contract", "other", "--from-example", "template.json"]);
    refused.expect(2, &["error: template.json: the example is no result of a contract (`"]);
    assert_eq!(refused.stderr.matches("C0405").count(), 1, "{}", refused.stderr);
    assert!(!project.path("contracts/other.yaml").exists());
}
