//! Reports against the evidence: the project's checks, lists of files, tests that go missing, files
//! that an agent may not write.

use super::{TASK, clean, complete, counted, kept, passed, scenario, work};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::json;

/// A project with a check `test` that looks for a word in `src/lib.rs`.
fn tested() -> Scenario {
    scenario()
        .file(
            "counterfoil.toml",
            "[checks]\ntest = \"echo looking for two; grep two src/lib.rs && echo '1 passed in 0.1s'\"\n",
        )
        .commit()
}

#[test]
fn qa_does_not_pass_against_the_evidence() {
    let ran = tested()
        .implements("1 + 0")
        .says("qa", counted())
        .says("manager", kept())
        .implements("1 // not two")
        .says("qa", counted())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    let verdicts = ["qa#1", "qa#2"].map(|name| ran.attempt(name)["claims"][0]["verdict"].clone());
    assert_eq!(verdicts, ["refuted", "verified"]);
    let prompt = ran.prompt("implement#2", 1);
    assert!(
        prompt.contains("grep two src/lib.rs && echo '1 passed in 0.1s'` exited with 1"),
        "{prompt}"
    );
    assert_eq!(
        ran.attempts()[..3],
        ["implement#1 accepted", "qa#1 accepted", "manager#1 accepted"]
    );
}

#[test]
fn no_gate_opens_while_a_check_fails_that_passed_at_the_base() {
    for name in ["build", "type-check", "lint", "format", "test"] {
        let ran = scenario()
            .file("counterfoil.toml", &format!("[checks]\n{name} = \"grep -q one src/lib.rs\"\n"))
            .commit()
            .says("implementer", work("Renamed it"))
            .writes("src/lib.rs", "pub fn two() {}\n")
            .says("qa", passed())
            .says("manager", kept())
            .completes("1 + 1")
            .plays();
        assert_eq!(
            (ran.ended(), &ran.report["iterations"]),
            (("done", None, 0), &json!(2)),
            "{name}"
        );
        let prompt = ran.prompt("implement#2", 1);
        assert!(
            prompt.contains(&format!("- {name} (`grep -q one src/lib.rs`): failed")),
            "{prompt}"
        );
    }
}

#[test]
fn tests_that_fail_since_before_the_run_are_for_a_person_to_accept() {
    let ran = tested().completes("1 + 0").plays();
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["confirm"]));
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("the check test failed before the run began, and still fails"));
    let ran = ran.answer_and_resume("confirm", "yes");
    assert_eq!(ran.ended(), ("done", None, 0));
}

/// A project with a check, and an implementer that makes it 2 and leaves these files.
fn writing(check: &str, base: &[(&str, &str)], files: &[(&str, &str)]) -> Scenario {
    let config = format!("[checks]\ntest = {}\n", json!(check));
    let project = base
        .iter()
        .fold(scenario().built_in_only(), |project, (path, text)| project.file(path, text))
        .file("counterfoil.toml", &config)
        .commit();
    let mut report = work("Made it 2, with a test");
    let mut quality = clean();
    for (path, _) in files {
        let known = base.iter().any(|(known, _)| known == path);
        let list = if known { "files_changed" } else { "files_added" };
        report[list].as_array_mut().unwrap().push(json!(path));
        quality["files_analyzed"].as_array_mut().unwrap().push(json!(path));
    }
    let project = project
        .says("implementer", report)
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    2\n}\n");
    files
        .iter()
        .fold(project, |project, (path, text)| project.writes(path, text))
        .says("qa", passed())
        .says("code-quality", quality)
        .says("manager", kept())
        .says("dod", complete("high"))
}

#[test]
fn a_test_script_may_be_added_and_extended_and_a_person_accepts_it() {
    for (before, after) in [
        (None, "grep -q 2 src/lib.rs\n"),
        (Some("test -f src/lib.rs\n"), "test -f src/lib.rs\ngrep -q 2 src/lib.rs\n"),
    ] {
        let base: Vec<_> = before.into_iter().map(|text| ("test.sh", text)).collect();
        let ran = writing("sh test.sh", &base, &[("test.sh", after)]).plays();
        assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["confirm"]));
        let question = ran.report["questions"][0]["question"].as_str().unwrap();
        let asked = "but: the check test runs test.sh, which an agent wrote.";
        assert!(question.contains(asked), "{question}");
        let ran = ran.answer_and_resume("confirm", "yes");
        assert_eq!(ran.ended(), ("done", None, 0), "{after}: {ran:?}");
    }
}

#[test]
fn files_that_a_check_does_not_run_are_nothing_to_ask_about() {
    let script = ("greet.sh", "echo hello\n");
    let more = ("greet.sh", "echo hello\necho \"$1\"\n");
    let test = ("test_greet.sh", "sh greet.sh\n");
    let manifest = |version: &str| {
        format!(
            "{{\n  \"version\": \"{version}\",\n  \"scripts\": {{\n    \"test\": \"sh test.sh\"\n  }}\n}}\n"
        )
    };
    let (one, two) = (manifest("1.0.0"), manifest("2.0.0"));
    // A program of that name is not needed: the function is in its place.
    for (check, base, files) in [
        ("sh test_greet.sh", vec![script, test], [more]),
        ("grep -q hello greet.sh", vec![script], [more]),
        ("test -s greet.sh && [ -f ./greet.sh ]", vec![], [more]),
        ("shellcheck() { true; }; shellcheck *.sh", vec![script], [more]),
        ("mypy() { true; }; mypy a.py", vec![("a.py", "a = 1\n")], [("a.py", "a = 2\n")]),
        (
            "python() { true; }; python -m mypy a.py",
            vec![("a.py", "a = 1\n")],
            [("a.py", "a = 2\n")],
        ),
        (
            "python() { true; }; python lint.py a.py",
            vec![("a.py", "a = 1\n"), ("lint.py", "")],
            [("a.py", "a = 2\n")],
        ),
        (
            "node() { echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; }; node --test a.test.js",
            vec![("a.test.js", "let a = 1;\n")],
            [("a.test.js", "let a = 1;\nlet b = 2;\n")],
        ),
        (
            "npm() { true; }; npm test",
            vec![("package.json", one.as_str())],
            [("package.json", two.as_str())],
        ),
        ("make() { true; }; make test", vec![script, ("Makefile", "test:\n")], [more]),
    ] {
        let ran = writing(check, &base, &files).plays();
        assert_eq!(ran.ended(), ("done", None, 0), "{check}: {ran:?}");
    }
}

/// A check, the files at the base, and the file that is written.
type Row<'r> = (&'r str, &'r [(&'r str, &'r str)], (&'r str, &'r str));

#[test]
fn the_author_of_what_a_check_runs_decides_nothing() {
    let ci = "checks/test.sh";
    let old = "grep -q 1 src/lib.rs\n";
    let base = [(ci, old)];
    let with = |line: &str| format!("{line}\n{old}");
    let ways = [
        "\texit 0",
        "exit 0;",
        "exec true",
        "trap 'exit 0' EXIT",
        "true || \\",
        "grep() { true; }",
        "echo 'test result: ok. 5 passed; 0 failed; 0 ignored'; exit 0",
    ]
    .map(with);
    let mut rows: Vec<Row<'_>> =
        ways.iter().map(|text| ("sh checks/test.sh", &base[..], (ci, text.as_str()))).collect();
    let always = "grep -q 2 src/lib.rs\nexit 0\n";
    for check in [
        "sh checks/test.sh",
        "sh ./checks/test.sh",
        "sh \"$PWD/checks/test.sh\"",
        "cd checks && sh ./test.sh",
        "sh -e <checks/test.sh",
        "for one in checks/*.sh; do sh $one || exit 1; done",
        "VERBOSE=1 sh checks/test.sh | cat",
        "cat checks/test.sh | sh",
    ] {
        rows.push((check, &[], (ci, always)));
    }
    let manifest = [("package.json", "{\n  \"test\": \"sh test.sh\"\n}\n")];
    rows.extend([
        ("sh 'checks/a test.sh'", &[][..], ("checks/a test.sh", always)),
        ("make() { true; }; make test", &[], ("Makefile", "test:\n\ttrue\n")),
        ("make() { true; }; make test", &[("rules.mk", "x:\n")], ("rules.mk", "test:\n")),
        ("just() { true; }; just test", &[], ("justfile", "test:\n")),
        ("python3() { true; }; python3 check.py", &[], ("check.py", "")),
        ("node() { true; }; timeout() { true; }; timeout 9 node check.js", &[], ("check.js", "")),
        ("true; ./check.py || true", &[("check.py", "fail()\n")], ("check.py", "a = 1\n")),
        ("npm() { true; }; npm test", &manifest, ("package.json", "{\n  \"test\": \"true\"\n}\n")),
    ]);
    for (check, base, file) in rows {
        let ran = writing(check, base, &[file]).plays();
        // A check that passes only because it was changed fails: it is run as it was.
        if ran.report.to_string().contains("it passes only with the change") {
            assert_ne!(ran.ended().0, "done", "{check}, {file:?}: {ran:?}");
            continue;
        }
        assert_eq!(ran.ended(), ("waiting", None, 4), "{check}, {file:?}: {ran:?}");
        let question = ran.report["questions"][0]["question"].as_str().unwrap();
        let asked = format!("the check test runs {}, which an agent wrote", file.0);
        assert!(question.contains(&asked), "{check}, {file:?}: {question}");
    }
}

#[test]
fn a_script_that_the_manager_wrote_is_asked_about_too() {
    let config = "[checks]\ntest = \"sh docs/test.sh\"\n";
    let ran = scenario()
        .built_in_only()
        .file("counterfoil.toml", config)
        .file("docs/test.sh", "true\n")
        .commit()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .writes("docs/test.sh", "exit 0\n")
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["confirm"]), "{ran:?}");
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("the check test runs docs/test.sh"), "{question}");
}

/// The verdict on a claim of an attempt.
fn verdict(ran: &ScenarioRun, attempt: &str, claim: &str) -> String {
    let told = ran.attempt(attempt);
    let found = told["claims"].as_array().unwrap().iter().rfind(|one| one["claim"] == claim);
    found.unwrap()["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn a_wrong_list_of_files_is_asked_about_and_corrected_without_redoing_the_work() {
    let mut wrong = work("Made it 2");
    wrong["files_changed"] = json!(["src/lib.rs", "README.md"]);
    let ran = scenario()
        .says("implementer", wrong)
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    2\n}\n")
        .completes("2")
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(1)));
    assert_eq!(ran.attempt("implement#1")["repairs_asked"], 1);
    assert!(ran.prompt("implement#1", 2).contains("did not change: README.md"));
    assert_eq!(verdict(&ran, "implement#1", "files_changed"), "verified");
}

#[test]
fn a_list_that_stays_wrong_starts_another_iteration_and_qa_never_sees_it() {
    let mut wrong = work("Made it 2");
    wrong["files_changed"] = json!(["docs/invented.md"]);
    let mut scenario = scenario();
    for _ in 0..3 {
        scenario = scenario
            .says("implementer", wrong.clone())
            .writes("src/lib.rs", "pub fn one() -> u32 {\n    2\n}\n");
    }
    let ran = scenario.says("manager", kept()).completes("1 + 1").plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    let prompt = ran.prompt("implement#2", 1);
    for part in ["# The last report did not agree", "docs/invented.md", "your predecessor's work"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let prompt = ran.prompt("qa#1", 1);
    assert!(prompt.contains("- modified: src/lib.rs") && !prompt.contains("invented"), "{prompt}");
}

/// A project whose `src/lib.rs` has a test, and an implementer that removes it for good.
fn removes_a_test() -> Scenario {
    let test = "#[test]\nfn counts() {\n    assert_eq!(one(), 1);\n}\n";
    let text = format!("pub fn one() -> u32 {{\n    1\n}}\n\n{test}");
    let scenario = scenario().file("src/lib.rs", &text).commit();
    (0..3).fold(scenario, |scenario, _| scenario.implements("2"))
}

#[test]
fn a_test_that_is_restored_when_it_is_asked_for_is_no_trouble() {
    let test = "#[test]\nfn counts() {\n    assert_eq!(one(), 1);\n}\n";
    let text = format!("pub fn one() -> u32 {{\n    1\n}}\n\n{test}");
    let ran = scenario()
        .file("src/lib.rs", &text)
        .commit()
        .implements("2")
        .says("implementer", work("Restored it"))
        .writes("src/lib.rs", &text.replace("    1\n", "    2 - 1\n"))
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.prompt("implement#1", 2).contains("1 test was removed: counts"));
}

#[test]
fn a_test_goes_only_if_a_person_agrees() {
    let ran = removes_a_test()
        .answer("removal", "yes")
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(
        ran.reason().contains("a person agreed: 1 test was removed: counts"),
        "{}",
        ran.reason()
    );
}

#[test]
fn what_a_person_says_of_a_missing_test_goes_to_the_implementer_and_is_asked_about_at_the_end() {
    let ran = removes_a_test()
        .answer("removal", "no: put it back, it is right")
        .says("manager", kept())
        .completes("1 // tested elsewhere")
        .plays();
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["confirm"]));
    let prompt = ran.prompt("implement#2", 1);
    for part in ["1 test was removed: counts", "A person says: put it back, it is right"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("1 test was removed: counts"), "{question}");
}

#[test]
fn a_wrong_report_of_the_manager_is_recorded_and_noted_and_goes_on() {
    let ran = scenario()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", clean())
        .says(
            "manager",
            json!({"updated": true, "artifacts_modified": ["README.md"], "summary": "Ticked it"}),
        )
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(1)));
    assert_eq!(verdict(&ran, "manager#1", "artifacts_modified"), "refuted");
    assert_eq!(ran.attempt("manager#1")["repairs_asked"], 0);
    assert!(ran.reason().contains("the report of the manager is refuted"), "{}", ran.reason());
    assert!(ran.prompt("dod#1", 1).contains("the report of the manager is refuted"));
}

#[test]
fn those_who_judge_write_nothing() {
    let ran = scenario()
        .implements("2")
        .says("qa", passed())
        .writes("src/lib.rs", "// QA made it pass\n")
        .says("code-quality", clean())
        .writes("lint.log", "fine\n")
        .says("manager", kept())
        .says("dod", complete("high"))
        .writes("DONE", "")
        .run(&TASK);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.read("src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n");
    assert!(!ran.path("lint.log").exists() && !ran.path("DONE").exists());
}

#[test]
fn the_manager_writes_documents_and_not_what_the_gates_passed() {
    let ran = scenario()
        .file("stories/US-1.md", "- [ ] two\n")
        .commit()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", clean())
        .says(
            "manager",
            json!({"updated": true, "artifacts_modified": ["stories/US-1.md"], "summary": "Ticked it"}),
        )
        .writes("stories/US-1.md", "- [x] two\n")
        .writes("src/lib.rs", "// tidied up\n")
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.read("stories/US-1.md"), "- [x] two\n");
    assert_eq!(ran.read("src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n");
}
