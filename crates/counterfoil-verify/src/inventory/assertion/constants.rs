//! Whether assertions on constants hold.

use super::super::constant::Value;
use super::super::parse::node_text;
use super::Reader;
use tree_sitter::Node;

impl Reader<'_, '_> {
    /// Whether an assertion holds for constants, by its name in lower case and without `assert`;
    /// none if it is not known.
    pub(super) fn holds(
        &self,
        name: &str,
        value: Node<'_>,
        other: Option<Node<'_>>,
    ) -> Option<bool> {
        let plain = name.replace('_', "");
        let plain = plain.strip_prefix("is").unwrap_or(&plain);
        let (plain, is_negated) = match plain.strip_prefix("not") {
            Some(rest) => (rest, true),
            None if plain == "ne" => ("eq", true),
            None => (plain, false),
        };
        self.relation(plain, value, other).map(|holds| holds != is_negated)
    }

    /// Whether the matcher of an expectation holds for constants: `toBe`, `equal`.
    pub(super) fn matches(
        &self,
        matcher: &str,
        value: Node<'_>,
        wanted: Option<Node<'_>>,
    ) -> Option<bool> {
        let lower = matcher.to_ascii_lowercase();
        if wanted.is_none() && matches!(lower.as_str(), "not" | "to" | "be" | "is" | "have") {
            // Nothing is compared.
            return Some(true);
        }
        let plain = match lower.strip_prefix("to") {
            Some("be") => "be",
            Some(rest) => rest.strip_prefix("be").unwrap_or(rest),
            None => lower.as_str(),
        };
        self.relation(plain, value, wanted)
    }

    fn relation(&self, name: &str, value: Node<'_>, other: Option<Node<'_>>) -> Option<bool> {
        let text = node_text(value, self.text);
        let known = || self.conditions.value(value);
        let compared = |operator: &str| {
            let (a, b) = (known()?, self.conditions.value(other?)?);
            a.compare(operator, &b)
        };
        match name {
            "" if other.is_none() => self.conditions.truth(value).always(),
            "true" | "ok" | "truthy" => self.conditions.truth(value).always(),
            "false" | "falsy" => self.conditions.truth(value).always().map(|truth| !truth),
            "none" | "null" | "nil" if text == "undefined" => None,
            "none" | "null" | "nil" => Some(known()? == Value::Nothing),
            "undefined" => Some(known()? == Value::Nothing && text == "undefined"),
            "defined" => Some(known()? != Value::Nothing || text != "undefined"),
            "exist" | "exists" => Some(known()? != Value::Nothing),
            "greater" | "greaterthan" | "above" | "gt" => compared(">"),
            "greaterequal" | "greaterorequal" | "greaterthanorequal" | "least" | "gte" => {
                compared(">=")
            }
            "less" | "lessthan" | "below" | "lt" => compared("<"),
            "lessequal" | "lessorequal" | "lessthanorequal" | "most" | "lte" => compared("<="),
            "in" => compared("in"),
            _ => {
                let other = other?;
                if self.is_same(value, other) {
                    return (name.contains("equal") || is_equality(name)).then_some(true);
                }
                let equal = known()?.equals(&self.conditions.value(other)?)?;
                is_equality(name).then_some(equal)
            }
        }
    }
}

/// Whether an assertion compares two values, and nothing else decides.
fn is_equality(name: &str) -> bool {
    matches!(
        name,
        "" | "be"
            | "eq"
            | "eql"
            | "eqls"
            | "equal"
            | "equals"
            | "same"
            | "exactly"
            | "strictequal"
            | "deepequal"
            | "deepequals"
            | "deepstrictequal"
            | "strictsame"
    )
}
