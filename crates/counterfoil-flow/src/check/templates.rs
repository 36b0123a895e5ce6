//! Checks templates, in separate files or inline, against the variables they may read.

use super::Checker;
use crate::ast::SpannedStr;
use crate::finding::{Code, Finding};
use crate::template::{Template, TemplateProblem};
use counterfoil_contract::expr::Type;
use counterfoil_contract::source::Source;
use std::collections::BTreeMap;

impl<'n> Checker<'n> {
    /// A template in a separate file (a name that ends in `.md`, `.j2`, `.txt`, …) or inline.
    pub(super) fn file_template(&mut self, name: SpannedStr<'n>) -> Option<Template> {
        let looks_like_file = !name.text.contains(['\n', '{', ' '])
            && name.text.rsplit_once('.').is_some_and(|(stem, extension)| {
                !stem.is_empty()
                    && (1..=5).contains(&extension.len())
                    && extension.chars().all(char::is_alphanumeric)
            });
        if !looks_like_file {
            return self.template(name);
        }
        if let Some(known) = self.templates.get(name.text) {
            return known.clone();
        }
        let template = match self.files.read(name.text) {
            Err(why) => {
                let message = format!("cannot read {}: {why}", name.text);
                self.report(
                    Code::MissingFile,
                    name.node,
                    message,
                    "paths are relative to the workflow file",
                );
                None
            }
            Ok(text) => {
                self.read.insert(name.text.to_owned(), text.clone());
                match Template::compile(&text) {
                    Ok(template) => Some(template),
                    Err(problems) => {
                        for problem in problems {
                            self.report_in_file(name.text, &problem);
                        }
                        None
                    }
                }
            }
        };
        self.templates.insert(name.text.to_owned(), template.clone());
        template
    }

    pub(super) fn report_in_file(&mut self, file: &str, problem: &TemplateProblem) {
        let text = self.read.get(file).map(String::as_str).unwrap_or_default();
        let span = Source::whole(text).span(problem.start, problem.end.max(problem.start + 1));
        let finding =
            Finding::new(Code::BadTemplate, file, problem.message.clone(), problem.hint.clone());
        self.reader.findings.push(finding.at(span));
    }

    /// An inline template.
    pub(super) fn template(&mut self, name: SpannedStr<'n>) -> Option<Template> {
        match Template::compile(name.text) {
            Ok(template) => Some(template),
            Err(problems) => {
                for problem in problems {
                    self.report_template(name, &problem);
                }
                None
            }
        }
    }

    pub(super) fn report_template(&mut self, name: SpannedStr<'_>, problem: &TemplateProblem) {
        let chars = |at: usize| name.text.get(..at).map_or(0, |head| head.chars().count());
        let part = (chars(problem.start), chars(problem.end));
        self.reader.report_part(
            Code::BadTemplate,
            name.node,
            part,
            &problem.message,
            &problem.hint,
        );
    }

    /// Type-checks a template against the variables it may read.
    pub(super) fn check_template_types(
        &mut self,
        name: SpannedStr<'n>,
        template: &Template,
        types: &BTreeMap<String, Type>,
    ) {
        for problem in template.check(types) {
            if self.templates.contains_key(name.text) {
                self.report_in_file(name.text, &problem);
            } else {
                self.report_template(name, &problem);
            }
        }
    }
}
