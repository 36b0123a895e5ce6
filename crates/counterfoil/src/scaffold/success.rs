//! Which fields of a contract say whether the work succeeded, and the guards that read them.

use counterfoil_contract::Contract;
use counterfoil_contract::claim::names_success;
use counterfoil_contract::expr::Type;
use serde_json::Value;

/// The field that says in words what was done.
const SUMMARY: &str = "summary";

/// A boolean that says whether the work succeeded.
struct Flag {
    name: String,
    /// Whether a result may lack it.
    may_be_missing: bool,
}

/// The booleans of a result that together say whether the work succeeded.
pub(super) struct Success {
    flags: Vec<Flag>,
    /// Whether every result has a summary.
    has_summary: bool,
}

impl Success {
    /// What the results of a contract say by the names of their booleans; none if they have no such
    /// names.
    pub(super) fn of(contract: &Contract) -> Option<Self> {
        let Type::Object(object) = contract.ty() else { return None };
        let flags: Vec<Flag> = object
            .in_order()
            .into_iter()
            .filter(|(name, field)| matches!(field.ty, Type::Bool) && names_success(name))
            .map(|(name, field)| Flag { name: name.clone(), may_be_missing: !field.is_present() })
            .filter(Flag::can_be_read)
            .collect();
        if flags.is_empty() {
            return None;
        }
        let summary = object.fields.get(SUMMARY);
        let has_summary =
            summary.is_some_and(|field| field.is_present() && matches!(field.ty, Type::String(_)));
        Some(Self { flags, has_summary })
    }

    /// The guard of the transition to the end of a run that succeeded, as a value of YAML.
    pub(super) fn guard(&self) -> String {
        let parts: Vec<String> = self.flags.iter().map(Flag::expression).collect();
        let guard = parts.join(" && ");
        let is_plain = guard.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        if is_plain { guard } else { Value::from(guard).to_string() }
    }

    /// The reason of any other end, as a value of YAML.
    pub(super) fn reason(&self) -> String {
        if self.has_summary {
            return format!("result.{SUMMARY}");
        }
        let text = match self.flags.as_slice() {
            [one] => format!("'{} is not true'", one.name),
            flags => {
                let names: Vec<&str> = flags.iter().map(|flag| flag.name.as_str()).collect();
                format!("'not all of these are true: {}'", names.join(", "))
            }
        };
        Value::from(text).to_string()
    }

    /// A result that says that the work succeeded.
    pub(super) fn claimed_in(&self, mut result: Value) -> Value {
        if let Some(fields) = result.as_object_mut() {
            for flag in &self.flags {
                fields.insert(flag.name.clone(), Value::Bool(true));
            }
        }
        result
    }
}

impl Flag {
    fn is_identifier(&self) -> bool {
        let is_word = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
        self.name.bytes().all(is_word) && !self.name.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether an expression can name the field. `has` takes no name in brackets.
    fn can_be_read(&self) -> bool {
        let is_text = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b' ');
        self.is_identifier() || (!self.may_be_missing && self.name.bytes().all(is_text))
    }

    fn expression(&self) -> String {
        let name = &self.name;
        if !self.is_identifier() {
            return format!("result['{name}']");
        }
        if self.may_be_missing {
            format!("has(result.{name}) && result.{name}")
        } else {
            format!("result.{name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn success(fields: &str) -> Option<Success> {
        let text = format!("contract: a/b\nversion: 1\nfields: {fields}\n");
        Success::of(&Contract::from_yaml(&text).unwrap())
    }

    #[test]
    fn booleans_that_are_named_after_a_success_guard_the_end() {
        for (fields, guard, reason) in [
            (
                "{ tests_passing: boolean, summary: string }",
                "result.tests_passing",
                "result.summary",
            ),
            ("{ done: boolean, strict: boolean }", "result.done", "\"'done is not true'\""),
            (
                "{ ok: boolean, done?: boolean, summary?: string }",
                "\"result.ok && has(result.done) && result.done\"",
                "\"'not all of these are true: ok, done'\"",
            ),
        ] {
            let success = success(fields).unwrap();
            assert_eq!((success.guard().as_str(), success.reason().as_str()), (guard, reason));
        }
        for fields in ["{ done: string }", "{ strict: boolean }", "{ tests_failed: boolean }"] {
            assert!(success(fields).is_none(), "{fields}");
        }
    }

    #[test]
    fn names_that_are_no_identifiers_are_read_in_brackets() {
        let success = |required: &[&str]| {
            let properties = json!({"tests-ok": {"type": "boolean"}});
            let schema = json!({"type": "object", "properties": properties, "required": required});
            let text = format!("contract: a/b\nversion: 1\nschema: {schema}\n");
            Success::of(&Contract::from_yaml(&text).unwrap())
        };
        assert_eq!(success(&["tests-ok"]).unwrap().guard(), "\"result['tests-ok']\"");
        assert!(success(&[]).is_none());
    }

    #[test]
    fn a_result_claims_success_in_all_its_flags() {
        let success = success("{ done: boolean, ok: boolean, strict: boolean }").unwrap();
        let result = json!({"done": false, "strict": false});
        assert_eq!(success.claimed_in(result), json!({"done": true, "strict": false, "ok": true}));
    }
}
