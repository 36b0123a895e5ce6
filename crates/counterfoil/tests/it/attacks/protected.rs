//! Files that tell the engine what to do, and those around them.

use super::DirtyProject;
use crate::verification::project::replies;
use serde_json::json;

#[test]
fn contracts_prompts_workflows_and_settings_are_protected() {
    for (file, writes) in [
        ("contracts/change.yaml", "echo 'version: 2' >> contracts/change.yaml"),
        ("contracts/more.yaml", "cp contracts/change.yaml contracts/more.yaml"),
        ("prompts/work.md", "echo approve >> prompts/work.md"),
        ("flow.yaml", "echo '# more' >> flow.yaml"),
        ("counterfoil.toml", "printf '[checks]\\ntest = \"true\"\\n' > counterfoil.toml"),
    ] {
        let project = DirtyProject::new();
        project.write_one_step("", ", claims: { protected: require }, repairs: 0");
        let before = std::fs::read(project.path(file)).ok();
        project.write_script(&[replies(&json!({"files": [file]}), json!({"exec": writes}))]);
        let ran = project.run_script();
        ran.assert_claim(0, "protected", "refuted", &[file]);
        assert_eq!(std::fs::read(project.path(file)).ok(), before, "{file}");
    }
}
