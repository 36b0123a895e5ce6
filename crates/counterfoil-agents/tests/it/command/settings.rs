//! Wrong settings are refused with their place and the way out.

use super::program::Program;
use counterfoil_agents::config::{AgentConfig, OutputDialect};

#[test]
fn each_wrong_setting_is_named_with_its_line_and_the_way_out() {
    for (settings, expected) in [
        ("dialect = \"jsonl\"", &["line 3", "unknown field `dialect`", "`output`"][..]),
        (
            "output = \"claude\"",
            &["line 3", "unknown variant `claude`", "`claude-stream-json`", "`jsonl`"],
        ),
        ("resume = \"\"", &["line 3", "'qa'", "`resume` that is empty"]),
        ("resume = \"acme 'x\"", &["line 3", "a quote that is not closed"]),
        ("resume = \"acme {session}\"", &["line 3", "{session}", "{conversation}"]),
        ("resume = \"{conversation}\"", &["line 3", "the place of the program"]),
        ("resume = 7", &["line 3", "expected a string"]),
        (
            "conversation = \"sessionID\"",
            &["line 3", "\"sessionID\" is not a JSON pointer; write \"/sessionID\""],
        ),
        ("conversation = \"$.a.b\"", &["line 3", "write \"/a/b\""]),
        ("conversation = \"\"", &["line 3", "the whole event"]),
        ("conversation = \"/a~2\"", &["line 3", "`~0`"]),
        ("text = { at = \"text\" }", &["line 3", "`text.at`", "write \"/text\""]),
        ("text = { from = \"/text\" }", &["line 3", "unknown field `from`", "`at`"]),
        ("text = { at = \"/t\", when = { type = \"text\" } }", &["`text.when`", "write \"/type\""]),
        ("text = { at = \"/t\", when = {} }", &["`text.when`", "it names no field"]),
        (
            "text = { at = \"/t\", when = { \"/a\" = [1] } }",
            &["`text.when`", "`/a` is compared with"],
        ),
        ("text = { at = \"/t\", take = \"first\" }", &["unknown variant `first`", "`last`"]),
        (
            "\n[agents.qa.command.usage]\ninput = \"/in\"",
            &["line 4", "take = \"sum\"", "\"last\"", "\"conversation\""],
        ),
        ("usage = { take = \"max\" }", &["line 3", "unknown variant `max`"]),
        (
            "usage = { take = \"sum\" }",
            &["line 3", "without a pointer", "input, output, cached or cost"],
        ),
        ("usage = { take = \"sum\", cost = \"usd\" }", &["`usage.cost`", "write \"/usd\""]),
        ("usage = { take = \"sum\", cost = [] }", &["`usage.cost`", "the list is empty"]),
        ("usage = { take = \"sum\", cost = 3 }", &["line 3", "a JSON pointer or a list of them"]),
        ("usage = { take = \"sum\", tokens = \"/t\" }", &["unknown field `tokens`", "`input`"]),
        ("done = {}", &["`done`", "it names no field"]),
        ("error = \"/error\"", &["line 3", "a table with `at`"]),
        ("error = { at = \"message\" }", &["`error.at`", "write \"/message\""]),
    ] {
        let text = format!("# agents\n[agents.qa.command]\n{settings}\n");
        let error = AgentConfig::parse(&text).expect_err(settings).to_string();
        for words in expected {
            assert!(error.contains(words), "{settings}\nlacks {words:?}:\n{error}");
        }
    }
    let error = AgentConfig::parse("[agents.qa]\npass = [\"*_KEY\"]\n").unwrap_err().to_string();
    assert!(error.contains("\"*_KEY\" in `pass`") && error.contains("at the end"), "{error}");
}

#[test]
fn settings_that_do_not_fit_together_are_refused_before_anything_runs() {
    let (text, jsonl) = ("output = \"text\"", "output = \"jsonl\"\ntext = { at = \"/t\" }");
    let claude = "output = \"claude-stream-json\"";
    let usage = "usage = { take = \"sum\", input = \"/in\" }";
    let by_id = "resume = \"acme {conversation}\"";
    for (arguments, settings, expected) in [
        (&[][..], format!("{text}\n{usage}"), "`usage` points into events, and its output is text"),
        (&[], "conversation = \"/id\"".to_owned(), "set output = \"jsonl\""),
        (&[], "output = \"jsonl\"".to_owned(), "add text = { at"),
        (&[], format!("{claude}\ntext = {{ at = \"/t\" }}"), "remove `text`"),
        (&[], format!("{claude}\ndone = {{ \"/t\" = 1 }}"), "remove `done`"),
        (&[], format!("{jsonl}\nconversation = \"/id\""), "of no use without `resume`"),
        (&["{conversation}"], jsonl.to_owned(), "there is no `resume`"),
        (&[], format!("{jsonl}\n{by_id}"), "nothing says which id that is"),
        (&[], by_id.to_owned(), "nothing says which id that is"),
        (&["{conversation}"], "resume = \"acme -c\"".to_owned(), "add {conversation} to it"),
        (
            &[],
            format!("{jsonl}\nconversation = \"/id\"\nresume = \"acme -c\""),
            "add {conversation}",
        ),
    ] {
        let program = Program::new("");
        let settings = format!("[agents.qa.command]\n{settings}\n");
        let error = program.agent(arguments, &settings).expect_err(&settings);
        assert!(error.contains("the agent 'qa' cannot be run"), "{error}");
        assert!(error.contains(expected), "{settings}\nlacks {expected:?}:\n{error}");
    }
    for settings in [format!("{claude}\n{by_id}"), format!("{claude}\n{usage}"), jsonl.to_owned()] {
        let program = Program::new("");
        program.agent(&[], &format!("[agents.qa.command]\n{settings}\n")).unwrap();
    }
}

#[test]
fn the_agent_completes_and_overrides_its_program() {
    let config = AgentConfig::parse(
        "[agents.acme.command]\noutput = \"jsonl\"\ntext = { at = \"/a\" }\nresume = \"acme -c\"\n\
         [agents.qa.command]\ntext = { at = \"/b\" }\n",
    )
    .unwrap();
    let settings = config.agents.settings("qa", "acme").command;
    assert_eq!(settings.output, Some(OutputDialect::Jsonl));
    assert_eq!(settings.text.unwrap().at.as_str(), "/b");
    assert_eq!(settings.resume.unwrap(), ["acme", "-c"]);
}
