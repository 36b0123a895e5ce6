//! What is probably a mistake in a contract that loads: keywords of its schema that JSON Schema does
//! not have, and formats that nothing validates. A validator ignores them, so a misspelt one lets every
//! value pass. Besides, settings of its policy that have no effect, and examples that are placeholders.

mod examples;
mod no_effect;

use crate::code::Code;
use crate::contract::Contract;
use crate::problem::Problem;
use crate::text::truncate;
use serde_json::Value;
use std::fmt;

/// Keywords that have an effect: on values, or on what agents are told of them.
const KEYWORDS: [&str; 41] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Keywords that other words may resemble: they are short, or change nothing. Among them are those of
/// older drafts and of `OpenAPI`.
const OTHERS: [&str; 27] = [
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "else",
    "example",
    "examples",
    "externalDocs",
    "id",
    "if",
    "not",
    "nullable",
    "readOnly",
    "then",
    "title",
    "writeOnly",
    "xml",
];

/// The formats that are validated: those of the validator and those of this crate.
const FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "n-of-m",
    "regex",
    "relative-json-pointer",
    "repo-path",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Formats that are only told to agents: of JSON Schema, and of `OpenAPI` for numbers and texts.
const OTHER_FORMATS: [&str; 14] = [
    "binary",
    "byte",
    "char",
    "decimal",
    "double",
    "float",
    "idn-email",
    "idn-hostname",
    "int16",
    "int32",
    "int64",
    "int8",
    "markdown",
    "password",
];

/// How many unknown keywords of a schema are compared with the known ones.
const MAX_COMPARED: usize = 1000;
/// How many warnings a contract has at most.
const MAX_WARNINGS: usize = 50;
/// Longer words resemble no known one.
const MAX_WORD_BYTES: usize = 40;
/// The length of a name in a place, in characters.
const MAX_NAME: usize = 60;

impl Contract {
    /// What is probably a mistake in the contract, although it is valid: keywords and formats of its
    /// schema that are unknown and nearly known ones (those that begin with `x-` are meant), settings
    /// of its policy that have no effect, and examples with a text that stands for a real one.
    pub fn lint(&self) -> Vec<Problem> {
        let mut found = misspelt_words(self.raw_schema());
        found.extend(no_effect::check(self.policy()));
        let examples = &self.definition().examples;
        found.extend(examples::placeholders(examples, self.ty(), MAX_WARNINGS));
        found
    }
}

fn misspelt_words(schema: &Value) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut compared = 0;
    let mut parts = vec![Part { schema, above: 0, step: Step::Whole }];
    let mut next = 0;
    while let Some(schema) = parts.get(next).map(|part| part.schema) {
        let at = next;
        next += 1;
        let Value::Object(members) = schema else { continue };
        for (keyword, member) in members {
            add_parts(at, keyword, member, &mut parts);
            let format = member.as_str().filter(|_| keyword == "format");
            if format.map_or_else(|| is_known(keyword), is_known_format) {
                continue;
            }
            compared += 1;
            if compared > MAX_COMPARED || found.len() == MAX_WARNINGS {
                return found;
            }
            let place = || format!("{}.{keyword}", place(&parts, at));
            found.extend(match format {
                Some(format) => nearest_format(format).map(|near| {
                    Problem::new(
                        Code::MisspeltFormat,
                        &place(),
                        format!("'{format}' is no known format and is not validated"),
                        format!("did you mean '{near}'? A format of your own begins with x-"),
                    )
                }),
                None => nearest(keyword, &KEYWORDS).map(|near| {
                    Problem::new(
                        Code::MisspeltKeyword,
                        &place(),
                        format!("'{keyword}' is no keyword of JSON Schema and has no effect"),
                        format!("did you mean '{near}'? A keyword of your own begins with x-"),
                    )
                }),
            });
        }
    }
    found
}

/// A schema in a schema.
struct Part<'s> {
    schema: &'s Value,
    /// The number of the part that it is in.
    above: usize,
    step: Step<'s>,
}

/// Where a schema is in the one around it.
enum Step<'s> {
    /// It is the whole.
    Whole,
    /// The value of a keyword.
    Value(&'s str),
    /// What has a name in the value of a keyword.
    Name(&'s str, &'s str),
    /// An item of the value of a keyword.
    Item(&'s str, usize),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("schema"),
            Self::Value(keyword) => write!(f, ".{keyword}"),
            Self::Name(keyword, name) => write!(f, ".{keyword}.{}", truncate(name, MAX_NAME)),
            Self::Item(keyword, index) => write!(f, ".{keyword}[{index}]"),
        }
    }
}

/// Adds the schemas that a keyword holds. The names of properties and definitions are no keywords, and
/// values are no schemas.
fn add_parts<'s>(above: usize, keyword: &'s str, member: &'s Value, parts: &mut Vec<Part<'s>>) {
    let part = |schema, step| Part { schema, above, step };
    match (keyword, member) {
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies",
            Value::Object(schemas),
        ) => {
            let named = schemas.iter();
            parts.extend(named.map(|(name, schema)| part(schema, Step::Name(keyword, name))));
        }
        ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
            let items = schemas.iter().enumerate();
            parts.extend(items.map(|(index, schema)| part(schema, Step::Item(keyword, index))));
        }
        (
            "additionalItems"
            | "additionalProperties"
            | "contains"
            | "contentSchema"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties",
            Value::Object(_),
        ) => parts.push(part(member, Step::Value(keyword))),
        _ => {}
    }
}

/// The path of a part, such as `schema.properties.level`.
fn place(parts: &[Part<'_>], mut at: usize) -> String {
    let mut steps = Vec::new();
    loop {
        let part = &parts[at];
        steps.push(part.step.to_string());
        if at == part.above {
            break;
        }
        at = part.above;
    }
    steps.reverse();
    steps.concat()
}

fn is_known(keyword: &str) -> bool {
    keyword.starts_with("x-") || KEYWORDS.contains(&keyword) || OTHERS.contains(&keyword)
}

fn is_known_format(format: &str) -> bool {
    format.starts_with("x-") || FORMATS.contains(&format) || OTHER_FORMATS.contains(&format)
}

/// The format that a word is nearly, or means.
fn nearest_format(word: &str) -> Option<&'static str> {
    if word.eq_ignore_ascii_case("url") { Some("uri") } else { nearest(word, &FORMATS) }
}

/// The known word that a word is nearly.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let word = plain(word);
    let near = known.iter().filter_map(|name| {
        let known = plain(name);
        let distance = strsim::osa_distance(&word, &known);
        // A letter in a short word makes another word.
        let allowed = match known.len() {
            0..=3 => 0,
            4..=7 => 1,
            8..=11 => 2,
            _ => 3,
        };
        (distance <= allowed).then_some((distance, *name))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// A word in lower case, without what may stand between its parts.
fn plain(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '$' | '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(schema: &Value) -> Vec<String> {
        let problems = misspelt_words(schema);
        problems.into_iter().map(|problem| format!("{} {}", problem.place, problem.hint)).collect()
    }

    #[test]
    fn words_that_are_nearly_keywords_are_recognised() {
        for (word, keyword) in [
            ("requird", "required"),
            ("require", "required"),
            ("propertis", "properties"),
            ("Properties", "properties"),
            ("minlength", "minLength"),
            ("min_length", "minLength"),
            ("maxLenght", "maxLength"),
            ("additionalproperties", "additionalProperties"),
            ("additionalProperty", "additionalProperties"),
            ("anyof", "anyOf"),
            ("one-of", "oneOf"),
            ("item", "items"),
            ("tpye", "type"),
            ("types", "type"),
            ("enums", "enum"),
            ("patern", "pattern"),
            ("ref", "$ref"),
            ("defs", "$defs"),
            ("defualt", "default"),
            ("descripton", "description"),
        ] {
            assert_eq!(nearest(word, &KEYWORDS), Some(keyword), "{word}");
            assert!(!is_known(word), "{word}");
        }
    }

    #[test]
    fn other_words_are_left_alone() {
        for word in [
            "name",
            "note",
            "label",
            "unit",
            "order",
            "when",
            "comment",
            "group",
            "min",
            "max",
            "enumNames",
            "enumDescriptions",
            "markdownDescription",
            "propertyOrdering",
            "errorMessage",
            "definition",
            "version",
            "ids",
            "rules",
            "claims",
            "",
            "$",
            "ünïcode",
        ] {
            assert_eq!(nearest(word, &KEYWORDS), None, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), &KEYWORDS), None);
        assert!(is_known("x-requird") && is_known("nullable") && is_known("examples"));
    }

    #[test]
    fn words_that_are_nearly_formats_are_recognised() {
        for (word, format) in [
            ("datetime", "date-time"),
            ("date_time", "date-time"),
            ("Date-Time", "date-time"),
            ("emial", "email"),
            ("e-mail", "email"),
            ("UUID", "uuid"),
            ("URI", "uri"),
            ("url", "uri"),
            ("hostnme", "hostname"),
            ("repopath", "repo-path"),
            ("regexp", "regex"),
            ("ipv-4", "ipv4"),
        ] {
            assert_eq!(nearest_format(word), Some(format), "{word}");
            assert!(!is_known_format(word), "{word}");
        }
        for word in ["color", "phone", "semver", "path", "money", "ip", "id", "cron", "", "ürl"] {
            assert_eq!(nearest_format(word), None, "{word}");
        }
        let schema = json!({
            "properties": {
                // The name of a property.
                "format": {"type": "string", "format": "datetime"},
                "at": {"format": "date-time"},
                "id": {"format": "x-uuid"},
                "size": {"type": "integer", "format": "int32"},
                "value": {"const": {"format": "emial"}, "format": 1},
            },
        });
        assert_eq!(
            found(&schema),
            [
                "schema.properties.format.format did you mean 'date-time'? A format of your own begins with x-",
            ]
        );
    }

    #[test]
    fn the_formats_are_those_that_are_validated() {
        let is_validated = |format: &str| {
            let schema = json!({"type": "string", "format": format});
            let validator = crate::schema::build_validator(&schema).unwrap();
            // No text is valid in all formats.
            ["", "%", "/..", "{", "(", "a b"].iter().any(|text| !validator.is_valid(&json!(text)))
        };
        for format in FORMATS {
            assert!(is_validated(format), "{format}");
        }
        for format in OTHER_FORMATS {
            assert!(!is_validated(format), "{format}");
        }
    }

    #[test]
    fn only_keywords_are_examined_and_each_has_its_place() {
        let schema = json!({
            "type": "object",
            "requird": ["a"],
            "properties": {
                // The name of a property.
                "requird": {"type": "string", "minlength": 3, "x-minlength": 3},
                "list": {"items": {"anyOf": [{}, {"patern": "a"}]}},
                "value": {
                    "const": {"minlength": 1}, "enum": [{"minlength": 1}], "default": {"minlength": 1},
                    "examples": [{"minlength": 1}], "dependentRequired": {"minlength": ["a"]},
                },
            },
            "$defs": {"minlength": {"additionalProperties": {"tpye": "string"}}},
        });
        assert_eq!(
            found(&schema),
            [
                "schema.requird did you mean 'required'? A keyword of your own begins with x-",
                "schema.properties.requird.minlength did you mean 'minLength'? A keyword of your own begins with x-",
                "schema.$defs.minlength.additionalProperties.tpye did you mean 'type'? A keyword of your own begins with x-",
                "schema.properties.list.items.anyOf[1].patern did you mean 'pattern'? A keyword of your own begins with x-",
            ]
        );
    }

    #[test]
    fn the_work_on_a_schema_of_unknown_keywords_is_bounded() {
        let schema = |word: &str| {
            let members = (0..100_000).map(|n| (format!("{word}{n:06}"), json!(0)));
            Value::Object(members.collect())
        };
        assert_eq!(found(&schema("unknown")), [""; 0]);
        let misspelt = json!({"allOf": vec![json!({"requird": []}); 1000]});
        assert_eq!(found(&misspelt).len(), MAX_WARNINGS);
    }
}
