//! Test files and settings of a real repository that a step replaces by something else than a file.

use counterfoil_contract::claim::{ClaimPolicy, Verdict};
use counterfoil_verify::claims::WorkspaceView;
use counterfoil_verify::inventory::report;
use counterfoil_verify::workspace_diff::WorkspaceDiff;
use counterfoil_workspace::snapshot::{Settings, Snapshotter};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const TEST: &str = "def test_a():\n    assert add(1, 2) == 3\n";

/// Reads what a step does in a repository with one test file and settings.
fn observe<T>(step: impl Fn(&Path), read: impl Fn(&mut WorkspaceDiff) -> T) -> T {
    observe_in(|_| {}, step, read)
}

/// The same, with more files before the step.
fn observe_in<T>(
    prepare: impl Fn(&Path),
    step: impl Fn(&Path),
    read: impl Fn(&mut WorkspaceDiff) -> T,
) -> T {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    fs::write(folder.path().join("test_a.py"), TEST).unwrap();
    fs::write(folder.path().join("pytest.ini"), "[pytest]\n").unwrap();
    prepare(folder.path());
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "start"]);
    let mut snapshotter = Snapshotter::open(folder.path(), Settings::default());
    let before = snapshotter.snapshot();
    let mut observed = WorkspaceDiff::new(snapshotter, before, None);
    step(folder.path());
    observed.refresh();
    read(&mut observed)
}

/// A step and the verdict on it.
type Row = (&'static str, fn(&Path), Verdict);

#[test]
fn what_is_no_file_is_no_proof() {
    let rows: [Row; 9] = [
        ("nothing", |_| {}, Verdict::Verified),
        ("removed", |folder| fs::remove_file(folder.join("test_a.py")).unwrap(), Verdict::Refuted),
        (
            "a link to a copy",
            |folder| {
                fs::rename(folder.join("test_a.py"), folder.join("copy.txt")).unwrap();
                symlink("copy.txt", folder.join("test_a.py")).unwrap();
            },
            Verdict::Unverifiable,
        ),
        (
            "a link to nothing",
            |folder| {
                fs::remove_file(folder.join("test_a.py")).unwrap();
                symlink("/dev/null", folder.join("test_a.py")).unwrap();
            },
            Verdict::Unverifiable,
        ),
        (
            "a folder",
            |folder| {
                fs::remove_file(folder.join("test_a.py")).unwrap();
                fs::create_dir(folder.join("test_a.py")).unwrap();
                fs::write(folder.join("test_a.py/x"), "x").unwrap();
            },
            Verdict::Refuted,
        ),
        (
            "too long",
            |folder| {
                let long = format!("{TEST}# {}\n", "x".repeat(3 << 20));
                fs::write(folder.join("test_a.py"), long).unwrap();
            },
            Verdict::Unverifiable,
        ),
        (
            "settings behind a link",
            |folder| {
                fs::write(folder.join("x"), "[pytest]\naddopts = -k none\n").unwrap();
                fs::remove_file(folder.join("pytest.ini")).unwrap();
                symlink("x", folder.join("pytest.ini")).unwrap();
            },
            Verdict::Unverifiable,
        ),
        (
            "a new link to hooks",
            |folder| {
                fs::write(folder.join("x"), "collect_ignore = ['test_a.py']\n").unwrap();
                symlink("x", folder.join("conftest.py")).unwrap();
            },
            Verdict::Unverifiable,
        ),
        (
            "a new link to a program",
            |folder| symlink("test_a.py", folder.join("tool.py")).unwrap(),
            Verdict::Verified,
        ),
    ];
    for (title, step, expected) in rows {
        let delta = observe(step, |observed| observed.test_delta());
        assert_eq!(report(&delta, ClaimPolicy::Record).verdict, expected, "{title}: {delta:?}");
    }
}

/// A step and what was not examined after it.
type LinkRow = (&'static str, fn(&Path), &'static [&'static str]);

#[test]
fn a_link_with_the_name_of_a_source_file_is_not_examined() {
    let rows: [LinkRow; 4] = [
        (
            "new",
            |folder| symlink("test_a.py", folder.join("x.py")).unwrap(),
            &["x.py: it is a link"],
        ),
        (
            "to nothing",
            |folder| symlink("no", folder.join("x.js")).unwrap(),
            &["x.js: it is a link"],
        ),
        (
            "in the place of a file",
            |folder| {
                fs::remove_file(folder.join("test_a.py")).unwrap();
                symlink("/dev/null", folder.join("test_a.py")).unwrap();
            },
            &["test_a.py: it is a link"],
        ),
        ("a text", |folder| symlink("test_a.py", folder.join("x.md")).unwrap(), &[]),
    ];
    for (title, step, expected) in rows {
        let work = observe(step, WorkspaceView::unfinished_work);
        let unread: Vec<String> = work.unread.iter().map(ToString::to_string).collect();
        assert_eq!(unread, expected, "{title}: {work:?}");
    }
}

/// Settings are no language whose tests are counted.
#[test]
fn settings_do_not_make_tests_of_another_language_countable() {
    let step = |folder: &Path| {
        fs::write(folder.join("calc_test.rb"), "def test_a; end\n").unwrap();
        fs::write(folder.join("pytest.ini"), "[pytest]\nminversion = 7.0\n").unwrap();
    };
    assert_eq!(observe(step, WorkspaceView::test_counts), None);
}

/// Writes many files, as a formatter does.
fn write_many(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("many")).unwrap();
    for number in 0..1100 {
        fs::write(folder.join(format!("many/test_{number}.py")), text).unwrap();
    }
}

#[test]
fn a_step_may_change_any_number_of_files() {
    let report_of = |before: &str, after: &str, step: fn(&Path)| {
        observe_in(
            |folder| write_many(folder, before),
            |folder| {
                write_many(folder, after);
                step(folder);
            },
            |observed| report(&observed.test_delta(), ClaimPolicy::Record),
        )
    };
    let test = "def test_a():\n    assert f(1,2) == 1\n";
    let removes: fn(&Path) = |folder| fs::remove_file(folder.join("test_a.py")).unwrap();
    for (before, after) in [("x=1\n", "x = 1\n"), (test, &test.replace("1,2", "1, 2"))] {
        let kept = report_of(before, after, |_| {});
        assert_eq!(kept.verdict, Verdict::Verified, "{}", kept.reason);
        let removed = report_of(before, after, removes);
        assert_eq!(removed.verdict, Verdict::Refuted, "{}", removed.reason);
    }
}

#[test]
fn tests_that_check_nothing_are_not_counted_as_added() {
    let step = |folder: &Path| {
        let added = "def test_b():\n    pass\n\ndef test_c():\n    print('ok')\n\n\
                     @pytest.mark.skip\ndef test_d():\n    assert add(1, 1) == 2\n\n\
                     def test_e():\n    return\n\ndef test_f():\n    assert True\n\n\
                     def test_g():\n    assert add(2, 2) == 4\n";
        fs::write(folder.join("test_b.py"), format!("import pytest\n\n{added}")).unwrap();
    };
    let counts = observe(step, WorkspaceView::test_counts).unwrap();
    assert_eq!((counts.added, counts.removed), (1, 0), "{counts:?}");
    let named: Vec<String> = counts.in_vain.iter().map(ToString::to_string).collect();
    assert_eq!(named.len(), 5, "{named:?}");
    assert!(named[2].starts_with("test_d (test_b.py:") && named[2].ends_with("it is skipped"));
}
