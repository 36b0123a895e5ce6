//! `verify`: what is not known never passes, and what an honest agent says gets through.

use super::verify::{BASE, worked_on};
use crate::PROGRAM;
use crate::claims::journal::git;
use counterfoil_testkit::{CommandOutput, TestProject};
use std::process::Command;
use std::time::{Duration, Instant};

fn verify(project: &TestProject, answer: &str, more: &[&str]) -> CommandOutput {
    project.write("answer.txt", answer);
    project.run(&[&BASE, more].concat())
}

#[test]
fn an_absolute_path_into_the_workspace_is_understood() {
    let project = worked_on();
    let path = |name: &str| project.path(name).display().to_string();
    let answer = serde_json::json!({"files_changed": [path("src/a.rs"), path("new.txt")]});
    let output = verify(&project, &answer.to_string(), &[]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let outside = verify(&project, r#"{"files_changed": ["/etc/passwd"]}"#, &[]);
    assert_ne!(outside.code, Some(0), "{outside:?}");
}

#[test]
fn a_strict_job_fails_if_a_file_was_not_examined() {
    let project = worked_on();
    project.write("big.py", "x = 1\n".repeat(400_000) + "# TODO: finish\n");
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt", "big.py"]}"#;
    for format in ["human", "json", "sarif", "junit", "github"] {
        let output = verify(&project, answer, &["--strict", "--format", format]);
        assert_eq!(output.code, Some(3), "{format}: {output:?}");
        let all = output.stdout + &output.stderr;
        assert!(all.contains("big.py"), "{format}: {all}");
        assert!(!all.contains("no unfinished work was added"), "{format}: {all}");
    }
}

/// What fails a job is in every format, and what is only named does not fail it.
#[test]
fn a_file_in_another_language_is_a_note_in_every_format_and_does_not_fail() {
    let project = worked_on();
    project.write("Makefile", "test:\n\t./deploy.sh # TODO\n");
    project.write("deploy.sh", "echo deployed\n");
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt", "Makefile", "deploy.sh"]}"#;
    for format in ["human", "json", "sarif", "junit", "github"] {
        let output = verify(&project, answer, &["--strict", "--format", format]);
        assert_eq!(output.code, Some(0), "{format}: {output:?}");
        for name in ["Makefile", "deploy.sh", "no language in which unfinished work is found"] {
            assert!(output.stdout.contains(name), "{format}: no {name} in {output:?}");
        }
        // Without --strict, nothing is looked for.
        let lax = verify(&project, answer, &["--format", format]);
        let why = "no language in which unfinished work is found";
        assert!(lax.code == Some(0) && !lax.stdout.contains(why), "{format}: {lax:?}");
    }
}

#[test]
fn what_was_not_examined_has_a_level_and_a_place_for_programs() {
    let project = worked_on();
    project.write("deploy.sh", "echo deployed\n");
    project.write("big.py", "x = 1\n".repeat(400_000));
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt", "deploy.sh", "big.py"]}"#;
    let run = |format: &str| verify(&project, answer, &["--strict", "--format", format]);
    let report = run("json").json();
    let too_long = "it is longer than 2 MiB";
    let no_language = "it is in no language in which unfinished work is found";
    assert_eq!(
        report["not_examined"],
        serde_json::json!([
            {"file": "big.py", "reason": too_long, "counts": true},
            {"file": "deploy.sh", "reason": no_language, "counts": false},
        ])
    );
    assert_eq!(report["unfinished"], serde_json::json!([]));
    let sarif = run("sarif").json();
    let run_log = &sarif["runs"][0];
    let results = run_log["results"].as_array().unwrap();
    let shown: Vec<String> = results
        .iter()
        .map(|result| {
            let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(run_log["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
            let place = &result["locations"][0]["physicalLocation"];
            let (file, line) = (&place["artifactLocation"]["uri"], &place["region"]["startLine"]);
            format!("{} {} {file}:{line}", result["ruleId"], result["level"])
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#""unfinished/not-examined" "error" "big.py":1"#,
            r#""unfinished/not-examined" "note" "deploy.sh":1"#,
        ]
    );
    let github = run("github").stdout;
    let expected = format!(
        "::error file=big.py,title=not examined::whether work is unfinished is not known: {too_long}\n\
         ::notice file=deploy.sh,title=not examined::not examined for unfinished work: {no_language}\n"
    );
    assert_eq!(github, expected);
    let junit = run("junit").stdout;
    for part in ["name=\"complete\"", "type=\"unknown\"", "big.py: it is longer", "skipped=\"1\""] {
        assert!(junit.contains(part), "no {part} in {junit}");
    }
    assert!(junit.contains("name=\"complete: deploy.sh\""), "{junit}");
    let human = run("human").stdout;
    let expected = format!(
        "whether work is unfinished is not known:\n  big.py: {too_long}\n\
         not examined for unfinished work: 1 file\n  deploy.sh: {no_language}\n"
    );
    assert!(human.ends_with(&expected), "{human}");
}

#[test]
fn a_required_claim_that_is_not_made_is_counted_on_its_own_in_every_format() {
    let project = worked_on();
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt"]}"#;
    let run = |format: &str| {
        let output = verify(&project, answer, &["--require", "report", "--format", format]);
        assert_eq!(output.code, Some(3), "{format}: {output:?}");
        let is_said = format != "json" && output.stdout.contains("verifiable");
        assert!(!is_said, "{format}: {output:?}");
        output
    };
    let why = "the claim is required, but the result does not make it";
    let human = run("human").stdout;
    let end = format!(
        "  ✗ report: required but not made\n      evidence: {why}\n\n\
         claims: 1 made, 1 verified, 1 required but not made\nfailed because of: report\n"
    );
    assert!(human.ends_with(&end), "{human}");
    let report = verify(&project, answer, &["--require", "report", "--format", "json"]).json();
    assert_eq!(
        report["not_made"],
        serde_json::json!([{"claim": "report", "field": "report", "kind": "artifact",
            "reason": why, "counts": true}])
    );
    assert_eq!(report["claims"].as_array().unwrap().len(), 1, "{report:#}");
    let counts = ["made", "verified", "refuted", "unverifiable", "not_made"];
    assert_eq!(counts.map(|name| report["summary"][name].as_u64().unwrap()), [1, 1, 0, 0, 1]);
    let junit = run("junit").stdout;
    for part in [
        "type=\"not-made\"",
        "message=\"required but not made\"",
        "claims: 1 made, 1 verified, 1 required but not made",
    ] {
        assert!(junit.contains(part), "no {part} in {junit}");
    }
    let github = run("github").stdout;
    let expected = format!(
        "::error file=answer.txt,line=1,title=report required but not made::report: {why}\n"
    );
    assert_eq!(github, expected);
    let sarif = run("sarif").json();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "claim/artifact");
    assert_eq!(result["level"], "error");
}

#[test]
fn a_claim_that_only_the_contract_requires_is_a_note_if_it_is_not_made() {
    let project = worked_on();
    let contract = project.read("contracts/fix.yaml");
    let required = contract
        .replace("report: { kind: artifact }", "report: { kind: artifact, policy: require }");
    project.write("contracts/fix.yaml", required);
    git(&project, &["commit", "-qm", "require it", "contracts"]);
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt"]}"#;
    for format in ["human", "json", "sarif", "junit", "github"] {
        let output = verify(&project, answer, &["--format", format]);
        assert_eq!(output.code, Some(0), "{format}: {output:?}");
        let way_out = "require its field in the contract";
        assert!(output.stdout.contains(way_out), "{format}: {output:?}");
    }
}

#[test]
fn there_is_one_annotation_for_each_claim_that_is_not_verified() {
    let project = worked_on();
    let answer = "Done.\n\n{\"files_changed\": [\"src/a.rs\"], \"tests_passing\": true, \
                  \"report\": \"a%\\nb::error::\\u001b[2J.txt\"}";
    let args = ["--format", "github", "--no-commands"];
    let shown = verify(&project, answer, &args).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    for (line, (command, claim)) in std::iter::zip(
        &lines,
        [
            ("error", "files_changed refuted"),
            ("error", "report refuted"),
            ("notice", "tests_passing unverifiable"),
        ],
    ) {
        let start = format!("::{command} file=answer.txt,line=3,title={claim}::");
        assert!(line.starts_with(&start), "{line}");
    }
    assert!(lines[1].contains("a%25"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    // A SARIF log has the same line.
    let sarif = verify(&project, answer, &["--format", "sarif", "--no-commands"]).json();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 3, "{sarif:#}");
    for result in results {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["region"], serde_json::json!({"startLine": 3}), "{result:#}");
    }
    // Standard input is no file.
    let mut arguments = BASE.to_vec();
    arguments[1] = "-";
    let output = project.command(&[&arguments[..], &args].concat()).write_stdin(answer).output();
    assert!(output.stdout.starts_with("::error title=files_changed refuted::"), "{output:?}");
}

#[test]
fn a_base_that_a_shallow_clone_does_not_have_is_an_error_with_the_way_out() {
    let project = worked_on();
    let base = git(&project, &["rev-parse", "HEAD"]).trim().to_owned();
    project.commit_all("work");
    let clone = TestProject::nested(PROGRAM);
    let from = format!("file://{}", project.repo().display());
    clone.git(&["clone", "-q", "--depth=1", &from, "."]);
    clone.write("answer.txt", r#"{"files_changed": ["src/a.rs", "new.txt"]}"#);
    let verify = |base: &str| clone.run(&BASE.map(|word| if word == "HEAD" { base } else { word }));
    let way_out = ["the clone is shallow", "`git fetch --unshallow`", "`fetch-depth: 0`"];
    for base in [base.as_str(), "HEAD~1", ""] {
        verify(base).expect(2, &way_out);
    }
    clone.git(&["fetch", "-q", "--unshallow"]);
    verify(&base).expect(0, &["1 made, 1 verified"]);
    let unknown = verify("no-such-branch");
    unknown.expect(2, &["git knows no such commit; set --base"]);
}

#[test]
fn a_text_that_is_not_examined_as_text_is_named() {
    let project = worked_on();
    project.write("nul.py", "x = 1\0\n# TODO: finish\n");
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt", "nul.py"]}"#;
    verify(&project, answer, &["--strict"]).expect(3, &["nul.py"]);
}

#[test]
fn a_source_file_that_is_not_utf8_is_named_in_every_format_and_fails() {
    let project = worked_on();
    project.write("latin.py", b"# \xe9 TODO: finish\nx = 1\n");
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt", "latin.py"]}"#;
    for format in ["human", "json", "sarif", "junit", "github"] {
        let output = verify(&project, answer, &["--strict", "--format", format]);
        output.expect(3, &[]);
        for part in ["latin.py", "it is no text in UTF-8"] {
            assert!(output.stdout.contains(part), "{format}: no {part} in {output:?}");
        }
    }
}

#[test]
fn a_link_with_the_name_of_a_source_file_is_named_in_every_format_and_fails() {
    let project = worked_on();
    std::os::unix::fs::symlink("../outside.py", project.path("away.py")).unwrap();
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt", "away.py"]}"#;
    for format in ["human", "json", "sarif", "junit", "github"] {
        let output = verify(&project, answer, &["--strict", "--format", format]);
        output.expect(3, &[]);
        for part in ["away.py", "it is a link"] {
            assert!(output.stdout.contains(part), "{format}: no {part} in {output:?}");
        }
    }
}

#[test]
fn the_file_that_standard_input_is_redirected_from_is_no_change() {
    let project = worked_on();
    project.write("answer.txt", r#"{"files_changed": ["src/a.rs", "new.txt"]}"#);
    let line = r#""$0" "$@" < answer.txt"#;
    let mut arguments = vec!["-c", line, PROGRAM];
    arguments.extend(BASE.map(|word| if word == "answer.txt" { "-" } else { word }));
    project.command_of("sh", &arguments).output().expect(0, &["1 made, 1 verified"]);
    // Another one is.
    project.write("other.txt", "other\n");
    project.command_of("sh", &arguments).output().expect(3, &["other.txt"]);
}

#[test]
fn a_base_that_may_have_moved_with_the_agent_is_noted_in_every_format() {
    let project = worked_on();
    let said = "is the commit that is checked out, so commits of the agent are not seen";
    project.write("answer.txt", r#"{"files_changed": ["src/a.rs", "new.txt"]}"#);
    let run = |base: &str, format: &str| {
        let arguments = BASE.map(|word| if word == "HEAD" { base } else { word });
        let output = project.run(&[&arguments[..], &["--format", format]].concat());
        output.expect(0, &[]);
        output.stdout + &output.stderr
    };
    let commit = git(&project, &["rev-parse", "HEAD"]).trim().to_owned();
    for format in ["human", "json", "sarif", "junit", "github"] {
        for base in ["HEAD", "main"] {
            assert!(run(base, format).contains(said), "{base} {format}");
        }
        // The id of a commit does not move.
        for base in [commit.as_str(), &commit[..12]] {
            assert!(!run(base, format).contains(said), "{base} {format}");
        }
    }
    project.commit_all("work");
    assert!(!run("HEAD~1", "human").contains(said));
}

#[test]
fn notes_are_printed_in_every_format() {
    let project = worked_on();
    project.write("counterfoil.toml", "[checks]\ntest = \"true\"\n");
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt", "counterfoil.toml"]}"#;
    for format in ["human", "json", "sarif", "junit", "github"] {
        let output = verify(&project, answer, &["--format", format]);
        let all = output.stdout + &output.stderr;
        assert!(all.contains("counterfoil.toml changed since the base"), "{format}: {all}");
    }
}

#[test]
fn contracts_that_differ_from_the_base_are_noted_whether_the_result_is_accepted_or_not() {
    let project = worked_on();
    let contract = project.read("contracts/fix.yaml");
    project.write("contracts/fix.yaml", contract.replace("version: 1", "version: 3"));
    project.write("contracts/new.yaml", contract.replace("scene/fix", "scene/new"));
    let changed = "contracts changed since the base commit; those of that commit are used: \
                   contracts/fix.yaml";
    let used = "contracts added since the base commit are used as they are: contracts/new.yaml";
    let unused = "contracts added since the base commit are not used: contracts/new.yaml";
    let holds =
        r#"{"files_changed": ["src/a.rs", "new.txt", "contracts/fix.yaml", "contracts/new.yaml"]}"#;
    for (answer, code) in [(holds, 0), ("{}", 1), ("I am done.", 1)] {
        project.write("answer.txt", answer);
        for (name, added) in [("scene/fix", unused), ("scene/new", used)] {
            for format in ["human", "json", "sarif", "junit", "github"] {
                let arguments = BASE.map(|word| if word == "scene/fix" { name } else { word });
                let output = project.run(&[&arguments[..], &["--format", format]].concat());
                let all = format!("{}{}", output.stdout, output.stderr);
                assert_eq!(output.code, Some(code), "{answer} {name} {format}: {all}");
                for said in [changed, added] {
                    assert_eq!(all.matches(said).count(), 1, "{said} {answer} {format}: {all}");
                }
                assert_eq!(all.matches("contracts added").count(), 1, "{format}: {all}");
            }
        }
    }
}

/// The contract that is named is then not the one of the base, though its file is there.
#[test]
fn a_contract_with_a_new_name_or_version_is_not_said_to_be_that_of_the_base() {
    let said = "contracts with another name or version in the base commit are used as they are: contracts/fix.yaml";
    for (from, to, name) in
        [("version: 1", "version: 2", "scene/fix@2"), ("scene/fix", "scene/new", "scene/new")]
    {
        let project = worked_on();
        let contract = project.read("contracts/fix.yaml");
        project.write("contracts/fix.yaml", contract.replace(from, to));
        project.write("answer.txt", "I am done.");
        let output = project.run(&BASE.map(|word| if word == "scene/fix" { name } else { word }));
        output.expect(1, &[said]);
        assert!(!output.stderr.contains("those of that commit"), "{output:?}");
    }
}

#[test]
fn the_first_contract_of_a_project_is_noted_if_the_base_does_not_have_it() {
    let project = worked_on();
    let contract = project.read("contracts/fix.yaml");
    project.write("own/new.yaml", contract.replace("scene/fix", "scene/new"));
    project.write("answer.txt", r#"{"files_changed": ["src/a.rs", "new.txt", "own/new.yaml"]}"#);
    for by in [
        &["own/new.yaml"][..],
        &["scene/new", "--contracts", "own"],
        &["scene/new", "--contracts", "own", "--contracts", "contracts"],
        &["own/new.yaml", "--contracts", "own"],
    ] {
        let arguments =
            [&["verify", "answer.txt", "--base", "HEAD", "--contract"][..], by].concat();
        let output = project.run(&arguments);
        let said = "contracts added since the base commit are used as they are: own/new.yaml";
        assert_eq!(output.code, Some(0), "{by:?}: {output:?}");
        assert_eq!(output.stderr.matches(said).count(), 1, "{by:?}: {output:?}");
        assert_eq!(output.stderr.matches("note: contracts").count(), 1, "{by:?}: {output:?}");
    }
}

#[test]
fn a_check_with_nearly_the_name_of_another_is_an_error() {
    let project = worked_on();
    project.write("counterfoil.toml", "[checks]\ntests = \"true\"\n");
    git(&project, &["commit", "-qam", "misspelled"]);
    project.write("src/a.rs", "once\nmore\nagain\n");
    let answer = r#"{"files_changed": ["src/a.rs", "new.txt"], "tests_passing": true}"#;
    verify(&project, answer, &[]).expect(2, &["tests_passing", "did you mean 'tests'?"]);
}

#[test]
fn a_pipe_in_the_place_of_the_configuration_is_refused_at_once() {
    let project = worked_on();
    std::fs::remove_file(project.path("counterfoil.toml")).unwrap();
    let made = Command::new("mkfifo").arg(project.path("counterfoil.toml")).status();
    assert!(made.unwrap().success());
    for arguments in [&["runs"][..], &["doctor"], &["receipt", "last"], &BASE] {
        project.write("answer.txt", "{}");
        let began = Instant::now();
        let mut command = project.command(arguments);
        let output = command.env_remove("COUNTERFOIL_STATE").output();
        assert!(began.elapsed() < Duration::from_secs(20), "{arguments:?}");
        let all = output.stdout + &output.stderr;
        assert!(all.contains("counterfoil.toml"), "{arguments:?}: {all}");
    }
}
