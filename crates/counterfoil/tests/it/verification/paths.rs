//! Claimed paths with unusual spellings, or that lead outside of the repository.

use crate::verification::project::{DirtyProject, claims};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What an agent does and claims; what becomes of the claim, with words of the report; what else it
/// touched.
struct Case {
    claimed: Vec<String>,
    does: Value,
    verdict: &'static str,
    words: &'static [&'static str],
}

fn case(
    claimed: &[&str],
    does: Value,
    verdict: &'static str,
    words: &'static [&'static str],
) -> Case {
    Case { claimed: claimed.iter().map(|path| (*path).to_owned()).collect(), does, verdict, words }
}

/// Plays one case after the other, each in a state of its own.
fn play(project: &DirtyProject, cases: &[Case], touched: &[&str]) {
    let mut states = String::new();
    for n in 0..cases.len() {
        let next = if n + 1 == cases.len() { "end".to_owned() } else { format!("s{}", n + 1) };
        let _ = writeln!(states, "  s{n}: {{ agent: worker, go: {next} }}");
    }
    project.write_workflow("", "s0", &states);
    let reply = |case: &Case| {
        let claimed: Vec<&str> = case.claimed.iter().map(String::as_str).collect();
        claims(&claimed, case.does.clone())
    };
    let ran = project.run_replies(&cases.iter().map(reply).collect::<Vec<_>>(), touched);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for (n, case) in cases.iter().enumerate() {
        eprintln!("{:?}", case.claimed);
        ran.assert_claim(n, "files", case.verdict, case.words);
    }
}

#[test]
fn a_path_is_understood_as_it_is_meant_and_never_looked_at_outside() {
    let project = DirtyProject::new();
    let repo = project.repo().canonicalize().unwrap().display().to_string();
    let outside = project.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.txt"), "secret\n").unwrap();
    std::os::unix::fs::symlink(&outside, project.repo().join("out")).unwrap();
    std::os::unix::fs::symlink("src", project.repo().join("source")).unwrap();
    let write = |path: &str, text: &str| json!({"writes": {path: text}});
    play(
        &project,
        &[
            case(&[&format!("{repo}/a.rs")], write("a.rs", "1"), "verified", &["absolute path"]),
            case(
                &[&format!("{repo}/../repo/src/../a.rs")],
                write("a.rs", "2"),
                "verified",
                &["absolute path"],
            ),
            case(&["/etc/hostname"], json!({}), "refuted", &["outside of the workspace"]),
            case(
                &[&format!("{repo}-of-others/a.rs")],
                json!({}),
                "refuted",
                &["outside of the workspace"],
            ),
            case(&["src/../a.rs", "./a.rs"], write("a.rs", "3"), "verified", &[]),
            case(
                &["../outside/secret.txt"],
                json!({}),
                "refuted",
                &["leads out of the repository"],
            ),
            case(
                &["src/../../outside/secret.txt"],
                json!({}),
                "refuted",
                &["leads out of the repository"],
            ),
            case(
                &["out/secret.txt"],
                json!({}),
                "refuted",
                &["a symbolic link out of the repository"],
            ),
            case(
                &["source/lib.rs"],
                write("src/lib.rs", "1"),
                "verified",
                &["through a symbolic link"],
            ),
            case(&["SRC/Lib.rs"], write("src/lib.rs", "2"), "verified", &["differs"]),
            case(&["cafe\u{301}.txt"], write("caf\u{e9}.txt", "1"), "verified", &["differs"]),
            case(
                &[" a \"b\" 'c'\n$(d) \u{1b}[31m.txt"],
                write(" a \"b\" 'c'\n$(d) \u{1b}[31m.txt", "1"),
                "verified",
                &[],
            ),
            case(&["a\u{0}b"], json!({}), "refuted", &["NUL"]),
            case(&[""], json!({}), "refuted", &["empty"]),
            case(&["src"], write("src/lib.rs", "3"), "refuted", &["folder"]),
            case(&["a.rs", "a.rs"], write("a.rs", "4"), "verified", &[]),
            case(&["keep.log"], write("keep.log", "said again\n"), "verified", &["ignored by git"]),
        ],
        &["a.rs", "src/lib.rs", "caf\u{e9}.txt", " a \"b\" 'c'\n$(d) \u{1b}[31m.txt", "keep.log"],
    );
}

#[test]
fn a_name_that_is_no_text_is_seen_and_does_no_harm() {
    use std::os::unix::ffi::OsStrExt;
    let project = DirtyProject::new();
    project.write_one_step("", "");
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff.rs");
    project.write_script(&[claims(
        &["odd\u{fffd}.rs"],
        json!({"exec": r"printf x > $(printf 'odd\377.rs')"}),
    )]);
    let before = project.user_files();
    let ran = project.run_script();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.claim(0, "files")["observed"].as_array().unwrap().len(), 1, "{ran:?}");
    std::fs::remove_file(project.repo().join(odd)).unwrap();
    project.assert_only_changed(&before, &[]);
}

#[test]
fn fifty_thousand_claimed_paths_are_held_one_by_one_and_told_in_few_words() {
    let project = DirtyProject::new();
    project.write_one_step("", ", claims: { files: require }");
    // Far more than changed; some twice, some the same but for their case.
    let many: Vec<String> = (0..50_000)
        .map(|n| match n % 5 {
            0 => format!("src/module_{n}/A.rs"),
            1 => format!("src/module_{}/a.rs", n - 1),
            2 => format!("../{n}"),
            3 => format!("/nowhere/{n}"),
            _ => "a.rs".to_owned(),
        })
        .collect();
    let all: Vec<&str> = many.iter().map(String::as_str).collect();
    let change = json!({"writes": {"a.rs": "changed\n"}});
    let ran = project.run_replies(&[claims(&all, change), claims(&["a.rs"], json!({}))], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = project.prompt(&ran, "work_1.2");
    assert!(prompt.contains("claimed 40001 files changed, 20000 of them do not exist"), "{prompt}");
    assert!(prompt.len() < 20_000, "{} bytes", prompt.len());
    let journal = std::fs::metadata(project.state().join("journal.db")).unwrap().len();
    assert!(journal < 4 << 20, "the journal has {journal} bytes");
}

#[test]
fn ten_thousand_changed_files_are_claimed_exactly() {
    let project = DirtyProject::new();
    project.write_one_step("", "");
    let many: Vec<String> = (0..10_000).map(|n| format!("many/{}/{n}.txt", n % 50)).collect();
    let all: Vec<&str> = many.iter().map(String::as_str).collect();
    project.write_script(&[claims(
        &all,
        json!({"exec": "mkdir many && cd many && for d in $(seq 0 49); do mkdir $d && (cd $d && seq -f '%.0f.txt' $d 50 9999 | xargs touch); done"}),
    )]);
    let before = project.user_files();
    let ran = project.run_script();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.stderr);
    ran.assert_claim(0, "files", "verified", &["10000"]);
    assert_eq!(ran.report["attempts"][0]["changed"]["total"], 10_000);
    std::fs::remove_dir_all(project.repo().join("many")).unwrap();
    project.assert_only_changed(&before, &[]);
}
