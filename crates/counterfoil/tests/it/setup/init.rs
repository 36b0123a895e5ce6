//! `init`: it shows its changes, writes only with consent, and can be undone.

use crate::setup::project::SetupProject;
use counterfoil_testkit::{TestCommand, read_tree};

const QA: &str =
    "---\nname: qa\ndescription: Checks the work\ntools: Read, Grep\n---\nYou check.\n";

/// A project with subagents and settings of its own.
fn claude_project() -> SetupProject {
    let project = SetupProject::new();
    project.add_program("claude", "exit 0");
    project.add_program("counterfoil", "exit 0");
    project.write("repo/.claude/agents/qa.md", QA);
    project.write("repo/.claude/agents/reviewer.md", QA.replace("qa", "reviewer"));
    project.write("repo/.claude/agents/poet.md", QA.replace("qa", "poet"));
    project
        .write("repo/.claude/settings.json", "{\n  \"permissions\": {\"allow\": [\"Read\"]}\n}\n");
    project.write("repo/AGENTS.md", "# Agents\n");
    project
}

/// The command with these flags, and with a contract for the agent `qa` if there is one.
fn init(project: &SetupProject, flags: &[&str]) -> TestCommand {
    let mut command = project.command();
    command.arg("init").args(flags);
    if !flags.contains(&"--undo") && project.path("repo/.claude/agents/qa.md").exists() {
        command.args(["--bind", "qa=execution-loop/qa"]);
    }
    command
}

fn code(command: &mut TestCommand) -> i32 {
    command.output().code.unwrap()
}

#[test]
fn the_diff_is_shown_and_nothing_is_written_without_consent() {
    let project = claude_project();
    let before = read_tree(&project.repo());
    insta::assert_snapshot!(project.snapshot(init(&project, &[]).write_stdin("y\n")));
    assert_eq!(read_tree(&project.repo()), before);
}

#[test]
fn with_consent_it_is_written_once_and_taken_out_whole() {
    let project = claude_project();
    let before = read_tree(&project.repo());
    assert_eq!(code(&mut init(&project, &["--yes"])), 0);
    let after = read_tree(&project.repo());
    assert_ne!(after, before);
    insta::assert_snapshot!("again", project.snapshot(&mut init(&project, &["--yes"])));
    assert_eq!(read_tree(&project.repo()), after, "a second time changes nothing");
    insta::assert_snapshot!("undo", project.snapshot(&mut init(&project, &["--undo", "--yes"])));
    assert_eq!(read_tree(&project.repo()), before);
    let text = project.snapshot(&mut init(&project, &["--undo", "--yes"]));
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
        let project = SetupProject::new();
        project.add_program("claude", "exit 0");
        project.write("repo/.claude/agents/qa.md", QA);
        for (name, text) in *case {
            project.write(&format!("repo/{name}"), text);
        }
        let before = read_tree(&project.repo());
        assert_eq!(code(&mut init(&project, &["--yes"])), 0, "{number}");
        let after = read_tree(&project.repo());
        assert_ne!(before, after, "{number}");
        let again = project.snapshot(&mut init(&project, &[]));
        assert!(again.contains("nothing to add"), "{number}: {again}");
        assert_eq!(read_tree(&project.repo()), after, "{number}");
        let undone = project.snapshot(&mut init(&project, &["--undo", "--yes"]));
        assert!(undone.starts_with("exit 0\n"), "{number}: {undone}");
        assert_eq!(read_tree(&project.repo()), before, "{number}");
        let folders: Vec<_> = std::fs::read_dir(project.repo()).unwrap().collect();
        let named = case.iter().filter_map(|(name, _)| name.split('/').next());
        let kept: std::collections::BTreeSet<_> = named.chain([".claude", ".git"]).collect();
        assert_eq!(folders.len(), kept.len(), "{number}: only .git and what was there");
    }
}

#[test]
fn what_was_edited_since_stays_and_only_ours_goes() {
    let project = claude_project();
    assert_eq!(code(&mut init(&project, &["--yes"])), 0);
    let edit = |name: &str, from: &str, to: &str| {
        let text = project.read(name);
        assert!(text.contains(from), "{name} has no {from}:\n{text}");
        project.write(name, text.replacen(from, to, 1));
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
    insta::assert_snapshot!(project.snapshot(&mut init(&project, &["--undo", "--yes"])));
    insta::assert_snapshot!(
        "left",
        [".mcp.json", ".claude/settings.json", "counterfoil.toml"]
            .map(|name| { format!("## {name}\n{}", project.read(&format!("repo/{name}"))) })
            .concat()
    );
    assert!(!project.path("repo/.counterfoil").exists());
}

#[test]
fn a_binding_that_somebody_changed_is_theirs() {
    let project = claude_project();
    assert_eq!(code(&mut init(&project, &["--yes"])), 0);
    let text =
        project.read("repo/counterfoil.toml").replace("execution-loop/qa", "execution-loop/dod");
    project.write("repo/counterfoil.toml", text);
    let shown = project.snapshot(&mut init(&project, &["--undo", "--yes"]));
    assert!(
        shown.starts_with("exit 1\n")
            && shown.contains("agents.qa.contract was changed since init added it; it stays")
            && shown.contains("was removed but for one entry that was changed since"),
        "{shown}"
    );
    assert!(project.read("repo/counterfoil.toml").contains("execution-loop/dod"));
    assert!(!project.path("repo/.mcp.json").exists());
}

#[test]
fn agents_that_came_later_are_added_and_both_times_are_undone() {
    let project = claude_project();
    let before = read_tree(&project.repo());
    assert_eq!(code(&mut init(&project, &["--yes"])), 0);
    project.write("repo/.claude/agents/dod.md", QA.replace("qa", "dod"));
    assert_eq!(code(&mut init(&project, &["--yes", "--bind", "dod=execution-loop/dod"])), 0);
    assert!(project.read("repo/counterfoil.toml").contains("[agents.dod]"));
    std::fs::remove_file(project.path("repo/.claude/agents/dod.md")).unwrap();
    assert_eq!(code(&mut init(&project, &["--undo", "--yes"])), 0);
    assert_eq!(read_tree(&project.repo()), before);
}

#[test]
fn what_is_in_the_way_is_named_and_the_rest_is_done() {
    let project = SetupProject::new();
    project.add_program("claude", "exit 0");
    project
        .write("repo/.claude/agents/qa.md", "---\nname: qa\ndescription: Use this: always\n---\n");
    project.write("repo/.claude/agents/latin.md", b"---\nname: caf\xe9\n---\n");
    project.write("repo/.claude/agents/plain.md", "You check.\n");
    project.write("repo/.claude/agents/twice.md", QA);
    project.write("repo/.claude/agents/unnamed.md", "---\ndescription: x\n---\n");
    std::fs::create_dir(project.path("repo/.claude/agents/folder.md")).unwrap();
    let commented = project.write("repo/.claude/settings.json", "{\n  // mine\n  \"a\": 1\n}\n");
    std::fs::create_dir(project.path("repo/.mcp.json")).unwrap();
    project.write("repo/.gemini/settings.json", "{\"mcpServers\": []}");
    project.write("repo/.codex/config.toml", "broken = [");
    project.write("repo/contracts/bad.yaml", "contract: nonsense\n");
    insta::assert_snapshot!(project.snapshot(&mut init(&project, &["--yes"])));
    assert_eq!(std::fs::read_to_string(commented).unwrap(), "{\n  // mine\n  \"a\": 1\n}\n");
}

#[test]
fn thousands_of_agents_are_no_trouble() {
    let project = SetupProject::new();
    for number in 0..1200 {
        project.write(
            &format!("repo/.claude/agents/a{number:04}.md"),
            QA.replace("qa", &format!("helper-{number}")),
        );
    }
    let output = init(&project, &["--yes"]).output();
    let words = output.stderr.clone();
    assert!(output.is_success(), "{words}");
    assert!(words.contains("only the first 1000 files in .claude/agents were read"), "{words}");
    assert!(words.len() < 2000, "{words}");
    // Also if each of them is like a contract.
    for number in 0..1200 {
        project.write(
            &format!("repo/.claude/agents/a{number:04}.md"),
            QA.replace("qa", &format!("reviewer-{number}")),
        );
    }
    let output = init(&project, &["--yes"]).output();
    assert!(output.is_success());
    let comments = project.read("repo/counterfoil.toml").matches("# [agents.reviewer-").count();
    assert_eq!(comments, 50);
    let again = project.snapshot(&mut init(&project, &["--yes"]));
    assert!(again.contains("950 more agents") && again.contains("nothing to add"), "{again}");
}

#[test]
fn the_name_of_an_agent_is_no_reason_to_bind_it_to_one_of_our_contracts() {
    let project = claude_project();
    project.write(
        "repo/contracts/poet.yaml",
        "contract: acme/poet\nversion: 1\nfields: { poem: string }\nexamples: [{ poem: Roses. }]\n",
    );
    let shown = project.snapshot(project.command().args(["init", "--yes"]));
    assert!(
        shown.contains(
            "agent 'qa' has the name of the contract execution-loop/qa and is not bound to it"
        ) && shown.contains("`counterfoil init --bind qa=execution-loop/qa`"),
        "{shown}"
    );
    // One whose name is another, and which is for an agent of that name.
    project.write("repo/.claude/agents/fixer.md", QA.replace("qa", "fixer"));
    let named = project.snapshot(project.command().args(["init", "--yes"]));
    let id = "review-fix/fixer-result";
    let note = format!("the contract {id} is for an agent named 'fixer', and yours is not bound");
    assert!(named.contains(&note), "{named}");
    assert!(named.contains(&format!("`counterfoil init --bind fixer={id}`")), "{named}");
    // A contract of the project itself is the project's word.
    let config = project.read("repo/counterfoil.toml");
    assert!(!config.contains("execution-loop/qa"), "{config}");
    assert!(config.contains("[agents.poet]\ncontract = \"acme/poet\"\n"), "{config}");
    let bound = project.snapshot(project.command().args([
        "init",
        "--yes",
        "--bind",
        "qa=execution-loop/qa",
    ]));
    assert!(bound.starts_with("exit 0\n"), "{bound}");
    assert!(project.read("repo/counterfoil.toml").contains("contract = \"execution-loop/qa\"\n"));
    let other =
        project.snapshot(project.command().args(["init", "--bind", "qa=execution-loop/dod"]));
    assert!(other.contains("agent 'qa' is bound to execution-loop/qa already"), "{other}");
    for (binding, expected) in [
        ("qa=execution-loop/qb", "did you mean"),
        ("qa", "write AGENT=CONTRACT"),
        ("=a/b", "write AGENT=CONTRACT"),
    ] {
        let refused = project.snapshot(project.command().args(["init", "--bind", binding]));
        assert!(refused.starts_with("exit 2\n") && refused.contains(expected), "{refused}");
    }
}

#[test]
fn checks_are_proposed_from_the_build_files_once() {
    let project = SetupProject::new();
    project.write("repo/Cargo.toml", "[workspace]\nmembers = []\n");
    project.write("repo/Makefile", "lint:\n\ttrue\n");
    insta::assert_snapshot!("checks", project.snapshot(project.command().args(["init", "--yes"])));
    // Those that somebody took out are not proposed again.
    project.write("repo/counterfoil.toml", "[checks]\ntest = \"cargo nextest run\"\n");
    let again = project.snapshot(project.command().args(["init", "--yes"]));
    assert!(again.contains("nothing to add"), "{again}");
}

#[test]
fn checks_that_nothing_proposes_are_comments_to_fill_in() {
    let comments = "# [checks]\n# test = \"make test\"\n# lint = \"make lint\"\n";
    for before in [None, Some("[agents.qa]\nmodel = \"opus\""), Some("# ours\r\nagent = \"x\"\r\n")]
    {
        let project = SetupProject::new();
        if let Some(text) = before {
            project.write("repo/counterfoil.toml", text);
        }
        let tree = read_tree(&project.repo());
        let shown = project.snapshot(project.command().args(["init", "--yes"]));
        assert!(shown.contains("note: no check is proposed, because"), "{shown}");
        assert!(shown.contains("wrote counterfoil.toml"), "{shown}");
        assert!(shown.contains("\nnext: counterfoil doctor\n"), "{shown}");
        let text = project.read("repo/counterfoil.toml").replace("\r\n", "\n");
        assert!(text.contains(comments), "{text}");
        let again = project.snapshot(project.command().args(["init", "--yes"]));
        assert!(again.contains("nothing to add"), "{again}");
        assert_eq!(code(project.command().args(["init", "--undo", "--yes"])), 0);
        assert_eq!(read_tree(&project.repo()), tree);
        // What they show is valid.
        let filled = comments.replace("# ", "");
        project.write("repo/counterfoil.toml", filled);
        let filled = project.snapshot(project.command().args(["init", "--yes"]));
        assert!(filled.contains("nothing to add"), "{filled}");
        assert!(!filled.contains("no check is proposed"), "{filled}");
    }
    // A table that is there is not begun again.
    let project = SetupProject::new();
    project.write("repo/counterfoil.toml", "[checks]\n");
    let shown = project.snapshot(project.command().args(["init", "--yes"]));
    let line = "if the project has one, add `test = \"…\"` to [checks] in counterfoil.toml";
    assert!(shown.contains(line) && shown.contains("nothing to add"), "{shown}");
}

#[test]
fn commands_that_are_shown_name_the_repository_that_was_given() {
    let project = SetupProject::new();
    std::fs::create_dir(project.path("repo/sub dir")).unwrap();
    let shown = project.snapshot(project.command().args(["init", "--repo", "sub dir"]));
    assert!(shown.contains("`counterfoil init --yes --repo 'sub dir'`"), "{shown}");
    let shown = project.snapshot(project.command().args(["init", "--yes", "--repo", "sub dir"]));
    assert!(shown.contains("next: counterfoil doctor --repo 'sub dir'\n"), "{shown}");
}

#[test]
fn a_record_that_is_none_is_not_built_upon() {
    let project = claude_project();
    project.write("repo/.counterfoil/init.json", "{\"changes\": 7}");
    for flags in [&["--yes"][..], &["--undo", "--yes"]] {
        let shown = project.snapshot(&mut init(&project, flags));
        assert!(shown.starts_with("exit 2\n") && shown.contains("init.json is damaged"), "{shown}");
    }
    let shown = project.snapshot(&mut init(&project, &["--repo", "none"]));
    assert!(
        shown.starts_with("exit 2\n") && shown.contains("cannot open the repository none"),
        "{shown}"
    );
}

#[test]
fn without_a_contract_there_is_nothing_to_hold_anybody_to() {
    let project = SetupProject::new();
    project.add_program("claude", "exit 0");
    project.add_program("codex", "exit 0");
    project.add_program("counterfoil", "exit 0");
    insta::assert_snapshot!(project.snapshot(&mut init(&project, &["--yes"])));
}

#[test]
fn undo_asks_too() {
    let project = claude_project();
    assert_eq!(code(&mut init(&project, &["--yes"])), 0);
    let after = read_tree(&project.repo());
    let shown = project.snapshot(&mut init(&project, &["--undo"]));
    assert!(
        shown.starts_with("exit 1\n")
            && shown.contains("\nwould remove file schemas/counterfoil-config.schema.json\n")
            && shown.contains("apply the changes with `counterfoil init --undo --yes`"),
        "{shown}"
    );
    assert_eq!(read_tree(&project.repo()), after);
}

#[test]
fn undo_fails_if_something_stays_and_says_what() {
    for (file, from, to, stays) in [
        (
            ".mcp.json",
            "\"args\": [\"mcp\"]",
            "\"args\": [\"mcp\", \"--contract\", \"x\"]",
            "mcpServers.counterfoil",
        ),
        (".claude/settings.json", "\"timeout\": 30", "\"timeout\": 90", "hooks.Stop"),
        (".codex/config.toml", "[\"mcp\"]", "[\"mcp\", \"-x\"]", "mcp_servers.counterfoil.args"),
        ("counterfoil.toml", "# contract = \"review", "contract = \"review", "the comment `# "),
    ] {
        let project = claude_project();
        project.write("repo/.codex/config.toml", "");
        assert_eq!(code(&mut init(&project, &["--yes"])), 0);
        let text = project.read(&format!("repo/{file}"));
        assert!(text.contains(from), "{file} has no {from}:\n{text}");
        project.write(&format!("repo/{file}"), text.replacen(from, to, 1));
        let shown = project.snapshot(&mut init(&project, &["--undo", "--yes"]));
        assert!(shown.starts_with("exit 1\n"), "{file}: {shown}");
        assert!(
            shown.contains(&format!("note: {file}: {stays}"))
                && shown.contains("was changed since init added it; it stays"),
            "{file}: {shown}"
        );
        assert!(!shown.contains("everything that init added was removed"), "{file}: {shown}");
        assert!(project.read(&format!("repo/{file}")).contains(to), "{file}");
    }
}

#[test]
fn undo_succeeds_if_somebody_removed_what_was_added() {
    let project = claude_project();
    project.write("repo/.mcp.json", "{\"mcpServers\": {\"mine\": {\"command\": \"x\"}}}\n");
    assert_eq!(code(&mut init(&project, &["--yes"])), 0);
    project.write("repo/.mcp.json", "{\"mcpServers\": {\"mine\": {\"command\": \"y\"}}}\n");
    project.write("repo/.claude/settings.json", "{\"hooks\": {\"Stop\": []}, \"a\": 1}\n");
    std::fs::remove_file(project.path("repo/counterfoil.toml")).unwrap();
    let shown = project.snapshot(&mut init(&project, &["--undo", "--yes"]));
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    assert!(shown.contains("everything that init added was removed"), "{shown}");
}

#[test]
fn what_must_be_trusted_is_said() {
    let notes = |files: &[(&str, String)]| {
        let project = claude_project();
        project.write("repo/.codex/config.toml", "");
        project.write("repo/.gemini/settings.json", "{}");
        for (file, text) in files {
            let root = project.repo().canonicalize().unwrap().display().to_string();
            project.write(file, text.replace("ROOT", &root));
        }
        let shown = project.snapshot(&mut init(&project, &["--yes"]));
        shown.lines().filter(|line| line.contains("trust")).map(str::to_owned).collect::<Vec<_>>()
    };
    let [claude, codex, gemini, server] = <[String; 4]>::try_from(notes(&[])).unwrap();
    assert!(
        claude.contains("Claude Code asks at its next start here whether to trust the folder"),
        "{claude}"
    );
    assert!(
        codex.contains("Codex reads .codex/config.toml only in projects that it trusts: agree"),
        "{codex}"
    );
    assert!(
        codex.contains("[projects.\"[project]/repo\"] with trust_level = \"trusted\""),
        "{codex}"
    );
    assert!(
        gemini.contains("Gemini CLI connects to servers only in folders that it trusts: agree"),
        "{gemini}"
    );
    assert!(
        server.contains("add \"trust\": true to mcpServers.counterfoil in .gemini/settings.json"),
        "{server}"
    );
    let level = |level: &str| {
        ("home/.codex/config.toml", format!("[projects.\"ROOT\"]\ntrust_level = \"{level}\"\n"))
    };
    let rule =
        |rule: &str| ("home/.gemini/trustedFolders.json", format!("{{\"ROOT\": \"{rule}\"}}"));
    let trusted = notes(&[level("trusted"), rule("TRUST_FOLDER")]);
    assert_eq!(trusted.len(), 2, "{trusted:#?}");
    let untrusted = notes(&[level("untrusted"), rule("DO_NOT_TRUST")]).join("\n");
    assert!(
        untrusted
            .contains("does not trust this one: set trust_level of [projects.\"[project]/repo\"]"),
        "{untrusted}"
    );
    assert!(
        untrusted.contains("it was told not to trust this one: change that with /permissions"),
        "{untrusted}"
    );
}

#[test]
fn a_misspelled_agent_is_not_bound() {
    let project = claude_project();
    let before = read_tree(&project.repo());
    let output =
        project.command().args(["init", "--yes", "--bind", "reviwer=execution-loop/qa"]).output();
    output.expect(2, &["no subagent 'reviwer'", "did you mean 'reviewer'?"]);
    let unknown =
        project.command().args(["init", "--yes", "--bind", "nope=execution-loop/qa"]).output();
    let expected = "there is no subagent 'nope' in .claude/agents or ~/.claude/agents; \
                    there are poet, qa, reviewer; bind an agent that is defined elsewhere in \
                    counterfoil.toml";
    unknown.expect(2, &[expected]);
    assert_eq!(read_tree(&project.repo()), before);
    // Without subagents, it may be an agent of another program.
    std::fs::remove_dir_all(project.path("repo/.claude")).unwrap();
    assert_eq!(
        code(project.command().args(["init", "--yes", "--bind", "nope=execution-loop/qa"])),
        0
    );
}

#[test]
fn what_is_asked_for_and_cannot_be_done_is_no_success() {
    let project = claude_project();
    project.write("repo/counterfoil.toml", "[agents.qa]\ncontract = \"execution-loop/manager\"\n");
    let before = read_tree(&project.repo());
    let output = init(&project, &["--yes"]).output();
    output.expect(2, &["agent 'qa' is bound to execution-loop/manager already"]);
    assert_eq!(read_tree(&project.repo()), before);
    // The others are written.
    project.write("repo/counterfoil.toml", "");
    project.write("repo/.claude/settings.json", "{ not JSON");
    let output = init(&project, &["--yes"]).output();
    output.expect(1, &["cannot be edited: .claude/settings.json"]);
    assert!(project.path("repo/.mcp.json").exists());
}
