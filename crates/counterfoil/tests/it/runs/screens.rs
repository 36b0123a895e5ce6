//! What people see of a run: one screen, a step of it, questions at the terminal, notifications, and
//! what is cleaned away.

use crate::runs::project::{BAD, GOOD, NOT_OK, WorkflowProject, looping, one_step, replies};

#[test]
fn visits_and_attempts_are_counted_apart() {
    let project =
        WorkflowProject::new(&looping(30), &replies(&[NOT_OK, "fail: timeout", NOT_OK, GOOD]));
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    let places: Vec<_> = ran.report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| (attempt["n"].clone(), attempt["visit"].clone(), attempt["attempt"].clone()))
        .collect();
    let expected = [(1, 1, 1), (2, 2, 1), (3, 2, 2), (4, 3, 1)];
    assert_eq!(
        places,
        expected.map(|(n, visit, attempt)| (n.into(), visit.into(), attempt.into()))
    );
    let shown = project.run(&["show"]).stdout;
    for words in ["work: worker, visit 2: timeout", "work: worker, visit 2, attempt 2: accepted"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}

#[test]
fn a_long_run_is_folded_to_one_screen() {
    // The same result again and again would be no progress.
    let mut all: Vec<String> = (0..25)
        .map(|round| format!(r#"text: '{{"ok": false, "note": "round {round}"}}'"#))
        .collect();
    all.push(GOOD.to_owned());
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let project = WorkflowProject::new(&looping(30), &replies(&all));
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    let shown = project.run(&["show"]).stdout;
    assert!(shown.lines().count() <= 50, "{shown}");
    // On a smaller screen, finished visits are folded.
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let line = format!("stty rows 20 cols 100; '{program}' show");
    let screen = project.command_of("script", &["-qefc", &line, "/dev/null"]).output().stdout;
    assert!(screen.contains(" finished: work"), "{screen}");
    assert!(screen.lines().count() <= 20, "{screen}");
    assert!(screen.contains("work: worker, visit 26: accepted"), "{screen}");
    let timeline = project.run(&["show", "--timeline"]).stdout;
    assert!(timeline.lines().count() > 50, "{timeline}");
}

#[test]
fn the_parts_of_a_step_are_shown() {
    let project = WorkflowProject::new(&looping(30), &replies(&[NOT_OK, BAD, GOOD]));
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    let part = |step: &str, part: &str| project.run(&["show", "last", step, part]);
    assert_eq!(part("work", "--result").stdout, "{\n  \"ok\": true\n}\n");
    part("work#1", "--result").expect(0, &["\"note\": \"no\""]);
    assert_eq!(part("work#2", "--reply").stdout, "{\"ok\": true}");
    assert_eq!(part("work#1", "--reply").stdout, "{\"ok\": false, \"note\": \"no\"}");
    // The first prompt, and the one that asks for a repair.
    let prompts = part("work#2", "--prompt").stdout;
    assert!(
        prompts.contains("Do work.") && prompts.contains("Your result was not accepted"),
        "{prompts}"
    );
    let step = project.run(&["show", "last", "work#2"]);
    step.expect(0, &["✓ work: worker, visit 2: accepted", "↺ repairs requested: 1", "--prompt"]);
    project.run(&["show", "last", "wok"]).expect(2, &["has no step 'wok'; did you mean 'work'?"]);
    project.run(&["show", "last", "work#9"]).expect(2, &["has 2 visits"]);
    project.run(&["show", "last", "work#x"]).expect(2, &["is not the number of a visit"]);
    project.run(&["show", "--prompt"]).expect(2, &["STEP"]);
}

#[test]
fn a_step_is_named_by_an_unambiguous_part_of_its_path() {
    let flow = "
workflow: items
start: all
states:
  all: { each: { in: \"['z', 'a']\", as: item, key: item, workspace: repository, run: one }, go: done }
  done: { end: done }
workflows:
  one:
    start: make
    states:
      make: { command: [echo, made], go: out }
      out: { end: done }
";
    let project = WorkflowProject::new(flow, "");
    project.run(&["run", "flow.yaml"]).expect(0, &[]);
    for name in ["all/z/make", "z/make", "z/make#1", "all/z"] {
        project.run(&["show", "last", name]).expect(0, &["all/z/make"]);
    }
    project.run(&["show", "last", "make"]).expect(
        2,
        &["'make' may be one of several steps of run ", ": all/a/make, all/z/make; write more"],
    );
}

#[test]
fn only_trouble_is_shown_if_only_trouble_is_asked_for() {
    let project = WorkflowProject::new(&looping(30), &replies(&["fail: timeout", GOOD]));
    project.run_workflow();
    let shown = project.run(&["show", "--trouble"]);
    shown.expect(0, &["↺ work: worker: timeout: ", "a later attempt was accepted"]);
    assert_eq!(shown.stdout.lines().count(), 1, "{}", shown.stdout);
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.run_workflow();
    project.run(&["show", "--trouble"]).expect(0, &["nothing went wrong"]);
}

#[test]
fn a_run_is_followed_until_it_ends() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.run_workflow();
    let followed = project.run(&["show", "--follow"]);
    followed.expect(0, &["· work: worker", "✓ work: accepted", "→ work to done", "✓ done"]);
}

/// A workflow that asks nobody.
const GO: &str = "
workflow: go
start: make
states:
  make: { command: ['true'], go: done }
  done: { end: done }
";

const ASK: &str = "
workflow: gate
start: approve
states:
  approve:
    ask:
      question: |
        Shall it go out?
        It has two parts.
      choices: [proceed, reject]
    go: done
  done: { end: done }
";

/// Runs the program in a terminal, and types this.
fn typed(project: &WorkflowProject, arguments: &str, keys: &str) -> (Option<i32>, String) {
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let line = format!("'{program}' {arguments}");
    let mut command = project.command_of("script", &["-qefc", &line, "/dev/null"]);
    let output = command.write_stdin(keys).output();
    (output.code, output.stdout.replace('\r', ""))
}

#[test]
fn only_the_label_of_a_message_is_coloured_and_only_at_a_terminal() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.run_workflow();
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let line = format!("'{program}' show last nothing");
    let mut terminal = project.command_of("script", &["-qefc", &line, "/dev/null"]);
    terminal.env_remove("NO_COLOR").env("TERM", "xterm-256color");
    let shown = terminal.output().stdout;
    assert!(shown.starts_with("\u{1b}[1m\u{1b}[31merror\u{1b}[0m: run"), "{shown:?}");
    assert_eq!(shown.matches('\u{1b}').count(), 3, "{shown:?}");
    let (_, plain) = typed(&project, "show last nothing", "");
    assert!(plain.starts_with("error: run"), "{plain:?}");
    let piped = project.command(&["show", "last", "nothing"]).output().stderr;
    assert!(piped.starts_with("error: run"), "{piped:?}");
}

#[test]
fn a_name_in_a_message_stays_on_its_line() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.run_workflow();
    let name = "work\nerror: forged";
    for arguments in [&["show", "last", name] as &[&str], &["run", "flow.yaml", "--agent", name]] {
        let output = project.run(arguments);
        output.expect(2, &["work\\nerror: forged"]);
        assert!(!output.stderr.contains(name), "{output:?}");
    }
}

#[test]
fn nothing_comes_before_the_error_of_a_run_that_cannot_be_resumed() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.run_workflow();
    let (_, shown) = typed(&project, "resume last", "");
    assert!(shown.starts_with("error: run"), "{shown:?}");
}

#[test]
fn a_question_is_asked_at_the_terminal_and_the_run_goes_on() {
    let project = WorkflowProject::new(ASK, "");
    let (code, shown) = typed(&project, "run flow.yaml", "maybe\n1\n");
    assert_eq!(code, Some(0), "{shown}");
    for words in [
        "  Shall it go out?\n  It has two parts.\n  1  proceed\n  2  reject\n",
        "'maybe' is not a valid answer",
        "✓ done",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    assert_eq!(project.show_last()["outcome"], "done");
}

#[test]
fn a_question_that_is_left_open_waits() {
    let project = WorkflowProject::new(ASK, "");
    let (code, shown) = typed(&project, "run flow.yaml", "\n");
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("left open; answer later:"), "{shown}");
    // Off a terminal nobody is asked.
    project.run(&["run", "flow.yaml"]).expect(4, &["? waiting in state 'approve' for an answer"]);
    let open = project.run(&["answer"]);
    assert_eq!(open.stdout.matches("Shall it go out?\n    It has two parts.").count(), 2);
    assert_eq!(open.code, Some(0));
    assert_eq!(project.run(&["answer", "last"]).stdout.matches("Shall it go out?").count(), 1);
    let list = project.run(&["answer", "--format", "json"]).json();
    let asked = list.as_array().unwrap().iter().map(|run| &run["questions"][0]["id"]);
    assert_eq!(asked.collect::<Vec<_>>(), ["approve", "approve"], "{list:#}");
    project.run(&["answer", "last", "approve"]).expect(
        2,
        &[
            "give the answer to 'approve':\n  approve: Shall it go out?",
            " approve proceed --resume",
        ],
    );
    project.run(&["answer", "last", "proceed"]).expect(
        2,
        &["'proceed' is not an open question of run", "; open:\n", " approve proceed --resume"],
    );
    project.run(&["answer", "last", "approve", "proceed", "--resume"]).expect(0, &[]);
    project.run(&["answer", "last", "proceed"]).expect(2, &["has no open question"]);
}

#[test]
fn an_answered_run_that_was_not_resumed_is_listed_as_answered() {
    let project = WorkflowProject::new(ASK, "");
    project.run(&["run", "flow.yaml"]).expect(4, &[]);
    project.run(&["answer", "last", "approve", "proceed"]).expect(0, &[]);
    project.run(&["runs"]).expect(0, &["answered"]);
    project
        .run(&["show"])
        .expect(0, &["○ answered in state 'approve'", "continue: counterfoil resume"]);
    project.run(&["answer"]).expect(0, &["no question is open"]);
    project.run(&["resume", "last"]).expect(0, &["✓ done"]);
    project.run(&["runs"]).expect(0, &["done"]);
}

#[test]
fn a_program_is_told_of_questions_and_of_the_end() {
    let project = WorkflowProject::new(ASK, "");
    let notify = "cat >> told; echo \"$COUNTERFOIL_EVENT $COUNTERFOIL_RUN\" >> names";
    let output = project.run(&["run", "flow.yaml", "--notify", notify]);
    let run = project.show_last()["run"].as_str().unwrap().to_owned();
    // The commands that continue the run notify as well.
    let command = format!("answer {run} approve proceed --resume --notify '{notify}'\n");
    output.expect(4, &[&command]);
    assert_eq!(project.read("names"), format!("question {run}\n"));
    project.run(&["answer", "last", "approve", "proceed"]).expect(0, &[]);
    project.run(&["resume", "last", "--notify", notify]).expect(0, &[]);
    assert_eq!(project.read("names"), format!("question {run}\nend {run}\n"));
    let told: Vec<serde_json::Value> =
        project.read("told").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&told[0]["event"], &told[0]["question"]), (&"question".into(), &"approve".into()));
    assert_eq!(told[0]["text"], "Shall it go out?\nIt has two parts.\n");
    assert_eq!((&told[1]["event"], &told[1]["outcome"]), (&"end".into(), &"done".into()));
}

#[test]
fn a_program_is_told_of_the_end_of_a_run_that_an_answer_resumed() {
    let project = WorkflowProject::new(ASK, "");
    let notify = "echo \"$COUNTERFOIL_EVENT\" >> names";
    project.run(&["run", "flow.yaml", "--notify", notify]).expect(4, &[]);
    let answer = ["answer", "last", "approve", "proceed", "--notify", notify];
    project.run(&answer).expect(2, &["--resume"]);
    project.run(&[&answer[..], &["--resume"]].concat()).expect(0, &["✓ done"]);
    assert_eq!(project.read("names"), "question\nend\n");
}

#[test]
fn a_secret_in_the_command_that_is_told_is_not_repeated() {
    let project = WorkflowProject::new(ASK, "");
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    for notify in [format!("true {secret}"), format!("echo {secret} >&2; false {secret}")] {
        let output = project.run(&["run", "flow.yaml", "--notify", &notify]);
        output.expect(4, &[" approve proceed --resume --notify CMD\n"]);
        assert!(!output.stderr.contains(secret), "{output:?}");
    }
}

#[test]
fn a_program_that_fails_is_named_with_how_it_ended_and_changes_nothing() {
    let project = WorkflowProject::new(ASK, "");
    for (notify, expected) in [
        ("/no/such/program", "`/no/such/program`, ended with exit code 127: /bin/sh: "),
        // Only the first line, and nothing that a terminal obeys.
        (
            "printf '\\n\\033[31mno network\\nmore\\n' >&2; exit 3",
            "ended with exit code 3: \\u{1b}[31mno network; the run itself is not affected",
        ),
        ("exit 2", "`exit 2`, ended with exit code 2; the run itself is not affected"),
        ("kill -9 $$", "`kill -9 $$`, was killed by signal 9; the run itself is not affected"),
    ] {
        let output = project.run(&["run", "flow.yaml", "--notify", notify]);
        output.expect(4, &["warning: the command of --notify, ", expected]);
    }
    // One that goes on without its parent does not delay the end.
    project.run(&["run", "flow.yaml", "--notify", "sleep 5 & exit 0"]).expect(4, &[]);
}

#[test]
fn old_runs_are_cleaned_and_open_ones_are_not() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.write("ask.yaml", ASK);
    let ended = project.run_workflow().run_id().to_owned();
    project.run(&["run", "ask.yaml"]).expect(4, &[]);
    let transcripts = project.path(format!(".counterfoil/transcripts/{ended}"));
    assert!(transcripts.is_dir());
    project.run(&["clean"]).expect(0, &["nothing to remove"]);
    let dry = project.run(&["clean", "--older-than", "0d", "--dry-run"]);
    dry.expect(0, &[&ended, "would remove", "1 run of 2"]);
    assert!(transcripts.is_dir(), "it was only tried");
    project
        .run(&["clean", "--older-than", "0d", "--max-size", "1G"])
        .expect(0, &["nothing to remove"]);
    project.run(&["clean", "--older-than", "0d"]).expect(0, &["removed", "1 run of 2"]);
    assert!(!transcripts.exists());
    // What is left tells so.
    project.run(&["show", &ended]).expect(0, &["✓ done"]);
    for (part, what) in [("--reply", "reply"), ("--prompt", "prompt")] {
        let why = [format!("cannot read the {what} of work"), "`counterfoil clean` removes".into()];
        project.run(&["show", &ended, "work", part]).expect(2, &[&why[0], &why[1]]);
    }
    let export = project.run(&["export", &ended, "recording"]);
    export.expect(2, &["no reply of run", "`counterfoil clean` removes"]);
    assert!(!project.path("recording").exists());
    project.run(&["answer", "last", "approve", "proceed", "--resume"]).expect(0, &["✓ done"]);
    project.run(&["clean", "--older-than", "1y"]).expect(2, &["expected an age"]);
}

#[test]
fn what_is_of_the_whole_run_is_not_asked_of_a_step() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.run_workflow();
    for part in ["--timeline", "--trouble", "--follow", "--events"] {
        project.run(&["show", "last", "work", part]).expect(2, &["cannot be used with"]);
        project.run(&["show", "last", part]).expect(0, &[]);
    }
}

#[test]
fn what_changed_without_a_record_is_not_called_undone() {
    let writes = "text: '{\"ok\": true}', writes: { made: x }";
    let project = WorkflowProject::new(&one_step(""), &replies(&[writes]));
    project.init_git();
    project.commit_all("start");
    project.run_workflow();
    std::fs::remove_dir_all(project.path(".counterfoil/undo")).unwrap();
    project.run(&["undo", "last"]).expect(1, &["nothing to undo", "no record", "  made\n"]);
    assert_eq!(project.read("made"), "x");
}

#[test]
fn manual_pages_and_completions_cover_all_commands() {
    let project = WorkflowProject::new(ASK, "");
    project.run(&["man", "--write", "man"]).expect(0, &["manual pages written to man"]);
    for page in
        ["counterfoil.1", "counterfoil-run.1", "counterfoil-show.1", "counterfoil-contract-list.1"]
    {
        assert!(project.path("man").join(page).is_file(), "{page}");
    }
    project.run(&["run", "flow.yaml"]).expect(4, &[]);
    let run = project.show_last()["run"].as_str().unwrap().to_owned();
    let complete = |index: &str, words: &[&str]| {
        let mut command = project.command(&[&["--", "counterfoil"], words].concat());
        command.env("COUNTERFOIL_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index);
        command.env("_CLAP_IFS", "\n").output().stdout
    };
    assert!(complete("2", &["run", "exec"]).contains("execution-loop"));
    assert!(complete("3", &["check", "--contract", "review"]).contains("review-fix/finding"));
    assert!(complete("2", &["show", ""]).contains(&run));
    assert!(complete("3", &["answer", "last", ""]).contains("approve"));
    assert!(complete("2", &["receipt", ""]).contains(&run));
    // The steps and the questions are those of the run that is named.
    project.write("other.yaml", GO);
    project.run(&["run", "other.yaml"]).expect(0, &[]);
    let last = project.show_last()["run"].as_str().unwrap().to_owned();
    for (words, run, expected) in [
        (["answer", "", ""], &run, "approve"),
        (["answer", "", ""], &last, ""),
        (["undo", "", ""], &last, "make"),
        (["show", "", ""], &last, "make"),
        (["show", "", ""], &run, ""),
    ] {
        let candidates = complete("3", &[words[0], run, words[2]]);
        let found = candidates.lines().filter(|line| !line.starts_with('-')).collect::<Vec<_>>();
        assert_eq!(found.join(" "), expected, "{words:?} {run}");
    }
    let script = project.run(&["completions", "bash"]).stdout;
    assert!(script.contains("COUNTERFOIL_COMPLETE"), "{script}");
}

#[test]
fn what_a_step_changed_in_the_folder_is_shown_and_undone() {
    let writes = r#"text: '{"ok": true}', writes: { made.txt: "x\n", deep/er/new.txt: "y\n", old.txt: "after\n", loose.txt: "after\n" }, deletes: [gone.sh]"#;
    let project = WorkflowProject::new(&one_step(""), &replies(&[writes]));
    project.init_git();
    for (path, text) in [("old.txt", "before\n"), ("gone.sh", "#!/bin/sh\n")] {
        project.write(path, text);
    }
    let program = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.path("gone.sh"), program).unwrap();
    project.commit_all("start");
    // Git has neither its old nor its new content.
    project.write("loose.txt", "before\n");
    let before = project.git(&["status", "--porcelain"]);
    project.run_workflow();
    assert_eq!(
        project.run(&["show", "last", "work", "--diff"]).stdout,
        "--- /dev/null\n+++ b/deep/er/new.txt\n@@ -0,0 +1 @@\n+y\n\
         --- a/gone.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-#!/bin/sh\n\
         --- a/loose.txt\n+++ b/loose.txt\n@@ -1 +1 @@\n-before\n+after\n\
         --- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+x\n\
         --- a/old.txt\n+++ b/old.txt\n@@ -1 +1 @@\n-before\n+after\n"
    );
    // Nothing is undone if somebody worked on.
    project.write("made.txt", "mine\n");
    project.run(&["undo", "last"]).expect(1, &["nothing was restored", "  made.txt"]);
    assert_eq!(project.read("old.txt"), "after\n");
    project.write("made.txt", "x\n");
    project.run(&["undo", "last", "work"]).expect(0, &["undone: restored 5 files"]);
    assert_eq!(project.git(&["status", "--porcelain"]), before);
    assert_eq!(project.read("loose.txt"), "before\n");
    assert!(!project.path("deep").exists(), "the folders go with their files");
    project.run(&["undo", "last"]).expect(0, &["already undone"]);
}

#[test]
fn what_was_merged_from_a_worktree_is_shown_too() {
    let writes = r#"text: '{"ok": true}', writes: { old.txt: "after\n" }"#;
    let workflow = one_step("").replace("go: done", "workspace: worktree, go: done");
    let project = WorkflowProject::new(&workflow, &replies(&[writes]));
    project.init_git();
    project.write("old.txt", "before\n");
    project.commit_all("start");
    project.run_workflow();
    let diff = "--- a/old.txt\n+++ b/old.txt\n@@ -1 +1 @@\n-before\n+after\n";
    assert_eq!(project.run(&["show", "last", "work", "--diff"]).stdout, diff);
    project.run(&["undo", "last"]).expect(0, &["restored 1 file"]);
    assert_eq!(project.run(&["show", "last", "work", "--diff"]).stdout, diff);
}

#[test]
fn undo_goes_back_through_the_steps_of_a_run() {
    let first = r#"text: '{"ok": true}', writes: { a.txt: "one\n" }"#;
    let second = r#"text: '{"ok": true}', writes: { a.txt: "two\n", b.txt: "two\n" }"#;
    let workflow =
        one_step("").replace("go: done", "go: again") + "  again: { agent: worker, go: done }\n";
    let project = WorkflowProject::new(&workflow, &replies(&[first, second]));
    project.init_git();
    project.commit_all("start");
    project.run_workflow();
    assert_eq!(
        project.run(&["show", "last", "again", "--diff"]).stdout,
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n\
         --- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+two\n"
    );
    project.run(&["undo", "last", "again"]).expect(0, &["restored 2 files"]);
    assert_eq!(project.read("a.txt"), "one\n");
    project.run(&["undo", "last"]).expect(0, &["restored 1 file"]);
    assert!(!project.path("a.txt").exists());
}

#[test]
fn a_run_that_changed_nothing_has_nothing_to_undo() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[r#"text: '{"ok": true}'"#]));
    project.run_workflow();
    project.run(&["undo", "last"]).expect(0, &["the run changed no files"]);
    project.run(&["show", "last", "work", "--diff"]).expect(2, &["work changed no files"]);
}
