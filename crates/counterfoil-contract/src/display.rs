//! The line that shows a result: a template over `result`.

mod limits;

use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value as Data, context};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;

/// A compiled display template.
#[derive(Debug)]
pub(crate) struct Display {
    environment: Environment<'static>,
    /// How many names the template has. Each can refer to the whole result.
    names: usize,
}

const NAME: &str = "display";
/// A template may execute this many instructions: enough for a line, too few for an endless loop.
const MAX_INSTRUCTIONS: u64 = 2_500;
/// Longer lines are truncated.
const MAX_LINE_CHARS: usize = 200;
/// What a template writes beyond this is not looked at.
const MAX_WRITTEN_BYTES: usize = 4 << 10;

impl Display {
    pub(crate) fn compile(template: &str) -> Result<Self, String> {
        let names = limits::check(template)?;
        let mut environment = limits::environment();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_fuel(Some(MAX_INSTRUCTIONS));
        environment
            .add_template_owned(NAME, template.to_owned())
            .map_err(|error| error.to_string())?;
        Ok(Self { environment, names })
    }

    /// Renders a result. If the template fails, the line says so.
    pub(crate) fn render(&self, value: &Value) -> String {
        self.try_render(value).unwrap_or_else(|error| format!("(display failed: {error})"))
    }

    pub(crate) fn try_render(&self, value: &Value) -> Result<String, String> {
        limits::check_result(value, self.names)?;
        let template = self.environment.get_template(NAME).map_err(|error| error.to_string())?;
        let mut line = Line::default();
        match template.render_captured_to(context! { result => data(value) }, &mut line) {
            Err(error) if error.kind() != ErrorKind::WriteFailure => return Err(error.to_string()),
            // The line is full, or complete.
            Err(_) | Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line.bytes);
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(if line.chars().count() > MAX_LINE_CHARS {
            line.chars().take(MAX_LINE_CHARS - 1).chain(['…']).collect()
        } else {
            line
        })
    }
}

/// The beginning of what a template writes.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_WRITTEN_BYTES - self.bytes.len();
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let written = bytes.len().min(room);
        self.bytes.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A JSON value for the template engine. Its numbers lose the exact digits that JSON keeps.
fn data(value: &Value) -> Data {
    match value {
        Value::Null => Data::from(()),
        Value::Bool(flag) => Data::from(*flag),
        Value::String(text) => Data::from(text.as_str()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Data::from(int),
            (None, Some(float)) => Data::from(float),
            (None, None) => Data::from(number.to_string()),
        },
        Value::Array(items) => Data::from(items.iter().map(data).collect::<Vec<_>>()),
        Value::Object(members) => Data::from(
            members
                .iter()
                .map(|(key, value)| (key.clone(), data(value)))
                .collect::<BTreeMap<String, Data>>(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(template: &str, result: &Value) -> Result<String, String> {
        Display::compile(template)?.try_render(result)
    }

    #[test]
    fn templates_see_the_result() {
        let result = json!({"ok": true, "items": [{"id": "b"}, {"id": "a"}], "text": "a\n b"});
        for (template, expected) in [
            ("{{ 'ok' if result.ok else 'not ok' }}: {{ result.text }}", "ok: a b"),
            ("{{ result.items | map(attribute='id') | sort | join(', ') }}", "a, b"),
            ("{{ result.items | length }} of {{ result.missing.at.all | default('?') }}", "2 of ?"),
            ("{% for item in result.items %}{{ loop.index }}{{ item.id }} {% endfor %}", "1b 2a"),
            ("{{ result.text | replace('a', 'xyz') | upper }}", "XYZ B"),
            ("{{ (result.items | length) / 4 ~ '!' }}", "0.5!"),
        ] {
            assert_eq!(line(template, &result).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn long_lines_are_cut_however_much_a_template_writes() {
        let result = json!({"items": vec!["0123456789"; 100_000], "text": "é".repeat(1 << 20)});
        for template in [
            "{{ result.text }}",
            "{% for item in result.items %}{{ item }} {% endfor %}",
            "{% for item in result.items %}{{ result.text }}{% endfor %}",
            "{{ result.items }}",
        ] {
            let line = line(template, &result).unwrap();
            assert_eq!(line.chars().count(), MAX_LINE_CHARS, "{template}");
            assert!(line.ends_with('…'), "{template}");
        }
    }

    #[test]
    fn nothing_grows_with_each_step_of_a_template() {
        let doubled = "|replace('a', 'aa')".repeat(60);
        let sets: String =
            (0..60).map(|at| format!("{{% set a{} = a{at} ~ a{at} %}}", at + 1)).collect();
        let long = format!("{{{{ result.a{} }}}}", " ~ result.a".repeat(1_000));
        let names = format!("{{{{ [{}] | string | length }}}}", "result, ".repeat(200));
        for template in [
            sets.as_str(),
            &long,
            &names,
            &format!("{{{{ result.a{doubled} }}}}"),
            "{% with a = result.a ~ result.a %}{{ a }}{% endwith %}",
            "{% filter upper %}a{% endfilter %}",
            "{% for x in [1] recursive %}{{ loop([1]) ~ loop([1]) }}{% endfor %}",
            "{{ result.a * 1000000000 }}",
            "{{ 2 ** 1000000 }}",
            "{{ range(100000) | join(result.a) }}",
            "{{ result.list | join(result.a) | length }}",
            "{{ result.list | select | join(result.a) | length }}",
            "{{ result.list | map('string') | map('replace', '1', result.a) | list | length }}",
            "{{ '%1000000000s' | format(result.a) }}",
            "{{ result.a | indent(1000000000) }}",
            "{% for a in result.list %}{% for b in result.list %}{% endfor %}{% endfor %}",
        ] {
            let result = json!({"a": "a".repeat(1 << 20), "list": vec![1; 10_000]});
            let failed = line(template, &result);
            assert!(failed.is_err(), "{template}: {failed:?}");
        }
    }

    #[test]
    fn a_result_that_is_too_large_is_not_rendered() {
        let result = json!({"a": "a".repeat(9 << 20)});
        let line = Display::compile("{{ result.a }}").unwrap().render(&result);
        assert_eq!(line, "(display failed: the result has 9 MiB, more than 8 MiB)");
    }
}
