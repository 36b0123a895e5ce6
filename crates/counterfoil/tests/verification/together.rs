//! Several at work in one repository at once.

use crate::house::{LONG, starting, until};
use crate::scene::{Ran, Scene};
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
fn two_runs(scene: &Scene) -> [Ran; 2] {
    let met = scene.folder().join("said/met");
    std::fs::create_dir(&met).unwrap();
    std::fs::write(scene.folder().join("said/beside.sh"), BESIDE).unwrap();
    let lives = ["one", "two"].map(|me| {
        let name = scene.folder().join(format!("said/name-{me}"));
        std::fs::write(&name, me).unwrap();
        let script = scene.folder().join("said/beside.sh");
        let agent = format!("command:sh {} {} {}", script.display(), name.display(), met.display());
        scene.start(&starting("flow.yaml", &agent))
    });
    lives.map(|live| Ran::of(live.end()))
}

#[test]
fn what_another_run_did_is_not_held_against_this_one() {
    let scene = Scene::new();
    scene.one_step("", ", claims: { files: require }, repairs: 0");
    let before = scene.belongings();
    let [one, two] = two_runs(&scene);
    for (ran, other) in [(&one, &two), (&two, &one)] {
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        ran.held(
            0,
            "files",
            "verified",
            &[&format!(
                "run {} was at work in the same folder",
                other.report["run"].as_str().unwrap()
            )],
        );
    }
    // Whose work it is that one wrote cannot be told, so it is not undone.
    one.held(0, "protected", "refuted", &["AGENTS.md", "left as it is, since run"]);
    scene.holds(&before, &["one.rs", "two.rs", "AGENTS.md"]);
}

#[test]
fn in_worktrees_of_their_own_runs_do_not_see_each_other() {
    let scene = Scene::new();
    scene.one_step("", ", claims: { files: require }, repairs: 0, workspace: worktree");
    let before = scene.belongings();
    let [one, two] = two_runs(&scene);
    for ran in [&one, &two] {
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        ran.held(0, "files", "verified", &[]);
        assert!(!ran.claim(0, "files").to_string().contains("at work"), "{ran:?}");
    }
    one.held(0, "protected", "refuted", &["AGENTS.md", "restored"]);
    assert_eq!(two.verdict(0, "protected"), "verified");
    scene.holds(&before, &["one.rs", "two.rs"]);
}

#[test]
fn items_beside_each_other_in_the_repository_keep_each_others_work() {
    let scene = Scene::new();
    let items: Vec<String> = (0..6).map(|n| format!("item{n}")).collect();
    scene.file("prompts/work.md", "Do {{ part }}.\n");
    scene.flow(
        &format!("variables: {{ parts: {{ type: [string], initial: [{}] }} }}", items.join(", ")),
        "fan",
        "  fan: { each: { in: parts, as: part, key: part, agent: worker, parallel: 6, workspace: repository }, go: end }",
    );
    let met = scene.folder().join("said/met");
    std::fs::create_dir(&met).unwrap();
    let mut script =
        String::from("part=$(grep -o 'item[0-9]' | head -n 1)\necho $part > $part.rs\n");
    let _ = writeln!(
        script,
        "touch '{0}'/$part; n=0; while [ $(ls '{0}' | wc -l) -lt 6 ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done",
        met.display()
    );
    script.push_str("echo \"{\\\"files\\\": [\\\"$part.rs\\\"]}\"\n");
    std::fs::write(scene.folder().join("said/item.sh"), script).unwrap();
    let before = scene.belongings();
    let ran =
        scene.play_as(&format!("command:sh {}", scene.folder().join("said/item.sh").display()));
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for n in 0..6 {
        ran.held(n, "files", "verified", &[]);
    }
    let files: Vec<String> = items.iter().map(|item| format!("{item}.rs")).collect();
    scene.holds(&before, &files.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn what_the_user_does_meanwhile_in_the_repository_stays() {
    let scene = Scene::new();
    scene.one_step("", ", workspace: worktree");
    let up = scene.folder().join("said/up");
    let go = scene.folder().join("said/go");
    let script = format!(
        "cat > /dev/null; echo agent > a.rs; touch '{}'; n=0; while [ ! -e '{}' ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done\n\
         echo '{{\"files\": [\"a.rs\"]}}'\n",
        up.display(),
        go.display()
    );
    std::fs::write(scene.folder().join("said/wait.sh"), script).unwrap();
    let live = scene.start(&starting(
        "flow.yaml",
        &format!("command:sh {}", scene.folder().join("said/wait.sh").display()),
    ));
    until(LONG, "the agent is up", || up.exists().then_some(()));
    // The user commits, switches, stashes and edits while the agent works elsewhere.
    scene.git(&["add", "untracked.txt"]);
    scene.git(&["commit", "-q", "-m", "mine"]);
    scene.git(&["switch", "-q", "-c", "elsewhere"]);
    scene.file("b.rs", "by the user\n");
    scene.git(&["rm", "-q", "--cached", "src/lib.rs"]);
    let before = scene.belongings();
    std::fs::write(&go, "").unwrap();
    let ran = Ran::of(live.end());
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let worktrees = scene.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    assert_eq!(scene.read("a.rs"), "agent\n");
    // The entry of our worktree was there when we looked, and is gone.
    scene.holds_but(&before, &["a.rs"], "worktrees");
}
