//! How a command or a built-in step failed that was performed. Its outcome is then `accepted`, because
//! the workflow decides what follows from it. What shows it as a success would be wrong.

use super::checks::failed_checks;
use super::parts::{exit_code, last_line, reason_suffix};
use counterfoil_flow::{BuiltinStep, CheckReport};
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a step failed that was performed and that no agent performs; none if it did not fail. The
/// arguments are the agent, the built-in step, the result and the outcomes of checks.
pub(crate) fn step_failure(
    agent: Option<&str>,
    builtin: Option<&BuiltinStep>,
    value: Option<&Value>,
    checks: &BTreeMap<String, CheckReport>,
) -> Option<String> {
    if agent.is_some() {
        return None;
    }
    let why = |what: &str| format!("{what}{}", reason_suffix(last_line(value)));
    if let Some(code) = exit_code(agent, builtin, value) {
        return (code != 0).then(|| why(&format!("exit code {code}")));
    }
    let is_commit = matches!(builtin, Some(BuiltinStep::Commit(_)));
    if is_commit && value.is_some_and(|value| value["ok"] == false) {
        return Some(why("not committed"));
    }
    failed_checks(checks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_flow::CheckStatus;
    use serde_json::json;

    fn failure(
        agent: Option<&str>,
        builtin: Option<&BuiltinStep>,
        value: &Value,
    ) -> Option<String> {
        step_failure(agent, builtin, Some(value), &BTreeMap::new())
    }

    #[test]
    fn a_command_fails_by_its_exit_code() {
        let value = |code: i64| json!({"ok": code == 0, "exit_code": code, "output": "a\nno\n\n"});
        assert_eq!(failure(None, None, &value(0)), None);
        assert_eq!(failure(None, None, &value(7)).as_deref(), Some("exit code 7: no"));
        assert_eq!(failure(Some("coder"), None, &value(7)), None, "the words of an agent");
        assert_eq!(failure(None, None, &json!({"exit_code": 7})), None, "another result");
    }

    #[test]
    fn a_commit_fails_if_there_is_none() {
        let commit = BuiltinStep::Commit("Fix it".to_owned());
        let value = |ok: bool| json!({"ok": ok, "output": "a hook says no"});
        assert_eq!(failure(None, Some(&commit), &value(true)), None);
        let failed = failure(None, Some(&commit), &value(false));
        assert_eq!(failed.as_deref(), Some("not committed: a hook says no"));
        let read = BuiltinStep::Read("plan.json".to_owned());
        let file = json!({"ok": false, "exit_code": 3});
        assert_eq!(failure(None, Some(&read), &file), None, "what a file says");
    }

    #[test]
    fn checks_fail_if_one_does() {
        let report = |status, reason: &str| CheckReport {
            status,
            reason: reason.to_owned(),
            ..CheckReport::default()
        };
        let mut checks = BTreeMap::from([
            ("lint".to_owned(), report(CheckStatus::Passed, "")),
            ("e2e".to_owned(), report(CheckStatus::NotConfigured, "")),
        ]);
        let step = BuiltinStep::Checks(vec!["lint".to_owned(), "test".to_owned()]);
        assert_eq!(step_failure(None, Some(&step), None, &checks), None);
        checks.insert("test".to_owned(), report(CheckStatus::Failed, "it exited with 1"));
        let failed = step_failure(None, Some(&step), None, &checks);
        assert_eq!(failed.as_deref(), Some("test failed: it exited with 1"));
    }
}
