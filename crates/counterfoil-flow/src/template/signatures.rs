//! The filters, tests and functions of templates: their names and arguments.

use counterfoil_contract::expr::Type;
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::pluralize;
use minijinja::machinery::ast::{CallArg, Expr};

/// The name of a filter, the minimum and maximum number of its arguments, and its named arguments.
pub(super) type Signature = (&'static str, usize, usize, &'static [&'static str]);

/// No maximum number of arguments.
const ANY_COUNT: usize = usize::MAX;

/// The filters.
const SIGNATURES: [Signature; 48] = [
    ("abs", 0, 0, &[]),
    ("attr", 1, 1, &[]),
    ("batch", 1, 2, &[]),
    ("bool", 0, 0, &[]),
    ("capitalize", 0, 0, &[]),
    ("chain", 1, ANY_COUNT, &[]),
    ("count", 0, 0, &[]),
    ("d", 0, 2, &[]),
    ("default", 0, 2, &[]),
    ("dictsort", 0, 0, &["by", "case_sensitive", "reverse"]),
    ("e", 0, 0, &[]),
    ("escape", 0, 0, &[]),
    ("first", 0, 0, &[]),
    ("float", 0, 1, &["default"]),
    ("format", 0, ANY_COUNT, &[]),
    ("groupby", 0, 1, &["attribute", "default", "case_sensitive"]),
    ("indent", 0, 3, &["width", "first", "blank"]),
    ("int", 0, 2, &["default", "base"]),
    ("items", 0, 0, &[]),
    ("join", 0, 1, &["d", "attribute"]),
    ("last", 0, 0, &[]),
    ("length", 0, 0, &[]),
    ("lines", 0, 0, &[]),
    ("list", 0, 0, &[]),
    ("lower", 0, 0, &[]),
    ("map", 0, ANY_COUNT, &["attribute", "default"]),
    ("max", 0, 0, &["attribute", "case_sensitive"]),
    ("min", 0, 0, &["attribute", "case_sensitive"]),
    ("pprint", 0, 0, &[]),
    ("reject", 0, ANY_COUNT, &[]),
    ("rejectattr", 1, ANY_COUNT, &[]),
    ("replace", 2, 2, &[]),
    ("reverse", 0, 0, &[]),
    ("round", 0, 2, &["precision", "method"]),
    ("safe", 0, 0, &[]),
    ("select", 0, ANY_COUNT, &[]),
    ("selectattr", 1, ANY_COUNT, &[]),
    ("slice", 1, 2, &[]),
    ("sort", 0, 0, &["attribute", "case_sensitive", "reverse"]),
    ("split", 0, 2, &[]),
    ("string", 0, 0, &[]),
    ("sum", 0, 2, &["attribute", "start"]),
    ("title", 0, 0, &[]),
    ("tojson", 0, 1, &["indent"]),
    ("trim", 0, 1, &[]),
    ("unique", 0, 0, &["attribute", "case_sensitive"]),
    ("upper", 0, 0, &[]),
    ("zip", 1, ANY_COUNT, &[]),
];

/// The tests, with the number of their arguments.
const TESTS: [(&str, usize); 42] = [
    ("defined", 0),
    ("undefined", 0),
    ("none", 0),
    ("safe", 0),
    ("escaped", 0),
    ("boolean", 0),
    ("odd", 0),
    ("even", 0),
    ("number", 0),
    ("integer", 0),
    ("int", 0),
    ("float", 0),
    ("string", 0),
    ("sequence", 0),
    ("iterable", 0),
    ("mapping", 0),
    ("lower", 0),
    ("upper", 0),
    ("true", 0),
    ("false", 0),
    ("filter", 0),
    ("test", 0),
    ("divisibleby", 1),
    ("startingwith", 1),
    ("endingwith", 1),
    ("sameas", 1),
    ("eq", 1),
    ("equalto", 1),
    ("==", 1),
    ("ne", 1),
    ("!=", 1),
    ("lt", 1),
    ("lessthan", 1),
    ("<", 1),
    ("le", 1),
    ("<=", 1),
    ("gt", 1),
    ("greaterthan", 1),
    (">", 1),
    ("ge", 1),
    (">=", 1),
    ("in", 1),
];

/// The functions.
pub(super) const FUNCTIONS: [&str; 2] = ["range", "dict"];

/// The methods of objects.
pub(super) const METHODS: [&str; 4] = ["items", "keys", "values", "get"];

/// The fields of `loop`.
pub(super) const LOOP_FIELDS: [(&str, Type); 9] = [
    ("index", Type::Int),
    ("index0", Type::Int),
    ("length", Type::Int),
    ("revindex", Type::Int),
    ("revindex0", Type::Int),
    ("first", Type::Bool),
    ("last", Type::Bool),
    ("depth", Type::Int),
    ("depth0", Type::Int),
];

/// Whether a name is a function of the language.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

/// Whether a name is a filter.
pub(super) fn is_filter(name: &str) -> bool {
    SIGNATURES.iter().any(|(known, ..)| *known == name)
}

/// The message and the hint for an invalid use of a filter; `None` if it is valid.
pub(super) fn filter_call_error(name: &str, args: &[CallArg<'_>]) -> Option<(String, String)> {
    let Some((_, least, most, named)) = SIGNATURES.iter().find(|(known, ..)| *known == name) else {
        let hint =
            did_you_mean(name, SIGNATURES.iter().map(|(known, ..)| *known)).unwrap_or_else(|| {
                "common filters: default, join, length, indent, tojson, items".to_owned()
            });
        return Some((format!("unknown filter '{name}'"), hint));
    };
    for arg in args {
        if let CallArg::Kwarg(word, _) = arg
            && *most != ANY_COUNT
            && !named.contains(word)
        {
            let hint = did_you_mean(word, named.iter().copied()).unwrap_or_default();
            return Some((format!("the filter '{name}' has no argument '{word}'"), hint));
        }
    }
    argument_count_error(&format!("the filter '{name}'"), *least, *most, args)
}

/// The message and the hint for an invalid use of a test; `None` if it is valid.
pub(super) fn test_call_error(name: &str, args: &[CallArg<'_>]) -> Option<(String, String)> {
    let Some((_, count)) = TESTS.iter().find(|(known, _)| *known == name) else {
        let words = TESTS.iter().map(|(known, _)| *known);
        let hint = did_you_mean(name, words).unwrap_or_else(|| {
            "common tests: defined, none, string, number, mapping, in".to_owned()
        });
        return Some((format!("unknown test '{name}'"), hint));
    };
    argument_count_error(&format!("the test '{name}'"), *count, *count, args)
}

fn argument_count_error(
    what: &str,
    least: usize,
    most: usize,
    args: &[CallArg<'_>],
) -> Option<(String, String)> {
    if args.iter().any(|arg| matches!(arg, CallArg::PosSplat(_) | CallArg::KwargSplat(_))) {
        return Some((
            format!("{what} does not accept unpacked arguments"),
            "write each argument separately".to_owned(),
        ));
    }
    let count = args.iter().filter(|arg| matches!(arg, CallArg::Pos(_))).count();
    let wanted = match (least, most) {
        (0, 0) => "no arguments".to_owned(),
        (least, ANY_COUNT) => format!("at least {}", pluralize(least, "argument")),
        (least, most) if least == most => pluralize(least, "argument"),
        (least, most) => format!("{least} to {most} arguments"),
    };
    (count < least || count > most)
        .then(|| (format!("{what} takes {wanted}, not {count}"), String::new()))
}

/// An argument by its position, or else by its name.
pub(super) fn argument_at<'t, 's>(
    args: &'t [CallArg<'s>],
    position: usize,
    name: &str,
) -> Option<&'t Expr<'s>> {
    let by_position = args.iter().filter_map(|arg| match arg {
        CallArg::Pos(expr) => Some(expr),
        _ => None,
    });
    let by_name = args.iter().find_map(|arg| match arg {
        CallArg::Kwarg(word, expr) if *word == name => Some(expr),
        _ => None,
    });
    by_position.into_iter().nth(position).or(by_name)
}

/// The value of a string literal.
pub(super) fn string_literal<'t>(expr: &'t Expr<'_>) -> Option<&'t str> {
    match expr {
        Expr::Const(constant) => constant.value.as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_has_every_filter_test_and_function_the_checker_knows() {
        let environment = crate::template::runtime::environment();
        let has = |name: &str, kind: &str| {
            let source = format!("{{{{ '{name}' is {kind} }}}}");
            environment.render_str(&source, ()).is_ok_and(|answer| answer == "true")
        };
        for (name, ..) in SIGNATURES {
            assert!(has(name, "filter"), "there is no filter '{name}'");
        }
        for (name, _) in TESTS {
            assert!(has(name, "test"), "there is no test '{name}'");
        }
        let functions: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
        assert_eq!(functions, ["dict", "range"]);
    }
}
