//! Valid and invalid `counterfoil.toml` files.

use counterfoil_verify::claims::{Check, CheckCommand, VerifyConfig};
use std::time::Duration;

#[test]
fn a_check_has_three_forms() {
    let config = VerifyConfig::parse(
        r#"
[checks]
test = "cargo test"
lint = ["cargo", "clippy", "--", "-D warnings"]
slow = { run = ["make", "all"], timeout = "1h30m", report = "target/junit.xml" }
[claims]
noise = ["**/gen/**"]
"#,
    )
    .unwrap();
    assert_eq!(config.checks["test"], Check::shell("cargo test"));
    assert_eq!(config.checks["lint"].run.to_string(), "cargo clippy -- '-D warnings'");
    let slow = &config.checks["slow"];
    assert_eq!(
        (slow.timeout, slow.report.as_deref()),
        (Duration::from_mins(90), Some("target/junit.xml"))
    );
    assert_eq!(slow.run, CheckCommand::Argv(vec!["make".into(), "all".into()]));
    let noise = config.noise();
    for (path, is_noise) in [
        ("gen/a", true),
        ("x/gen/a/b", true),
        ("src/__pycache__/a.cpython-312.pyc", true),
        ("a.pyc", true),
        ("node_modules/x/index.js", true),
        ("target/debug/x", true),
        (".DS_Store", true),
        (".coverage", true),
        ("src/target.rs", false),
        ("src/generate.rs", false),
        ("coverage.py", false),
    ] {
        assert_eq!(noise.is_match(path), is_noise, "{path}");
    }
}

#[test]
fn the_nearest_file_counts() {
    let temp = tempfile::tempdir().unwrap();
    let (top, folder) = (temp.path(), temp.path().join("web"));
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(VerifyConfig::load(&folder, top).unwrap(), VerifyConfig::default());
    std::fs::write(top.join("counterfoil.toml"), "[checks]\ntest = 'top'").unwrap();
    assert_eq!(VerifyConfig::load(&folder, top).unwrap().checks["test"], Check::shell("top"));
    std::fs::write(folder.join("counterfoil.toml"), "[checks]\ntest = 'web'").unwrap();
    let config = VerifyConfig::load(&folder, top).unwrap();
    assert_eq!(config.checks["test"], Check::shell("web"));
    assert_eq!(config.source, Some(folder.join("counterfoil.toml")));
}

#[test]
fn a_file_that_cannot_be_used_says_why() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("counterfoil.toml");
    let load = || VerifyConfig::load(temp.path(), temp.path()).unwrap_err().to_string();
    std::fs::create_dir(&path).unwrap();
    assert!(
        load().ends_with(
            "counterfoil.toml: it is not a file; remove it or put the configuration there"
        )
    );
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, b"# \xff").unwrap();
    assert!(load().ends_with("byte 2 is not UTF-8; save it as UTF-8"));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(load().ends_with("it is longer than 1048576 bytes"));
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let mistakes = [
        "[checks]\ntest = 'a'\ntest = 'b'",
        "[check]\ntest = 'a'",
        "[checks]\ntest = 7",
        "[checks]\nlint = 'x'\ntest = ''",
        "[checks]\ntest = []",
        "[checks]\ntest = { run = 'a', timout = '1m' }",
        "[checks]\ntest = { timeout = '1m' }",
        "[checks]\ntest = { run = 'a', timeout = 'soon' }",
        "[checks]\ntest = { run = 'a', timeout = '-1m' }",
        "[checks]\ntest = { run = 7 }",
        "[checks]\ntest = ['a', 7]",
        "[claims]\nnoise = ['ok/**',\n  '[']",
        "[claims]\nnoise = 'all'",
        "[claims]\nquiet = []",
        "[checks\ntest = 'a'",
    ];
    let messages: Vec<String> = mistakes
        .iter()
        .map(|text| format!("{text}\n---\n{}\n", VerifyConfig::parse(text).unwrap_err()))
        .collect();
    insta::assert_snapshot!(messages.join("\n==========\n"));
}
