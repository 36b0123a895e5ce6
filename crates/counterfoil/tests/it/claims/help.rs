//! The help of `verify`: its examples work as they stand.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;

const IMPLEMENTED: &str = r#"{"status": "success", "summary": "Added a constant", "files_changed": [],
  "files_added": ["a.py"]}"#;
const TESTED: &str = r#"{"dod_achieved": true, "checks": [{"criterion": "the tests pass", "passed": true}],
  "test_results": {"total": 1, "passed": 1, "failed": 0}}"#;

#[test]
fn the_examples_of_verify_work_as_they_stand() {
    let project = TestProject::nested(PROGRAM);
    project.init_git();
    project.write("Makefile", "test:\n\t@echo '1 passed in 0.01s'\n");
    project.write(".gitignore", "*.txt\n");
    project.commit_all("base");
    project.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    project.write("a.py", "x = 1\n");
    project.write("answer.txt", IMPLEMENTED);
    project.write("qa.txt", TESTED);
    let bin = project.root_path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("counterfoil")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let help = project.run(&["verify", "--help"]).stdout;
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    assert_eq!(examples.matches("counterfoil verify").count(), 3, "{examples}");
    let mut shell = project.command_of("sh", &["-euc", examples]);
    let output = shell.env("PATH", &path).output();
    output.expect(0, &["2 made, 2 verified", "1 made, 1 verified"]);
    // A claim that does not hold is noticed.
    project.write("b.py", "y = 2\n");
    let (first, _) = examples.split_once("\n\n").unwrap();
    let mut shell = project.command_of("sh", &["-euc", first]);
    shell.env("PATH", &path).output().expect(3, &["failed because of: files_added"]);
}
