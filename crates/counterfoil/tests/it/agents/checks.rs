//! The tool `run_check`: an agent program calls it through our server, and the engine runs the check.
//! The program is a shell script in the place of `claude`, so these tests always run.

use crate::shell_project::{ShellProject, assert_no_processes};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Calls the tool once for each name in `$CALLS`, keeps what came back, and returns a result.
const PROGRAM: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo '2.1.325 (Claude Code)' && exit
echo "$@" > "$OUT.arguments"
echo "$MCP_TOOL_TIMEOUT" > "$OUT.timeout"
cat > "$OUT.prompt"
while [ $# -gt 0 ]; do
  [ "$1" = --mcp-config ] && config=$2
  shift
done
server=$(sed 's/.*"command":"\([^"]*\)".*/\1/' "$config")
session=$(sed 's/.*"--session","\([^"]*\)".*/\1/' "$config")
{
  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
  echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  id=2
  for name in $CALLS; do
    echo '{"jsonrpc":"2.0","id":'$id',"method":"tools/call","params":{"name":"run_check","arguments":{"name":"'$name'"}}}'
    id=$((id + 1))
  done
  n=0
  while [ "$(wc -l < "$OUT")" -lt $((id - 1)) ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
} | "$server" mcp --session "$session" > "$OUT"
cat <<'END'
{"type": "result", "subtype": "success", "is_error": false, "result": "{\"ok\": true}", "session_id": "s-1", "total_cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 3}, "permission_denials": []}
END
"#;

struct Tool {
    project: ShellProject,
}

impl Tool {
    fn new(checks: &str, calls: &str, agent: &str) -> Self {
        let project = ShellProject::new();
        project.init_git();
        let program = project.write("bin/claude", PROGRAM);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let out = project.scratch_path("out");
        std::fs::write(&out, "").unwrap();
        project.write("prompts/work.md", "Do the work.");
        project.write(
            "counterfoil.toml",
            format!(
                "[checks]\n{checks}\n[agents.claude]\nprogram = {:?}\nchannels = [\"submit\"]\nenv = {{ OUT = {:?}, CALLS = {calls:?} }}\n",
                program.to_str().unwrap(),
                out.to_str().unwrap()
            ),
        );
        project.write(
            "flow.yaml",
            format!(
                "workflow: one\n\
                 agents: {{ worker: {{ contract: acme/ok, prompt: prompts/work.md, {agent} }} }}\n\
                 contracts: [contracts]\n\
                 start: work\n\
                 states:\n\
                 \x20 work:\n\
                 \x20   agent: worker\n\
                 \x20   checks: [test]\n\
                 \x20   next: [{{ when: checks.test.status == \"passed\", go: end }}, {{ go: red }}]\n\
                 \x20 red: {{ end: failed }}\n\
                 \x20 end: {{ end: done }}\n"
            ),
        );
        project.commit_all("base");
        Self { project }
    }

    fn run(&self) -> Value {
        let output =
            self.project.run(&["run", "repo/flow.yaml", "--agent", "claude", "--format", "json"]);
        let report = output.json();
        assert_no_processes(&report);
        let scratch = self.project.state().join("scratch").join(report["run"].as_str().unwrap());
        assert!(!scratch.exists(), "{} is left", scratch.display());
        report
    }

    fn kept(&self, what: &str) -> String {
        std::fs::read_to_string(self.project.scratch_path(&format!("out{what}"))).unwrap()
    }

    /// The answers to the calls, in order.
    fn answers(&self) -> Vec<Value> {
        let lines = self.kept("");
        let mut answers: Vec<Value> =
            lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        answers.sort_by_key(|answer| answer["id"].as_i64());
        answers.into_iter().map(|answer| answer["result"].clone()).collect()
    }
}

#[test]
fn the_engine_runs_the_check_and_its_output_comes_back() {
    let count = "count.log";
    let tool = Tool::new(
        &format!(
            "test = \"echo ran >> $COUNT/{count}; echo 3 passed\"\nlint = \"echo broken; exit 3\""
        )
        .replace("$COUNT", "../scratch"),
        "test lint e2e",
        "",
    );
    std::fs::create_dir_all(tool.project.root_path("scratch")).unwrap();
    let report = tool.run();
    assert_eq!(report["outcome"], "done", "{report:#}");
    let [test, lint, unknown] = &tool.answers()[..] else { panic!("{}", tool.kept("")) };
    assert_eq!(test["structuredContent"]["status"], "passed", "{test:#}");
    assert_eq!(lint["structuredContent"]["status"], "failed");
    assert_eq!(lint["structuredContent"]["exit_code"], 3);
    let text = lint["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("The check `lint` failed: `echo broken; exit 3` exited with 3."));
    assert!(text.ends_with("\n\nbroken"), "{text}");
    assert_eq!(unknown["isError"], true);
    // What ran at the base is known to the tool. The step is checked anew, after the agent.
    let ran = std::fs::read_to_string(tool.project.root_path("scratch").join(count)).unwrap();
    assert_eq!(ran, "ran\nran\n");
    assert_eq!(test["structuredContent"]["reused"], true);
    let prompt = tool.kept(".prompt");
    assert!(prompt.contains("these checks: `lint`, `test`"), "{prompt}");
    assert!(prompt.contains("`run_check`"), "{prompt}");
    assert!(tool.kept(".arguments").contains("mcp__counterfoil__run_check"));
    // Ten minutes for the check, and some more for others before it.
    assert_eq!(tool.kept(".timeout"), "720000\n");
}

#[test]
fn a_read_only_agent_is_not_blamed_for_what_a_check_writes() {
    let tool = Tool::new("test = \"echo x >> left-behind.txt\"", "test", "access: read-only");
    let report = tool.run();
    assert_eq!(report["outcome"], "done", "{report:#}");
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["claims"], json!([]), "{attempt:#}");
    assert_eq!(attempt["changed"]["total"], 0, "{attempt:#}");
    assert_eq!(tool.answers()[0]["structuredContent"]["status"], "passed");
}

#[test]
fn without_checks_there_is_no_tool() {
    let tool = Tool::new("", "test", "");
    let report = tool.run();
    let answers = tool.kept("");
    assert!(answers.contains("there is no tool 'run_check'"), "{answers}");
    assert!(!tool.kept(".prompt").contains("run_check"));
    assert_eq!(report["outcome"], "failed", "nothing was checked: {report:#}");
}
