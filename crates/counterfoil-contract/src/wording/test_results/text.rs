//! What a text says about tests.

use super::super::parts::{lines, pattern};
use crate::pattern::Pattern;
use std::sync::LazyLock;

/// Numbers.
const COUNT: &str = "([1-9][0-9]*|one|two|three|four|five|six|seven|eight|nine|ten|several|many)";

/// Whether a line of a text says that a test failed or did not run. A share of something else
/// ("87% ok" of a coverage) is no share of tests.
pub(super) fn is_failing_text(text: &str, is_other_share: bool) -> bool {
    lines(text).any(|line| {
        let line = without_no_failure(&line);
        let clauses = line.replace(". ", ", ").replace("; ", ", ");
        WORDS.count.is_match(&line)
            || (!is_other_share && !WORDS.coverage.is_match(&line) && WORDS.share.is_match(&line))
            || (!WORDS.passed_line.is_match(&line)
                && (WORDS.label.is_match(&line) || clauses.split(", ").any(is_failing_clause)))
    })
}

/// Whether the count of what passed says that something did not: "66%", "2 (1 failed)".
pub(super) fn is_failing_count(text: &str) -> bool {
    WORDS.count.is_match(&without_no_failure(text))
        || WORDS.share.is_match(&format!("pass: {text}"))
}

/// "the tests failed", but not "the test failed before the fix and passes now".
fn is_failing_clause(clause: &str) -> bool {
    !WORDS.passes_now.is_match(clause)
        && WORDS.conjunction.split(clause).any(|clause| {
            WORDS.did_not_run.is_match(clause)
                || WORDS.statement.find(clause).is_some_and(|found| {
                    !WORDS.excused_before.is_match(&clause[..found.start()])
                        && !WORDS.excused_behind.is_match(&clause[found.end()..])
                })
        })
}

/// A text without what says that nothing failed ("0 failed", "no errors") and without words that
/// describe what was tested ("error handling").
pub(super) fn without_no_failure(text: &str) -> String {
    let text = WORDS.no_failure.replace_all(text, " ");
    let text = WORDS.zero.replace_all(&text, "$end");
    WORDS.compound.replace_all(&text, " ").into_owned()
}

/// "2 of 3 pass", "2/3 passed", "passed: 2 / 3", or "2/3" alone where a count is expected.
pub(super) fn has_fewer_of(text: &str, is_count: bool) -> bool {
    WORDS.ratio.captures_iter(text).any(|found| {
        let number = |name: &str| found.name(name)?.as_str().parse::<u32>().ok();
        let is_about_passing =
            is_count || found.name("behind").is_some() || found.name("before").is_some();
        is_about_passing && number("some").zip(number("all")).is_some_and(|(some, all)| some < all)
    })
}

/// "2/3" and no word more.
pub(super) fn is_ratio(text: &str) -> bool {
    WORDS.ratio.find(text).is_some_and(|found| found.as_str() == text.trim())
}

/// Whether texts number what they tell: "ok 1/3", "ok 2/3", "ok 3/3", or "ok 1/3 … ok 3/3".
pub(super) fn counts_up(texts: &[&str]) -> bool {
    let mut last = 0;
    let mut total = None;
    for text in texts {
        let mut from = 0;
        for found in WORDS.ratio.captures_iter(text) {
            let number = |name: &str| found.name(name)?.as_str().parse::<u32>().ok();
            let Some(((some, all), at)) = number("some").zip(number("all")).zip(found.get(0))
            else {
                return false;
            };
            let leaves_out = last > 0 && matches!(text[from..at.start()].trim(), "…" | "...");
            let is_next = some == last + 1 || (leaves_out && some > last);
            if !is_next || total.is_some_and(|total| total != all) {
                return false;
            }
            (last, total, from) = (some, Some(all), at.end());
        }
    }
    total == Some(last)
}

/// "Ran 0 tests", and nowhere in the text that others ran.
pub(super) fn ran_none(text: &str) -> bool {
    WORDS.ran_none.is_match(&without_no_failure(text)) && !WORDS.ran_some.is_match(text)
}

pub(super) fn ran_some(text: &str) -> bool {
    WORDS.ran_some.is_match(text)
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

struct Words {
    /// "1 failed", "failures=2", a cross.
    count: Pattern,
    /// "FAILED (failures=1)", "not ok 2 - sub", "sub ... FAILED".
    label: Pattern,
    /// The line of a test that passed, whatever its name is.
    passed_line: Pattern,
    /// "66% pass", "passing: 66%".
    share: Pattern,
    coverage: Pattern,
    /// "all tests failed".
    statement: Pattern,
    /// What makes it a statement about another time or another program.
    excused_before: Pattern,
    excused_behind: Pattern,
    passes_now: Pattern,
    conjunction: Pattern,
    did_not_run: Pattern,
    /// "0 failed", "none of the tests failed", "does not fail".
    no_failure: Pattern,
    /// "failed: none".
    zero: Pattern,
    /// "error handling", "the previously failing test".
    compound: Pattern,
    ratio: Pattern,
    ran_none: Pattern,
    ran_some: Pattern,
}

impl Words {
    fn new() -> Self {
        let cross = "❌✗✘✖✕";
        let label = [
            format!(
                "^[^a-z0-9{cross}]*(fail|failed|fails|failing|failure|error|errors|errored|broken\
                 |red|not run|timeout|timed out|crashed)[^a-z0-9]*($|[:(\\[,;.!=])"
            ),
            "^[^a-z0-9]*not ok([^a-z]|$)".to_owned(),
            // "Failed: test_sub", "Errors in test_sub", "failed test_sub".
            "^[^a-z0-9]*(failed|failures?|errors?|failing|broken)( tests?)?\
             ([^a-z0-9 ][^a-z0-9]*[a-z1-9]\
             | +(in|at|on|while|during|when|because|due|with|to|occurred|remain|found|tests?\
             |suites?\
             |cases?|checks?|specs?|assert[a-z]*|builds?)([^a-z]|$)| +[a-z0-9]+[_./:]+[a-z0-9])"
                .to_owned(),
            // "test_sub: FAIL", "test_sub ... FAILED", "test_sub - failed".
            "([:=|>]|[.][.][.]| [-–—]) *(fail|failed|failing|failure)[^a-z0-9]*($\
             |[.,;:(])"
                .to_owned(),
            "[\\[(](fail|failed|failing|failure|not ok)[\\])]".to_owned(),
            "(^|[^a-z0-9_/=])(?-i:FAIL|FAILED|FAILURE|FAILURES)([^a-z0-9_/]|$)".to_owned(),
            "[:|] *(?-i:ERROR)([^a-z]|$)|^[^a-z0-9]*×".to_owned(),
            "panicked at |traceback [(]most recent|assertion ?(error|failed)|segmentation fault\
             |command not found|no module named"
                .to_owned(),
            "(^|[(,;:.] *|command |process |tests? )exit(s|ed)?( with)?( an?)?( code\
             | status)? *[:=]? *\
             -?[1-9]"
                .to_owned(),
        ]
        .join("|");
        let failures = "(failed|fails?|failing|failures?|errors?|errored|broken|crashed)";
        let count = [
            format!("[{cross}]"),
            "(^|[^0-9a-z.])[1-9][0-9]* ([a-z]+ )?(failed|fail|failing|failures?|errors?|broken)\
             ([^a-z]|$)"
                .to_owned(),
            "(failures?|errors?|failed|fail|failing) *[=:] *[1-9]".to_owned(),
        ]
        .join("|");
        let number = format!("({COUNT}|some|most|few|both|all)");
        let subject = format!(
            "(tests?|suites?|builds?|specs?|assertions?|checks|cases|compilation|execution|command\
             |run|job\
             |pipeline|setup|everything|{number}\
             |test_[a-z0-9_]+\
             |[a-z0-9_]+_test|[a-z0-9_]+::[a-z0-9_:]+)"
        );
        let run = "(run|ran|execut(e|ed)|start(ed)?|perform(ed)?|complet(e|ed)|finish(ed)?\
                   |launch(ed)?|test(ed)?|verif(y|ied)|compile|build|import|load|find|install)";
        let did_not_run = [
            "not run|not executed|could not|couldn['’]t".to_owned(),
            format!(
                "(cannot|unable to|not able to|failed to|can['’]t|(have|has|had|do|does|did|is|are\
                 |was|were)\
                 (n['’]t| not))( be| been| yet| even| actually| all)* ({run}|pass(ed|ing)?)([^a-z]\
                 |$)"
            ),
            "not all (tests )?pass|were skipped: all|no longer pass".to_owned(),
            "(^|[^a-z])(no|none|nothing|not one)( of)?( the| my| these)?( tests?| checks?\
             | cases?)? \
             (pass|succeed)"
                .to_owned(),
            "(^|[^a-z])no tests? (could|can) be".to_owned(),
            "(^|[^a-z])there (is|are|was|were) (still |some |an? )*(failures|(failing|failed\
             |broken) \
             (tests?|checks?|cases?))([^a-z]|$)|(completed|finished|ended|ran) with (failures\
             |errors)"
                .to_owned(),
            format!("(^|[^a-z])only {number} ([a-z]+ ){{0,2}}pass"),
            "pass(es|ed|ing)? (except|apart from|other than|but for)([^a-z]|$)".to_owned(),
            "(skipped|skipping) (all |the )+tests|^[^a-z0-9]*(all |the )*tests (were |are \
             |all )*skipped"
                .to_owned(),
        ]
        .join("|");
        let of = "( (of|the|them|my|these|a|any|single|tests?|unit|e2e|unit and e2e|checks?|cases?\
                  |specs?\
                  |new|other|more|further|have|has|had|are|is|known|unexpected|remaining|lint|type\
                  |compile|runtime))*";
        let elsewhere = "(before|without|previously|initially|at first|as expected|prior\
                         |on (main|master|the old)|with an? (clear|proper|helpful|useful)\
                         |(if|when) (i |we |you )?(revert|undo|remov|the (fix|change)))";
        Self {
            count: pattern(&format!("({count})")),
            label: pattern(&format!("({label})")),
            passed_line: pattern(
                "^[^a-z0-9]*(ok([^a-z]|$)|[✓✔√✅])|^[ *+-]*[✓✔√✅]\
                 |([:=|>]|[.][.][.]| [-–—]) *(ok|pass|passed|✓|✔|√|✅)[^a-z0-9]*$",
            ),
            share: pattern(
                "(^|[^0-9.])[0-9]{1,2}([.][0-9]+)?% ([a-z]+ ){0,3}(pass|green|ok|succe)\
                 |(pass|succe)[a-z_]*[^a-z0-9]+[0-9]{1,2}([.][0-9]+)?%",
            ),
            coverage: pattern("cover[a-z]*[^0-9]{0,20}[0-9.]+%|[0-9]% [a-z ]{0,20}cover"),
            statement: pattern(&format!(
                "(^|[^a-z0-9_-])({subject}( (have|has|had|also|still|all|now|then|both|just|of them\
                 |tests?|(in|of) [^ ]+( tests?)?))* (failed|fails?|(is|are) (still )?\
                 (failing|broken|red)|crash(ed|es)|errored|timed out|failing[^a-z0-9]*$)\
                 |{COUNT} ([a-z]+ )?(failures?|errors?))([^a-z0-9_]|$)"
            )),
            excused_before: pattern(
                "(^|[^a-z])(no|none|not|never|nothing|without|before|previously|earlier|initially\
                 |originally|at first|if|unless|whether|would|should|used to|until|cases? (that\
                 |where)\
                 |when [a-z ]*(revert|undo|remov)[a-z]*|[a-z]+n['’]t)([^a-z]|$)",
            ),
            excused_behind: pattern(&format!("^{elsewhere}|^.{{0,20}}[^a-z]{elsewhere}")),
            passes_now: pattern(
                "(now|then) (all )?(pass|succeed|green|ok)|pass(es|ed)? (now|again|with (it|the))\
                 |(is|are) green now",
            ),
            conjunction: pattern(" (and|but|so) "),
            did_not_run: pattern(&format!("({did_not_run})")),
            no_failure: pattern(&format!(
                "(^|[^a-z0-9.])((no|none|nothing|0|zero|without|neither){of}|no longer|(not|never\
                 |[a-z]+n['’]t)( a single| yet| ever)?) {failures}\\b|[{cross}] *0\\b"
            )),
            zero: pattern(&format!(
                "{failures}( tests?)? *[:=] *(0|none|no|nil|zero|nothing|false|n/a\
                 |\\[\\])(?P<end> *$|[,;.)|\\]]| +[a-z]+ *[:=])"
            )),
            compound: pattern(
                "(previously|formerly|once|earlier|originally) (failing|failed|broken)( tests?)?\
                 |\\b(errors?|failures?|failing|failed|broken) (handl(ing|ers?)|paths?|modes?\
                 |messages?\
                 |inputs?|codes?|branch(es)?|types?|class(es)?|scenarios?|conditions?|logins?\
                 |attempts?\
                 |requests?|states?|responses?|pages?|texts?|recovery|reporting|propagation)\\b\
                 |^[^a-z0-9]*not ok [^#]*# *(todo|skip).*$|\\berrors? cases?\\b\
                 |\\bfailing tests? (now|all) pass",
            ),
            ratio: pattern(
                "(?P<before>(pass|ok|green|succe)[a-z]*[:.,]? +)?\\b(?P<some>[0-9]{1,9})\
                 ( of | ?/ ?)(?P<all>[0-9]{1,9})\\b(?P<behind>[:.,]?( +[a-z]+)?[:.,]? +(pass|ok\
                 |green|succe))?",
            ),
            ran_none: pattern(
                "^[^a-z0-9]*(there are )?(0|zero|no) tests?( exist)?[^a-z0-9]*$|(^|[,;.\
                 |] *)tests?( run)?: *0([^0-9.]|$)\
                 |(ran|run|running|collected|executed|found|tests run:|total:?) (0|zero|no) \
                 ?(tests?|items?|cases?|specs?|,|$)|(^|[^0-9a-z.])(0|zero|no) (tests? |items? )\
                 ?((were |was |have been )?(passed|run|ran|executed|collected|found))([^a-z]|$)",
            ),
            ran_some: pattern(
                "(ran|run|running|collected|executed|found|tests run:|total:?) [1-9]\
                 |(^|[^0-9a-z.])[1-9][0-9]* ([a-z]+ )?(pass|ok|ran([^a-z]|$)|run([^a-z]|$)|succe)",
            ),
        }
    }
}
