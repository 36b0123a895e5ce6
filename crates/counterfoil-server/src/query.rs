//! The query of an address: what it means, and what is wrong with it in the words of people.

use crate::format::cell;
use crate::problem::Problem;
use serde::de::DeserializeOwned;

/// Reads a query.
pub(crate) fn parse_query<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Problem> {
    let query = query.unwrap_or_default();
    serde_urlencoded::from_str(query).map_err(|error| {
        let known = wrong_parameter::<T>(query);
        let detail = known.unwrap_or_else(|| wrong_query(&error.to_string()));
        Problem::bad_request(detail)
    })
}

/// What is wrong with the first parameter that is wrong by itself. The error of the whole query does
/// not name it.
fn wrong_parameter<T: DeserializeOwned>(query: &str) -> Option<String> {
    query.split('&').find_map(|part| {
        let error = serde_urlencoded::from_str::<T>(part).err()?.to_string();
        if error.starts_with("missing field") {
            return None;
        }
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(part).ok()?;
        let (name, value) = pairs.into_iter().next()?;
        let (name, value) = (cell(&name), cell(&value));
        Some(if error.starts_with("unknown field") {
            format!("there is no parameter '{name}' here: {}", expected(&error))
        } else {
            format!("the parameter '{name}' cannot be '{value}': {}", expected(&error))
        })
    })
}

/// What is allowed, from the error of serde.
fn expected(error: &str) -> String {
    if let Some((_, known)) = error.rsplit_once(", expected ") {
        return format!("expected {known}");
    }
    if error.contains("`true` or `false`") {
        return "expected `true` or `false`".to_owned();
    }
    if error.contains("too large") {
        return "the number is too large".to_owned();
    }
    if error.contains("digit") || error.contains("integer") {
        return "expected a whole number".to_owned();
    }
    cell(error)
}

/// What is wrong with a query whose parameters are all right.
fn wrong_query(error: &str) -> String {
    let name =
        |start: &str| error.strip_prefix(start).map(|name| name.trim_matches('`').to_owned());
    if let Some(name) = name("duplicate field ") {
        return format!("the parameter '{name}' is given more than once");
    }
    if let Some(name) = name("missing field ") {
        return format!("the parameter '{name}' is missing");
    }
    format!("the query of the address: {}", cell(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what is wrong matters")]
    struct Sample {
        from: u64,
        #[serde(default)]
        view: View,
        #[serde(default)]
        refuted: bool,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum View {
        #[default]
        All,
        NeedsMe,
    }

    #[test]
    fn what_is_wrong_with_a_query_names_the_parameter() {
        for (query, expected) in [
            ("view=all&from=abc", "the parameter 'from' cannot be 'abc': expected a whole number"),
            ("from=", "the parameter 'from' cannot be '': expected a whole number"),
            (
                "from=99999999999999999999",
                "the parameter 'from' cannot be '99999999999999999999': the number is too large",
            ),
            (
                "from=1&view=a%26b",
                "the parameter 'view' cannot be 'a&b': expected `all` or `needs-me`",
            ),
            (
                "from=1&refuted=perhaps",
                "the parameter 'refuted' cannot be 'perhaps': expected `true` or `false`",
            ),
            (
                "from=1&page=2",
                "there is no parameter 'page' here: expected one of `from`, `view`, `refuted`",
            ),
            ("from=1&from=2", "the parameter 'from' is given more than once"),
            ("view=all", "the parameter 'from' is missing"),
            ("", "the parameter 'from' is missing"),
        ] {
            let problem = parse_query::<Sample>(Some(query)).unwrap_err();
            assert_eq!(problem.detail(), expected, "{query}");
        }
        assert_eq!(parse_query::<Sample>(Some("from=7")).unwrap().from, 7);
    }
}
