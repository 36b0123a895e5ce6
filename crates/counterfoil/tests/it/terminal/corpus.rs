//! A project in which everything that a command may print is poisoned.

use crate::PROGRAM;
use counterfoil_contract::text::{Form, neutralize};
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// One of each kind of character that must not reach a terminal, and sequences that a terminal obeys.
/// It can be part of a file name, an argument, and a line.
pub(super) const EVIL: &str = "\u{1b}[34;8mEVIL\u{1b}]0;t\u{7}\u{8}\u{b}\rx\u{7f}\u{80}\u{85}\u{9b}2J\u{9f}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{e0001}\u{e0041}\u{e007f}LIVE";

/// The part of it that git allows in the name of a branch.
pub(super) const EVIL_BRANCH: &str = "b\u{80}\u{85}\u{61c}\u{202e}\u{2066}\u{2028}\u{e0041}";

/// [`EVIL`] as a string of JSON and YAML, all of it escaped.
pub(super) fn quoted() -> String {
    let mut text = String::from("\"");
    for unit in EVIL.encode_utf16() {
        let _ = write!(text, "\\u{unit:04x}");
    }
    text + "\""
}

/// [`EVIL`] and an ending as a string of YAML and TOML.
fn yaml(ending: &str) -> String {
    let escape = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        c => format!("\\U{:08X}", u32::from(c)),
    };
    format!("\"{}{ending}\"", EVIL.chars().map(escape).collect::<String>())
}

/// What would look like a line of the program's own.
pub(super) const FORGED: &str = "FORGED";

/// The name of a file that is poisoned. It has two lines.
pub(super) fn named(ending: &str) -> String {
    format!("{EVIL}\n{FORGED}{ending}")
}

/// A reply with poisoned keys and values.
#[allow(clippy::needless_pass_by_value, reason = "it is always a literal")]
pub(super) fn reply(ok: Value) -> String {
    let reply = json!({"ok": ok, "note": named(""), EVIL: EVIL, "files": [EVIL, named("/a.rs")]});
    format!("{EVIL}\n{reply}\n")
}

/// A project whose contracts, workflow, configuration, files, branch and replies are poisoned, with
/// a run that waits for an answer, one that is done and one that failed.
pub(super) fn project() -> TestProject {
    let project = TestProject::nested(PROGRAM)
        .with_env("USER", EVIL)
        .with_env("COUNTERFOIL_LOG", "debug")
        .with_env("LC_ALL", "C.UTF-8");
    let (home, evil) = (project.root_path("home"), yaml(""));
    std::fs::create_dir_all(&home).unwrap();
    let project = project.with_env("HOME", home);
    let optional = yaml("?");
    let contract = |version: u32, more: &str| {
        format!(
            "contract: acme/evil\nversion: {version}\nsummary: {evil}\nagent: {evil}\nframing: any-json\n\
             fields:\n  ok: boolean\n  note?: string\n  files?: [string]\n  {optional}: {{ type: string, description: {evil} }}\n{more}\
             rules:\n  - {{ id: r, when: \"!result.ok\", require: [files], message: {evil} }}\n\
             claims: {{ files: {{ kind: files-changed }} }}\n\
             examples: [{{ ok: true, note: {evil}, {evil}: {evil} }}]\n"
        )
    };
    project.write("contracts/evil.yaml", contract(1, ""));
    project.write(
        "other/evil.yaml",
        contract(2, "  more: string\n").replace("note: \"", "more: a, note: \""),
    );
    project.write(named(".yaml"), format!("contract: {EVIL}\n{EVIL}: {EVIL}\n"));
    project.write(
        named(".schema.json"),
        format!("{{\"title\": {0}, \"type\": \"object\", \"required\": [{0}]}}", quoted()),
    );
    project.write(named(".md"), format!("Do {EVIL}.\n"));
    project.write(
        "flow.yaml",
        format!(
            "workflow: evil\nsummary: {evil}\ncontracts: [contracts]\n\
             agents: {{ worker: {{ contract: acme/evil, prompt: {prompt} }} }}\n\
             start: before\nstates:\n\
             \x20 before: {{ command: [sh, -c, {command}], next: [{{ when: result.ok, go: ask, reason: {reason} }}, {{ go: failed }}] }}\n\
             \x20 ask: {{ ask: {{ question: {evil}, choices: [yes, {evil}] }}, go: work }}\n\
             \x20 work: {{ agent: worker, repairs: 1, next: [{{ when: result.ok, go: done, reason: result.note }}, {{ go: failed, reason: result.note }}] }}\n\
             \x20 failed: {{ end: failed, reason: {reason} }}\n\
             \x20 done: {{ end: done }}\n\
             artifacts:\n  - {{ path: {artifact}, template: {evil} }}\n",
            prompt = yaml(&format!("\\n{FORGED}.md")),
            command = evil.replacen('"', "\"printf '%s' '", 1).trim_end_matches('"').to_owned() + "' | tee /dev/stderr\"",
            reason = format!("'{}'", evil),
            artifact = evil.replacen('"', "\"out/", 1),
        ),
    );
    project.write("bad.yaml", format!("workflow: bad\nsummary: {evil}\nstart: {evil}\nstates:\n  {evil}: {{ go: {evil}, {EVIL}: 1 }}\n"));
    project.write(
        named(".flow.yaml"),
        format!("workflow: x\nstart: nowhere # {EVIL}\nstates: {{ a: {{ {evil}: 1 }} }}\n"),
    );
    project.write("counterfoil.toml", format!("[checks]\n{0} = {0}\n", yaml("")));
    let reply_of = |text: String, writes: bool| {
        let mut reply = json!({"agent": "worker", "text": text});
        if writes {
            reply["writes"] = json!({named("/a.rs"): EVIL, "b.rs": EVIL});
        }
        reply
    };
    let script = json!({"replies": [
        reply_of(reply(json!(EVIL)), false),
        reply_of(reply(json!(true)), true),
        reply_of(reply(json!(false)), true),
        reply_of(EVIL.to_owned(), false),
        reply_of(EVIL.to_owned(), false),
    ]});
    // YAML, in which these characters have to be escaped.
    project.write("script.json", neutralize(&script.to_string(), Form::Json).as_bytes());
    project.write("reply.txt", reply(json!(true)));
    project.write(named(".txt"), reply(json!(EVIL)));
    project.write("batch.jsonl", batch());
    project.write(".gitignore", "script.json\n");
    let raw = PathBuf::from(std::ffi::OsStr::from_bytes(b"not-utf8-\xff\x9b\x1b[2J.txt"));
    project.write(raw, EVIL);
    project.write(
        ".claude/agents/evil.md",
        format!("---\nname: {evil}\ndescription: {EVIL}\n---\n{EVIL}\n"),
    );
    project.write(".claude/settings.json", format!("{{\"hooks\": {{}}, {0}: {0}}}", quoted()));
    project.init_git();
    project.git(&["checkout", "-q", "-b", EVIL_BRANCH]);
    project.commit_all(EVIL);
    project
}

fn batch() -> String {
    let line = |id: Value, text: String| {
        json!({"id": id, "contract": "acme/evil", "text": text}).to_string() + "\n"
    };
    line(json!(EVIL), reply(json!(true)))
        + &line(json!({EVIL: EVIL}), reply(json!(EVIL)))
        + &format!("{{\"{EVIL}\n{EVIL}\n")
}
