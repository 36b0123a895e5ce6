//! `doctor`: what it sees, what it says of it, and how it ends.

use crate::house::House;
use assert_cmd::Command;
use serde_json::Value;

/// A repository, git, and Claude Code with a key.
fn house() -> House {
    let house = House::new();
    house.program("git", "exit 0");
    house.program("counterfoil", "exit 0");
    house.program("claude", "echo '2.1.325 (Claude Code)'");
    house
}

fn doctor(house: &House) -> Command {
    let mut command = house.counterfoil();
    // Whether there are control groups is the machine's business.
    command.arg("doctor").env("ANTHROPIC_API_KEY", "secret-key").env("COUNTERFOIL_CGROUP", "off");
    command
}

fn json(house: &House) -> (i32, Value) {
    let output = doctor(house).args(["--format", "json"]).output().unwrap();
    (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap())
}

/// What is in the way, as `level about: message | fix`.
fn findings(house: &House) -> Vec<String> {
    let (code, report) = json(house);
    let findings = report["findings"].as_array().unwrap();
    let broken = findings.iter().any(|finding| finding["level"] == "fail");
    assert_eq!((code, &report["ok"]), (i32::from(broken), &Value::from(!broken)));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let line = |finding: &Value| {
        let [level, about, message, fix] =
            ["level", "about", "message", "fix"].map(|key| text(finding, key));
        house.steady(&format!("{level} {about}: {message} | {fix}"))
    };
    findings.iter().map(line).collect()
}

#[track_caller]
fn finds(house: &House, expected: &str) {
    let findings = findings(house);
    assert!(
        findings.iter().any(|finding| finding.contains(expected)),
        "{expected:?} is not in {findings:#?}"
    );
}

#[test]
fn when_all_is_well_it_says_so() {
    let house = house();
    house.file("repo/.claude/agents/qa.md", "---\nname: qa\n---\n");
    assert!(house.counterfoil().args(["init", "--yes"]).output().unwrap().status.success());
    insta::assert_snapshot!(house.shown(&mut doctor(&house)));
    assert_eq!(findings(&house), Vec::<String>::new());
}

#[test]
fn what_is_in_the_way_comes_first_with_what_mends_it() {
    let house = house();
    house.program("claude", "echo 1.0.3");
    house.program("codex", "echo codex-cli 99.0.0");
    house.file("repo/counterfoil.toml", "agent = \"claude\"\n[agents.qa]\ncontract = \"execution-loop/qa\"\n[agents.dev]\ncontract = \"execution-loop/implementor\"\n");
    house.file("repo/.claude/agents/qa.md", "---\nname: qa\ntools: Read, Grep\n---\n");
    house.file("repo/.claude/settings.json", "{\"disableAllHooks\": true}");
    house.file(
        "repo/.mcp.json",
        "{\"mcpServers\": {\"db\": {\"command\": \"db-server\"}, \"remote\": {\"url\": \"https://x\"}}}",
    );
    insta::assert_snapshot!(house.shown(&mut doctor(&house)));
}

#[test]
fn secrets_are_not_shown() {
    let house = house();
    house.program("codex", "echo codex-cli 0.166.0");
    house.file("home/.codex/auth.json", "{\"OPENAI_API_KEY\": \"sk-secret\"}");
    for format in ["human", "json"] {
        let shown = house.shown(doctor(&house).args(["--format", format]));
        assert!(
            shown.contains("ANTHROPIC_API_KEY") && shown.contains("~/.codex/auth.json"),
            "{shown}"
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn the_report_for_programs_has_everything() {
    let (code, report) = json(&house());
    assert_eq!(code, 0, "{report}");
    let claude = &report["programs"][0];
    assert_eq!(claude["name"], "claude");
    assert_eq!(claude["state"], "good");
    assert_eq!(claude["version"], "2.1.325");
    assert_eq!(claude["needed"], false);
    assert_eq!(claude["login"], "ANTHROPIC_API_KEY");
    assert_eq!(claude["channels"], serde_json::json!(["native", "submit", "text"]));
    assert!(claude["path"].as_str().unwrap().ends_with("bin/claude"));
    let others: Vec<&str> = report["programs"].as_array().unwrap()[1..]
        .iter()
        .map(|one| one["state"].as_str().unwrap())
        .collect();
    assert_eq!(others, ["missing", "missing"]);
}

#[test]
fn programs_that_cannot_play() {
    let house = house();
    house.program("claude", "echo out of order >&2; exit 3");
    finds(&house, "warn claude: [house]/bin/claude cannot be run");
    finds(
        &house,
        "fail programs: no supported agent program is installed | install one: `npm install",
    );
    house.file("repo/counterfoil.toml", "agent = \"claude\"\n");
    finds(&house, "fail claude: [house]/bin/claude cannot be run");
    house.program("claude", "echo none");
    finds(&house, "warn claude: its version cannot be determined");
    house.file("repo/counterfoil.toml", "agent = \"codex\"\n");
    finds(&house, "fail codex: the project uses it, but it is not on PATH");
    house.file("repo/counterfoil.toml", "agent = \"command:true\"\n");
    std::fs::remove_file(house.path("bin/claude")).unwrap();
    assert_eq!(findings(&house), Vec::<String>::new(), "somebody else plays");
}

#[test]
fn a_program_that_the_settings_name_is_looked_for_there() {
    let house = house();
    house.file(
        "repo/counterfoil.toml",
        "[agents.claude]\nprogram = \"tools/claude\"\nchannels = [\"submit\"]\n",
    );
    finds(
        &house,
        "fail claude: the project uses it, but [house]/repo/tools/claude is not a program",
    );
    std::fs::create_dir(house.path("repo/tools")).unwrap();
    std::fs::rename(house.path("bin/claude"), house.path("repo/tools/claude")).unwrap();
    let (code, report) = json(&house);
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["programs"][0]["channels"], serde_json::json!(["submit", "text"]));
}

#[test]
fn settings_that_are_wrong() {
    let house = house();
    for (settings, expected) in [
        ("agents = 7\n", "fail counterfoil.toml: [house]/repo/counterfoil.toml: TOML parse error"),
        ("[agents.qa]\nmodell = \"x\"\n", "unknown field `modell`"),
        (
            "agent = \"claud\"\n",
            "agent is \"claud\", which is not a known agent program; did you mean 'claude'?",
        ),
        (
            "[agents.qa]\nspec = \"gpt\"\n",
            "agents.qa.spec is \"gpt\", which is not a known agent program |",
        ),
        ("[agents.qa]\ncontract = \"acme/none\"\n", "cannot load the contract of agent 'qa'"),
    ] {
        house.file("repo/counterfoil.toml", settings);
        finds(&house, expected);
    }
}

#[test]
fn a_place_where_runs_cannot_be() {
    let house = house();
    house.file("repo/.counterfoil", "a file");
    finds(&house, "fail state: [house]/repo/.counterfoil is not writable");
    std::fs::remove_file(house.path("repo/.counterfoil")).unwrap();
    std::fs::remove_file(house.path("bin/git")).unwrap();
    finds(&house, "fail git: git is not on PATH, so changes made by agents cannot be observed");
    std::fs::remove_dir(house.path("repo/.git")).unwrap();
    finds(&house, "warn git: this is not a git repository");
}

#[test]
fn a_place_where_anybody_may_write() {
    use std::os::unix::fs::PermissionsExt;
    let house = house();
    let open = |mode: u32| {
        std::fs::set_permissions(house.repo(), std::fs::Permissions::from_mode(mode)).unwrap()
    };
    open(0o777);
    finds(&house, "warn state: [house]/repo is writable by every user");
    open(0o755);
    assert_eq!(findings(&house), Vec::<String>::new());
}

#[test]
fn what_stands_between_people_and_their_contracts() {
    let house = house();
    let qa = |tools: &str| {
        house.file("repo/.claude/agents/qa.md", format!("---\nname: qa\n{tools}---\n"))
    };
    qa("tools: Read\n");
    assert!(house.counterfoil().args(["init", "--yes"]).output().unwrap().status.success());
    finds(
        &house,
        "`tools:` of 'qa' does not list mcp__counterfoil__submit_result, so the agent cannot submit its result with it | tools: Read, mcp__counterfoil__submit_result",
    );
    for tools in [
        "",
        "tools: '*'\n",
        "tools: Read, mcp__counterfoil__submit_result\n",
        "tools: [Read, mcp__counterfoil]\n",
    ] {
        qa(tools);
        assert_eq!(findings(&house), Vec::<String>::new(), "{tools}");
    }
    house.file("home/.claude/settings.json", "{\"disableAllHooks\": true}");
    finds(&house, "warn [house]/home/.claude/settings.json: `disableAllHooks` is set");
    house.file("repo/.claude/settings.local.json", "{");
    finds(&house, "warn .claude/settings.local.json: the file is not valid JSON");
    std::fs::remove_file(house.path("bin/counterfoil")).unwrap();
    finds(
        &house,
        "the command `counterfoil` of the MCP server 'counterfoil' does not exist | put counterfoil on PATH",
    );
    finds(&house, "warn hooks: `counterfoil` is not on PATH");
    std::fs::remove_file(house.path("repo/.mcp.json")).unwrap();
    finds(
        &house,
        "hooks and the MCP server are not set up for interactive use | `counterfoil init`",
    );
}
