//! The table `[agents.NAME.command]` as it is written, and what is wrong with it.

use super::{
    CONVERSATION, CommandSettings, Condition, ErrorSource, OutputDialect, Pointer, TextSource,
    TextTake, UsageSource, UsageTake,
};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// The table as it is written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table", default)]
pub(in crate::config) struct WrittenCommand {
    output: Option<OutputDialect>,
    resume: Option<Spanned<String>>,
    conversation: Option<Spanned<String>>,
    text: Option<WrittenText>,
    usage: Option<Spanned<WrittenUsage>>,
    done: Option<Spanned<BTreeMap<String, toml::Value>>>,
    error: Option<WrittenError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `at`")]
struct WrittenText {
    at: Spanned<String>,
    #[serde(default)]
    when: Option<Spanned<BTreeMap<String, toml::Value>>>,
    #[serde(default)]
    message: Option<Spanned<String>>,
    #[serde(default)]
    take: TextTake,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with pointers and `take`", default)]
struct WrittenUsage {
    input: Option<Spanned<Pointers>>,
    cached: Option<Spanned<Pointers>>,
    output: Option<Spanned<Pointers>>,
    cost: Option<Spanned<Pointers>>,
    when: Option<Spanned<BTreeMap<String, toml::Value>>>,
    take: Option<UsageTake>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `at`")]
struct WrittenError {
    at: Spanned<String>,
    #[serde(default)]
    status: Option<Spanned<String>>,
    #[serde(default)]
    when: Option<Spanned<BTreeMap<String, toml::Value>>>,
}

/// One pointer or a list of them.
struct Pointers(Vec<String>);

impl<'de> Deserialize<'de> for Pointers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Pointers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON pointer or a list of them")
            }

            fn visit_str<E>(self, text: &str) -> Result<Pointers, E> {
                Ok(Pointers(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Pointers, A::Error> {
                let mut all = Vec::new();
                while let Some(text) = items.next_element()? {
                    all.push(text);
                }
                Ok(Pointers(all))
            }
        }
        from.deserialize_any(OneOrMany)
    }
}

/// An invalid setting: its byte offset, and a clause that follows the name of the agent.
type Invalid = (usize, String);

impl WrittenCommand {
    /// Validates each setting for itself.
    pub(in crate::config) fn validate(self) -> Result<CommandSettings, Invalid> {
        Ok(CommandSettings {
            output: self.output,
            resume: self.resume.map(|line| resume(&line)).transpose()?,
            conversation: self.conversation.map(|at| pointer("conversation", &at)).transpose()?,
            text: self.text.map(WrittenText::validate).transpose()?,
            usage: self.usage.map(validate_usage).transpose()?,
            done: self.done.map(|done| non_empty("done", done)).transpose()?,
            error: self.error.map(WrittenError::validate).transpose()?,
        })
    }
}

impl WrittenText {
    fn validate(self) -> Result<TextSource, Invalid> {
        Ok(TextSource {
            at: pointer("text.at", &self.at)?,
            when: condition("text.when", self.when)?,
            message: self.message.map(|at| pointer("text.message", &at)).transpose()?,
            take: self.take,
        })
    }
}

impl WrittenError {
    fn validate(self) -> Result<ErrorSource, Invalid> {
        Ok(ErrorSource {
            at: pointer("error.at", &self.at)?,
            status: self.status.map(|at| pointer("error.status", &at)).transpose()?,
            when: condition("error.when", self.when)?,
        })
    }
}

fn validate_usage(written: Spanned<WrittenUsage>) -> Result<UsageSource, Invalid> {
    let start = written.span().start;
    let usage = written.into_inner();
    let Some(take) = usage.take else {
        let why = "has `usage` that does not say what the numbers of several events mean; \
                   add take = \"sum\" if each event reports its own, \"last\" if the last one \
                   reports the whole prompt, \"conversation\" if it reports the whole conversation";
        return Err((start, why.to_owned()));
    };
    let source = UsageSource {
        input: pointers("usage.input", usage.input)?,
        cached: pointers("usage.cached", usage.cached)?,
        output: pointers("usage.output", usage.output)?,
        cost: pointers("usage.cost", usage.cost)?,
        when: condition("usage.when", usage.when)?,
        take,
    };
    if [&source.input, &source.cached, &source.output, &source.cost]
        .iter()
        .all(|list| list.is_empty())
    {
        let why = "has `usage` without a pointer; add input, output, cached or cost, or remove it";
        return Err((start, why.to_owned()));
    }
    Ok(source)
}

fn resume(line: &Spanned<String>) -> Result<Vec<String>, Invalid> {
    let wrong = |why: &str| Err((line.span().start, format!("has a `resume` that {why}")));
    let text = line.get_ref();
    if text.contains('\0') {
        return wrong("contains a NUL character; remove it");
    }
    let line_of_command = text.strip_prefix("command:").unwrap_or(text);
    let Some(argv) = shlex::split(line_of_command) else {
        return wrong("has a quote that is not closed");
    };
    if argv.is_empty() {
        return wrong("is empty; write the whole command line, with the program");
    }
    if argv[0].contains(CONVERSATION) {
        return wrong("has the id in the place of the program; write the whole command line");
    }
    if !argv.iter().any(|word| word.contains(CONVERSATION))
        && let Some(other) = argv.iter().find_map(|word| placeholder(word))
    {
        return wrong(&format!("has the placeholder {other}; the id is {CONVERSATION}"));
    }
    Ok(argv)
}

/// A `{name}` in a word.
fn placeholder(word: &str) -> Option<&str> {
    let start = word.find('{')?;
    let end = start + word[start..].find('}')?;
    let name = &word[start + 1..end];
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (!name.is_empty() && name.chars().all(is_name)).then(|| &word[start..=end])
}

fn pointer(name: &str, written: &Spanned<String>) -> Result<Pointer, Invalid> {
    Pointer::parse(written.get_ref())
        .map_err(|why| (written.span().start, format!("has a wrong `{name}`: {why}")))
}

fn pointers(name: &str, written: Option<Spanned<Pointers>>) -> Result<Vec<Pointer>, Invalid> {
    let Some(written) = written else { return Ok(Vec::new()) };
    let wrong = |why| (written.span().start, format!("has a wrong `{name}`: {why}"));
    if written.get_ref().0.is_empty() {
        return Err(wrong("the list is empty; remove the key or add a pointer".to_owned()));
    }
    written.get_ref().0.iter().map(|text| Pointer::parse(text).map_err(wrong)).collect()
}

fn condition(
    name: &str,
    written: Option<Spanned<BTreeMap<String, toml::Value>>>,
) -> Result<Condition, Invalid> {
    written.map_or_else(|| Ok(Condition::default()), |written| non_empty(name, written))
}

fn non_empty(
    name: &str,
    written: Spanned<BTreeMap<String, toml::Value>>,
) -> Result<Condition, Invalid> {
    let start = written.span().start;
    let wrong = |why: String| (start, format!("has a wrong `{name}`: {why}"));
    let fields = written.into_inner();
    if fields.is_empty() {
        return Err(wrong("it names no field; write { \"/type\" = \"…\" }".to_owned()));
    }
    let field = |(at, value): (String, toml::Value)| {
        let pointer = Pointer::parse(&at).map_err(wrong)?;
        let value = match value {
            toml::Value::String(text) => Value::from(text),
            toml::Value::Boolean(truth) => Value::from(truth),
            toml::Value::Integer(number) => Value::from(number),
            _ => {
                let why =
                    format!("{pointer} is compared with a text, a whole number, true or false");
                return Err(wrong(why));
            }
        };
        Ok((pointer, value))
    };
    Ok(Condition(fields.into_iter().map(field).collect::<Result<_, _>>()?))
}
