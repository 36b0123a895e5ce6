//! Mistakes in claim policies, claim names, path patterns and workspaces.

use super::sites::{Claim, Maker, Site, keys, pointer};
use serde_json::{Value, json};

impl Maker<'_> {
    /// What is said about claims, paths and workspaces.
    pub(crate) fn claim_mistakes(&mut self, (path, value): &Site<'_>) {
        let (last, parent) = keys(path);
        let is_policy = parent == "claims"
            || last == "policy"
            || (path.len() == 1 && matches!(last, "tests" | "protection"));
        if is_policy || matches!(last, "match" | "workspace") {
            let others = value.as_str().map(|word| self.misspelt(word)).unwrap_or_default();
            for other in others {
                self.changed("a word of a set", Claim::Refused, path, Some(json!(other)));
            }
            self.changed("a word that is a number", Claim::Refused, path, Some(json!(3)));
        }
        if last == "claims"
            && let Some(members) = value.as_object()
        {
            for name in members.keys() {
                for other in self.misspelt(name) {
                    let mut whole = members.clone();
                    let Some(rule) = whole.shift_remove(name) else { continue };
                    whole.insert(other, rule);
                    self.changed(
                        "the name of a claim",
                        Claim::Refused,
                        path,
                        Some(Value::Object(whole)),
                    );
                }
            }
            // A claim that runs something may run something else.
            let runs = members.values().any(|rule| rule.get("run").or(rule.get("check")).is_some());
            let keys: &[&str] = if runs { &["findings"] } else { &["run", "check", "findings"] };
            for key in keys {
                let mut whole = members.clone();
                whole.values_mut().for_each(|rule| *rule = json!({*key: "run.id"}));
                let kind = "a key of another claim";
                self.changed(kind, Claim::Refused, path, Some(Value::Object(whole)));
            }
            if !members.values().any(|rule| rule.get("allow").is_some()) {
                let mut whole = members.clone();
                whole.values_mut().for_each(|rule| *rule = json!({"allow": ["make *"]}));
                let kind = "a key of another claim";
                self.changed(kind, Claim::Refused, path, Some(Value::Object(whole)));
            }
        }
        if matches!(parent, "writes" | "protect")
            && let Some(glob) = value.as_str()
        {
            for other in
                [format!("{glob}["), format!("{{{glob}"), format!("../{glob}"), String::new()]
            {
                self.changed("a pattern for paths", Claim::Refused, path, Some(json!(other)));
            }
        }
        if matches!(last, "writes" | "protect" | "claims" | "workspace" | "tests" | "protection")
            && parent != "claims"
        {
            for other in self.misspelt(last) {
                let around = &path[..path.len() - 1];
                let mut whole = self.root.pointer(&pointer(around)).unwrap().clone();
                let Some(members) = whole.as_object_mut() else { return };
                let Some(moved) = members.shift_remove(last) else { return };
                members.insert(other, moved);
                if !around.is_empty() {
                    self.changed("a misspelt key", Claim::Refused, around, Some(whole));
                }
            }
        }
    }
}
