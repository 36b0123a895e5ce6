//! Where a mistake can be made, and what it looks like.

use crate::shipped::Example;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What is claimed of a mutant.
#[derive(Clone, Copy)]
pub(crate) enum Claim {
    /// It means something else and must be refused.
    Refused,
    /// It may be valid, for this reason.
    Open(#[allow(dead_code)] &'static str),
}

/// A changed file.
pub(crate) struct Mutant {
    pub(crate) kind: &'static str,
    pub(crate) what: String,
    pub(crate) claim: Claim,
    pub(crate) file: String,
    pub(crate) text: String,
}

pub(crate) struct Maker<'e> {
    example: &'e Example,
    pub(crate) root: &'e Value,
    /// Every word of every file: a misspelling must not be one of them.
    words: BTreeSet<String>,
    mutants: Vec<Mutant>,
}

/// A place in the tree: the keys that lead there, and what is there.
pub(crate) type Site<'v> = (Vec<String>, &'v Value);

/// Every mutant of a workflow.
pub(crate) fn mutants(example: &Example, root: &Value) -> Vec<Mutant> {
    let all = example.files.values().cloned().collect::<Vec<_>>().join(" ");
    let words = all
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .map(str::to_owned)
        .collect();
    let mut maker = Maker { example, root, words, mutants: Vec::new() };
    let mut sites = Vec::new();
    walk(root, &mut Vec::new(), &mut sites);
    for site in &sites {
        maker.expression(site);
        maker.target(site);
        maker.declaration(site);
        maker.branches(site);
        maker.assignment(site);
        maker.call(site);
        maker.template(site);
        maker.needed(site);
        maker.claim_mistakes(site);
    }
    maker.template_files();
    maker.mutants
}

fn walk<'v>(value: &'v Value, path: &mut Vec<String>, sites: &mut Vec<Site<'v>>) {
    sites.push((path.clone(), value));
    let mut below = |key: String, value: &'v Value| {
        path.push(key);
        walk(value, path, sites);
        path.pop();
    };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| below(at.to_string(), item));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| below(key.clone(), member));
        }
        _ => {}
    }
}

pub(crate) fn pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |pointer, key| {
        pointer + "/" + &key.replace('~', "~0").replace('/', "~1")
    })
}

/// The last key of a path, and the one before it.
pub(crate) fn keys(path: &[String]) -> (&str, &str) {
    let key = |back: usize| {
        path.len().checked_sub(back).and_then(|at| path.get(at)).map_or("", String::as_str)
    };
    (key(1), key(2))
}

/// Whether a text at this path is an expression.
fn is_expression(path: &[String]) -> bool {
    let (last, parent) = keys(path);
    let under_states = path.iter().any(|key| key == "states");
    match last {
        "when" | "goto" | "in" | "rank" | "per" => true,
        "key" | "after" => parent == "each",
        "max" => path.iter().any(|key| key == "limits"),
        "result" => under_states,
        "reason" => under_states && parent != "set",
        _ => parent == "set" || (parent == "with" && under_states),
    }
}

/// Whether a text at this path is a template.
fn is_template(path: &[String], text: &str) -> bool {
    let (last, parent) = keys(path);
    let is_inline = text.contains("{{") || text.contains("{%");
    is_inline
        && (matches!(last, "question" | "prompt" | "path" | "template" | "cwd" | "input")
            || matches!(parent, "command" | "needs"))
}

/// The words of an expression or template outside of quotes, with their places.
fn bare_words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut quote = None;
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_part = quote.is_none() && (c.is_ascii_alphanumeric() || c == '_');
        match (is_part, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push((from, &text[from..at]));
                start = None;
            }
            _ => {}
        }
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
    }
    words
}

/// The quoted words of an expression, with the places of their contents.
fn quoted_words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (at, c) in text.char_indices() {
        match open {
            Some((from, quote)) if c == quote => {
                words.push((from + 1, &text[from + 1..at]));
                open = None;
            }
            None if c == '\'' || c == '"' => open = Some((at, c)),
            _ => {}
        }
    }
    words
}

fn replaced(text: &str, at: usize, word: &str, other: &str) -> String {
    format!("{}{other}{}", &text[..at], &text[at + word.len()..])
}

impl Maker<'_> {
    /// Misspellings of a word that are words of nothing else.
    pub(crate) fn misspelt(&self, word: &str) -> Vec<String> {
        let middle = word.len() / 2;
        let mut found = vec![
            format!("{}{}", &word[..middle], &word[middle + 1..]),
            format!("{}{}{}", &word[..=middle], &word[middle..=middle], &word[middle + 1..]),
            format!("{word}s"),
            format!("{word}_"),
        ];
        found.retain(|other| {
            !self.words.contains(other)
                && !other.is_empty()
                && !other.starts_with(|c: char| c.is_ascii_digit())
        });
        found.dedup();
        found
    }

    /// The workflow with another value at a place, or none.
    pub(crate) fn changed(
        &mut self,
        kind: &'static str,
        claim: Claim,
        path: &[String],
        value: Option<Value>,
    ) {
        let mut root = self.root.clone();
        let what = match &value {
            Some(value) => format!("{} is {value}", pointer(path)),
            None => format!("{} is gone", pointer(path)),
        };
        match value {
            Some(value) => *root.pointer_mut(&pointer(path)).unwrap() = value,
            None => {
                let (last, before) = path.split_last().unwrap();
                match root.pointer_mut(&pointer(before)).unwrap() {
                    Value::Object(members) => drop(members.shift_remove(last)),
                    Value::Array(items) => drop(items.remove(last.parse().unwrap())),
                    other => panic!("{other} has no members"),
                }
            }
        }
        let (file, text) = (self.example.workflow.clone(), root.to_string());
        self.mutants.push(Mutant { kind, what, claim, file, text });
    }

    /// A field, a variable or a value that an expression names wrongly.
    fn expression(&mut self, (path, value): &Site<'_>) {
        let Some(text) = value.as_str().filter(|_| is_expression(path)) else { return };
        // Names that a macro such as map() binds are not in scope anywhere else, so a misspelling
        // is one in any place.
        for (at, word) in bare_words(text) {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            let is_call = after.starts_with('(');
            let is_number = word.starts_with(|c: char| c.is_ascii_digit());
            if is_call || is_number || matches!(word, "true" | "false" | "null" | "in") {
                continue;
            }
            let kind = if before.ends_with('.') {
                "a field in an expression"
            } else {
                "a variable in an expression"
            };
            // The name that a macro binds, where it is bound: renaming it leaves its uses unknown.
            for other in self.misspelt(word) {
                self.changed(
                    kind,
                    Claim::Refused,
                    path,
                    Some(json!(replaced(text, at, word, &other))),
                );
            }
        }
        for (at, word) in quoted_words(text) {
            let before = text[..at - 1].trim_end();
            if word.is_empty() || !(before.ends_with("==") || before.ends_with("!=")) {
                continue;
            }
            for other in
                [word.to_uppercase(), format!("{word}x"), word[..word.len() - 1].to_owned()]
            {
                let other = replaced(text, at, word, &other);
                self.changed("an enum value", Claim::Refused, path, Some(json!(other)));
            }
        }
    }

    /// A state that is led to.
    fn target(&mut self, (path, value): &Site<'_>) {
        let (last, parent) = keys(path);
        let Some(state) = value.as_str() else { return };
        let is_target = matches!(last, "go" | "start")
            || (last == "then" && path.iter().any(|key| key == "limits"))
            || parent == "on";
        if !is_target {
            return;
        }
        for other in self.misspelt(state) {
            self.changed("a target that is no state", Claim::Refused, path, Some(json!(other)));
        }
        let machine = match path.first().map(String::as_str) {
            Some("workflows") => &self.root["workflows"][&path[1]],
            _ => self.root,
        };
        let others: Vec<String> = machine["states"].as_object().unwrap().keys().cloned().collect();
        let open = Claim::Open("another state can be meant");
        for other in others.iter().filter(|other| *other != state) {
            self.changed("a target that is another state", open, path, Some(json!(other)));
        }
    }

    /// Whether an expression of the workflow reads a name, or a transition gives it a value.
    fn is_used(&self, name: &str) -> bool {
        let mut sites = Vec::new();
        walk(self.root, &mut Vec::new(), &mut sites);
        sites.iter().any(|(path, value)| {
            let text = value.as_str().filter(|_| is_expression(path));
            let reads =
                text.is_some_and(|text| bare_words(text).iter().any(|(_, word)| *word == name));
            reads || (keys(path) == (name, "set") && !value.is_null())
        })
    }

    /// What is declared: types, initial values, limits.
    fn declaration(&mut self, (path, value): &Site<'_>) {
        let (last, parent) = keys(path);
        let is_machine = path.len() == 2 || path.len() == 4;
        if is_machine && matches!(parent, "inputs" | "variables") {
            let claim = if self.is_used(last) {
                Claim::Refused
            } else {
                Claim::Open("only templates print it, as they do any")
            };
            for other in [json!({"somewhere": "integer"}), json!([["boolean"]])] {
                let other = match parent {
                    "variables" => json!({"type": other, "optional": true}),
                    _ => other,
                };
                self.changed("a type", claim, path, Some(other));
            }
            self.changed("a declaration that is gone", Claim::Refused, path, None);
            if let Some(members) =
                value.as_object().filter(|members| members.contains_key("initial"))
            {
                let mut rest = members.clone();
                rest.shift_remove("initial");
                self.changed(
                    "an initial value that is gone",
                    Claim::Refused,
                    path,
                    Some(Value::Object(rest)),
                );
            }
        }
        if is_machine && matches!(parent, "limits" | "agents" | "workflows") {
            self.changed("a declaration that is gone", Claim::Refused, path, None);
        }
        if last == "counts" && value.is_string() {
            let mut sites = Vec::new();
            walk(self.root, &mut Vec::new(), &mut sites);
            let places = sites
                .iter()
                .filter(|(other, limit)| keys(other).0 == "counts" && limit == value)
                .count();
            let claim = if places == 1 {
                Claim::Refused
            } else {
                Claim::Open("another place counts the same limit")
            };
            self.changed("counts that is gone", claim, path, None);
        }
    }

    /// The branches of a state.
    fn branches(&mut self, (path, value): &Site<'_>) {
        let Some(items) =
            value.as_array().filter(|items| keys(path).0 == "next" && items.len() > 1)
        else {
            return;
        };
        for at in 0..items.len() {
            let claim = if at + 1 == items.len() {
                Claim::Refused
            } else {
                Claim::Open("the last branch takes over")
            };
            let branch = [path.clone(), vec![at.to_string()]].concat();
            self.changed("a branch that is gone", claim, &branch, None);
            if items[at].get("when").is_some() {
                let guard = [branch, vec!["when".to_owned()]].concat();
                // Without its guard it takes everything that those behind it are for.
                let claim = if at + 1 == items.len() {
                    Claim::Open("it is the last")
                } else {
                    Claim::Refused
                };
                self.changed("a guard that is gone", claim, &guard, None);
            }
        }
    }

    /// A value of another type for a variable.
    fn assignment(&mut self, (path, value): &Site<'_>) {
        let (last, parent) = keys(path);
        if parent != "set" {
            return;
        }
        let machine = match path.first().map(String::as_str) {
            Some("workflows") => &self.root["workflows"][&path[1]],
            _ => self.root,
        };
        let declared = &machine["variables"][last];
        let ty = declared.get("type").unwrap_or(declared);
        let is_whole = ty == &json!("integer");
        let others = if is_whole {
            [json!("run.id"), json!("'x'")]
        } else {
            [json!("run.iteration"), json!(7)]
        };
        for other in others {
            self.changed("an assignment's source", Claim::Refused, path, Some(other));
        }
        // A word for a variable that has a set of them.
        let words = ty.as_str().filter(|ty| ty.contains('|'));
        if let (Some(_), Some(text)) = (words, value.as_str()) {
            for (at, word) in quoted_words(text) {
                let other = replaced(text, at, word, &format!("{word}x"));
                self.changed("an enum value", Claim::Refused, path, Some(json!(other)));
            }
        }
        for other in self.misspelt(last) {
            let mut set = self.root.pointer(&pointer(&path[..path.len() - 1])).unwrap().clone();
            let members = set.as_object_mut().unwrap();
            members.shift_remove(last);
            members.insert(other, (*value).clone());
            self.changed(
                "a variable that is assigned",
                Claim::Refused,
                &path[..path.len() - 1],
                Some(set),
            );
        }
    }

    /// What a sub-workflow is given.
    fn call(&mut self, (path, value): &Site<'_>) {
        let Some(name) = value.get("run").and_then(Value::as_str) else { return };
        let path = |keys: &[&str]| {
            [path.clone(), keys.iter().map(|key| (*key).to_owned()).collect()].concat()
        };
        for other in self.misspelt(name) {
            self.changed(
                "a sub-workflow's name",
                Claim::Refused,
                &path(&["run"]),
                Some(json!(other)),
            );
        }
        for (input, _) in value["with"].as_object().into_iter().flatten() {
            self.changed(
                "an input that is not given",
                Claim::Refused,
                &path(&["with", input]),
                None,
            );
        }
    }

    /// A variable of a template that is written in place.
    fn template(&mut self, (path, value): &Site<'_>) {
        let Some(text) = value.as_str().filter(|text| is_template(path, text)) else { return };
        for other in self.misspelt_template(text) {
            self.changed("a variable of a template", Claim::Refused, path, Some(json!(other)));
        }
    }

    fn template_files(&mut self) {
        let files = self.example.files.iter();
        let templates = files
            .filter(|(name, _)| name.starts_with("prompts/") || name.starts_with("templates/"));
        for (name, text) in templates {
            for other in self.misspelt_template(text) {
                let what = format!("{name} is {other:?}");
                self.mutants.push(Mutant {
                    kind: "a variable of a template",
                    what,
                    claim: Claim::Refused,
                    file: name.clone(),
                    text: other,
                });
            }
        }
    }

    /// A template with one of its variables, or a field of one, misspelt.
    fn misspelt_template(&self, text: &str) -> Vec<String> {
        const LANGUAGE: [&str; 14] = [
            "if", "endif", "for", "in", "endfor", "else", "default", "join", "length", "tojson",
            "true", "false", "none", "loop",
        ];
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(open) = text[at..].find("{{").into_iter().chain(text[at..].find("{%")).min()
        {
            let begin = at + open + 2;
            let Some(long) =
                text[begin..].find("}}").into_iter().chain(text[begin..].find("%}")).min()
            else {
                break;
            };
            let inner = &text[begin..begin + long];
            for (from, word) in bare_words(inner) {
                let is_number = word.starts_with(|c: char| c.is_ascii_digit());
                if LANGUAGE.contains(&word) || is_number {
                    continue;
                }
                for other in self.misspelt(word) {
                    found.push(replaced(text, begin + from, word, &other));
                }
            }
            at = begin + long;
        }
        found
    }

    /// A key without which nothing goes.
    fn needed(&mut self, (path, value): &Site<'_>) {
        let (last, parent) = keys(path);
        let before = |back: usize| {
            path.len().checked_sub(back).and_then(|at| path.get(at)).map_or("", String::as_str)
        };
        let in_transition = matches!(before(3), "next") || parent == "next" || before(3) == "on";
        let is_needed = match last {
            "workflow" | "start" | "states" => path.len() == 1 || before(3) == "workflows",
            "contract" | "prompt" => before(3) == "agents",
            "max" | "then" => before(3) == "limits",
            "in" | "as" => parent == "each",
            "key" => {
                parent == "each"
                    && self
                        .root
                        .pointer(&format!("{}/after", pointer(&path[..path.len() - 1])))
                        .is_some()
            }
            "question" => value.is_string(),
            "path" | "template" => before(3) == "artifacts",
            "go" | "goto" => in_transition || before(3) == "states",
            "end" => before(3) == "states",
            "default" | "initial" => false,
            _ => false,
        };
        if is_needed {
            self.changed("a needed key that is gone", Claim::Refused, path, None);
        }
        let is_key = matches!(
            last,
            "agent"
                | "command"
                | "ask"
                | "asks"
                | "each"
                | "run"
                | "next"
                | "counts"
                | "resets"
                | "on"
                | "with"
                | "set"
        ) && path.iter().any(|key| key == "states")
            && parent != "with";
        if is_key {
            for other in self.misspelt(last) {
                let mut whole =
                    self.root.pointer(&pointer(&path[..path.len() - 1])).unwrap().clone();
                let Some(members) = whole.as_object_mut() else { return };
                let Some(moved) = members.shift_remove(last) else { return };
                members.insert(other, moved);
                self.changed(
                    "a misspelt key",
                    Claim::Refused,
                    &path[..path.len() - 1],
                    Some(whole),
                );
            }
        }
    }
}
