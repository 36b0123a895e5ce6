//! `doctor`: its probes, its diagnoses and its exit code.

use crate::setup::project::SetupProject;
use counterfoil_testkit::TestCommand;
use serde_json::Value;

/// A repository, git, and Claude Code with a key.
fn project() -> SetupProject {
    let project = SetupProject::new();
    project.add_program("git", "exit 0");
    project.add_program("counterfoil", "exit 0");
    project.add_program("claude", "echo '2.1.325 (Claude Code)'");
    project
}

fn doctor(project: &SetupProject) -> TestCommand {
    let mut command = project.command();
    // Whether there are control groups is the machine's business.
    command.arg("doctor").env("ANTHROPIC_API_KEY", "secret-key").env("COUNTERFOIL_CGROUP", "off");
    command
}

fn json(project: &SetupProject) -> (i32, Value) {
    let output = doctor(project).args(["--format", "json"]).output();
    (output.code.unwrap(), serde_json::from_str(&output.stdout).unwrap())
}

/// What is in the way, as `level about: message | fix`.
fn findings(project: &SetupProject) -> Vec<String> {
    let (code, report) = json(project);
    let findings = report["findings"].as_array().unwrap();
    let broken = findings.iter().any(|finding| finding["level"] == "fail");
    assert_eq!((code, &report["ok"]), (i32::from(broken), &Value::from(!broken)));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let line = |finding: &Value| {
        let [level, about, message, fix] =
            ["level", "about", "message", "fix"].map(|key| text(finding, key));
        project.normalize(&format!("{level} {about}: {message} | {fix}"))
    };
    findings.iter().map(line).collect()
}

#[track_caller]
fn finds(project: &SetupProject, expected: &str) {
    let findings = findings(project);
    assert!(
        findings.iter().any(|finding| finding.contains(expected)),
        "{expected:?} is not in {findings:#?}"
    );
}

#[test]
fn the_documentation_lists_the_supported_versions() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let page = std::fs::read_to_string(path).unwrap();
    let row = page.lines().find(|line| line.starts_with("| oldest supported and newest")).unwrap();
    let (_, report) = json(&project());
    let programs = report["programs"].as_array().unwrap();
    let range = |program: &Value| {
        let [oldest, newest] = [0, 1].map(|at| program["known"][at].as_str().unwrap().to_owned());
        format!("{oldest} to {newest}")
    };
    let listed: Vec<&str> = row.trim_matches('|').split('|').skip(1).map(str::trim).collect();
    assert_eq!(listed, programs.iter().map(range).collect::<Vec<_>>());
}

#[test]
fn when_all_is_well_it_says_so() {
    let project = project();
    project.write("repo/.claude/agents/qa.md", "---\nname: qa\n---\n");
    project.write("repo/Makefile", "test:\n\ttrue\n");
    assert!(
        project
            .command()
            .args(["init", "--yes", "--bind", "qa=execution-loop/qa"])
            .output()
            .is_success()
    );
    insta::assert_snapshot!(project.snapshot(&mut doctor(&project)));
    assert_eq!(findings(&project), Vec::<String>::new());
}

#[test]
fn what_is_in_the_way_comes_first_with_its_fix() {
    let project = project();
    project.add_program("claude", "echo 1.0.3");
    project.add_program("codex", "echo codex-cli 99.0.0");
    project.write("repo/counterfoil.toml", "agent = \"claude\"\n[agents.qa]\ncontract = \"execution-loop/qa\"\n[agents.dev]\ncontract = \"execution-loop/implementor\"\n");
    project.write("repo/.claude/agents/qa.md", "---\nname: qa\ntools: Read, Grep\n---\n");
    project.write("repo/.claude/settings.json", "{\"disableAllHooks\": true}");
    project.write(
        "repo/.mcp.json",
        "{\"mcpServers\": {\"db\": {\"command\": \"db-server\"}, \"remote\": {\"url\": \"https://x\"}}}",
    );
    insta::assert_snapshot!(project.snapshot(&mut doctor(&project)));
}

#[test]
fn secrets_are_not_shown() {
    let project = project();
    project.add_program("codex", "echo codex-cli 0.166.0");
    project.write("home/.codex/auth.json", "{\"OPENAI_API_KEY\": \"sk-secret\"}");
    for format in ["human", "json"] {
        let shown = project.snapshot(doctor(&project).args(["--format", format]));
        assert!(
            shown.contains("ANTHROPIC_API_KEY") && shown.contains("~/.codex/auth.json"),
            "{shown}"
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn the_report_for_programs_has_everything() {
    let (code, report) = json(&project());
    assert_eq!(code, 0, "{report}");
    let claude = &report["programs"][0];
    assert_eq!(claude["name"], "claude");
    assert_eq!(claude["state"], "good");
    assert_eq!(claude["version"], "2.1.325");
    assert_eq!(claude["needed"], false);
    assert_eq!(claude["login"], "ANTHROPIC_API_KEY");
    assert_eq!(claude["channels"], serde_json::json!(["native", "submit", "text"]));
    let permissions = &claude["permissions"];
    assert!(permissions["read-only"].as_str().unwrap().contains("dontAsk"), "{permissions}");
    assert!(permissions["workspace-write"].as_str().unwrap().contains("acceptEdits"));
    assert_eq!(report["programs"][1]["permissions"], Value::Null, "it is not installed");
    assert!(claude["path"].as_str().unwrap().ends_with("bin/claude"));
    let others: Vec<&str> = report["programs"].as_array().unwrap()[1..]
        .iter()
        .map(|one| one["state"].as_str().unwrap())
        .collect();
    assert_eq!(others, ["missing", "missing"]);
}

#[test]
fn the_checks_that_agents_can_run_are_named() {
    let project = project();
    assert_eq!(json(&project).1["checks"], serde_json::json!([]));
    project.write("repo/counterfoil.toml", "[checks]\ntest = \"true\"\nlint = \"true\"\n");
    assert_eq!(json(&project).1["checks"], serde_json::json!(["lint", "test"]));
    let shown = project.snapshot(&mut doctor(&project));
    assert!(
        shown.contains(
            "all of them can run the checks of the project with the tool `run_check`: lint, test\n"
        ),
        "{shown}"
    );
    // Without our server there is no tool.
    let without = "[checks]\ntest = \"true\"\n[agents.claude]\nchannels = [\"native\"]\n";
    project.write("repo/counterfoil.toml", without);
    let shown = project.snapshot(&mut doctor(&project));
    assert!(shown.contains("claude cannot run the checks of the project (test)"), "{shown}");
    assert!(!shown.contains("all of them can run"), "{shown}");
}

#[test]
fn programs_that_cannot_play() {
    let project = project();
    project.add_program("claude", "echo out of order >&2; exit 3");
    finds(
        &project,
        "warn claude: [project]/bin/claude cannot be run: `--version` ended with exit code 3; it said: out of order",
    );
    finds(
        &project,
        "fail programs: no supported agent program is installed | install one: `npm install",
    );
    project.write("repo/counterfoil.toml", "agent = \"claude\"\n");
    finds(&project, "fail claude: [project]/bin/claude cannot be run");
    project.add_program("claude", "echo none");
    finds(&project, "warn claude: its version cannot be determined");
    project.write("repo/counterfoil.toml", "agent = \"codex\"\n");
    finds(&project, "fail codex: the project uses it, but it is not on PATH");
    project.write("repo/counterfoil.toml", "agent = \"command:true\"\n");
    finds(
        &project,
        "fail agent: the project uses `true`, but there is no such program | install it",
    );
    project.add_program("true", "exit 0");
    std::fs::remove_file(project.path("bin/claude")).unwrap();
    assert_eq!(findings(&project), Vec::<String>::new(), "somebody else plays");
}

#[test]
fn a_program_that_the_settings_name_is_looked_for_there() {
    let project = project();
    project.write(
        "repo/counterfoil.toml",
        "[agents.claude]\nprogram = \"tools/claude\"\nchannels = [\"submit\"]\n",
    );
    finds(
        &project,
        "fail claude: the project uses it, but [project]/repo/tools/claude is not a program",
    );
    std::fs::create_dir(project.path("repo/tools")).unwrap();
    std::fs::rename(project.path("bin/claude"), project.path("repo/tools/claude")).unwrap();
    let (code, report) = json(&project);
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["programs"][0]["channels"], serde_json::json!(["submit", "text"]));
}

#[test]
fn settings_that_are_wrong() {
    let project = project();
    for (settings, expected) in [
        (
            "agents = 7\n",
            "fail counterfoil.toml: [project]/repo/counterfoil.toml: TOML parse error",
        ),
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
        project.write("repo/counterfoil.toml", settings);
        finds(&project, expected);
    }
}

#[test]
fn a_containment_that_does_not_work_here() {
    let project = project();
    project.write("repo/counterfoil.toml", "agent = \"claude\"\ncontain = \"bwrap\"\n");
    // There is no bwrap among the programs of this project.
    finds(
        &project,
        "fail containment: contain is \"bwrap\", but `bwrap` is not on PATH; install the package bubblewrap",
    );
}

#[test]
fn a_place_where_runs_cannot_be() {
    let project = project();
    project.write("repo/.counterfoil", "a file");
    finds(&project, "fail state: [project]/repo/.counterfoil is not writable");
    std::fs::remove_file(project.path("repo/.counterfoil")).unwrap();
    std::fs::remove_file(project.path("bin/git")).unwrap();
    finds(&project, "fail git: git is not on PATH, so changes made by agents cannot be observed");
    // What is left is the empty folder that the sandbox of an agent leaves behind.
    std::fs::remove_file(project.path("repo/.git/HEAD")).unwrap();
    finds(&project, "warn git: this is not a git repository");
}

#[test]
fn a_state_folder_whose_name_cannot_be_read_is_not_known() {
    let project = project();
    let doctor = |settings: &str| {
        project.write("repo/counterfoil.toml", settings);
        let output = doctor(&project).env_remove("COUNTERFOIL_STATE").output();
        assert_eq!(output.code, Some(1), "{output:?}");
        project.to_snapshot(&output)
    };
    for (settings, expected) in [
        (
            "state = \"../runs\"\nagent = [\n",
            "fail state: the folder with the runs is not known: counterfoil.toml, which may name it, \
             cannot be read\n       fix: correct the file, or name the folder with --state DIR\n",
        ),
        (
            "state = 7\n",
            "fail state: the folder with the runs is not known: [project]/repo/counterfoil.toml: `state` \
             must be the path of a folder",
        ),
    ] {
        let shown = doctor(settings);
        assert!(shown.contains(expected), "{shown}");
        assert!(!shown.contains("ok   state"), "{shown}");
    }
    // In a file that is wrong elsewhere, the name can be read.
    let shown = doctor("state = \"../runs\"\nagent = 7\n");
    assert!(shown.contains("ok   state: [project]/repo/../runs\n"), "{shown}");
}

#[test]
fn a_place_where_anybody_may_write() {
    use std::os::unix::fs::PermissionsExt;
    let project = project();
    let open = |mode: u32| {
        std::fs::set_permissions(project.repo(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(0o777);
    finds(&project, "warn state: [project]/repo is writable by every user");
    open(0o755);
    assert_eq!(findings(&project), Vec::<String>::new());
}

#[test]
fn what_stands_between_people_and_their_contracts() {
    let project = project();
    let qa = |tools: &str| {
        project.write("repo/.claude/agents/qa.md", format!("---\nname: qa\n{tools}---\n"))
    };
    qa("tools: Read\n");
    project.write("repo/Makefile", "test:\n\ttrue\n");
    assert!(
        project
            .command()
            .args(["init", "--yes", "--bind", "qa=execution-loop/qa"])
            .output()
            .is_success()
    );
    finds(
        &project,
        "`tools:` of 'qa' does not list mcp__counterfoil__submit_result, so the agent cannot submit its result with it | tools: Read, mcp__counterfoil__submit_result",
    );
    for tools in [
        "",
        "tools: '*'\n",
        "tools: Read, mcp__counterfoil__submit_result\n",
        "tools: [Read, mcp__counterfoil]\n",
    ] {
        qa(tools);
        assert_eq!(findings(&project), Vec::<String>::new(), "{tools}");
    }
    project.write("home/.claude/settings.json", "{\"disableAllHooks\": true}");
    finds(&project, "warn [project]/home/.claude/settings.json: `disableAllHooks` is set");
    project.write("repo/.claude/settings.local.json", "{");
    finds(&project, "warn .claude/settings.local.json: the file is not valid JSON");
    std::fs::remove_file(project.path("bin/counterfoil")).unwrap();
    finds(
        &project,
        "the command `counterfoil` of the MCP server 'counterfoil' does not exist | put counterfoil on PATH",
    );
    finds(&project, "warn hooks: `counterfoil` is not on PATH");
    std::fs::remove_file(project.path("repo/.mcp.json")).unwrap();
    finds(
        &project,
        "hooks and the MCP server are not set up for interactive use | `counterfoil init`",
    );
}

#[test]
fn what_a_broken_program_says_is_quoted_and_not_obeyed() {
    let project = project();
    project.add_program(
        "claude",
        "printf 'node: bad \\033]0;owned\\007option\\n  at x.js\\n' >&2; exit 9",
    );
    for format in ["human", "json"] {
        let output = doctor(&project).args(["--format", format]).output();
        assert!(output.stdout.contains("node: bad "), "{}", output.stdout);
        assert!(output.stdout.contains("option | at x.js"), "{}", output.stdout);
        assert!(!output.stdout.contains('\u{1b}') && !output.stdout.contains('\u{7}'));
    }
}

#[test]
fn a_program_that_floods_or_leaves_a_child_with_the_pipe_is_not_waited_for() {
    let project = project();
    let tools = "PATH=/usr/bin:/bin";
    project.add_program("claude", &format!("{tools}; while :; do echo flood; done"));
    project.add_program("codex", &format!("{tools}; sleep 600 & echo codex-cli 0.166.0"));
    let began = std::time::Instant::now();
    finds(
        &project,
        "cannot be run: `--version` wrote more than 1 MiB and was stopped; it said: flood",
    );
    assert_eq!(json(&project).1["programs"][1]["state"], "good");
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn a_key_that_does_not_log_codex_in_is_told_with_the_way_out() {
    let project = project();
    project.add_program("codex", "echo codex-cli 0.166.0");
    let shown = |variable: &str| {
        let mut command = doctor(&project);
        project.snapshot(command.env(variable, "secret-key"))
    };
    let alone = shown("OPENAI_API_KEY");
    assert!(
        alone.contains("warn codex: OPENAI_API_KEY is set, but that alone does not log it in")
            && alone.contains("fix: run `printenv OPENAI_API_KEY | codex login --with-api-key`, or set CODEX_API_KEY"),
        "{alone}"
    );
    let own = shown("CODEX_API_KEY");
    assert!(
        own.contains("native, submit, text; CODEX_API_KEY") && !own.contains("warn codex"),
        "{own}"
    );
    project.write(
        "home/.codex/auth.json",
        "{\"auth_mode\": \"apikey\", \"OPENAI_API_KEY\": \"sk-secret\"}",
    );
    let stored = shown("OPENAI_API_KEY");
    assert!(stored.contains("~/.codex/auth.json") && !stored.contains("warn codex"), "{stored}");
}

#[test]
fn what_the_users_own_settings_add_or_forbid_is_said_in_one_line_each() {
    let project = project();
    project.add_program("codex", "echo codex-cli 0.166.0");
    project.add_program("gemini", "echo 0.61.0");
    for (file, text) in [
        ("home/.claude/settings.json", "{\"permissions\": {\"deny\": [\"WebFetch\"]}}"),
        ("repo/.claude/settings.local.json", "{\"permissions\": {\"allow\": [\"Bash(make:*)\"]}}"),
        (
            "home/.codex/config.toml",
            "sandbox_mode = \"danger-full-access\"\n[sandbox_workspace_write]\nnetwork_access = true\n",
        ),
        ("repo/.codex/config.toml", "broken = [\n"),
        ("home/.gemini/settings.json", "{ // mine\n \"tools\": {\"exclude\": [\"glob\"]}}"),
    ] {
        project.write(file, text);
    }
    let (_, report) = json(&project);
    let said: Vec<Vec<&str>> = report["programs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|program| {
            let lines = program["settings"].as_array().unwrap();
            lines.iter().map(|line| line.as_str().unwrap()).collect()
        })
        .collect();
    assert_eq!(
        said[0],
        [
            "~/.claude/settings.json: denies WebFetch",
            ".claude/settings.local.json: allows Bash(make:*); not for agents with read-only",
        ]
    );
    assert_eq!(
        said[1][0],
        "~/.codex/config.toml: gives agents with workspace-write the network; its sandbox_mode danger-full-access does not count: the access of the agent does"
    );
    assert!(
        said[1][1].starts_with(".codex/config.toml: cannot be read: it is not TOML"),
        "{said:?}"
    );
    assert_eq!(said[2], ["~/.gemini/settings.json: takes away the tools glob"]);
    let shown = project.snapshot(&mut doctor(&project));
    assert!(
        shown.contains("\n          own settings     ~/.claude/settings.json: denies WebFetch\n"),
        "{shown}"
    );
}

#[test]
fn agents_that_are_commands_are_checked_too() {
    let project = project();
    project.add_program("acme", "exit 0");
    let passed = |settings: &str| {
        project.write("repo/counterfoil.toml", settings);
        let output =
            doctor(&project).env("ACME_API_KEY", "secret-key").args(["--format", "json"]).output();
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        report["fine"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let lines = passed("[agents.qa]\nspec = \"command:acme --print\"\n");
    let expected = "agents.qa.spec: acme, its output is text, repairs run it anew, its usage is not known; \
                    it sees the common variables, not ACME_API_KEY, ANTHROPIC_API_KEY (`pass`)";
    assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
    let lines = passed(
        "agent = \"command:acme --print\"\n[agents.acme]\npass = [\"*\"]\n[agents.acme.command]\n\
         output = \"claude-stream-json\"\nresume = \"acme --resume {conversation}\"\n",
    );
    let expected = "agent: acme, its output is claude-stream-json, repairs continue its conversation; \
                    it sees the common variables and *";
    assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
    for (settings, expected) in [
        (
            "spec = \"command:acme 'x\"\n",
            "fail agents.qa.spec: 'command:acme 'x' is not an agent: a quote is not closed",
        ),
        (
            "spec = \"command:none\"\n",
            "fail agents.qa.spec: the project uses `none`, but there is no such program",
        ),
        (
            "spec = \"command:acme\"\ncommand = { resume = \"acme -r {conversation}\" }\n",
            "fail agents.qa.spec: `resume` has {conversation}, and nothing says which id that is",
        ),
        (
            "spec = \"command:acme\"\ncommand = { resume = \"other -c\" }\n",
            "fail agents.qa.spec: the project uses `other`, but there is no such program",
        ),
        ("command = { output = \"xml\" }\n", "unknown variant `xml`"),
        (
            "spec = \"command:acme\"\nmodel = \"big\"\nflags = [\"-x\"]\n",
            "warn agents.qa.spec: a command does not heed `model`, `flags` of its tables | write what it needs",
        ),
        (
            "[agents.claude.command]\nresume = \"claude -c\"\n",
            "warn counterfoil.toml: [agents.claude.command] means nothing to claude",
        ),
    ] {
        project.write("repo/counterfoil.toml", format!("[agents.qa]\n{settings}"));
        finds(&project, expected);
    }
}

#[test]
fn checks_that_only_a_workflow_of_the_project_relies_on_are_missed() {
    let project = project();
    project.write("repo/counterfoil.toml", "[checks]\nunit = \"true\"\n");
    let flow = |check: &str| {
        format!(
            "workflow: flow\nagents: {{ worker: {{ contract: execution-loop/qa, prompt: Do it. }} }}\n\
             start: work\nstates:\n  work: {{ agent: worker, checks: [{check}], go: done }}\n  \
             done: {{ end: done }}\n"
        )
    };
    project.write("repo/flow.yaml", flow("e2e"));
    project.write("repo/flows/more/second.yaml", flow("e2e"));
    project.write("repo/flows/third.yml", flow("unti"));
    project.write("repo/too/far/down/flow.yaml", flow("never"));
    project.write("repo/node_modules/flow.yaml", flow("never"));
    project.write("repo/flows/good.yaml", flow("unit"));
    project.write("repo/flows/bad.yaml", "workflow: bad\nstates: {}\n");
    finds(
        &project,
        "warn counterfoil.toml: there is no check 'e2e'; until there is one, flow.yaml, \
         flows/more/second.yaml cannot run it, and claims about it stay not verified | add ",
    );
    finds(
        &project,
        "warn counterfoil.toml: there is no check 'unti'; `run` refuses flows/third.yml until there \
         is one | did you mean 'unit'? Otherwise ",
    );
    assert!(!findings(&project).iter().any(|finding| finding.contains("never")));
}
