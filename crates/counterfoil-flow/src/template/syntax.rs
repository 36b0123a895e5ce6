//! Reads a template's text: bounds it before anything recurses over it, and finds the place of a
//! syntax error.

use counterfoil_contract::did_you_mean;
use minijinja::machinery::{Token, ast, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::TemplateProblem;

/// The longest template, in bytes.
const LONGEST_SOURCE: usize = 256 << 10;
/// The most tokens between one pair of braces; the parser recurses over some of them.
const MOST_TOKENS: usize = 1_000;
/// The most `elif` in a template; the parser recurses over them.
const MOST_ELIF: usize = 200;
/// The deepest expression.
pub(super) const DEEPEST: usize = 100;

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

/// How a template is written: the line of a block tag leaves no trace, the last newline stays.
pub(super) fn config() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    builder.build().unwrap_or_default()
}

/// The syntax tree of a template that passed [`read`].
pub(super) fn tree(source: &str) -> Option<ast::Stmt<'_>> {
    parse(source, "template", config()).ok()
}

/// The syntax tree, or what is wrong with the text.
pub(super) fn read(source: &str) -> Result<ast::Stmt<'_>, Vec<TemplateProblem>> {
    if source.len() > LONGEST_SOURCE {
        let message = format!(
            "the template has {} bytes, more than {} KiB",
            source.len(),
            LONGEST_SOURCE >> 10
        );
        return Err(vec![TemplateProblem::new(message, "pass long texts in as variables", 0, 0)]);
    }
    let tokens = scan(source)?;
    let tree = parse(source, "template", config()).map_err(|error| {
        let detail = error.detail().unwrap_or("this is not a template").to_owned();
        vec![tokens.explain(source, &detail)]
    })?;
    let mut problems = Vec::new();
    super::tree::too_deep(&tree, &mut problems);
    if problems.is_empty() {
        super::tree::unsafe_to_run(&tree, &mut problems);
    }
    if problems.is_empty() { Ok(tree) } else { Err(problems) }
}

/// What one pass over the tokens tells.
struct Tokens<'s> {
    /// Where each token stands, in order.
    places: Vec<(usize, usize)>,
    /// The tag that the text ends in.
    open_tag: Option<(usize, usize)>,
    /// The blocks that are open at the end.
    open_blocks: Vec<(&'s str, usize, usize)>,
}

fn scan(source: &str) -> Result<Tokens<'_>, Vec<TemplateProblem>> {
    let mut tokens = Tokens { places: Vec::new(), open_tag: None, open_blocks: Vec::new() };
    let mut problems = Vec::new();
    let (mut in_tag, mut elifs) = (0, 0);
    // Of the tag being read: its first word, and whether it assigns outside of parentheses.
    let (mut word, mut assigns, mut parens) = (None, false, 0_usize);
    for token in tokenize(source, false, config()) {
        let (token, span) = match token {
            Ok(found) => found,
            Err(error) => {
                let from = tokens.places.last().map_or(0, |(_, end)| *end);
                let rest = source.get(from..).unwrap_or("");
                let start = from + (rest.len() - rest.trim_start().len());
                let detail = error.detail().unwrap_or("this text cannot be read");
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
        tokens.places.push((start, end));
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
                    // `{% set x = 1 %}` opens nothing.
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
                if let Some((message, hint)) = refused(name) {
                    problems.push(TemplateProblem::new(message, hint, start, end));
                }
                if elifs == MOST_ELIF + 1 {
                    let message = format!("the template has more than {MOST_ELIF} 'elif'");
                    problems.push(TemplateProblem::new(
                        message,
                        "look the value up in an object",
                        start,
                        end,
                    ));
                    return Err(problems);
                }
            }
            _ => {}
        }
        if in_tag == MOST_TOKENS && tokens.open_tag.is_some() {
            let message = format!("the tag holds more than {MOST_TOKENS} words and signs");
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

/// Statements that other template languages have and this one does not.
fn refused(name: &str) -> Option<(String, &'static str)> {
    match name {
        "include" | "extends" | "import" | "from" | "block" | "macro" | "call" => Some((
            format!("'{name}' does not exist here: a template stands alone"),
            "write the text in place, or pass it in as a variable",
        )),
        "autoescape" => Some((
            "'autoescape' does not exist here: a template writes plain text".to_owned(),
            "leave it out; nothing is escaped",
        )),
        "do" => Some((
            "'do' does not exist here: a template has no side effects".to_owned(),
            "use {% set %} to name a value",
        )),
        "break" | "continue" => Some((
            format!("'{name}' does not exist here: a loop goes through its whole list"),
            "choose the items in the loop: {% for item in items if item.open %}",
        )),
        _ => None,
    }
}

impl<'s> Tokens<'s> {
    /// Keeps account of the blocks that are open.
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

    /// A parser's complaint in our words, with its place.
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
        let (start, end) = self.place_of(source, detail);
        if detail.contains("maximum recursion limits") {
            let message = "the template is nested too deeply";
            return TemplateProblem::new(
                message,
                "name the inner parts with {% set %}",
                start,
                end,
            );
        }
        if let Some(name) = detail.strip_prefix("unknown statement ") {
            if name.starts_with("end") || matches!(name, "else" | "elif") {
                let message = format!("'{name}' belongs to nothing that is open here");
                let hint = match self.open_blocks.last() {
                    Some((open, _, _)) => format!("the innermost open block is '{open}'"),
                    None => "remove it, or open its block before it".to_owned(),
                };
                return TemplateProblem::new(message, hint, start, end);
            }
            let hint = did_you_mean(name, STATEMENTS)
                .unwrap_or_else(|| format!("the statements are {}", STATEMENTS.join(", ")));
            return TemplateProblem::new(format!("unknown statement '{name}'"), hint, start, end);
        }
        TemplateProblem::new(detail.replace('`', "'"), "", start, end)
    }

    /// The token that the parser stopped at: the first one up to which it already complains in the
    /// same words. Up to an earlier one, it misses the rest instead.
    fn place_of(&self, source: &str, detail: &str) -> (usize, usize) {
        let found = self.places.partition_point(|(_, end)| {
            let head = source.get(..*end).unwrap_or(source);
            parse(head, "template", config())
                .err()
                .and_then(|error| error.detail().map(str::to_owned))
                .as_deref()
                != Some(detail)
        });
        self.places.get(found).copied().unwrap_or((source.len(), source.len()))
    }
}

fn end_of_line(source: &str, start: usize) -> usize {
    source
        .get(start..)
        .and_then(|rest| rest.find('\n'))
        .map_or(source.len(), |length| start + length)
}
