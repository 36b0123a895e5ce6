//! Contained checks and command states: caches stay usable, and what they start cannot write
//! elsewhere.

use super::project::{CONTAINING, TargetProject, is_available};
use serde_json::Value;

/// A workflow with a command state, and an agent whose work is checked.
const CHECKED: &str = "\
workflow: work
agents: { worker: { contract: acme/ok, prompt: prompts/work.md } }
contracts: [contracts]
start: command
states:
  command: { command: [sh, -c, 'sh probe.sh command'], go: work }
  work: { agent: worker, checks: [test], go: end }
  end: { end: done }
";

/// Tries what a build does, and what it should not do.
const PROBE: &str = "\
try() { name=$1; shift; if sh -c \"$*\" 2>/dev/null; then echo \"$name yes\"; else echo \"$name no\"; fi; }
try cargo 'echo x > $HOME/.cargo/registry/new'
try npm 'echo x > $HOME/.npm/new'
try pip 'echo x > $HOME/.cache/pip/new'
try tree 'mkdir -p build && echo x > build/out'
try bin 'echo x > $HOME/.cargo/evil'
try git 'echo x > .git/evil'
try home 'echo x > $HOME/evil'
";

fn project(config: &str) -> TargetProject {
    let config = format!("{config}[checks]\ntest = \"sh probe.sh check\"\n");
    let project = TargetProject::new(&config, "echo '{\"ok\": true}'\n");
    project.write("flow.yaml", CHECKED);
    project.write("probe.sh", PROBE);
    project.write(".gitignore", "build/\n");
    project.commit_all("checked");
    project
}

/// What the command state and the check printed.
fn outputs(project: &TargetProject) -> [String; 2] {
    let output = project.run_agent();
    assert_eq!(output.code, Some(0), "{output:?}");
    let report = project.show_last();
    let commands = report["commands"].as_array().unwrap();
    let printed = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let of_check = commands.iter().find_map(|one| one["checks"]["test"]["output"].as_str());
    let of_command = commands.iter().find_map(|one| one["value"]["output"].as_str());
    [of_command, of_check].map(|text| printed(&text.into()))
}

#[test]
fn caches_stay_usable_and_the_rest_is_read_only() {
    let all = "cargo yes\nnpm yes\npip yes\ntree yes\nbin yes\ngit yes\nhome yes";
    let contained = "cargo yes\nnpm yes\npip yes\ntree yes\nbin no\ngit no\nhome no";
    let open = project("");
    std::fs::create_dir_all(open.home(".cache/pip")).unwrap();
    assert_eq!(outputs(&open), [all, all]);
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let project = project(&format!("contain = \"{kind}\"\n"));
        assert_eq!(outputs(&project), [contained, contained], "{kind}");
    }
}
