//! Parses templates. Limits are checked before anything recurses over the text, and syntax errors
//! get a position.

use counterfoil_contract::suggest::did_you_mean;
use minijinja::machinery::{Token, ast, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::TemplateProblem;

/// The maximum length of a template.
const MAX_SOURCE_BYTES: usize = 256 << 10;
/// The maximum number of tokens in a tag; the parser recurses over some of them.
const MAX_TAG_TOKENS: usize = 1_000;
/// The maximum number of `elif` in a template; the parser recurses over them.
const MAX_ELIF: usize = 200;
/// The maximum nesting depth of an expression.
pub(super) const MAX_EXPRESSION_DEPTH: usize = 100;

const STATEMENTS: [&str; 13] = [
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "endset",
    "with",
    "endwith",
    "filter",
    "endfilter",
    "raw",
];

/// The syntax options: the line of a block tag is removed, a trailing newline is kept.
pub(super) fn config() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    builder.build().unwrap_or_default()
}

/// The syntax tree of a template that [`parse_checked`] has accepted.
pub(super) fn tree(source: &str) -> Option<ast::Stmt<'_>> {
    parse(source, "template", config()).ok()
}

/// Parses a template and checks its limits.
pub(super) fn parse_checked(source: &str) -> Result<ast::Stmt<'_>, Vec<TemplateProblem>> {
    if source.len() > MAX_SOURCE_BYTES {
        let message = format!(
            "the template has {} bytes, more than {} KiB",
            source.len(),
            MAX_SOURCE_BYTES >> 10
        );
        return Err(vec![TemplateProblem::new(message, "pass long texts as variables", 0, 0)]);
    }
    let tokens = scan(source)?;
    let tree = parse(source, "template", config()).map_err(|error| {
        let detail = error.detail().unwrap_or("this is not a template").to_owned();
        vec![tokens.explain(source, &detail)]
    })?;
    let mut problems = Vec::new();
    super::traverse::check_depth(&tree, &mut problems);
    if problems.is_empty() {
        super::traverse::check_runnable(&tree, &mut problems);
    }
    if problems.is_empty() { Ok(tree) } else { Err(problems) }
}

/// The result of one pass over the tokens.
struct Tokens<'s> {
    /// The byte range of each token.
    positions: Vec<(usize, usize)>,
    /// The tag that is not closed at the end.
    open_tag: Option<(usize, usize)>,
    /// The blocks that are not closed at the end.
    open_blocks: Vec<(&'s str, usize, usize)>,
}

fn scan(source: &str) -> Result<Tokens<'_>, Vec<TemplateProblem>> {
    let mut tokens = Tokens { positions: Vec::new(), open_tag: None, open_blocks: Vec::new() };
    let mut problems = Vec::new();
    let (mut in_tag, mut elifs) = (0, 0);
    // For the current tag: its first word, and whether it has an assignment outside parentheses.
    let (mut word, mut assigns, mut parens) = (None, false, 0_usize);
    for token in tokenize(source, false, config()) {
        let (token, span) = match token {
            Ok(found) => found,
            Err(error) => {
                let from = tokens.positions.last().map_or(0, |(_, end)| *end);
                let rest = source.get(from..).unwrap_or("");
                let start = from + (rest.len() - rest.trim_start().len());
                let detail = error.detail().unwrap_or("syntax error");
                problems.push(TemplateProblem::new(
                    detail,
                    "check the quotes and the braces here",
                    start,
                    end_of_line(source, start),
                ));
                return Err(problems);
            }
        };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        tokens.positions.push((start, end));
        in_tag += 1;
        match token {
            Token::VariableStart | Token::BlockStart => {
                in_tag = 0;
                tokens.open_tag = Some((start, end));
                (word, assigns, parens) = (None, false, 0);
            }
            Token::VariableEnd => tokens.open_tag = None,
            Token::BlockEnd => {
                tokens.open_tag = None;
                if let Some((name, start, end)) = word {
                    // `{% set x = 1 %}` does not open a block.
                    if name != "set" || !assigns {
                        tokens.block(name, start, end);
                    }
                }
            }
            Token::ParenOpen => parens += 1,
            Token::ParenClose => parens = parens.saturating_sub(1),
            Token::Assign => assigns |= parens == 0,
            Token::Ident(name) if in_tag == 1 && is_block_tag(source, &tokens) => {
                word = Some((name, start, end));
                elifs += usize::from(name == "elif");
                if let Some((message, hint)) = unsupported_statement(name) {
                    problems.push(TemplateProblem::new(message, hint, start, end));
                }
                if elifs == MAX_ELIF + 1 {
                    let message = format!("the template has more than {MAX_ELIF} 'elif'");
                    problems.push(TemplateProblem::new(
                        message,
                        "look up the value in an object instead",
                        start,
                        end,
                    ));
                    return Err(problems);
                }
            }
            _ => {}
        }
        if in_tag == MAX_TAG_TOKENS && tokens.open_tag.is_some() {
            let message = format!("the tag has more than {MAX_TAG_TOKENS} tokens");
            problems.push(TemplateProblem::new(message, "split it with {% set %}", start, end));
            return Err(problems);
        }
    }
    if problems.is_empty() { Ok(tokens) } else { Err(problems) }
}

fn is_block_tag(source: &str, tokens: &Tokens<'_>) -> bool {
    tokens
        .open_tag
        .is_some_and(|(start, _)| source.get(start..).is_some_and(|tag| tag.starts_with("{%")))
}

/// The message and the hint for a Jinja statement that is not supported.
fn unsupported_statement(name: &str) -> Option<(String, &'static str)> {
    match name {
        "include" | "extends" | "import" | "from" | "block" | "macro" | "call" => Some((
            format!("'{name}' is not supported: a template cannot refer to other templates"),
            "write the text here, or pass it as a variable",
        )),
        "autoescape" => Some((
            "'autoescape' is not supported: templates produce plain text".to_owned(),
            "remove it: nothing is escaped",
        )),
        "do" => Some((
            "'do' is not supported: templates have no side effects".to_owned(),
            "use {% set %} to name a value",
        )),
        "break" | "continue" => Some((
            format!("'{name}' is not supported: a loop visits every item"),
            "filter the items of the loop: {% for item in items if item.open %}",
        )),
        _ => None,
    }
}

impl<'s> Tokens<'s> {
    /// Updates the stack of open blocks.
    fn block(&mut self, name: &'s str, start: usize, end: usize) {
        match name {
            "if" | "for" | "with" | "filter" | "set" => self.open_blocks.push((name, start, end)),
            _ => {
                let closes = name.strip_prefix("end");
                if closes.is_some() && closes == self.open_blocks.last().map(|(name, _, _)| *name) {
                    self.open_blocks.pop();
                }
            }
        }
    }

    /// Translates an error of the parser, and finds its position.
    fn explain(&self, source: &str, detail: &str) -> TemplateProblem {
        if detail.starts_with("unexpected end of input") {
            if let Some((start, end)) = self.open_tag {
                let message = "the tag that opens here is never closed";
                return TemplateProblem::new(message, "close it with }} or %}", start, end);
            }
            if let Some((name, start, end)) = self.open_blocks.last() {
                let message = format!("the '{name}' that opens here is never closed");
                let hint = format!("add {{% end{name} %}}");
                return TemplateProblem::new(message, hint, *start, *end);
            }
            return TemplateProblem::new(detail, "", source.len(), source.len());
        }
        let (start, end) = self.error_position(source, detail);
        if detail.contains("maximum recursion limits") {
            let message = "the template is nested too deeply";
            return TemplateProblem::new(
                message,
                "assign the inner parts with {% set %}",
                start,
                end,
            );
        }
        if let Some(name) = detail.strip_prefix("unknown statement ") {
            if name.starts_with("end") || matches!(name, "else" | "elif") {
                let message = format!("'{name}' does not match an open block");
                let hint = match self.open_blocks.last() {
                    Some((open, _, _)) => format!("the innermost open block is '{open}'"),
                    None => "remove it, or open the block first".to_owned(),
                };
                return TemplateProblem::new(message, hint, start, end);
            }
            let hint = did_you_mean(name, STATEMENTS)
                .unwrap_or_else(|| format!("known statements: {}", STATEMENTS.join(", ")));
            return TemplateProblem::new(format!("unknown statement '{name}'"), hint, start, end);
        }
        TemplateProblem::new(detail.replace('`', "'"), "", start, end)
    }

    /// The token that the parser stopped at: the first one for which the text up to it causes the
    /// same error. For a shorter text, the error is an unexpected end of input.
    fn error_position(&self, source: &str, detail: &str) -> (usize, usize) {
        let found = self.positions.partition_point(|(_, end)| {
            let head = source.get(..*end).unwrap_or(source);
            parse(head, "template", config())
                .err()
                .and_then(|error| error.detail().map(str::to_owned))
                .as_deref()
                != Some(detail)
        });
        self.positions.get(found).copied().unwrap_or((source.len(), source.len()))
    }
}

fn end_of_line(source: &str, start: usize) -> usize {
    source
        .get(start..)
        .and_then(|rest| rest.find('\n'))
        .map_or(source.len(), |length| start + length)
}
