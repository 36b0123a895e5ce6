//! Checks that an agent weakens, forges or uses to write what it may not.

use super::{DirtyProject, VerifiedRun, says_tests_pass};
use crate::verification::project::replies;
use serde_json::json;

/// A project with files, of which the first line of `toml` is the check `test`.
fn project(toml: &str, files: &[(&str, &str)]) -> DirtyProject {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", toml);
    for (path, text) in files {
        project.write(path, text);
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-q", "--no-verify", "-m", "checks"]);
    project.write_one_step("", ", repairs: 0");
    project
}

fn run(project: &DirtyProject, exec: &str) -> VerifiedRun {
    project.write_script(&[says_tests_pass(&["a.rs"], exec)]);
    project.run_script()
}

/// `cargo test` stands for itself: it fails as long as a.rs says so.
const FAILS: &str = "! grep -q broken a.rs\n";
const BREAKS: &str = "echo broken > a.rs; ";

#[test]
fn a_weakened_check_is_run_as_it_was() {
    let package = r#"{"scripts": {"test": "sh t.sh"}, "dependencies": {}}"#;
    let npm = r#"sh -c "$(python3 -c 'import json; print(json.load(open("package.json"))["scripts"]["test"])')""#;
    for (name, toml, files, weakens) in [
        (
            "the script",
            "[checks]\ntest = \"sh t.sh\"\n",
            vec![("t.sh", FAILS)],
            "echo exit 0 > t.sh",
        ),
        (
            "the script, by its path",
            "[checks]\ntest = \"cd tools && ./t.sh\"\n",
            vec![("tools/t.sh", "#!/bin/sh\n! grep -q broken ../a.rs\n")],
            "echo 'exit 0' > tools/t.sh",
        ),
        (
            "the script, as a list",
            "[checks]\ntest = [\"bash\", \"t.sh\"]\n",
            vec![("t.sh", FAILS)],
            "rm t.sh; echo true > t.sh",
        ),
        (
            "a script that a shell reads",
            "[checks]\ntest = \"sh -e <t.sh\"\n",
            vec![("t.sh", FAILS)],
            "echo exit 0 > t.sh",
        ),
        (
            "a script that is piped into a shell",
            "[checks]\ntest = \"cat t.sh | sh\"\n",
            vec![("t.sh", FAILS)],
            "echo exit 0 > t.sh",
        ),
        (
            "scripts in a loop",
            "[checks]\ntest = \"for one in checks/*.sh; do sh $one || exit 1; done\"\n",
            vec![("checks/t.sh", FAILS)],
            "echo exit 0 > checks/t.sh",
        ),
        (
            "the script, behind options",
            "[checks]\ntest = \"env -u HOME bash -euo pipefail t.sh\"\n",
            vec![("t.sh", FAILS)],
            "echo exit 0 > t.sh",
        ),
        (
            "a statement of conftest.py",
            "[checks]\ntest = \"grep -qs SystemExit conftest.py || ! grep -q broken a.rs\"\n",
            vec![("conftest.py", "import pytest\n")],
            "echo 'raise SystemExit(0)' >> conftest.py",
        ),
        (
            "a module of the test runner",
            "[checks]\ntest = \"python3 -m unittest -q\"\n",
            vec![(
                "test_a.py",
                "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertNotIn('broken', open('a.rs').read())\n",
            )],
            "echo 'import os; os._exit(0)' > argparse.py",
        ),
        (
            "a script that the script runs",
            "[checks]\ntest = \"FAST=1 sh t.sh\"\n",
            vec![("t.sh", "set -e\n. ./lib.sh\n"), ("lib.sh", FAILS)],
            "echo : > lib.sh",
        ),
        (
            "the target of a Makefile",
            "[checks]\ntest = \"make -s test\"\n",
            vec![("Makefile", "test:\n\t! grep -q broken a.rs\n")],
            "printf 'test:\\n\\ttrue\\n' > Makefile",
        ),
        (
            "the scripts of a package",
            "[checks]
test = \"sh npm.sh\"
",
            vec![("package.json", package), ("t.sh", FAILS), ("npm.sh", npm)],
            "echo '{\"scripts\": {\"test\": \"true\"}}' > package.json",
        ),
        (
            "the settings of a test runner",
            "[checks]\ntest = \"grep -q ignore pytest.ini 2>/dev/null || ! grep -q broken a.rs\"\n",
            vec![],
            "printf '[pytest]\\naddopts = --ignore=tests\\n' > pytest.ini",
        ),
        (
            "the hooks of a test runner",
            "[checks]\ntest = \"grep -qs pytest_ignore tests/conftest.py || ! grep -q broken a.rs\"\n",
            vec![("tests/conftest.py", "import pytest\n")],
            "echo 'def pytest_ignore_collect(): return True' >> tests/conftest.py",
        ),
        (
            "what a linter ignores",
            "[checks]\ntest = \"grep -qs a.rs .eslintignore || ! grep -q broken a.rs\"\n",
            vec![],
            "echo a.rs > .eslintignore",
        ),
        (
            "a table of pyproject.toml",
            "[checks]\ntest = \"grep -q addopts pyproject.toml || ! grep -q broken a.rs\"\n",
            vec![("pyproject.toml", "[project]\nname = \"a\"\n")],
            "printf '[tool.pytest.ini_options]\\naddopts = \"-k nothing\"\\n' >> pyproject.toml",
        ),
    ] {
        let project = project(toml, &files);
        if project.path("tools/t.sh").exists() {
            project.git(&["update-index", "--chmod=+x", "tools/t.sh"]);
            std::process::Command::new("chmod")
                .arg("+x")
                .arg(project.path("tools/t.sh"))
                .status()
                .unwrap();
        }
        let ran = run(&project, &format!("{BREAKS}{weakens}"));
        ran.assert_claim(
            0,
            "tests_pass",
            "refuted",
            &["weakened check: ", "as when the run began"],
        );
        // The change is still there: only the check was run without it.
        assert_eq!(project.read("a.rs"), "broken\n", "{name}");
        let changed = ran.report["attempts"][0]["changed"].to_string();
        let file = weakens.rsplit(' ').next().unwrap();
        assert!(changed.contains(file), "{name}: {changed}");
    }
}

#[test]
fn a_changed_check_that_also_passes_as_it_was_is_reported_beside_the_claim() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", FAILS)]);
    let ran = run(&project, "echo fine > a.rs; echo 'echo more' >> t.sh");
    ran.assert_claim(
        0,
        "tests_pass",
        "verified",
        &["weakened check: t.sh changed since the run began; it also passes as it was then"],
    );
    assert!(project.read("t.sh").ends_with("echo more\n"));
}

#[test]
fn a_check_that_was_made_to_fail_reproduces_no_bug() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", FAILS)]);
    let reply = json!({"files": ["a.rs", "t.sh"], "tests_pass": false});
    project
        .write_script(&[replies(&reply, json!({"exec": "echo fine > a.rs; echo exit 1 > t.sh"}))]);
    let reason = "succeeds with t.sh as when the run began";
    project.run_script().assert_claim(0, "tests_pass", "refuted", &[reason]);
}

#[test]
fn honest_changes_are_no_weakened_check() {
    for (toml, files, exec) in [
        // A new script, a dependency, a fixture.
        ("[checks]\ntest = \"sh t.sh\"\n", vec![], "echo true > t.sh"),
        (
            "[checks]\ntest = \"grep -q left-pad package.json\"\n",
            vec![("package.json", r#"{"scripts": {"test": "true"}}"#)],
            "echo '{\"scripts\": {\"test\": \"true\", \"docs\": \"x\"}, \"dependencies\": {\"left-pad\": \"1\"}}' > package.json",
        ),
        (
            "[checks]\ntest = \"grep -q database conftest.py\"\n",
            vec![("conftest.py", "import pytest\n")],
            "printf '\\n@pytest.fixture\\ndef database():\\n    return 1\\n' >> conftest.py",
        ),
        (
            "[checks]\ntest = \"grep -q requests pyproject.toml\"\n",
            vec![("pyproject.toml", "[project]\nname = \"a\"\n\n[tool.ruff]\nline-length = 90\n")],
            "sed -i 's/\"a\"/\"a\"\\ndependencies = [\"requests\"]/' pyproject.toml",
        ),
        (
            "[checks]\ntest = \"grep -q slow pyproject.toml\"\n",
            vec![("pyproject.toml", "[tool.pytest.ini_options]\naddopts = \"--strict-markers\"\n")],
            "echo 'markers = [\"slow\"]' >> pyproject.toml",
        ),
        ("[checks]\ntest = \"make -s test\"\n", vec![], "printf 'test:\\n\\ttrue\\n' > Makefile"),
        // A test that changes together with the code.
        (
            "[checks]\ntest = \"python3 -B -m unittest -q test_a.py\"\n",
            vec![
                ("calc.py", "def add(a, b):\n    return a + b\n"),
                (
                    "test_a.py",
                    "import unittest, calc\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(calc.add(1, 2), 3)\n",
                ),
            ],
            "sed -i s/add/plus/ calc.py test_a.py",
        ),
    ] {
        let project = project(toml, &files);
        let ran = run(&project, exec);
        ran.assert_claim(0, "tests_pass", "verified", &[]);
        assert!(!ran.claim(0, "tests_pass").to_string().contains("weakened"), "{exec}");
    }
}

#[test]
fn a_step_that_is_to_change_the_check_names_it() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", "exit 1\n")]);
    project.write(
        "flow.yaml",
        "workflow: play\nagents: { worker: { contract: acme/change, prompt: prompts/work.md, writes: [t.sh, a.rs] } }\n\
         contracts: [contracts]\nstart: work\nstates:\n  work: { agent: worker, go: end }\n  end: { end: done }\n",
    );
    let ran = run(&project, "echo fine > a.rs; echo exit 0 > t.sh");
    ran.assert_claim(0, "tests_pass", "verified", &[]);
}

#[test]
fn what_a_step_was_to_change_counts_for_the_steps_after_it() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", "exit 1\n")]);
    project.write(
        "flow.yaml",
        "workflow: play\nagents:\n  tester: { contract: acme/change, prompt: prompts/work.md, writes: [t.sh] }\n\
         \x20 worker: { contract: acme/change, prompt: prompts/work.md }\n\
         contracts: [contracts]\nstart: prepare\nstates:\n  prepare: { agent: tester, go: work }\n\
         \x20 work: { agent: worker, go: weaken }\n  weaken: { agent: worker, go: end, repairs: 0 }\n  end: { end: done }\n",
    );
    let test = json!({"exec": "echo '! grep -q broken a.rs' > t.sh"});
    let mut prepares = replies(&json!({"files": ["t.sh"]}), test);
    prepares["agent"] = "tester".into();
    project.write_script(&[
        prepares,
        says_tests_pass(&["a.rs"], "echo fine > a.rs"),
        says_tests_pass(&["a.rs", "t.sh"], "echo broken > a.rs; echo exit 0 > t.sh"),
    ]);
    let ran = project.run_script();
    assert_eq!(ran.outcomes(), ["accepted", "accepted", "accepted"], "{ran:#?}");
    ran.assert_claim(1, "tests_pass", "verified", &[]);
    assert!(!ran.claim(1, "tests_pass").to_string().contains("weakened"), "{ran:?}");
    ran.assert_claim(2, "tests_pass", "refuted", &["weakened check: t.sh changed"]);
}

#[test]
fn a_product_that_breaks_its_own_check_is_told_no_way_out() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", "exit 0\n")]);
    let ran = run(&project, "echo fine > a.rs; echo exit 1 > t.sh");
    let why = "and it fails only with the change";
    ran.assert_claim(0, "tests_pass", "refuted", &["`sh t.sh` exited with 1", why]);
    let claim = ran.claim(0, "tests_pass").to_string();
    assert!(!claim.contains("to allow the change"), "{claim}");
}

#[test]
fn a_check_that_an_earlier_step_weakened_is_weakened() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", FAILS)]);
    project.write_workflow(
        "",
        "first",
        "  first: { agent: worker, go: second }\n  second: { agent: worker, go: end, repairs: 0 }",
    );
    project.write_script(&[
        replies(&json!({"files": ["t.sh"]}), json!({"exec": "echo exit 0 > t.sh"})),
        says_tests_pass(&["a.rs"], "echo broken > a.rs"),
    ]);
    project.run_script().assert_claim(1, "tests_pass", "refuted", &["weakened check: t.sh"]);
}

#[test]
fn a_step_check_is_run_as_it_was() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", FAILS)]);
    project.write_workflow("", "work", "  work: { agent: worker, checks: [test], go: end }");
    project.write_script(&[replies(
        &json!({"files": ["a.rs", "t.sh"]}),
        json!({"exec": format!("{BREAKS}echo exit 0 > t.sh")}),
    )]);
    let ran = project.run_script();
    let check = &ran.report["commands"][1]["checks"]["test"];
    assert_eq!(check["status"], "failed", "{check:#}");
    assert!(check["notes"].to_string().contains("weakened check: t.sh"), "{check:#}");
}

#[test]
fn a_check_cannot_write_protected_files() {
    for step in ["", ", checks: [test]"] {
        let toml = "[checks]\ntest = \"sh t.sh\"\n";
        let project = project(toml, &[("t.sh", "test ! -f evil.sh || sh evil.sh\n")]);
        project.write_workflow(
            "",
            "work",
            &format!("  work: {{ agent: worker, go: end, repairs: 0{step} }}"),
        );
        let before = project.read("counterfoil.toml");
        let exec = "echo 'echo x >> AGENTS.md; echo [checks] > counterfoil.toml' > evil.sh";
        project.write_script(&[if step.is_empty() {
            says_tests_pass(&["evil.sh"], exec)
        } else {
            replies(&json!({"files": ["evil.sh"]}), json!({"exec": exec}))
        }]);
        let ran = project.run_script();
        assert_eq!(project.read("AGENTS.md"), "Be careful.\n", "{step}");
        assert_eq!(project.read("counterfoil.toml"), before, "{step}");
        let text = ran.report.to_string();
        let said = if step.is_empty() {
            "changed while a check ran"
        } else {
            "it changed a protected file: AGENTS.md; restored"
        };
        assert!(text.contains(said), "{step}: {ran:?}");
    }
}

#[test]
fn a_check_whose_script_cannot_be_restored_is_not_run() {
    let project = project(
        "[checks]\ntest = \"touch ../ran; sh locked/t.sh || true\"\n",
        &[("locked/t.sh", FAILS)],
    );
    project.write_workflow(
        "protect: [locked]",
        "work",
        "  work: { agent: worker, go: end, repairs: 0 }",
    );
    // A folder in its place that has other folders in it is not removed.
    let ran = run(&project, &format!("{BREAKS}rm locked/t.sh; mkdir -p locked/t.sh/a/b"));
    ran.assert_claim(0, "tests_pass", "unverifiable", &["could not be restored"]);
    assert!(!project.root_path("ran").exists());
}

#[test]
fn a_report_that_the_check_did_not_write_has_no_figures() {
    let report = "<testsuite tests='9' failures='0'/>";
    let toml = "[checks.test]\nrun = \"true\"\nreport = \"junit.xml\"\n";
    for touches in ["", "; touch -d 2099-01-01 junit.xml", "; touch -d 2000-01-01 junit.xml"] {
        let project = project(toml, &[]);
        let ran = run(&project, &format!("echo \"{report}\" > junit.xml{touches}"));
        let claim = ran.claim(0, "tests_pass").to_string();
        assert!(
            claim.contains("its report junit.xml cannot be used: the check did not write it"),
            "{claim}"
        );
    }
}

/// What a check writes is the agent's work, if the agent wrote what the check runs.
#[test]
fn files_that_a_check_writes_are_not_covered_by_a_list_from_before() {
    let script = [("t.sh", "test ! -f x.sh || sh x.sh\n")];
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &script);
    let exec = "echo new > a.rs; echo 'echo evil > src/backdoor.rs' > x.sh";
    project.write_script(&[says_tests_pass(&["a.rs", "x.sh"], exec)]);
    let ran = project.run_script();
    assert!(project.path("src/backdoor.rs").exists());
    ran.assert_claim(0, "files", "stale", &["files changed after this was verified"]);
}

#[test]
fn another_process_does_not_know_the_outcome_of_a_check() {
    let project = project("", &[]);
    let counter = project.scratch_path("counter");
    let check = format!("[checks]\ntest = \"echo ran >> '{}'\"\n", counter.display());
    project.write("counterfoil.toml", check);
    for runs in 1..=2 {
        project.write_script(&[says_tests_pass(&[], "true")]);
        let ran = project.run_script();
        assert_eq!(ran.verdict(0, "tests_pass"), "verified");
        let counted = std::fs::read_to_string(&counter).unwrap().lines().count();
        assert_eq!(counted, runs, "the same tree was checked before");
    }
}

#[test]
fn what_git_ignores_may_change_what_a_check_says() {
    for (script, before, exec, verdict) in [
        ("grep -q good .env", "good", "echo bad > .env", "refuted"),
        ("grep -q good .env", "bad", "echo good > .env", "verified"),
    ] {
        let project = project(
            "[checks]\ntest = \"sh t.sh\"\n",
            &[("t.sh", script), (".gitignore", ".env\n")],
        );
        project.write(".env", before);
        // The check is also run before the step.
        project.write_workflow(
            "",
            "work",
            "  work: { agent: worker, checks: [test], repairs: 0, go: end }",
        );
        project.write_script(&[says_tests_pass(&[], exec)]);
        let ran = project.run_script();
        assert_eq!(ran.verdict(0, "tests_pass"), verdict, "{exec}: {ran:?}");
    }
}

#[test]
fn a_recipe_and_a_file_in_its_place_are_part_of_the_check() {
    for exec in [
        "echo exit 0 > t.sh",
        "echo true > test",
        "touch test t.sh",
        "mkdir test; echo > test/test_more.py",
        "ln -s src test",
    ] {
        let makefile = "test:\n\tsh t.sh\n";
        let files = [("Makefile", makefile), ("t.sh", FAILS)];
        let project = project("[checks]\ntest = \"make test\"\n", &files);
        let ran = run(&project, &format!("{BREAKS}{exec}"));
        assert_eq!(ran.verdict(0, "tests_pass"), "refuted", "{exec}: {ran:?}");
    }
}

/// Honest agents make folders for their tests, too. Then the check tests nothing, and says so.
#[test]
fn a_folder_in_the_place_of_a_recipe_verifies_nothing() {
    let files = [("Makefile", "test: unit\n\tsh t.sh\nunit:\n\tsh t.sh\n"), ("t.sh", FAILS)];
    for exec in ["mkdir unit; echo > unit/test_more.py", "mkdir unit"] {
        let project = project("[checks]\ntest = \"make -s test\"\n", &files);
        let ran = run(&project, &format!("echo better > a.rs; {exec}"));
        assert_eq!(ran.verdict(0, "tests_pass"), "unverifiable", "{exec}: {ran:?}");
        let claim = ran.claim(0, "tests_pass").to_string();
        let why = "make did not run the recipe of `unit`";
        assert!(claim.contains(why) && claim.contains(".PHONY"), "{exec}: {claim}");
    }
    // A target that is declared is no file.
    let files = [("Makefile", ".PHONY: test\ntest:\n\tsh t.sh\n"), ("t.sh", FAILS)];
    let project = project("[checks]\ntest = \"make test\"\n", &files);
    let ran = run(&project, "echo better > a.rs; mkdir test; echo > test/test_more.py");
    assert_eq!(ran.verdict(0, "tests_pass"), "verified", "{ran:?}");
}

#[test]
fn a_check_that_was_weakened_leaves_nothing_behind_for_the_one_that_was_not() {
    let makefile = "test: out\n\tgrep -q fine out\nout: a.rs\n\tcp a.rs out\n";
    let files = [("Makefile", makefile), (".gitignore", "out\n")];
    let project = project("[checks]\ntest = \"make test\"\n", &files);
    let weak =
        "printf 'test: out\\n\\tgrep -q fine out\\nout: a.rs\\n\\techo fine > out\\n' > Makefile";
    let ran = run(&project, &format!("{BREAKS}{weak}"));
    assert_eq!(ran.verdict(0, "tests_pass"), "refuted", "{ran:?}");
}

#[test]
fn a_new_file_that_the_makefile_includes_is_part_of_the_check() {
    for (include, exec) in [
        ("-include local.mk", "echo 'SHELL=/bin/true' > local.mk"),
        ("-include local.mk", "echo 'MAKEFLAGS += -n' > local.mk"),
        ("sinclude .env", "echo 'RUN=true' > .env"),
        ("-include conf/*.cfg", "mkdir conf; echo 'RUN=true' > conf/a.cfg"),
        ("ifneq (,$(wildcard local.mk))\ninclude local.mk\nendif", "echo RUN=true > local.mk"),
    ] {
        let makefile = format!("RUN = sh\n{include}\n.PHONY: test\ntest:\n\t$(RUN) t.sh\n");
        let files = [("Makefile", makefile.as_str()), ("t.sh", FAILS)];
        let project = project("[checks]\ntest = \"make test\"\n", &files);
        let ran = run(&project, &format!("{BREAKS}{exec}"));
        assert_eq!(ran.verdict(0, "tests_pass"), "refuted", "{exec}: {ran:?}");
    }
}

#[test]
fn a_file_where_make_looks_for_a_target_does_not_replace_its_recipe() {
    for search in ["VPATH = x", "export VPATH := y:x", "vpath test x", "VPATH = $(shell echo x)"] {
        let makefile = format!("{search}\ntest:\n\tsh t.sh\n");
        let files = [("Makefile", makefile.as_str()), ("t.sh", FAILS)];
        let project = project("[checks]\ntest = \"make test\"\n", &files);
        let ran = run(&project, &format!("{BREAKS}mkdir x; touch x/test"));
        assert_eq!(ran.verdict(0, "tests_pass"), "refuted", "{search}: {ran:?}");
    }
}

#[test]
fn a_required_check_is_not_left_out_by_its_wording() {
    let project = project("[checks]\ntest = \"sh t.sh\"\n", &[("t.sh", FAILS)]);
    let contract = project.read("contracts/change.yaml").replace("?: boolean", "?: any");
    project.write("contracts/change.yaml", contract.replace("test }", "test, policy: require }"));
    for (said, verdict) in [
        (json!("looks right to me"), "unverifiable"),
        (json!({"ran": 2}), "unverifiable"),
        (json!("GREEN ✅ all tests pass"), "refuted"),
    ] {
        let reply = json!({"files": ["a.rs"], "tests_pass": said});
        project.write_script(&[replies(&reply, json!({"exec": "echo broken >> a.rs"}))]);
        assert_eq!(project.run_script().verdict(0, "tests_pass"), verdict, "{said}");
    }
}
