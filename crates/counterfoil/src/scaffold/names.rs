//! The names of a new contract or workflow, from the one that the user gives.

use counterfoil_contract::definition::check_id;
use counterfoil_flow::is_name;

/// The longest name of a workflow or an agent.
const MAX_NAME: usize = 80;

/// What a user wants to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Contract,
    Workflow,
}

/// What the parts of a scaffold are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// The id of the contract.
    pub(crate) contract: String,
    /// The name of the files.
    pub(crate) file: String,
    /// The name of the workflow and of its agent.
    pub(crate) workflow: String,
}

/// A name that neither a contract nor a workflow can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an id; write NAME or NAMESPACE/NAME, each of lower-case letters, digits, -, _ and ., \
     beginning with a letter or a digit, as in review or acme/review"
)]
pub(crate) struct BadName(String);

/// The names of what is called NAME or NAMESPACE/NAME. What can be the id of a contract is a name of
/// either subject, and what can be the name of a workflow is one of a workflow.
pub(crate) fn names(subject: Subject, given: &str, namespace: &str) -> Result<Names, BadName> {
    let (own, short) = given.split_once('/').unwrap_or((namespace, given));
    let contract = format!("{own}/{short}");
    let (contract, file) = if check_id(&contract).is_ok() {
        (contract, short.to_owned())
    } else if subject == Subject::Workflow && is_name(given) {
        id_for_workflow(given, namespace)
    } else {
        return Err(BadName(given.to_owned()));
    };
    let workflow = if is_name(short) { short.to_owned() } else { workflow_name(&file) };
    Ok(Names { contract, file, workflow })
}

/// The id of the contract of a workflow whose name is none, and the part of it that names the files.
fn id_for_workflow(name: &str, namespace: &str) -> (String, String) {
    let lower = name.to_ascii_lowercase();
    let part = |part: &str| part.trim_matches(['-', '_']).to_owned();
    let parts: Vec<String> = lower.split('/').map(part).filter(|part| !part.is_empty()).collect();
    let (own, file) = match parts.as_slice() {
        [own, rest @ ..] if !rest.is_empty() => (own.as_str(), rest.join("-")),
        parts => (namespace, parts.concat()),
    };
    (format!("{own}/{file}"), file)
}

/// The name of a workflow for a part of an id, which may have dots and begin with a digit.
fn workflow_name(file: &str) -> String {
    let name = file.replace('.', "-");
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic());
    shortened(if starts_well { name } else { format!("do-{name}") })
}

/// The name of the workflow that tries a contract.
pub(super) fn trial(name: &str) -> String {
    shortened(format!("try-{name}"))
}

fn shortened(mut name: String) -> String {
    // It is ASCII.
    name.truncate(MAX_NAME);
    name
}

/// A name as YAML has it: in quotes where it would be no text.
pub(super) fn yaml(name: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if WORDS.iter().any(|word| name.eq_ignore_ascii_case(word)) {
        return format!("\"{name}\"");
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_an_id_is_a_name() {
        for (given, contract, file, workflow) in [
            ("review", "own/review", "review", "review"),
            ("acme/review", "acme/review", "review", "review"),
            ("acme/review.v2", "acme/review.v2", "review.v2", "review-v2"),
            ("2fa", "own/2fa", "2fa", "do-2fa"),
            ("my.org/fix_it-", "my.org/fix_it-", "fix_it-", "fix_it-"),
            ("1/2", "1/2", "2", "do-2"),
        ] {
            let expected = Names {
                contract: contract.to_owned(),
                file: file.to_owned(),
                workflow: workflow.to_owned(),
            };
            for subject in [Subject::Contract, Subject::Workflow] {
                assert_eq!(names(subject, given, "own"), Ok(expected.clone()), "{given}");
            }
            assert_eq!(check_id(contract), Ok(()));
            assert!(is_name(workflow), "{workflow}");
        }
        let long = "1".repeat(200);
        let made = names(Subject::Contract, &long, "own").unwrap();
        assert!(is_name(&made.workflow) && is_name(&trial(&made.workflow)), "{made:?}");
    }

    #[test]
    fn what_can_be_a_workflow_is_a_name_of_a_workflow() {
        for (given, contract, file, workflow) in [
            ("Review", "own/review", "review", "Review"),
            ("acme/Review", "acme/review", "review", "Review"),
            ("a/b/c", "a/b-c", "b-c", "b/c"),
            ("a//B-", "a/b", "b", "b"),
            ("A/", "own/a", "a", "a"),
        ] {
            assert!(is_name(given), "{given}");
            let made = names(Subject::Workflow, given, "own").unwrap();
            let parts = (made.contract.as_str(), made.file.as_str(), made.workflow.as_str());
            assert_eq!(parts, (contract, file, workflow), "{given}");
            assert_eq!(check_id(contract), Ok(()));
            assert!(names(Subject::Contract, given, "own").is_err(), "{given}");
        }
    }

    #[test]
    fn other_names_are_refused_with_one_message() {
        for given in
            ["", "Fix It", "../fix", ".fix", "a/b@1", "fix@1", "/fix", "-fix", "é", "a\nb", "1/A"]
        {
            for subject in [Subject::Contract, Subject::Workflow] {
                assert_eq!(names(subject, given, "own"), Err(BadName(given.to_owned())), "{given}");
            }
        }
    }

    #[test]
    fn a_name_stays_a_text() {
        assert_eq!((yaml("Null").as_str(), yaml("nullable").as_str()), ("\"Null\"", "nullable"));
    }
}
