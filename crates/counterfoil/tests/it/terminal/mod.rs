//! What people see is what happened: no command prints a character that a terminal or a viewer would
//! obey, whatever agents, files, names, arguments and settings contain, in no format, on a pipe and on
//! a terminal.

mod corpus;
mod pages;

use crate::PROGRAM;
use crate::dashboard::client::READY;
use corpus::{EVIL, EVIL_BRANCH, FORGED, named, project, quoted, reply};
use counterfoil_testkit::{CommandOutput, TIMEOUT, TestCommand, TestProject, wait_until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A call of a command.
struct Row {
    command: &'static str,
    arguments: Vec<String>,
    input: Option<String>,
    /// Whether it may serve until a signal ends it.
    serves: bool,
}

/// The formats of a command: what `--format` takes, or none.
type Commands = BTreeMap<String, Vec<String>>;

/// The commands of the command line with their formats, from the manual pages that are made of its
/// definition, and the hidden ones.
fn commands(project: &TestProject) -> Commands {
    assert_eq!(project.run(&["man", "--write", "../pages"]).code, Some(0));
    let hidden = ["contained", "watch"].map(|name| (name.to_owned(), Vec::new()));
    let mut all = Commands::from(hidden);
    for page in std::fs::read_dir(project.root_path("pages")).unwrap().flatten() {
        let text = std::fs::read_to_string(page.path()).unwrap();
        let path = text.split("\\fBcounterfoil ").nth(1).and_then(|rest| rest.split("\\fR").next());
        let Some(path) = path.map(|path| path.replace("\\-", "-")) else { continue };
        let option = text.split("\\fB\\-\\-format\\fR").nth(2);
        let formats = option.map(|rest| rest.split(".TP").next().unwrap_or_default());
        let formats = formats.into_iter().flat_map(|rest| {
            rest.split(".IP \\(bu 2\n").skip(1).filter_map(|item| item.split(':').next())
        });
        all.insert(path, formats.map(str::to_owned).collect());
    }
    // A group has no output of its own.
    let groups: Vec<String> = all
        .keys()
        .filter(|name| all.keys().any(|other| other.starts_with(&format!("{name} "))))
        .cloned()
        .collect();
    all.retain(|name, _| !groups.contains(name));
    all
}

fn row(command: &'static str, arguments: &[&str]) -> Row {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Row { command, arguments, input: None, serves: false }
}

fn with_input(command: &'static str, arguments: &[&str], input: &str) -> Row {
    Row { input: Some(input.to_owned()), ..row(command, arguments) }
}

fn server(command: &'static str, arguments: &[&str]) -> Row {
    Row { serves: true, ..row(command, arguments) }
}

/// The calls, in order: later ones see what earlier ones did.
fn rows(all: &Commands) -> Vec<Row> {
    let mut rows = Vec::new();
    let own = ["--contracts", "contracts"];
    let (bad, file) = (named(".yaml"), named(".txt"));
    let each = |command: &'static str, arguments: &[&str], input: Option<&str>| -> Vec<Row> {
        let call = |format: &String| {
            let arguments = [arguments, &["--format", format]].concat();
            Row { input: input.map(str::to_owned), ..row(command, &arguments) }
        };
        assert!(!all[command].is_empty(), "{command} has no formats");
        all[command].iter().map(call).collect()
    };
    let of_evil = ["--contract", "acme/evil", "--contracts", "contracts"];

    // Contracts and texts.
    for text in [reply(json!(true)), reply(json!(EVIL)), format!("{EVIL}\0")] {
        rows.extend(each("check", &of_evil, Some(&text)));
        rows.extend(each("check", &["--schema", &named(".schema.json")], Some(&text)));
    }
    rows.extend(each("check", &[&[file.as_str()][..], &of_evil].concat(), None));
    rows.extend(each("check", &[&[EVIL][..], &of_evil].concat(), None));
    rows.extend(each("check", &["--contract", EVIL], Some(EVIL)));
    let several = each("check", &[&[file.as_str(), file.as_str()][..], &of_evil].concat(), None);
    // With `json`, each file is a document of its own.
    rows.extend(several.into_iter().filter(|row| !row.arguments.iter().any(|word| word == "json")));
    rows.push(row("check", &["--batch", "batch.jsonl", "--contracts", "contracts"]));
    rows.push(row("check", &[&["--batch", "batch.jsonl", "batch.jsonl"][..], &of_evil].concat()));
    rows.push(row("check", &["--contract", &bad]));
    rows.push(row("check", &["--contract", "a", "--contracts", "."]));
    rows.extend(each("contract list", &own, None));
    rows.extend(each("contract show", &["acme/evil", own[0], own[1]], None));
    rows.extend(each("contract show", &[EVIL], None));
    for target in ["draft2020", "claude", "codex", "gemini", EVIL] {
        rows.push(row("contract schema", &["acme/evil", "--target", target, own[0], own[1]]));
    }
    rows.push(row("contract prompt", &["acme/evil", own[0], own[1]]));
    rows.push(with_input("contract repair", &["acme/evil", own[0], own[1]], &reply(json!(EVIL))));
    rows.extend(each("contract diff", &["contracts/evil.yaml", "other/evil.yaml"], None));
    rows.extend(each("contract diff", &[&bad, EVIL], None));
    rows.extend(each("contract lint", &[&bad, "contracts/evil.yaml", EVIL, &file], None));
    rows.extend(each("contract lint", &["contracts", "."], None));

    // Workflows and packs.
    rows.extend(each("workflow check", &["flow.yaml", "bad.yaml", &named(".flow.yaml")], None));
    rows.extend(each("workflow check", &[EVIL], None));
    rows.extend(each("workflow check", &["."], None));
    rows.extend(each("workflow graph", &["flow.yaml"], None));
    rows.extend(each("workflow graph", &["bad.yaml"], None));
    rows.extend(each("pack list", &[], None));
    rows.extend(each("pack show", &["review-fix"], None));
    rows.extend(each("pack show", &[EVIL], None));
    rows.push(row("pack eject", &["review-fix", &format!("../ejected/{EVIL}")]));
    rows.push(row("pack eject", &["review-fix", &file]));

    // Runs. Each waits for an answer first.
    let agent = ["--agent", "script:script.json"];
    rows.extend(each("run", &["flow.yaml", agent[0], agent[1]], None));
    rows.extend(each("run", &["bad.yaml", agent[0], agent[1]], None));
    rows.extend(each(
        "run",
        &["flow.yaml", "--agent", &format!("command:{EVIL}"), "--input", &format!("{EVIL}={EVIL}")],
        None,
    ));
    rows.push(row("answer", &[]));
    rows.extend(each("answer", &["last", EVIL, EVIL], None));
    rows.extend(each("answer", &["last", "ask", EVIL, EVIL], None));
    rows.push(row("answer", &["last", "ask", "yes", EVIL]));
    for _ in 0..2 {
        rows.extend(each("resume", &["last", agent[0], agent[1], "--because", EVIL], None));
    }
    rows.extend(each("resume", &[EVIL], None));
    rows.extend(each("runs", &[], None));
    for run in ["last", EVIL] {
        rows.extend(each("show", &[run], None));
        rows.extend(each("show", &[run, "--claims"], None));
        rows.extend(each("show", &[run, "--trouble"], None));
        for part in ["--timeline", "--follow"] {
            rows.push(row("show", &[run, part]));
        }
        rows.extend(each("show", &[run, EVIL], None));
        for step in ["work", EVIL] {
            rows.extend(each("show", &[run, step], None));
            for part in ["--prompt", "--reply", "--result", "--diff"] {
                rows.push(row("show", &[run, step, part]));
            }
        }
        rows.push(row("show", &[run, "--events"]));
    }
    rows.extend(each("claims stats", &[], None));
    rows.extend(each("claims stats", &["--workflow", EVIL, "--by", "player,model"], None));
    rows.push(row("clean", &["--dry-run", "--older-than", "0d"]));
    rows.push(row("clean", &["--older-than", EVIL]));
    rows.push(row("undo", &["last", EVIL]));
    rows.push(row("undo", &["last"]));
    rows.push(row("undo", &[EVIL]));
    rows.push(row("export", &["last", &format!("../recording/{EVIL}")]));
    rows.push(row("export", &[EVIL, &file]));
    rows.extend(each("replay", &["../recording"], None));
    rows.extend(each("replay", &[&file, "--contract", "acme/evil", own[0], own[1]], None));
    rows.extend(each("replay", &[EVIL], None));
    for format in ["files", "json", "markdown"] {
        rows.push(row("receipt", &["last", "--format", format]));
    }
    rows.push(row("receipt", &[EVIL, "--output", EVIL]));
    rows.extend(each("receipt verify", &[EVIL], None));
    rows.extend(each("receipt verify", &["-"], Some(&forged_receipt())));
    rows.extend(each("receipt verify", &["-", "--rerun"], Some(&forged_receipt())));
    rows.push(row("cancel", &["last"]));
    rows.push(row("cancel", &[EVIL]));

    // Claims.
    let base = ["--base", "HEAD", "--contract", "acme/evil", "--contracts", "contracts"];
    rows.extend(each("verify", &[&["reply.txt"][..], &base].concat(), None));
    rows.extend(each("verify", &[&["reply.txt", "--strict"][..], &base].concat(), None));
    rows.extend(each("verify", &base, Some(&reply(json!(EVIL)))));
    rows.extend(each(
        "verify",
        &[
            "reply.txt",
            "--base",
            EVIL_BRANCH,
            "--contract",
            "acme/evil",
            "--require",
            EVIL,
            own[0],
            own[1],
        ],
        None,
    ));
    rows.extend(each(
        "verify",
        &["reply.txt", "--base", EVIL, "--contract", "acme/evil", own[0], own[1]],
        None,
    ));

    // The setup.
    rows.extend(each("doctor", &[], None));
    rows.extend(each("doctor", &["--repo", EVIL], None));
    rows.push(row("init", &[]));
    rows.push(row("init", &["--yes"]));
    rows.push(row("init", &["--undo"]));
    rows.push(row("init", &["--repo", EVIL]));
    rows.push(row("init", &["--bind", &format!("{EVIL}={EVIL}")]));
    let (new, example) = (format!("../new/{EVIL}"), named(".schema.json"));
    rows.push(row("new contract", &[EVIL]));
    rows.push(row("new contract", &["one", "--from-agent", &file, "--dir", &new]));
    rows.push(row("new contract", &["one", "--from-agent", &file, "--dir", &new]));
    rows.push(row("new workflow", &["two", "--from-example", &example, "--dir", &new]));
    rows.push(row("new workflow", &["two", "--from-example", &example, "--optional", EVIL]));
    rows.push(row("new workflow", &["two", "--from-example", EVIL]));
    rows.push(row("schema", &[]));
    rows.push(row("schema", &["contract"]));
    rows.push(row("schema", &["event"]));
    rows.push(row("schema", &["--write", &new]));
    for hook in ["hook claude-stop", "hook claude-subagent-stop"] {
        for message in [reply(json!(EVIL)), EVIL.to_owned()] {
            let payload = json!({
                "session_id": EVIL, "cwd": ".", "agent_id": EVIL, "agent_type": "worker",
                "hook_event_name": EVIL, "last_assistant_message": message, "stop_hook_active": false,
            });
            for payload in [payload.to_string(), EVIL.to_owned(), quoted()] {
                rows.push(with_input(hook, &of_evil, &payload));
            }
        }
    }
    let call = |id: u32, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let hello = json!({"jsonrpc": "2.0", "id": EVIL, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": EVIL, "version": EVIL}}});
    let lines = [
        hello.to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string(),
        call(3, "submit_result", json!({"ok": EVIL, EVIL: EVIL})),
        call(4, "get_contract", json!({})),
        call(5, "check_result", json!({"text": reply(json!(EVIL))})),
        call(6, EVIL, json!({})),
        format!("{{\"{EVIL}"),
    ];
    rows.push(with_input("mcp", &of_evil, &(lines.join("\n") + "\n")));
    rows.push(row("mcp", &["--contract", EVIL]));
    rows.push(row("mcp", &["--session", EVIL]));

    // Servers.
    let any_port = ["--port", "0"];
    let named_by_evil = ["--name", EVIL, "--state", EVIL, "--state", ".counterfoil"];
    rows.push(server("serve", &any_port));
    rows.push(server("serve", &[&any_port[..], &named_by_evil].concat()));
    for token in [EVIL, file.as_str(), "."] {
        rows.push(server("serve", &["--port", "0", "--token-file", token]));
    }
    rows.push(server("serve", &["--port", "0", "--repo", EVIL]));
    rows.push(server("serve", &["--port", "0", "--host", EVIL]));
    rows.push(server("ui", &["--no-open"]));
    rows.push(server("ui", &["--no-open", "--repo", EVIL]));
    rows.push(server("ui", &["--no-open", "--state", EVIL]));

    // The rest.
    rows.push(row("explain", &[EVIL]));
    rows.push(row("explain", &["E101"]));
    rows.push(row("demo", &["contracts"]));
    rows.push(row("demo", &[EVIL]));
    rows.push(row("demo", &["execution-loop", "--keep", &format!("../demo/{EVIL}")]));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell", EVIL] {
        rows.push(row("completions", &[shell]));
    }
    rows.push(row("man", &[]));
    rows.push(row("man", &["--help"]));
    rows.push(row("contained", &["--cwd", EVIL, "--", EVIL]));
    rows.push(row("contained", &["--write", EVIL, "--", "true"]));
    rows.push(with_input("watch", &[], EVIL));
    // Usage errors repeat arguments.
    for name in all.keys() {
        let command: &'static str = Box::leak(name.clone().into_boxed_str());
        let option = format!("--{EVIL}={EVIL}");
        rows.push(row(command, &[&option]));
        rows.push(row(command, &[EVIL, EVIL, EVIL, EVIL, EVIL, "--format", EVIL]));
    }
    rows
}

/// A receipt that somebody wrote by hand.
fn forged_receipt() -> String {
    let link = json!({"seq": 1, "at": 0, "kind": EVIL, "sha256": EVIL, "link": EVIL});
    json!({
        "receipt": 1, "run": EVIL, "sha256": EVIL, "seal": EVIL,
        "journal": {"bundle": EVIL, "links": [link], "head": EVIL},
        "checks": [{"name": EVIL, "path": [EVIL], "status": "passed", "command": EVIL}],
    })
    .to_string()
}

/// Whether a character must not be printed.
fn is_forbidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c < ' ' || ('\u{7f}'..='\u{9f}').contains(&c),
    }
}

/// What is on a terminal without what the program does to it: colours and moves of the cursor for the
/// status lines.
fn without_own_sequences(text: &str) -> String {
    let style = "(?:[0124]|22|24|3[0-79]|9[0-7]|38;5;[0-9]+)";
    let own = format!(
        "\u{1b}\\[(?:{style}(?:;{style})*)?m|\u{1b}\\[[0-9]*[ABCDGK]|\u{1b}\\[J|\u{1b}\\[\\?25[lh]"
    );
    let own = regex::Regex::new(&own);
    own.unwrap().replace_all(text, "").replace('\r', "")
}

/// What a stream has that must not be printed: a character, or a line that is not the program's.
fn find_poison(text: &str, has_own_lines: bool) -> Option<String> {
    if let Some(at) = text.find(is_forbidden) {
        let from = (0..=at.saturating_sub(60)).rev().find(|at| text.is_char_boundary(*at));
        let line: String = text[from.unwrap_or(0)..].chars().take(120).collect();
        return Some(format!("{:?} in {line:?}", text[at..].chars().next()));
    }
    if text.contains('\u{fdd0}') {
        return Some("a mark".to_owned());
    }
    let mut lines =
        text.lines().scan("", |before, line| Some((std::mem::replace(before, line), line)));
    lines
        .find(|(_, line)| has_own_lines && line.starts_with(FORGED))
        .map(|(before, line)| format!("a line that is not the program's:\n{before}\n{line}"))
}

/// The command in a shell, with its input from a file.
fn shell_line(project: &TestProject, words: &[&str], input: Option<&str>) -> String {
    let quote = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let line: Vec<String> = [PROGRAM].iter().chain(words).map(|word| quote(word)).collect();
    let input = input.map_or("/dev/null".to_owned(), |input| {
        let path = project.scratch_path("input");
        std::fs::write(&path, input).unwrap();
        path.display().to_string()
    });
    format!("{} < {}", line.join(" "), quote(&input))
}

/// Whether the output of a row differs on a terminal: what programs read does not.
fn is_for_people(row: &Row) -> bool {
    const OF_PROGRAMS: [&str; 5] = ["json", "sarif", "junit", "github", "csv"];
    let format = row.arguments.iter().skip_while(|word| *word != "--format").nth(1);
    format.is_none_or(|format| !OF_PROGRAMS.contains(&format.as_str()))
}

/// Runs a command until it ends or says that it serves, and ends it then.
fn stopped(project: &TestProject, command: &mut TestCommand) -> CommandOutput {
    let mut running = project.start_command(command);
    wait_until(TIMEOUT, "the server listens", || {
        let printed = running.stdout_so_far() + &running.stderr_so_far();
        (printed.contains(READY) || !running.is_running()).then_some(())
    });
    if running.is_running() {
        running.signal("TERM");
    }
    running.wait()
}

/// Runs a row on a pipe, or on a terminal with colours.
fn output(project: &TestProject, row: &Row, terminal: bool) -> CommandOutput {
    let words: Vec<&str> =
        row.command.split(' ').chain(row.arguments.iter().map(String::as_str)).collect();
    if terminal {
        // In place of the shell, so that a signal for it reaches the program.
        let line = format!("exec {}", shell_line(project, &words, row.input.as_deref()));
        let mut command = project.command_of("script", &["-qec", &line, "/dev/null"]);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        return if row.serves { stopped(project, &mut command) } else { command.output() };
    }
    let mut command = project.command(&words);
    if row.serves {
        return stopped(project, &mut command);
    }
    if let Some(input) = &row.input {
        command.write_stdin(input.as_str());
    }
    command.output()
}

#[test]
fn nothing_that_a_terminal_obeys_is_printed_by_any_command() {
    let project = project();
    let all = commands(&project);
    assert!(all.len() > 30, "{all:?}");
    let rows = rows(&all);
    let whole = std::env::var_os("COUNTERFOIL_WHOLE").is_some();
    let mut shown = BTreeSet::new();
    let mut poisoned = Vec::new();
    for row in &rows {
        for terminal in [false, true] {
            if terminal && !is_for_people(row) && !whole {
                continue;
            }
            let output = output(&project, row, terminal);
            // A prompt or a reply is printed as it is, with nothing of the program's around it.
            let is_text = |word: &String| word == "--prompt" || word == "--reply";
            let has_own_lines = !row.arguments.iter().any(is_text);
            let call = format!("{} {:?} (terminal: {terminal})", row.command, row.arguments);
            for (stream, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
                let text = if terminal { without_own_sequences(text) } else { text.clone() };
                if let Some(poison) = find_poison(&text, has_own_lines) {
                    poisoned.push(format!("{call}: {stream} has {poison}"));
                }
                // The letters of the poison arrive, so it was printed.
                if text.contains("EVIL") {
                    shown.insert(row.command);
                }
            }
            assert!(!output.stderr.contains("panicked"), "{call}: {output:?}");
            let format = row.arguments.iter().skip_while(|word| *word != "--format").nth(1);
            if !terminal && format.is_some_and(|format| format == "json" || format == "sarif") {
                let text = output.stdout.trim();
                let value = serde_json::from_str::<Value>(text);
                assert!(text.is_empty() || value.is_ok(), "{call}: {output:?}");
            }
        }
    }
    assert!(poisoned.is_empty(), "{}", poisoned.join("\n\n"));
    // Every command has a row, in each of its formats; and its poison is seen where it prints any.
    for (command, formats) in &all {
        let calls: Vec<&Row> = rows.iter().filter(|row| row.command == command).collect();
        let is_called = |call: &&&Row| {
            !call.arguments.iter().any(|word| word == "--help" || word.starts_with("--\u{1b}"))
        };
        assert!(calls.iter().filter(is_called).count() > 1, "no row calls {command}");
        for format in formats {
            assert!(
                calls
                    .iter()
                    .any(|call| call.arguments.ends_with(&["--format".to_owned(), format.clone()])),
                "no row for {command} --format {format}"
            );
        }
        assert!(shown.contains(command.as_str()), "{command} shows nothing of the poison");
    }
}

#[test]
fn json_has_the_true_value_and_files_keep_the_true_bytes() {
    let project = project();
    let text = reply(json!(true));
    let arguments = [
        "check",
        "reply.txt",
        "--contract",
        "acme/evil",
        "--contracts",
        "contracts",
        "--format",
        "json",
    ];
    let report = project.run(&arguments).json();
    assert_eq!(report["value"]["note"], named(""), "{report}");
    assert_eq!(report["value"][EVIL], EVIL);
    let schema = ["contract", "show", "acme/evil", "--contracts", "contracts"];
    let yaml = project.run(&schema).stdout;
    let again = project.scratch_path("again.yaml");
    std::fs::write(&again, &yaml).unwrap();
    let again = again.display().to_string();
    let diff = ["contract", "diff", "contracts/evil.yaml", &again, "--format", "json"];
    assert_eq!(project.run(&diff).code, Some(0), "{yaml}");

    let waits = project.run(&["run", "flow.yaml", "--agent", "script:script.json"]);
    assert_eq!(waits.code, Some(4), "{waits:?}");
    project.run(&["answer", "last", "ask", "yes"]);
    let report =
        project.run_json(&["resume", "last", "--agent", "script:script.json", "--format", "json"]);
    assert_eq!(report.ended().0, "done", "{report:?}");
    let replies: Vec<Value> = project.events();
    assert!(replies.iter().any(|event| event.to_string().contains("EVIL")));
    assert_eq!(project.read("b.rs"), EVIL);
    assert_eq!(project.read(format!("out/{EVIL}")).trim_end(), EVIL);
    assert!(text.contains(EVIL));
}

#[test]
fn colours_are_shown_and_those_of_others_are_not() {
    let project = project();
    let row = row("doctor", &[]);
    let output = output(&project, &row, true);
    assert!(output.stdout.contains("\u{1b}[3"), "{output:?}");
    assert!(!output.stdout.contains("\u{1b}[34;8m"), "{output:?}");
    let usage = Row { arguments: vec![EVIL.to_owned()], ..row };
    let output = self::output(&project, &usage, true);
    assert!(output.stdout.contains("\u{1b}["), "{output:?}");
    assert!(output.stdout.contains("\\u{1b}[34;8mEVIL"), "{output:?}");
}
