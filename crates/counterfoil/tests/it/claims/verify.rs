//! `verify`: claims without a run, from a text, a revision and a repository.

use crate::PROGRAM;
use crate::claims::journal::git;
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A contract with a claim of each kind that a result makes.
const CONTRACT: &str = r"
contract: scene/fix
version: 1
framing: any-json
fields:
  files_changed: [string]
  tests_passing?: boolean
  checks?: [string]
  findings?: [{ file: string, line: integer }]
  finding_count?: integer
  report?: string
  tests_added?: integer
  commit?: string
claims:
  files_changed: { kind: files-changed }
  tests_passing: { kind: command, check: test }
  checks: { kind: commands, allow: ['test -e *'] }
  findings/*/file: { kind: location }
  finding_count: { kind: count, of: /findings }
  report: { kind: artifact }
  tests_added: { kind: count, figure: tests-added }
  commit: { kind: commit, policy: ignore }
examples: [{ files_changed: [a.rs] }]
";

const TRUE: &str = r#"Done. {"files_changed": ["src/a.rs", "new.txt"], "tests_passing": true,
  "checks": ["cmd: test -e new.txt", "manual: look at it"], "findings": [{"file": "src/a.rs", "line": 2}],
  "finding_count": 1, "report": "new.txt"}"#;

const FALSE: &str = r#"Done. {"files_changed": ["src/a.rs", "src/b.rs"], "tests_passing": true,
  "checks": ["cmd: test -e old.txt"], "findings": [{"file": "src/a.rs", "line": 900}], "finding_count": 4,
  "report": "docs/none.md", "commit": "deadbeefdeadbeef"}"#;

/// A repository after an agent worked on it: one file edited, one new.
pub(super) fn worked_on() -> TestProject {
    let project = TestProject::new(PROGRAM);
    git(&project, &["init", "-q", "-b", "main"]);
    project.write(
        "counterfoil.toml",
        "[checks]\ntest = \"test -e passes || { echo it fails; exit 4; }\"\n",
    );
    project.write("src/a.rs", "one\n");
    project.write("src/b.rs", "two\n");
    project.write(".gitignore", "ignored\n");
    project.write("contracts/fix.yaml", CONTRACT);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "base"]);
    project.write("src/a.rs", "one\nmore\n");
    project.write("new.txt", "new\n");
    project
}

pub(super) const BASE: [&str; 8] = [
    "verify",
    "answer.txt",
    "--contract",
    "scene/fix",
    "--base",
    "HEAD",
    "--contracts",
    "contracts",
];

/// Verifies a text, with further arguments.
fn shown(project: &TestProject, text: &str, more: &[&str]) -> String {
    project.write("answer.txt", text);
    steady(&project.snapshot_verbatim(&[&BASE, more].concat()))
}

fn json(project: &TestProject, text: &str, more: &[&str]) -> (i32, Value) {
    project.write("answer.txt", text);
    project.code_and_json(&[&BASE, more, &["--format", "json"]].concat())
}

/// How long a check took is not the same twice.
fn steady(text: &str) -> String {
    let mut parts = text.split(" after ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let unit = [" ms", " s"].into_iter().find(|unit| number.starts_with(unit));
        text += " after ";
        match unit.filter(|_| number.len() < part.len()) {
            Some(unit) => text = text + "0.0 s" + &number[unit.len()..],
            None => text += part,
        }
    }
    let characters: Vec<char> = text.chars().collect();
    let is_digit = |at: usize| characters.get(at).is_some_and(char::is_ascii_digit);
    let is_time = |at: usize| {
        characters.get(at) == Some(&'.') && at > 0 && is_digit(at - 1) && is_digit(at + 1)
    };
    let shown = (0..characters.len()).map(|at| match characters[at] {
        _ if is_time(at + 1) => 'T',
        _ if at > 0 && is_time(at - 1) => 'T',
        other => other,
    });
    shown.collect()
}

fn verdicts(report: &Value) -> Vec<String> {
    let one = |claim: &Value| {
        format!("{} {}", claim["claim"].as_str().unwrap(), claim["verdict"].as_str().unwrap())
    };
    report["claims"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn what_holds_is_verified() {
    let project = worked_on();
    project.write("passes", "");
    git(&project, &["add", "passes"]);
    git(&project, &["commit", "-q", "-m", "tests", "passes"]);
    insta::assert_snapshot!("verify_holds", shown(&project, TRUE, &[]));
}

#[test]
fn what_does_not_hold_is_refuted_with_its_evidence() {
    insta::assert_snapshot!("verify_refuted", shown(&worked_on(), FALSE, &[]));
}

#[test]
fn jobs_get_it_in_their_own_words() {
    let project = worked_on();
    for format in ["github", "junit"] {
        insta::assert_snapshot!(
            format!("verify_{format}"),
            shown(&project, FALSE, &["--format", format])
        );
    }
    let (code, log) = {
        project.write("answer.txt", FALSE);
        project.code_and_json(&[&BASE[..], &["--format", "sarif"]].concat())
    };
    assert_eq!(code, 3);
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 6);
    for result in results {
        let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
        assert_eq!(result["level"], "error");
        assert_eq!(
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "answer.txt"
        );
    }
}

#[test]
fn programs_get_the_report_of_check_and_the_claims() {
    let (code, report) = json(&worked_on(), FALSE, &[]);
    assert_eq!(code, 3);
    assert_eq!((&report["status"], &report["base"]), (&json!("accepted"), &json!("HEAD")));
    assert_eq!(
        report["summary"],
        json!({"made": 6, "verified": 0, "refuted": 6, "stale": 0, "unverifiable": 0, "corrected": 0,
            "not_made": 0})
    );
    assert!(
        report["claims"].as_array().unwrap().iter().all(|claim| claim["counts"] == true),
        "{report}"
    );
}

/// A repository whose check is a script that fails because of what the agent made.
fn with_script() -> TestProject {
    let project = TestProject::new(PROGRAM);
    git(&project, &["init", "-q", "-b", "main"]);
    project.write("counterfoil.toml", "[checks]\ntest = \"sh t.sh\"\n");
    project.write("t.sh", "! grep -q broken a.rs\n");
    project.write("a.rs", "fine\n");
    project.write("contracts/fix.yaml", CONTRACT);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "base"]);
    project.write("a.rs", "broken\n");
    project
}

#[test]
fn a_weakened_check_is_also_run_as_it_was_at_the_base() {
    let project = with_script();
    let weak = "exit 0\n";
    project.write("t.sh", weak);
    let claim = r#"{"files_changed": ["a.rs", "t.sh"], "tests_passing": true}"#;
    insta::assert_snapshot!("verify_weakened", shown(&project, claim, &[]));
    assert_eq!(project.read("t.sh"), weak, "the agent's version is there again");
    assert!(
        !project
            .state()
            .join("verify")
            .read_dir()
            .unwrap()
            .any(|entry| entry.unwrap().path().is_dir())
    );
    // The caller can allow the change.
    let (code, report) = json(&project, claim, &["--may-change", "t.sh"]);
    assert_eq!((code, &report["summary"]["verified"]), (0, &json!(2)), "{report}");
    // Honest work on the script passes, and is remarked on.
    project.write("t.sh", "# Looks for it.\n! grep -q broken a.rs\n");
    project.write("a.rs", "better\n");
    let (code, report) = json(&project, claim, &[]);
    assert_eq!((code, &report["summary"]["verified"]), (0, &json!(2)), "{report}");
    assert!(report.to_string().contains("it also passes as it was then"), "{report}");
}

#[test]
fn a_folder_that_keeps_make_from_running_anything_verifies_nothing() {
    let project = TestProject::new(PROGRAM);
    git(&project, &["init", "-q", "-b", "main"]);
    project.write("counterfoil.toml", "[checks]\ntest = \"make test\"\n");
    project.write("Makefile", "test:\n\t! grep -q broken a.rs\n");
    project.write("a.rs", "fine\n");
    project.write("contracts/fix.yaml", CONTRACT);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "base"]);
    project.write("test/more.py", "");
    let claim = r#"{"files_changed": ["a.rs", "test/more.py"], "tests_passing": true}"#;
    for (text, verdict) in [("better\n", "unverifiable"), ("broken\n", "refuted")] {
        project.write("a.rs", text);
        let (_, report) = json(&project, claim, &[]);
        let expected = format!("tests_passing {verdict}");
        assert!(verdicts(&report).contains(&expected), "{report:#}");
        assert_eq!(project.read("test/more.py"), "", "it is there again");
    }
    project.write("a.rs", "better\n");
    let (_, report) = json(&project, claim, &[]);
    let why = "make did not run the recipe of `test`, because the folder test is there";
    assert!(report.to_string().contains(why), "{report:#}");
}

const WEAK: &str = "exit 0\n";

/// A repository in which `verify` was killed while the script of the base was in the place of a weak
/// one.
fn killed_while_put_back() -> TestProject {
    let project = with_script();
    // The script of the base kills the program, once.
    let kills = format!(
        "p=$$; while [ \"$(readlink /proc/$p/exe)\" != '{PROGRAM}' ]; do p=$(awk '/^PPid/ {{print $2}}' /proc/$p/status); done; kill -9 $p; sleep 5\n"
    );
    project.write("t.sh", format!("mkdir ran 2>/dev/null && {{ {kills} }}\nexit 1\n"));
    git(&project, &["commit", "-q", "-a", "-m", "base"]);
    project.write("t.sh", WEAK);
    project.write("answer.txt", r#"{"files_changed": ["t.sh"], "tests_passing": true}"#);
    assert_eq!(project.run(&BASE).code, None, "it was to be killed");
    assert_ne!(project.read("t.sh"), WEAK);
    project
}

#[test]
fn files_that_a_killed_verify_put_back_are_put_forward_by_the_next_one() {
    let project = killed_while_put_back();
    std::fs::remove_dir(project.path("ran")).unwrap();
    let (code, report) =
        project.code_and_json(&[&BASE[..], &["--may-change", "t.sh", "--format", "json"]].concat());
    assert_eq!(project.read("t.sh"), WEAK, "{report}");
    assert_eq!((code, &report["summary"]["verified"]), (0, &json!(2)), "{report}");
}

#[test]
fn what_only_a_filter_could_compare_is_not_known() {
    let filter = ["config", "filter.rot.clean", "tr a-z n-za-m"];
    let kept = |attribute: &str, text: &str| {
        let project = TestProject::new(PROGRAM);
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &filter);
        project.write(".gitattributes", format!("*.dat {attribute}\n"));
        project.write("kept.dat", text);
        project.write("src/a.rs", "one\n");
        project.write("contracts/fix.yaml", CONTRACT);
        git(&project, &["add", "."]);
        git(&project, &["commit", "-q", "-m", "base"]);
        project.write("src/a.rs", "one\nmore\n");
        project
    };
    let claim = r#"{"files_changed": ["src/a.rs"]}"#;
    let project = kept("filter=rot", "abc\n");
    let (code, report) = json(&project, claim, &["--require", "files_changed"]);
    assert_eq!((code, verdicts(&report)), (3, vec!["files_changed unverifiable".to_owned()]));
    assert!(report.to_string().contains("kept.dat cannot be read or compared"), "{report}");
    // One that the filter leaves as it is can be compared, and so can one without a filter.
    for project in [kept("filter=rot", "123\n"), kept("text", "abc\n")] {
        let (code, report) = json(&project, claim, &["--require", "files_changed"]);
        assert_eq!((code, verdicts(&report)), (0, vec!["files_changed verified".to_owned()]));
    }
}

#[test]
fn a_text_that_is_refused_is_not_verified() {
    let project = worked_on();
    for (text, status) in [("{\"files_changed\": 3}", "rejected"), ("I am done.", "absent")] {
        let (code, report) = json(&project, text, &[]);
        assert_eq!((code, &report["status"], &report["claims"]), (1, &json!(status), &json!([])));
    }
    let words = shown(&project, "I am done.", &[]);
    assert!(words.contains("exit 1") && words.contains("C0101"), "{words}");
}

#[test]
fn what_is_required_must_be_verified_and_nothing_else_counts() {
    let project = worked_on();
    let text = r#"{"files_changed": ["src/a.rs"], "tests_passing": true}"#;
    for (more, code) in [
        (&[][..], 3),
        // The files do not agree, but only the tests are asked for; and they fail.
        (&["--require", "tests_passing"], 3),
        (&["--require", "tests_passing", "--check", "test=true"], 0),
        (&["--require", "tests_passing", "--no-commands"], 3),
        // A claim that is not made is not verified.
        (&["--require", "report"], 3),
        (&["--require", "commit"], 3),
        (&["--require", "files_changed"], 3),
    ] {
        let (exit, report) = json(&project, text, more);
        assert_eq!(exit, code, "{more:?}: {:?}", verdicts(&report));
    }
    let (_, report) = json(&project, text, &["--require", "report", "--no-commands"]);
    assert_eq!(verdicts(&report), ["files_changed refuted", "tests_passing unverifiable"]);
    assert_eq!(report["not_made"][0]["claim"], "report", "{report}");
    // A claim that the contract ignores is looked at when a job asks for it.
    let (code, report) = json(&project, FALSE, &["--require", "commit"]);
    assert_eq!(code, 3);
    assert!(verdicts(&report).contains(&"commit refuted".to_owned()), "{report}");
}

#[test]
fn without_commands_nothing_runs() {
    let project = worked_on();
    let text = r#"{"files_changed": ["src/a.rs", "new.txt"], "tests_passing": true, "checks": ["cmd: touch ran"]}"#;
    let (code, report) = json(&project, text, &["--no-commands"]);
    assert_eq!(
        (code, verdicts(&report)),
        (
            0,
            ["checks unverifiable", "files_changed verified", "tests_passing unverifiable"]
                .map(str::to_owned)
                .into()
        )
    );
    assert!(!project.path("ran").exists());
}

#[test]
fn an_agent_does_not_say_what_it_is_checked_by() {
    let project = worked_on();
    project.write("counterfoil.toml", "[checks]\ntest = \"true\"\n");
    let text =
        r#"{"files_changed": ["src/a.rs", "new.txt", "counterfoil.toml"], "tests_passing": true}"#;
    let (code, report) = json(&project, text, &[]);
    assert_eq!((code, verdicts(&report)[1].as_str()), (3, "tests_passing refuted"));
    assert!(
        report["notes"][0].as_str().unwrap().contains("the checks of the base are used"),
        "{report}"
    );
}

#[test]
fn questions_that_make_no_sense_are_refused_with_the_way_out() {
    let project = worked_on();
    project.write("answer.txt", TRUE);
    let with = |changes: &[(&str, &str)], more: &[&str]| {
        let mut arguments: Vec<String> = BASE.iter().map(|word| (*word).to_owned()).collect();
        for (from, to) in changes {
            for word in &mut arguments {
                if word == from {
                    (*to).clone_into(word);
                }
            }
        }
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        project.snapshot_verbatim(&arguments)
    };
    std::fs::create_dir_all(project.path("elsewhere")).unwrap();
    let cases = [
        with(&[("HEAD", "no-such-branch")], &[]),
        with(&[("HEAD", "--output=x")], &[]),
        with(&[("scene/fix", "scene/fax")], &[]),
        with(&[("answer.txt", "none.txt")], &[]),
        with(&[], &["--repo", "nowhere"]),
        with(&[], &["--require", "tests_pasing"]),
        with(&[], &["--check", "test="]),
        with(&[], &["--check", "test"]),
        with(&[], &["--check", "tset=false"]),
    ];
    for case in &cases {
        assert!(case.contains("exit 2"), "{case}");
    }
    insta::assert_snapshot!("verify_usage", cases.join("\n"));
    assert!(!project.path("x").exists());
}

#[test]
fn a_check_that_nothing_runs_and_one_that_is_not_there_are_errors() {
    let project = worked_on();
    project.write("answer.txt", TRUE);
    let run = |more: &[&str]| project.snapshot_verbatim(&[&BASE[..], more].concat());
    // Commands that a result names may be checks: any name will do, unless it is misspelled.
    assert!(run(&["--check", "smoke=true"]).contains("exit 3"));
    let without = CONTRACT.replace("  checks: { kind: commands, allow: ['test -e *'] }\n", "");
    project.write("contracts/fix.yaml", without);
    project.write("counterfoil.toml", "[checks]\ntests = \"true\"\n");
    git(&project, &["commit", "-q", "-am", "without commands"]);
    let unused = run(&["--check", "smoke=true"]);
    assert!(unused.contains("runs the check 'smoke'; its claims run test"), "{unused}");
    let missing = run(&["--require", "tests_passing"]);
    assert!(missing.contains("there is no check 'test'; did you mean 'tests'?"), "{missing}");
    assert!(unused.contains("exit 2") && missing.contains("exit 2"), "{unused}{missing}");
    // What is named on the command line is there.
    assert!(run(&["--require", "tests_passing", "--check", "test=true"]).contains("exit 0"));
}

#[test]
fn unfinished_work_fails_in_strict_mode_only() {
    let project = worked_on();
    project.write("src/a.rs", "// TODO: \u{1b}[2J later\nfn a() -> u8 {\n    todo!()\n}\n");
    project.write("passes", "");
    project.write("answer.txt", r#"{"files_changed": ["src/a.rs", "new.txt", "passes"]}"#);
    let run = |more: &[&str]| project.run(&[&BASE[..], more].concat());
    let lax = run(&["--format", "json"]);
    assert_eq!(lax.code, Some(0), "{}{}", lax.stdout, lax.stderr);
    assert!(lax.json().get("unfinished").is_none(), "it is off by default");
    let strict = run(&["--strict", "--format", "json"]);
    assert_eq!(strict.code, Some(3), "{}", strict.stderr);
    let report = strict.json();
    let places = report["unfinished"].as_array().unwrap();
    let kinds: Vec<String> =
        places.iter().map(|place| format!("{} {}", place["line"], place["kind"])).collect();
    assert_eq!(kinds, ["1 \"comment\"", "3 \"placeholder\""]);
    let human = run(&["--strict"]).stdout;
    assert!(human.contains("unfinished: 2 places\n  src/a.rs:1: comment: // TODO:"), "{human}");
    let github = run(&["--strict", "--format", "github"]).stdout;
    assert!(
        github.contains("::error file=src/a.rs,line=3,title=unfinished%3A placeholder::todo!()"),
        "{github}"
    );
    let sarif = run(&["--strict", "--format", "sarif"]).json();
    let result = &sarif["runs"][0]["results"][1];
    assert_eq!(result["ruleId"], "unfinished/placeholder");
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(rules[index]["id"], result["ruleId"]);
    let junit = run(&["--strict", "--format", "junit"]).stdout;
    assert!(junit.contains("name=\"complete\"") && junit.contains("failures=\"1\""), "{junit}");
    // What was there at the base is not the agent's.
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "unfinished"]);
    project.write(
        "src/a.rs",
        "fn b() {\n    b();\n}\n\n// TODO: \u{1b}[2J later\nfn a() -> u8 {\n    todo!()\n}\n",
    );
    project.write("answer.txt", r#"{"files_changed": ["src/a.rs"]}"#);
    let unchanged = run(&["--strict"]);
    assert_eq!(unchanged.code, Some(0), "{}", unchanged.stdout);
    assert!(unchanged.stdout.contains("no unfinished work was added"), "{}", unchanged.stdout);
}

#[test]
fn outside_of_a_repository_there_is_nothing_to_compare_with() {
    let project = TestProject::new(PROGRAM);
    project.write("answer.txt", TRUE);
    project.write("contracts/fix.yaml", CONTRACT);
    let words = project.snapshot_verbatim(&BASE);
    assert!(words.contains("exit 2") && words.contains("is not in a git repository"), "{words}");
}

#[test]
fn the_text_can_come_from_a_pipe_and_from_a_subfolder() {
    let project = worked_on();
    let text = r#"{"files_changed": ["a.rs", "../new.txt"]}"#;
    let arguments = [
        "verify",
        "--contract",
        "contracts/fix.yaml",
        "--base",
        "HEAD",
        "--repo",
        "src",
        "--format",
        "json",
    ];
    let output = project.command(&arguments).write_stdin(text).output();
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (output.code, verdicts(&report)),
        (Some(0), vec!["files_changed verified".to_owned()]),
        "{report}"
    );
}

#[test]
fn what_was_committed_since_the_base_counts_as_well() {
    let project = worked_on();
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "work"]);
    let sha = git(&project, &["rev-parse", "HEAD"]).trim().to_owned();
    let text = format!(r#"{{"files_changed": ["src/a.rs", "new.txt"], "commit": "{sha}"}}"#);
    let (code, report) = json(&project, &text, &[]);
    assert_eq!((code, verdicts(&report)), (3, vec!["files_changed refuted".to_owned()]));
    project.write("answer.txt", &text);
    let arguments = BASE.map(|word| if word == "HEAD" { "HEAD~1" } else { word });
    let (code, report) = project.code_and_json(
        &[
            &arguments[..],
            &["--require", "commit", "--require", "files_changed", "--format", "json"],
        ]
        .concat(),
    );
    assert_eq!(code, 0, "{report}");
    // What was there at the base was not made since.
    let old = git(&project, &["rev-parse", "HEAD~1"]).trim().to_owned();
    project.write("answer.txt", text.replace(&sha, &old));
    let required = ["--require", "commit", "--format", "json"];
    let (code, report) = project.code_and_json(&[&arguments[..], &required].concat());
    assert_eq!(code, 3, "{report}");
    assert!(verdicts(&report).contains(&"commit refuted".to_owned()), "{report}");
}

#[test]
fn nothing_of_the_repository_is_touched() {
    let project = worked_on();
    git(&project, &["add", "new.txt"]);
    let look = || {
        let bytes = |name: &str| std::fs::read(project.path(name)).unwrap();
        let names = |folder: &Path| {
            let mut names: Vec<_> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        (
            bytes(".git/index"),
            git(&project, &["for-each-ref"]),
            names(&project.path("")),
            names(&project.path(".git")),
            bytes("src/a.rs"),
        )
    };
    project.write("answer.txt", TRUE);
    let before = look();
    project.snapshot_verbatim(&BASE);
    assert!(look() == before, "the index, the references or the files differ");
}

#[test]
fn tests_that_were_added_are_counted() {
    let project = worked_on();
    project.write("src/a.rs", "#[test]\nfn one() {\n    assert_eq!(1, 1 + zero());\n}\n");
    for (claimed, verdict) in [(1, "verified"), (7, "refuted")] {
        let text =
            format!(r#"{{"files_changed": ["src/a.rs", "new.txt"], "tests_added": {claimed}}}"#);
        let (_, report) = json(&project, &text, &[]);
        assert_eq!(verdicts(&report)[1], format!("tests_added {verdict}"), "{report}");
    }
}

#[test]
fn tests_of_a_language_that_nobody_can_read_are_not_said_to_be_missing() {
    let project = worked_on();
    git(&project, &["checkout", "-q", "--", "."]);
    project.write("tests/test_one.sh", "[ 1 = 1 ]\n");
    let text = r#"{"files_changed": ["tests/test_one.sh"], "tests_added": 1}"#;
    let (_, report) = json(&project, text, &[]);
    assert_eq!(verdicts(&report)[1], "tests_added unverifiable", "{report}");
    std::fs::rename(project.path("tests/test_one.sh"), project.path("notes.txt")).unwrap();
    let (_, report) = json(&project, &text.replace("tests/test_one.sh", "notes.txt"), &[]);
    assert_eq!(verdicts(&report)[1], "tests_added refuted", "{report}");
}

#[test]
fn a_tag_does_not_take_the_place_of_the_base() {
    let project = worked_on();
    git(&project, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    git(&project, &["commit", "-q", "-a", "-m", "work"]);
    git(&project, &["tag", "origin/main"]);
    let arguments = |base| {
        [
            "verify",
            "answer.txt",
            "--contract",
            "scene/fix",
            "--contracts",
            "contracts",
            "--base",
            base,
        ]
    };
    project.write("answer.txt", TRUE);
    let refused = project.run(&arguments("origin/main"));
    refused.expect(2, &["refs/remotes/origin/main and refs/tags/origin/main"]);
    let (code, report) = project.code_and_json(
        &[&arguments("refs/remotes/origin/main")[..], &["--format", "json"]].concat(),
    );
    assert_eq!(code, 3, "{report}");
    assert!(verdicts(&report).contains(&"files_changed verified".to_owned()), "{report}");
}

/// An agent can configure the repository before it is verified.
#[test]
fn what_is_configured_of_the_file_system_hides_nothing() {
    let project = TestProject::new(PROGRAM);
    git(&project, &["init", "-q", "-b", "main"]);
    project.write("run.sh", "true\n");
    project.write(".gitignore", "*.log\n");
    project.write("contracts/fix.yaml", CONTRACT);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "base"]);
    let verify = |files: &str| json(&project, &format!(r#"{{"files_changed": [{files}]}}"#), &[]);
    git(&project, &["config", "core.fileMode", "false"]);
    git(&project, &["config", "core.ignoreCase", "true"]);
    assert_eq!(verify("").0, 0);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.path("run.sh"), mode).unwrap();
    project.write("new.LOG", "x");
    let (code, report) = verify("");
    assert_eq!((code, &verdicts(&report)[..]), (3, &["files_changed refuted".to_owned()][..]));
    let (code, report) = verify(r#""run.sh", "new.LOG""#);
    assert_eq!(code, 0, "{report}");
}

#[test]
fn a_tracked_file_is_no_noise() {
    let project = TestProject::new(PROGRAM);
    git(&project, &["init", "-q", "-b", "main"]);
    project.write("src/target/x86.rs", "one\n");
    project.write("contracts/fix.yaml", CONTRACT);
    git(&project, &["add", "-f", "."]);
    git(&project, &["commit", "-q", "-m", "base"]);
    project.write("src/target/x86.rs", "two\n");
    project.write("target/new", "made by a tool\n");
    for (files, code) in [("[]", 3), (r#"["src/target/x86.rs"]"#, 0)] {
        let (exit, report) = json(&project, &format!(r#"{{"files_changed": {files}}}"#), &[]);
        assert_eq!(exit, code, "{files}: {report}");
    }
}

#[test]
fn what_was_edited_after_a_verify_was_killed_is_kept() {
    let project = killed_while_put_back();
    project.write("t.sh", "exit 0 # mine\n");
    let again = project.run(&BASE);
    assert_eq!(project.read("t.sh"), "exit 0 # mine\n", "{again:?}");
    assert!(again.stderr.contains("it was changed since"), "{again:?}");
}

#[test]
fn a_default_is_not_said_to_be_claimed() {
    let project = worked_on();
    let list = "{ type: array, items: { type: string }, default: [] }";
    let contract = CONTRACT.replace("files_changed: [string]", &format!("files_changed: {list}"));
    project.write("contracts/fix.yaml", contract);
    project.commit_all("a default, and the work");
    let said = "claimed:  nothing: the field is missing, and its default is none";
    let without = shown(&project, r#"Done. {"tests_passing": false}"#, &[]);
    assert!(without.contains(said), "{without}");
    let with = shown(&project, r#"Done. {"tests_passing": false, "files_changed": []}"#, &[]);
    assert!(with.contains("claimed:  none") && !with.contains(said), "{with}");
}

/// An agent that rewrites its contract would choose what it claims.
#[test]
fn the_contract_is_that_of_the_base() {
    let lie = r#"{"files_changed": ["never.rs"]}"#;
    let weak = CONTRACT.replace("  files_changed: { kind: files-changed }\n", "");
    let later = weak.replace("version: 1", "version: 2");
    for (name, changes) in [
        ("not at all", vec![]),
        ("it claims nothing", vec![("contracts/fix.yaml", Some(weak.as_str()))]),
        ("it is no contract", vec![("contracts/fix.yaml", Some("a: 1\n"))]),
        ("it moved", vec![("contracts/fix.yaml", None), ("contracts/other.yaml", Some(&weak))]),
        ("there is a later version", vec![("contracts/other.yaml", Some(&later))]),
    ] {
        for by in [&["scene/fix", "--contracts", "contracts"][..], &["contracts/fix.yaml"]] {
            let project = worked_on();
            for (path, text) in &changes {
                match text {
                    Some(text) => drop(project.write(path, text)),
                    None => std::fs::remove_file(project.path(path)).unwrap(),
                }
            }
            project.write("answer.txt", lie);
            let base = ["verify", "answer.txt", "--base", "HEAD", "--format", "json", "--contract"];
            let (_, report) = project.code_and_json(&[&base, by].concat());
            assert!(verdicts(&report).iter().any(|it| it.contains("refuted")), "{name} {report:#}");
            let notes = report["notes"].to_string();
            let noted = |what: &str| notes.contains(&format!("{what} the base commit"));
            let has = |path: &str| changes.iter().any(|(changed, _)| *changed == path);
            assert_eq!(
                noted("contracts changed since"),
                has("contracts/fix.yaml"),
                "{name} {report:#}"
            );
            // A file is named by itself, without the others in its folder.
            let is_seen = by.len() == 3 && has("contracts/other.yaml");
            assert_eq!(noted("contracts added since"), is_seen, "{name} {report:#}");
            assert!(!notes.contains("used as they are"), "{name} {report:#}");
        }
    }
    // A contract that is not committed yet can be used.
    let project = worked_on();
    project.write("contracts/new.yaml", CONTRACT.replace("scene/fix", "scene/new"));
    project.write("answer.txt", lie);
    let args = ["verify", "answer.txt", "--contract", "scene/new", "--contracts", "contracts"];
    let more = ["--base", "HEAD", "--format", "json"];
    let (_, report) = project.code_and_json(&[&args[..], &more].concat());
    assert!(verdicts(&report).iter().any(|it| it.contains("refuted")), "{report:#}");
    let note = "contracts added since the base commit are used as they are: contracts/new.yaml";
    assert!(report["notes"].to_string().contains(note), "{report:#}");
}
