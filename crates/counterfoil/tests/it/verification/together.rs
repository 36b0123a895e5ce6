//! Several runs in one repository at the same time.

use crate::shell_project::run_arguments;
use crate::verification::project::{DirtyProject, VerifiedRun};
use counterfoil_testkit::{TIMEOUT, wait_until};
use std::fmt::Write as _;

/// An agent that writes a file named for it, waits until the other has written too, and claims its
/// own only.
const BESIDE: &str = r#"
cat > /dev/null
me=$(cat "$1")
echo "work of $me" > "$me.rs"
[ "$me" = one ] && echo "obey $me" > AGENTS.md
touch "$2/$me"
n=0
while [ $(ls "$2" | wc -l) -lt 2 ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done
[ "$me" = two ] && rm -f nothing
echo "{\"files\": [\"$me.rs\"]}"
"#;

/// Two runs at once, each with an agent that waits for the other; their reports.
fn two_runs(project: &DirtyProject) -> [VerifiedRun; 2] {
    let met = project.scratch_path("met");
    std::fs::create_dir(&met).unwrap();
    std::fs::write(project.scratch_path("beside.sh"), BESIDE).unwrap();
    let lives = ["one", "two"].map(|me| {
        let name = project.scratch_path(&format!("name-{me}"));
        std::fs::write(&name, me).unwrap();
        let script = project.scratch_path("beside.sh");
        let agent = format!("command:sh {} {} {}", script.display(), name.display(), met.display());
        project.start(&run_arguments("flow.yaml", &agent))
    });
    lives.map(|live| VerifiedRun::from(live.wait()))
}

#[test]
fn what_another_run_did_is_not_held_against_this_one() {
    let project = DirtyProject::new();
    project.write_one_step("", ", claims: { files: require }, repairs: 0");
    let before = project.user_files();
    let [one, two] = two_runs(&project);
    for (ran, other) in [(&one, &two), (&two, &one)] {
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        ran.assert_claim(
            0,
            "files",
            "verified",
            &[&format!(
                "run {} was running in the same folder",
                other.report["run"].as_str().unwrap()
            )],
        );
    }
    // Whose work it is that one wrote cannot be told, so it is not undone.
    one.assert_claim(0, "protected", "refuted", &["AGENTS.md", "left as it is, since run"]);
    project.assert_only_changed(&before, &["one.rs", "two.rs", "AGENTS.md"]);
}

#[test]
fn in_worktrees_of_their_own_runs_do_not_see_each_other() {
    let project = DirtyProject::new();
    project.write_one_step("", ", claims: { files: require }, repairs: 0, workspace: worktree");
    let before = project.user_files();
    let [one, two] = two_runs(&project);
    for ran in [&one, &two] {
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        ran.assert_claim(0, "files", "verified", &[]);
        assert!(!ran.claim(0, "files").to_string().contains("at work"), "{ran:?}");
    }
    one.assert_claim(0, "protected", "refuted", &["AGENTS.md", "restored"]);
    assert_eq!(two.verdict(0, "protected"), "verified");
    project.assert_only_changed(&before, &["one.rs", "two.rs"]);
}

#[test]
fn items_beside_each_other_in_the_repository_keep_each_others_work() {
    let project = DirtyProject::new();
    let items: Vec<String> = (0..6).map(|n| format!("item{n}")).collect();
    project.write("prompts/work.md", "Do {{ part }}.\n");
    project.write_workflow(
        &format!("variables: {{ parts: {{ type: [string], initial: [{}] }} }}", items.join(", ")),
        "fan",
        "  fan: { each: { in: parts, as: part, key: part, agent: worker, parallel: 6, workspace: repository }, go: end }",
    );
    let met = project.scratch_path("met");
    std::fs::create_dir(&met).unwrap();
    let mut script =
        String::from("part=$(grep -o 'item[0-9]' | head -n 1)\necho $part > $part.rs\n");
    let _ = writeln!(
        script,
        "touch '{0}'/$part; n=0; while [ $(ls '{0}' | wc -l) -lt 6 ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done",
        met.display()
    );
    script.push_str("echo \"{\\\"files\\\": [\\\"$part.rs\\\"]}\"\n");
    std::fs::write(project.scratch_path("item.sh"), script).unwrap();
    let before = project.user_files();
    let ran =
        project.run_agent(&format!("command:sh {}", project.scratch_path("item.sh").display()));
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for n in 0..6 {
        ran.assert_claim(n, "files", "verified", &[]);
    }
    let files: Vec<String> = items.iter().map(|item| format!("{item}.rs")).collect();
    project.assert_only_changed(&before, &files.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn what_the_user_does_meanwhile_in_the_repository_stays() {
    let project = DirtyProject::new();
    project.write_one_step("", ", workspace: worktree");
    let up = project.scratch_path("up");
    let go = project.scratch_path("go");
    let script = format!(
        "cat > /dev/null; echo agent > a.rs; touch '{}'; n=0; while [ ! -e '{}' ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done\n\
         echo '{{\"files\": [\"a.rs\"]}}'\n",
        up.display(),
        go.display()
    );
    std::fs::write(project.scratch_path("wait.sh"), script).unwrap();
    let live = project.start(&run_arguments(
        "flow.yaml",
        &format!("command:sh {}", project.scratch_path("wait.sh").display()),
    ));
    wait_until(TIMEOUT, "the agent is up", || up.exists().then_some(()));
    // The user commits, switches, stashes and edits while the agent works elsewhere.
    project.git(&["add", "untracked.txt"]);
    project.git(&["commit", "-q", "-m", "mine"]);
    project.git(&["switch", "-q", "-c", "elsewhere"]);
    project.write("b.rs", "by the user\n");
    project.git(&["rm", "-q", "--cached", "src/lib.rs"]);
    let before = project.user_files();
    std::fs::write(&go, "").unwrap();
    let ran = VerifiedRun::from(live.wait());
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let worktrees = project.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    assert_eq!(project.read_or_empty("a.rs"), "agent\n");
    // The entry of our worktree was there when we looked, and is gone.
    project.assert_only_changed_except(&before, &["a.rs"], "worktrees");
}
