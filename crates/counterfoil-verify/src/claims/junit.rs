//! Reads `JUnit` XML. Each test case counts once, at any depth of nested suites. External entities
//! are neither fetched nor expanded.

use super::{Figures, FiguresError};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The maximum depth of nested elements.
const MAX_DEPTH: usize = 256;

/// The result of a test case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseResult {
    Passed,
    Failed,
    Skipped,
}

/// The figures of a report.
pub(super) fn parse(bytes: &[u8]) -> Result<Figures, FiguresError> {
    // Reports contain the output of tests, which need not be UTF-8.
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = true;
    let mut counted = [0_u64; 3];
    let mut stated: Option<Figures> = None;
    let mut case: Option<(usize, CaseResult)> = None;
    let mut depth = 0_usize;
    let mut root = false;
    loop {
        let malformed = |reader: &Reader<&[u8]>, message: String| {
            let at =
                usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX).min(text.len());
            let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
            FiguresError::MalformedXml { line, message }
        };
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return Err(malformed(&reader, error.to_string())),
        };
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = tag.local_name();
                let name = name.as_ref();
                if depth == 0 {
                    if !matches!(name, "testsuites" | "testsuite") {
                        return Err(FiguresError::NotJunit { root: name.to_owned() });
                    }
                    root = true;
                    stated = stated_figures(tag);
                } else if name == "testsuite" && stated.is_none() {
                    stated = stated_figures(tag);
                }
                let opens = matches!(event, Event::Start(_));
                if name == "testcase" && case.is_none() {
                    let result =
                        if is_not_run(tag) { CaseResult::Skipped } else { CaseResult::Passed };
                    if opens {
                        case = Some((depth, result));
                    } else {
                        counted[result as usize] += 1;
                    }
                } else if let Some((at, result)) = &mut case
                    && depth == *at + 1
                {
                    match name {
                        "failure" | "error" => *result = CaseResult::Failed,
                        "skipped" | "disabled" if *result == CaseResult::Passed => {
                            *result = CaseResult::Skipped;
                        }
                        _ => {}
                    }
                }
                if opens {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(FiguresError::TooDeep { max: MAX_DEPTH });
                    }
                }
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                if let Some((_, result)) = case.take_if(|(at, _)| *at == depth) {
                    counted[result as usize] += 1;
                }
            }
            Event::Eof if !root => return Err(FiguresError::Empty),
            Event::Eof if depth > 0 => {
                return Err(malformed(&reader, "it ends unexpectedly".to_owned()));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let [passed, failed, skipped] = counted;
    let total = passed + failed + skipped;
    match stated {
        // Some runners write only totals.
        Some(stated) if total == 0 => Ok(stated),
        _ => Ok(Figures {
            total: Some(total),
            passed: Some(passed),
            failed: Some(failed),
            skipped: Some(skipped),
        }),
    }
}

/// The totals in the attributes of a suite.
fn stated_figures(tag: &BytesStart<'_>) -> Option<Figures> {
    let number = |name: &str| {
        let attribute = tag.try_get_attribute(name).ok()??;
        attribute.value.trim().parse::<u64>().ok()
    };
    let total = number("tests")?;
    let failed = number("failures").unwrap_or(0).saturating_add(number("errors").unwrap_or(0));
    let skipped = number("skipped").or_else(|| number("disabled")).unwrap_or(0);
    let passed = total.saturating_sub(failed).saturating_sub(skipped);
    Some(Figures {
        total: Some(total),
        passed: Some(passed),
        failed: Some(failed),
        skipped: Some(skipped),
    })
}

fn is_not_run(tag: &BytesStart<'_>) -> bool {
    tag.try_get_attribute("status").ok().flatten().is_some_and(|status| {
        matches!(status.value.as_ref(), "notrun" | "skipped" | "disabled" | "ignored")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::unnecessary_wraps)] // The same type as the value it is compared with.
    fn figures(
        total: u64,
        passed: u64,
        failed: u64,
        skipped: u64,
    ) -> Result<Figures, FiguresError> {
        Ok(Figures {
            total: Some(total),
            passed: Some(passed),
            failed: Some(failed),
            skipped: Some(skipped),
        })
    }

    #[test]
    fn reports_are_counted_by_their_cases() {
        for (name, text, expected) in [
            (
                "nested suites, sums that lie",
                r#"<?xml version="1.0"?><testsuites tests="99"><testsuite name="a" tests="1"><testsuite name="b">
                   <testcase name="x"/><testcase name="y"><failure message="no">trace <![CDATA[<testcase/>]]></failure></testcase>
                   </testsuite><testcase name="z"><skipped/></testcase></testsuite></testsuites>"#,
                figures(3, 1, 1, 1),
            ),
            (
                "an error and output",
                "<testsuite><testcase><system-out>FAILED failure</system-out></testcase><testcase><error/><failure/></testcase></testsuite>",
                figures(2, 1, 1, 0),
            ),
            (
                "reruns that passed at last",
                "<testsuite><testcase><flakyFailure/></testcase><testcase><properties><failure/></properties></testcase></testsuite>",
                figures(2, 2, 0, 0),
            ),
            (
                "sums only",
                r#"<testsuites tests="10" failures="2" errors="1" skipped="3"/>"#,
                figures(10, 4, 3, 3),
            ),
            (
                "sums of a suite",
                r#"<testsuites><testsuite tests="4" failures="1"/></testsuites>"#,
                figures(4, 3, 1, 0),
            ),
            ("none", "<testsuites></testsuites>", figures(0, 0, 0, 0)),
            (
                "not run",
                r#"<testsuite><testcase status="notrun"/></testsuite>"#,
                figures(1, 0, 0, 1),
            ),
        ] {
            assert_eq!(Figures::from_report(text.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_report_is_refused_with_the_place() {
        for (text, expected) in [
            ("<html></html>", "it is not a JUnit report: its root element is `html`"),
            ("<testsuites>\n<testcase>\n</testsuites>", "it is not well-formed XML: line 3"),
            (
                "<testsuites>\n<testsuite>",
                "it is not well-formed XML: line 2: it ends unexpectedly",
            ),
            ("<?xml version='1.0'?>", "it is empty"),
        ] {
            let why = Figures::from_report(text.as_bytes()).unwrap_err().to_string();
            assert!(why.starts_with(expected), "{text}: {why}");
        }
        let deep = "<testsuite>".repeat(100_000);
        assert!(Figures::from_report(deep.as_bytes()).unwrap_err().to_string().contains("nested"));
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><testsuite name="&b;"><testcase/></testsuite>"#;
        assert_eq!(Figures::from_report(bomb.as_bytes()), figures(1, 1, 0, 0));
    }
}
