//! `init`: what it shows, that it writes only with consent, that it is taken out again.

use crate::house::{House, files};
use assert_cmd::Command;

const QA: &str =
    "---\nname: qa\ndescription: Checks the work\ntools: Read, Grep\n---\nYou check.\n";

/// A project with subagents and settings of its own.
fn project() -> House {
    let house = House::new();
    house.program("claude", "exit 0");
    house.program("counterfoil", "exit 0");
    house.file("repo/.claude/agents/qa.md", QA);
    house.file("repo/.claude/agents/reviewer.md", QA.replace("qa", "reviewer"));
    house.file("repo/.claude/agents/poet.md", QA.replace("qa", "poet"));
    house.file("repo/.claude/settings.json", "{\n  \"permissions\": {\"allow\": [\"Read\"]}\n}\n");
    house.file("repo/AGENTS.md", "# Agents\n");
    house
}

fn init(house: &House, flags: &[&str]) -> Command {
    let mut command = house.counterfoil();
    command.arg("init").args(flags);
    command
}

fn code(command: &mut Command) -> i32 {
    command.output().unwrap().status.code().unwrap()
}

#[test]
fn the_diff_is_shown_and_nothing_is_written_without_consent() {
    let house = project();
    let before = files(&house.repo());
    insta::assert_snapshot!(house.shown(init(&house, &[]).write_stdin("y\n")));
    assert_eq!(files(&house.repo()), before);
}

#[test]
fn with_consent_it_is_written_once_and_taken_out_whole() {
    let house = project();
    let before = files(&house.repo());
    assert_eq!(code(&mut init(&house, &["--yes"])), 0);
    let after = files(&house.repo());
    assert_ne!(after, before);
    insta::assert_snapshot!("again", house.shown(&mut init(&house, &["--yes"])));
    assert_eq!(files(&house.repo()), after, "a second time changes nothing");
    insta::assert_snapshot!("undo", house.shown(&mut init(&house, &["--undo", "--yes"])));
    assert_eq!(files(&house.repo()), before);
    let text = house.shown(&mut init(&house, &["--undo", "--yes"]));
    assert!(text.starts_with("exit 0\n") && text.contains("nothing to undo"), "{text}");
}

#[test]
fn whatever_was_there_comes_back_byte_for_byte() {
    let everything = "{\n    \"mcpServers\": {\"other\": {\"command\": \"x\"}}, \"n\": 1.50,\n\n    \"é\": \"ü\"\n}";
    let cases: &[&[(&str, &str)]] = &[
        &[],
        &[("README.md", "words")],
        &[
            (".mcp.json", everything),
            (".gemini/settings.json", everything),
            (".codex/config.toml", "# mine\nmodel = \"x\""),
        ],
        &[(".mcp.json", "{}"), (".gemini/settings.json", "{ }\n"), (".codex/config.toml", "")],
        &[(
            ".claude/settings.json",
            "{\"hooks\": {\"Stop\": [], \"SubagentStop\": [{\"hooks\": []}]}}",
        )],
        &[("counterfoil.toml", "# ours\n[agents.qa]\nmodel = \"opus\"\n")],
        &[("counterfoil.toml", "agents = { dev = { model = \"x\" } }")],
        &[("counterfoil.toml", "[checks]\r\ntest = \"x\"\r\n")],
        &[
            ("contracts/a.yaml", "contract: acme/poet\nversion: 1\nschema: {type: object}\n"),
            (".codex/config.toml", ""),
        ],
    ];
    for (number, case) in cases.iter().enumerate() {
        let house = House::new();
        house.program("claude", "exit 0");
        house.file("repo/.claude/agents/qa.md", QA);
        for (name, text) in *case {
            house.file(&format!("repo/{name}"), text);
        }
        let before = files(&house.repo());
        assert_eq!(code(&mut init(&house, &["--yes"])), 0, "{number}");
        let after = files(&house.repo());
        assert_ne!(before, after, "{number}");
        let again = house.shown(&mut init(&house, &[]));
        assert!(again.contains("nothing to add"), "{number}: {again}");
        assert_eq!(files(&house.repo()), after, "{number}");
        let undone = house.shown(&mut init(&house, &["--undo", "--yes"]));
        assert!(undone.starts_with("exit 0\n"), "{number}: {undone}");
        assert_eq!(files(&house.repo()), before, "{number}");
        let folders: Vec<_> = std::fs::read_dir(house.repo()).unwrap().collect();
        let named = case.iter().filter_map(|(name, _)| name.split('/').next());
        let kept: std::collections::BTreeSet<_> = named.chain([".claude", ".git"]).collect();
        assert_eq!(folders.len(), kept.len(), "{number}: only .git and what was there");
    }
}

#[test]
fn what_was_edited_since_stays_and_only_ours_goes() {
    let house = project();
    assert_eq!(code(&mut init(&house, &["--yes"])), 0);
    let edit = |name: &str, from: &str, to: &str| {
        let text = house.read(name);
        assert!(text.contains(from), "{name} has no {from}:\n{text}");
        house.file(name, text.replacen(from, to, 1));
    };
    // Another server, another hook, another key in our table, and a binding that somebody changed.
    edit(
        "repo/.mcp.json",
        "{\n  \"mcpServers\": {",
        "{\n  \"mcpServers\": {\n    \"mine\": {\"command\": \"x\"},",
    );
    edit(
        "repo/.claude/settings.json",
        "\"Stop\": [",
        "\"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]},",
    );
    edit(
        "repo/counterfoil.toml",
        "contract = \"execution-loop/qa\"\n",
        "contract = \"execution-loop/qa\"\nmodel = \"opus\"\n",
    );
    insta::assert_snapshot!(house.shown(&mut init(&house, &["--undo", "--yes"])));
    insta::assert_snapshot!(
        "left",
        [".mcp.json", ".claude/settings.json", "counterfoil.toml"]
            .map(|name| { format!("## {name}\n{}", house.read(&format!("repo/{name}"))) })
            .concat()
    );
    assert!(!house.path("repo/.counterfoil").exists());
}

#[test]
fn a_binding_that_somebody_changed_is_theirs() {
    let house = project();
    assert_eq!(code(&mut init(&house, &["--yes"])), 0);
    let text =
        house.read("repo/counterfoil.toml").replace("execution-loop/qa", "execution-loop/dod");
    house.file("repo/counterfoil.toml", text);
    let shown = house.shown(&mut init(&house, &["--undo", "--yes"]));
    assert!(
        shown.starts_with("exit 0\n")
            && shown.contains("agents.qa.contract was changed since init added it; it stays"),
        "{shown}"
    );
    assert!(house.read("repo/counterfoil.toml").contains("execution-loop/dod"));
    assert!(!house.path("repo/.mcp.json").exists());
}

#[test]
fn agents_that_came_later_are_added_and_both_times_are_undone() {
    let house = project();
    let before = files(&house.repo());
    assert_eq!(code(&mut init(&house, &["--yes"])), 0);
    house.file("repo/.claude/agents/dod.md", QA.replace("qa", "dod"));
    assert_eq!(code(&mut init(&house, &["--yes"])), 0);
    assert!(house.read("repo/counterfoil.toml").contains("[agents.dod]"));
    std::fs::remove_file(house.path("repo/.claude/agents/dod.md")).unwrap();
    assert_eq!(code(&mut init(&house, &["--undo", "--yes"])), 0);
    assert_eq!(files(&house.repo()), before);
}

#[test]
fn what_is_in_the_way_is_named_and_the_rest_is_done() {
    let house = House::new();
    house.program("claude", "exit 0");
    house.file("repo/.claude/agents/qa.md", "---\nname: qa\ndescription: Use this: always\n---\n");
    house.file("repo/.claude/agents/latin.md", b"---\nname: caf\xe9\n---\n");
    house.file("repo/.claude/agents/plain.md", "You check.\n");
    house.file("repo/.claude/agents/twice.md", QA);
    house.file("repo/.claude/agents/unnamed.md", "---\ndescription: x\n---\n");
    std::fs::create_dir(house.path("repo/.claude/agents/folder.md")).unwrap();
    let commented = house.file("repo/.claude/settings.json", "{\n  // mine\n  \"a\": 1\n}\n");
    std::fs::create_dir(house.path("repo/.mcp.json")).unwrap();
    house.file("repo/.gemini/settings.json", "{\"mcpServers\": []}");
    house.file("repo/.codex/config.toml", "broken = [");
    house.file("repo/contracts/bad.yaml", "contract: nonsense\n");
    insta::assert_snapshot!(house.shown(&mut init(&house, &["--yes"])));
    assert_eq!(std::fs::read_to_string(commented).unwrap(), "{\n  // mine\n  \"a\": 1\n}\n");
}

#[test]
fn thousands_of_agents_are_no_trouble() {
    let house = House::new();
    for number in 0..1200 {
        house.file(
            &format!("repo/.claude/agents/a{number:04}.md"),
            QA.replace("qa", &format!("helper-{number}")),
        );
    }
    let output = init(&house, &["--yes"]).output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{words}");
    assert!(words.contains("only the first 1000 files in .claude/agents were read"), "{words}");
    assert!(words.len() < 2000, "{words}");
    // Also if each of them is like a contract.
    for number in 0..1200 {
        house.file(
            &format!("repo/.claude/agents/a{number:04}.md"),
            QA.replace("qa", &format!("reviewer-{number}")),
        );
    }
    let output = init(&house, &["--yes"]).output().unwrap();
    assert!(output.status.success());
    let comments = house.read("repo/counterfoil.toml").matches("# [agents.reviewer-").count();
    assert_eq!(comments, 50);
    let again = house.shown(&mut init(&house, &["--yes"]));
    assert!(again.contains("950 more agents") && again.contains("nothing to add"), "{again}");
}

#[test]
fn a_record_that_is_none_is_not_built_upon() {
    let house = project();
    house.file("repo/.counterfoil/init.json", "{\"changes\": 7}");
    for flags in [&["--yes"][..], &["--undo", "--yes"]] {
        let shown = house.shown(&mut init(&house, flags));
        assert!(shown.starts_with("exit 2\n") && shown.contains("init.json is damaged"), "{shown}");
    }
    let shown = house.shown(&mut init(&house, &["--repo", "none"]));
    assert!(
        shown.starts_with("exit 2\n") && shown.contains("cannot open the repository none"),
        "{shown}"
    );
}

#[test]
fn without_a_contract_there_is_nothing_to_hold_anybody_to() {
    let house = House::new();
    house.program("claude", "exit 0");
    house.program("codex", "exit 0");
    house.program("counterfoil", "exit 0");
    insta::assert_snapshot!(house.shown(&mut init(&house, &["--yes"])));
}

#[test]
fn undo_asks_too() {
    let house = project();
    assert_eq!(code(&mut init(&house, &["--yes"])), 0);
    let after = files(&house.repo());
    let shown = house.shown(&mut init(&house, &["--undo"]));
    assert!(
        shown.starts_with("exit 1\n")
            && shown.contains("apply the changes with `counterfoil init --undo --yes`"),
        "{shown}"
    );
    assert_eq!(files(&house.repo()), after);
}
