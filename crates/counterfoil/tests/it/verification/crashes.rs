//! The program is killed while worktrees exist.

use crate::shell_project::run_arguments;
use crate::verification::project::{DirtyProject, VerifiedRun};
use counterfoil_testkit::{RunningCommand, TIMEOUT, processes_in_attempts, read_tree, wait_until};
use std::path::PathBuf;
use std::time::Duration;

/// An agent that does its work, says that it is up, and waits to be let go. What it finds already
/// done it tells, too.
const PATIENT: &str = r#"
part=$(grep -o 'part-[a-z]*' | head -n 1)
echo "$part $(ls part-*.rs 2> /dev/null | tr '\n' ' ')" >> "$1/seen"
echo "work" > "$part.rs"
echo "by $COUNTERFOIL_ATTEMPT" >> "$part.txt"
touch "$1/up-$part"
n=0
while [ ! -e "$1/go-$part" ] && [ ! -e "$1/go" ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done
echo "{\"files\": [\"$part.rs\"]}"
"#;

struct Stage {
    project: DirtyProject,
    signs: PathBuf,
}

impl Stage {
    fn new(top: &str, start: &str, states: &str) -> Self {
        let project = DirtyProject::new();
        project.write_workflow(top, start, states);
        let signs = project.scratch_path("signs");
        std::fs::create_dir(&signs).unwrap();
        std::fs::write(project.scratch_path("patient.sh"), PATIENT).unwrap();
        Self { project, signs }
    }

    fn agent(&self) -> String {
        format!(
            "command:sh {} {}",
            self.project.scratch_path("patient.sh").display(),
            self.signs.display()
        )
    }

    fn start(&self) -> RunningCommand {
        self.project.start(&run_arguments("flow.yaml", &self.agent()))
    }

    /// Waits for these parts to be at work.
    fn up(&self, parts: &[&str]) {
        for part in parts {
            let sign = self.signs.join(format!("up-{part}"));
            wait_until(TIMEOUT, &format!("{part} is up"), || sign.exists().then_some(()));
        }
    }

    fn let_go(&self, which: &str) {
        std::fs::write(self.signs.join(which), "").unwrap();
    }

    fn seen(&self) -> String {
        std::fs::read_to_string(self.signs.join("seen")).unwrap_or_default()
    }

    fn resume(&self) -> VerifiedRun {
        VerifiedRun::from(self.project.run(&["resume", "last", "--format", "json"]))
    }
}

#[test]
fn a_kill_before_folding_back_is_taken_up_in_a_fresh_worktree() {
    let stage = Stage::new(
        "",
        "work",
        "  work: { agent: worker, workspace: worktree, prompt: \"Do part-a.\", go: end }",
    );
    let before = stage.project.user_files();
    let live = stage.start();
    stage.up(&["part-a"]);
    assert!(live.kill());
    assert!(!read_tree(&stage.project.worktrees()).is_empty(), "a worktree was left behind");
    assert!(
        stage.project.read_or_empty("part-a.rs").is_empty(),
        "nothing is in the repository yet"
    );
    stage.let_go("go");
    let ran = stage.resume();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.outcomes(), ["cancelled", "accepted"]);
    assert_eq!(stage.seen(), "part-a \npart-a \n", "the second one began where the first did");
    assert_eq!(stage.project.read_or_empty("part-a.txt").lines().count(), 1);
    stage.project.assert_only_changed(&before, &["part-a.rs", "part-a.txt"]);
    ran.assert_no_processes();
    // What the lost attempt had done is not lost with it.
    let kept = read_tree(&stage.project.state().join("kept"));
    assert!(
        kept.iter()
            .any(|(path, (_, bytes))| path.extension().is_some_and(|ending| ending == "patch")
                && bytes.windows(9).any(|part| part == b"part-a.rs")),
        "{:?}",
        kept.keys()
    );
}

/// Three parts beside each other, each in a worktree.
fn three() -> Stage {
    Stage::new(
        "variables: { parts: { type: [string], initial: [part-a, part-b, part-c] } }",
        "fan",
        "  fan: { each: { in: parts, as: part, key: part, agent: worker, prompt: \"Do {{ part }}.\", parallel: 3 }, go: end }",
    )
}

#[test]
fn worktrees_of_a_fan_out_that_nobody_drives_any_more_are_cleaned_up_when_it_is_resumed() {
    let stage = three();
    let before = stage.project.user_files();
    let live = stage.start();
    stage.up(&["part-a", "part-b", "part-c"]);
    // The first is folded back before the kill; the others are not.
    stage.let_go("go-part-a");
    wait_until(TIMEOUT, "the first is folded back", || {
        stage.project.repo().join("part-a.rs").exists().then_some(())
    });
    wait_until(TIMEOUT, "that is journaled", || {
        (stage.project.count_events("workspace-folded") == 1).then_some(())
    });
    assert!(live.kill());
    stage.let_go("go");
    let ran = stage.resume();
    assert_eq!(
        stage.seen().lines().filter(|line| line.starts_with("part-a")).count(),
        1,
        "what is done is not done again"
    );
    assert_eq!(stage.seen().lines().filter(|line| line.starts_with("part-b")).count(), 2);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran.assert_no_processes();
    assert_eq!(stage.project.git(&["worktree", "list"]).lines().count(), 1);
    let all = ["part-a", "part-b", "part-c"]
        .map(|part| [format!("{part}.rs"), format!("{part}.txt")])
        .concat();
    stage.project.assert_only_changed(&before, &all.iter().map(String::as_str).collect::<Vec<_>>());
    for part in ["part-a", "part-b", "part-c"] {
        assert_eq!(
            stage.project.read_or_empty(format!("{part}.txt")).lines().count(),
            1,
            "{part} was worked on once, as far as anyone sees"
        );
    }
}

#[test]
fn a_run_that_is_cancelled_after_a_kill_leaves_patches_and_nothing_else() {
    let stage = three();
    let before = stage.project.user_files();
    let live = stage.start();
    stage.up(&["part-a", "part-b", "part-c"]);
    assert!(live.kill());
    stage.project.run(&["cancel", "last"]).expect(0, &[]);
    stage.project.assert_only_changed(&before, &[]);
    let run = stage.project.show_last()["run"].as_str().unwrap().to_owned();
    assert!(processes_in_attempts(&run).is_empty());
    let patches = read_tree(&stage.project.state().join("kept").join(&run));
    assert_eq!(
        patches
            .keys()
            .filter(|path| path.extension().is_some_and(|ending| ending == "patch"))
            .count(),
        3,
        "{:?}",
        patches.keys()
    );
}

#[test]
fn another_run_leaves_the_worktrees_of_a_killed_one_for_its_resumption() {
    let stage = Stage::new("", "work", "  work: { run: both, workspace: worktree, go: end }");
    let text = stage.project.read_or_empty("flow.yaml")
        + "workflows:\n  both:\n    start: first\n    states:\n      first: { agent: worker, prompt: \"Do part-a.\", go: second }\n      \
           second: { agent: worker, prompt: \"Do part-b.\", go: done }\n      done: { end: done }\n";
    stage.project.write("flow.yaml", text);
    let before = stage.project.user_files();
    let live = stage.start();
    stage.let_go("go-part-a");
    stage.up(&["part-b"]);
    let run = stage.project.show_last()["run"].as_str().unwrap().to_owned();
    assert!(live.kill());
    // Somebody else starts a run in the meantime, which sweeps what is nobody's.
    stage
        .project
        .write("other.yaml", "workflow: other\nstart: end\nstates:\n  end: { end: done }\n");
    stage.project.run_workflow("other.yaml", "script:none.yaml").expect(0, &[]);
    std::fs::remove_file(stage.project.repo().join("other.yaml")).unwrap();
    stage.let_go("go");
    let ran = VerifiedRun::from(stage.project.run(&["resume", &run, "--format", "json"]));
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    // The worktree is of both steps: what the first one did is still there for the second.
    let seen = stage.seen();
    let last = seen.lines().last().unwrap();
    assert!(last.starts_with("part-b") && last.contains("part-a.rs"), "{seen}");
    assert_eq!(seen.lines().filter(|line| line.starts_with("part-a")).count(), 1, "{seen}");
    stage
        .project
        .assert_only_changed(&before, &["part-a.rs", "part-a.txt", "part-b.rs", "part-b.txt"]);
    ran.assert_no_processes();
}

/// Moments that look random and can be had again.
struct Moments(u64);

impl Moments {
    fn next(&mut self, most: u64) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % most)
    }
}

#[test]
fn whenever_it_is_killed_the_work_is_brought_in_once_and_nothing_else_is_touched() {
    const KILLS: u32 = 12;
    let stage = three();
    stage.let_go("go");
    let before = stage.project.user_files();
    let (mut moments, mut kills) = (Moments(7), 0);
    let run = wait_until(TIMEOUT * 4, "the run is done", || {
        let known = stage.project.state().join("journal.db").exists();
        let runs = known
            .then(|| stage.project.run(&["runs", "--format", "json"]))
            .filter(|output| output.code == Some(0));
        let newest = runs.and_then(|output| output.json().get(0).cloned());
        if let Some(newest) = &newest
            && newest["outcome"] == "done"
        {
            return newest["run"].as_str().map(str::to_owned);
        }
        let live = match newest {
            None => stage.start(),
            Some(_) => stage.project.start(&["resume", "last"]),
        };
        if kills >= KILLS {
            live.wait();
            return None;
        }
        std::thread::sleep(moments.next(400));
        kills += u32::from(live.kill());
        None
    });
    let all = ["part-a", "part-b", "part-c"]
        .map(|part| [format!("{part}.rs"), format!("{part}.txt")])
        .concat();
    stage.project.assert_only_changed(&before, &all.iter().map(String::as_str).collect::<Vec<_>>());
    for part in ["part-a", "part-b", "part-c"] {
        assert_eq!(
            stage.project.read_or_empty(format!("{part}.txt")).lines().count(),
            1,
            "{part} was brought in once"
        );
    }
    assert!(processes_in_attempts(&run).is_empty());
}

#[test]
fn undo_leaves_what_was_written_while_nobody_drove_the_run() {
    let stage =
        Stage::new("", "work", "  work: { agent: worker, prompt: \"Do part-a.\", go: end }");
    let live = stage.start();
    stage.up(&["part-a"]);
    assert!(live.kill());
    let lost = stage.project.read("part-a.txt");
    stage.project.write("NOTES.md", "my own note\n");
    let undone = stage.project.run(&["undo", "last"]);
    undone.expect(2, &["has not ended", "counterfoil cancel"]);
    stage.let_go("go");
    let ran = stage.resume();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(stage.project.read("part-a.txt").len() > lost.len());
    let diff = stage.project.run(&["show", "last", "work", "--diff"]).stdout;
    assert!(diff.contains("+++ b/part-a.txt") && !diff.contains("NOTES.md"), "{diff}");
    let undone = stage.project.run(&["undo", "last"]);
    undone.expect(0, &["restored 1 file", "an attempt was lost", "NOTES.md"]);
    assert_eq!(stage.project.read("NOTES.md"), "my own note\n");
    assert_eq!(stage.project.read("part-a.txt"), lost);
}

#[test]
fn undo_names_what_an_attempt_wrote_that_was_lost_when_the_run_was_cancelled() {
    let stage =
        Stage::new("", "work", "  work: { agent: worker, prompt: \"Do part-a.\", go: end }");
    let deletes = format!("rm a.rs\n{PATIENT}");
    std::fs::write(stage.project.scratch_path("patient.sh"), deletes).unwrap();
    // The folder is written to during the attempt, and this file is deleted before.
    std::fs::remove_file(stage.project.path("b.rs")).unwrap();
    let live = stage.start();
    stage.up(&["part-a"]);
    assert!(live.kill());
    stage.project.run(&["cancel", "last"]).expect(0, &[]);
    let undone = stage.project.run(&["undo", "last"]);
    undone.expect(1, &["an attempt was lost", "not known who wrote", "part-a.rs", "part-a.txt"]);
    let listed = |name: &str| undone.stderr.lines().any(|line| line == format!("  {name}"));
    assert!(listed("a.rs") && !listed("b.rs"), "{undone:?}");
    assert!(!undone.stderr.contains("the run changed no files"), "{undone:?}");
    assert!(stage.project.path("part-a.rs").exists());
}
