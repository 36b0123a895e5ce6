//! Conversations, usage and failures by what a program writes. The settings are those that
//! docs/agents.md shows for Qwen Code and opencode.

use super::program::Program;
use counterfoil_agents::agent::{AgentReply, ReplyStatus};
use counterfoil_flow::{AttemptOutcome, Budget};

/// The settings in docs/agents.md, for a program named `acme`.
fn documented(program: &str) -> String {
    let page = include_str!("../../../../../docs/agents.md");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let heading = format!("[agents.{program}.command]");
    let block = blocks.into_iter().find(|block| block.contains(&heading)).unwrap();
    let settings = block.replace(&format!("[agents.{program}"), "[agents.acme");
    settings.replace(&format!("resume = \"{program} "), "resume = \"ACME ")
}

fn text(reply: &AgentReply) -> &str {
    std::str::from_utf8(&reply.text).unwrap()
}

/// Input and output tokens, and a millionth of the cost.
fn used(reply: &AgentReply) -> (u64, u64, f64) {
    let usage = &reply.usage;
    (usage.input_tokens, usage.output_tokens, (usage.cost_usd * 1e6).round())
}

#[track_caller]
fn failure(reply: &AgentReply) -> (AttemptOutcome, &str) {
    match &reply.status {
        ReplyStatus::Failed { outcome, reason, .. } => (*outcome, reason),
        ReplyStatus::Complete => panic!("it is complete: {}", text(reply)),
    }
}

#[test]
fn qwen_continues_its_conversation_and_each_prompt_costs_what_it_added() {
    let program = Program::recorded("qwen-1", "qwen-2");
    let replies = program.ask(&["-o", "stream-json"], &documented("qwen"), 2);
    assert!(replies.iter().all(|reply| reply.status == ReplyStatus::Complete), "{replies:#?}");
    assert_eq!(
        replies.iter().map(text).collect::<Vec<_>>(),
        ["The plants are watered.", "{\"ok\": true}"]
    );
    // Its events report the whole conversation: 2,200 and 80 tokens, then 3,600 and 110.
    assert_eq!(used(&replies[0]), (2200, 80, 0.0));
    assert_eq!(used(&replies[1]), (1400, 30, 0.0));
    let id = "287ac2dc-4e32-4162-81b2-5278dd329a81";
    assert_eq!(replies[0].details.conversation.as_deref(), Some(id));
    assert_eq!(program.file("args-0"), "-o stream-json\n");
    assert!(
        program.file("args-1").contains(&format!("--resume {id}")),
        "{}",
        program.file("args-1")
    );
    // The conversation has the first question already.
    assert!(!program.file("prompt-1").contains("question 0"));
    assert!(program.file("prompt-1").contains("question 1"));
    for reply in replies {
        assert_eq!(reply.details.notes, [""; 0]);
    }
}

#[test]
fn opencode_continues_its_conversation_and_its_steps_add_up() {
    let program = Program::recorded("opencode-1", "opencode-2");
    let replies = program.ask(&["run", "--format", "json"], &documented("opencode"), 2);
    assert!(replies.iter().all(|reply| reply.status == ReplyStatus::Complete), "{replies:#?}");
    assert_eq!(
        replies.iter().map(text).collect::<Vec<_>>(),
        ["The plants are watered.", "{\"ok\": true}"]
    );
    assert_eq!(used(&replies[0]), (2200, 80, 1280.0));
    assert_eq!(used(&replies[1]), (1300, 20, 260.0));
    let args = program.file("args-1");
    assert!(args.contains("--session ses_e13e1f25cffe647Sf6e3p4y8YP"), "{args}");
    assert!(!program.file("prompt-1").contains("question 0"));
    for reply in replies {
        assert_eq!(reply.details.notes, [""; 0]);
    }
}

#[test]
fn a_key_that_is_refused_is_told_as_such() {
    for name in ["qwen", "opencode"] {
        let script = format!("{name}-401");
        let program = Program::recorded(&script, &script);
        let reply = &program.ask(&[], &documented(name), 1)[0];
        let (outcome, reason) = failure(reply);
        assert_eq!(outcome, AttemptOutcome::Permission, "{reason}");
        assert!(reason.contains("invalid x-api-key") && reason.contains("`pass`"), "{reason}");
    }
}

#[test]
fn without_a_resume_command_a_repair_runs_the_command_anew() {
    let program = Program::recorded("opencode-1", "opencode-2");
    let settings = "[agents.qa.command]\noutput = \"jsonl\"\ntext = { at = \"/part/text\" }\n";
    program.ask(&["run"], settings, 2);
    assert_eq!(program.file("args-1"), "run\n");
    let prompt = program.file("prompt-1");
    assert!(prompt.starts_with("You were asked this:\n\nquestion 0"), "{prompt}");
    assert!(prompt.contains("You answered this:\n\nThe plants are watered."), "{prompt}");
}

#[test]
fn the_id_of_a_conversation_may_be_ours() {
    let program = Program::new("echo '{\"ok\": true}'");
    let settings = "[agents.qa.command]\nresume = \"ACME continue '--id={conversation}'\"\n";
    let replies = program.ask(&["start", "--id={conversation}"], settings, 3);
    assert!(replies.iter().all(|reply| reply.status == ReplyStatus::Complete));
    let first = program.file("args-0");
    let id = first.trim().strip_prefix("start --id=").unwrap();
    assert_eq!(uuid_like(id), [8, 4, 4, 4, 12], "{id}");
    for again in ["args-1", "args-2"] {
        assert_eq!(program.file(again), format!("continue --id={id}\n"));
    }
}

fn uuid_like(id: &str) -> Vec<usize> {
    id.split('-').map(str::len).collect()
}

#[test]
fn the_last_conversation_may_be_continued_without_an_id() {
    let program = Program::new("echo '{\"ok\": true}'");
    let settings = "[agents.qa.command]\nresume = \"ACME --continue\"\n";
    program.ask(&["--new"], settings, 2);
    assert_eq!(
        (program.file("args-0"), program.file("args-1")),
        ("--new\n".into(), "--continue\n".into())
    );
    assert!(!program.file("prompt-1").contains("question 0"));
}

/// As Qwen Code and opencode do with an id that they do not know.
#[test]
fn a_conversation_that_cannot_be_continued_is_begun_anew_with_the_last_reply() {
    let fails = "case \"$*\" in *again*) echo 'No saved session found' >&2; exit 1;; esac";
    let text = (format!("{fails}; echo answer"), "resume = \"ACME again\"\n".to_owned());
    let events = (
        format!("{fails}; echo '{{\"say\": \"answer\", \"id\": \"s1\", \"in\": 7}}'"),
        "output = \"jsonl\"\ntext = { at = \"/say\" }\nconversation = \"/id\"\nresume = \"ACME again {conversation}\"\n\
         usage = { take = \"conversation\", input = \"/in\" }\n"
            .to_owned(),
    );
    for (script, settings) in [text, events] {
        let program = Program::new(&script);
        let replies = program.ask(&["first"], &format!("[agents.qa.command]\n{settings}"), 2);
        assert_eq!(replies[1].status, ReplyStatus::Complete, "{settings}");
        assert!(program.file("args-1").starts_with("again"));
        assert_eq!(program.file("args-2"), "first\n");
        let prompt = program.file("prompt-2");
        assert!(prompt.starts_with("You were asked this:\n\nquestion 0"), "{prompt}");
        assert!(prompt.contains("You answered this:\n\nanswer") && prompt.contains("question 1"));
        assert_eq!(replies[1].details.sent_instead.as_deref(), Some(&*prompt));
        assert_eq!(
            replies[1].details.notes,
            ["its conversation could not be continued, and it was asked anew: \
              the command ended with exit code 1: No saved session found"]
        );
        assert_eq!(replies[0].usage.input_tokens, replies[1].usage.input_tokens);
    }
    // A program that fails with a word, or both times, is not asked again and again.
    let failing = Program::new("[ \"$1\" = first ] && echo answer || exit 1; [ $n = 0 ] || exit 2");
    let replies = failing.ask(&["first"], "[agents.qa.command]\nresume = \"ACME again\"\n", 2);
    assert_eq!(failure(&replies[1]).0, AttemptOutcome::Agent);
    assert_eq!(failing.file("args-3"), "");
}

const JSONL: &str = "[agents.qa.command]\noutput = \"jsonl\"\ntext = { at = \"/say\" }\n";

#[test]
fn an_id_that_is_no_id_is_not_put_into_a_command_line() {
    for id in ["\"--yolo\"", "\"\"", "\"a b\"", "\"a\\u001bb\"", "[1]", "null"] {
        let program = Program::new(&format!("echo '{{\"say\": \"hi\", \"id\": {id}}}'"));
        let settings =
            format!("{JSONL}conversation = \"/id\"\nresume = \"ACME -r {{conversation}}\"\n");
        let replies = program.ask(&["first"], &settings, 2);
        assert_eq!(program.file("args-1"), "first\n", "{id}");
        assert!(program.file("prompt-1").contains("question 0"), "{id}");
        let notes = replies[0].details.notes.join("\n");
        assert!(notes.contains("`/id`") && notes.contains("anew"), "{id}: {notes}");
    }
}

#[test]
fn what_pointers_do_not_find_is_noted() {
    let program = Program::new(
        "echo '{\"say\": \"hi\", \"used\": {\"in\": \"many\", \"out\": 5}}'; echo '{\"used\": {\"out\": 7}}'",
    );
    let settings = format!(
        "{JSONL}conversation = \"/session\"\nresume = \"ACME {{conversation}}\"\n[agents.qa.command.usage]\n\
         take = \"sum\"\ninput = \"/used/in\"\noutput = \"/used/out\"\ncached = [\"/used/cache\"]\ncost = \"/price\"\n"
    );
    let reply = &program.ask(&[], &settings, 1)[0];
    assert_eq!(reply.status, ReplyStatus::Complete);
    assert_eq!(used(reply), (0, 12, 0.0));
    assert_eq!(
        reply.details.notes,
        [
            "1 event `usage.input` with an unexpected structure: the value at `/used/in` is the text \"many\"",
            "nothing was found at `/session` (`conversation`) in its 2 events",
            "nothing was found at `/used/in` (`usage.input`) in its 2 events",
            "nothing was found at `/used/cache` (`usage.cached`) in its 2 events",
            "nothing was found at `/price` (`usage.cost`) in its 2 events",
            "the id of its conversation is not known, so `resume` cannot be used; a repair runs the command anew",
        ]
    );
    // Without any text there is no result, and the note says why.
    let silent = Program::new("echo '{\"said\": \"hi\"}'; echo banner");
    let reply = &silent.ask(&[], JSONL, 1)[0];
    assert_eq!((reply.status.clone(), text(reply)), (ReplyStatus::Complete, ""));
    assert_eq!(
        reply.details.notes,
        [
            "1 line is not an event: banner",
            "nothing was found at `/say` (`text.at`) in its 1 event"
        ]
    );
    let plain = Program::new("echo hello");
    let notes = &plain.ask(&[], JSONL, 1)[0].details.notes;
    assert!(notes.iter().any(|note| note.contains("no line is a JSON object")), "{notes:?}");
}

#[test]
fn usage_is_summed_or_taken_from_the_last_event_as_declared() {
    let events =
        "echo '{\"say\": \"hi\", \"in\": 10, \"cost\": 0.5}'; echo '{\"in\": 30, \"cost\": 0.75}'";
    for (take, first, second) in [
        ("sum", (40, 0, 1_250_000.0), (40, 0, 1_250_000.0)),
        ("last", (30, 0, 750_000.0), (30, 0, 750_000.0)),
        ("conversation", (30, 0, 750_000.0), (0, 0, 0.0)),
    ] {
        let program = Program::new(events);
        let settings = format!(
            "{JSONL}resume = \"ACME --continue\"\nusage = {{ take = \"{take}\", input = \"/in\", cost = \"/cost\" }}\n"
        );
        let replies = program.ask(&[], &settings, 2);
        assert_eq!((used(&replies[0]), used(&replies[1])), (first, second), "{take}");
    }
}

#[test]
fn the_text_is_the_last_message_or_all_of_them() {
    let events = "echo '{\"say\": \"a\", \"id\": 1}'; echo '{\"say\": \"b\", \"id\": 2, \"kind\": \"talk\"}'
                  echo '{\"say\": \"c\", \"id\": 2, \"kind\": \"talk\"}'; echo '{\"say\": \"thought\", \"kind\": \"thinking\"}'";
    for (source, expected) in [
        ("{ at = \"/say\" }", "thought"),
        ("{ at = \"/say\", when = { \"/kind\" = \"talk\" } }", "c"),
        ("{ at = \"/say\", when = { \"/kind\" = \"talk\" }, message = \"/id\" }", "bc"),
        ("{ at = \"/say\", take = \"all\" }", "abcthought"),
        ("{ at = \"/say\", when = { \"/id\" = 1 } }", "a"),
    ] {
        let settings = format!("[agents.qa.command]\noutput = \"jsonl\"\ntext = {source}\n");
        let reply = &Program::new(events).ask(&[], &settings, 1)[0];
        assert_eq!(text(reply), expected, "{source}");
    }
}

#[test]
fn an_end_that_was_not_announced_is_no_end() {
    let settings = format!(
        "{JSONL}done = {{ \"/end\" = true }}\nerror = {{ at = \"/oops\", status = \"/code\" }}\n"
    );
    let said = "echo '{\"say\": \"hi\"}'";
    let end = "echo '{\"end\": true}'";
    for (script, expected) in [
        (format!("{said}; {end}"), None),
        // A retry that the program announces as an error is none if it goes on.
        (format!("echo '{{\"oops\": \"reconnecting\"}}'; {said}; {end}"), None),
        (said.to_owned(), Some((AttemptOutcome::Agent, "never said it was done"))),
        (format!("{said}; {end}; exit 4"), Some((AttemptOutcome::Agent, "exit code 4"))),
        (
            format!("{said}; echo '{{\"oops\": \"overloaded\", \"code\": 529}}'"),
            Some((AttemptOutcome::Transport, "overloaded")),
        ),
        (
            "echo '{\"oops\": \"slow down\", \"code\": \"429\"}'; exit 1".to_owned(),
            Some((AttemptOutcome::Limit, "slow down")),
        ),
        ("echo '{\"oops\": {\"name\": \"Bad\"}}'".to_owned(), Some((AttemptOutcome::Agent, "Bad"))),
        ("echo no key >&2; exit 2".to_owned(), Some((AttemptOutcome::Agent, "no key"))),
    ] {
        let reply = &Program::new(&script).ask(&[], &settings, 1)[0];
        match expected {
            None => assert_eq!(reply.status, ReplyStatus::Complete, "{script}"),
            Some((outcome, words)) => {
                let (failed, reason) = failure(reply);
                assert_eq!(failed, outcome, "{script}: {reason}");
                assert!(reason.contains(words), "{script}: {reason}");
            }
        }
    }
}

#[test]
fn a_program_that_stays_after_its_last_event_is_ended_and_its_reply_counts() {
    let settings = format!("{JSONL}done = {{ \"/end\" = true }}\n");
    let program = Program::new("echo '{\"say\": \"hi\"}'; echo '{\"end\": true}'; exec sleep 600");
    let began = std::time::Instant::now();
    let reply = &program.ask(&[], &settings, 1)[0];
    assert_eq!((reply.status.clone(), text(reply)), (ReplyStatus::Complete, "hi"));
    assert!(began.elapsed().as_secs() < 50);
}

#[test]
fn a_limit_of_tokens_or_money_holds_within_the_reply() {
    let settings = format!(
        "{JSONL}done = {{ \"/end\" = true }}\nusage = {{ take = \"sum\", input = \"/in\", cost = \"/cost\" }}\n"
    );
    let step = "echo '{\"say\": \"hi\", \"in\": 60, \"cost\": 0.6}'";
    let endless = format!("while :; do {step}; sleep 0.1; done");
    for (tokens, cost_usd, words) in [
        (Some(100), None, "stopped at its limit: 120 of 100 tokens were used"),
        (None, Some(1.0), "stopped at its limit: $1.20 of $1.00 were used"),
    ] {
        let mut program = Program::new(&endless);
        program.budget = Budget { tokens, cost_usd, ..Budget::default() };
        let reply = &program.ask(&[], &settings, 1)[0];
        assert_eq!(failure(reply), (AttemptOutcome::Cancelled, words));
        assert!(reply.usage.input_tokens <= 180, "at most one more: {:?}", reply.usage);
    }
    // The step that reaches the limit may be the last one.
    let mut program = Program::new(&format!("{step}; {step}; echo '{{\"end\": true}}'"));
    program.budget = Budget { tokens: Some(100), ..Budget::default() };
    assert_eq!(program.ask(&[], &settings, 1)[0].status, ReplyStatus::Complete);
}

#[test]
fn a_flood_of_text_is_kept_as_far_as_the_contract_reads() {
    let settings =
        "[agents.qa.command]\noutput = \"jsonl\"\ntext = { at = \"/say\", take = \"all\" }\n";
    let flood = "x=$(head -c 1000000 /dev/zero | tr '\\0' x); \
                 for n in $(seq 80); do echo \"{\\\"say\\\": \\\"${x}é\\\"}\"; done";
    let reply = &Program::new(flood).ask(&[], settings, 1)[0];
    assert!(text(reply).len() > 60 << 20, "{}", text(reply).len());
    assert!(text(reply).len() <= (64 << 20) + 1, "{}", text(reply).len());
}
