//! `JUnit` XML: every test case counts once, wherever in nested suites it stands. Nothing it refers
//! to is fetched or expanded.

use super::Figures;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Suites nested deeper than this are nobody's.
const DEEPEST: usize = 256;

/// What a test case came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Passed,
    Failed,
    Skipped,
}

/// The figures of a report.
pub(super) fn junit(bytes: &[u8]) -> Result<Figures, String> {
    // What tests print need not be UTF-8, and stands in reports.
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = true;
    let mut counted = [0_u64; 3];
    let mut stated: Option<Figures> = None;
    let mut case: Option<(usize, Case)> = None;
    let mut depth = 0_usize;
    let mut root = false;
    loop {
        let broken = |reader: &Reader<&[u8]>, why: String| {
            let at =
                usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX).min(text.len());
            let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
            format!("it is no well-formed XML: line {line}: {why}")
        };
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return Err(broken(&reader, error.to_string())),
        };
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = tag.local_name();
                let name = name.as_ref();
                if depth == 0 {
                    if !matches!(name, "testsuites" | "testsuite") {
                        return Err(format!("it is XML but no JUnit report: its root is `{name}`"));
                    }
                    root = true;
                    stated = attributes(tag);
                } else if name == "testsuite" && stated.is_none() {
                    stated = attributes(tag);
                }
                let opens = matches!(event, Event::Start(_));
                if name == "testcase" && case.is_none() {
                    let came = if is_not_run(tag) { Case::Skipped } else { Case::Passed };
                    if opens {
                        case = Some((depth, came));
                    } else {
                        counted[came as usize] += 1;
                    }
                } else if let Some((at, came)) = &mut case
                    && depth == *at + 1
                {
                    match name {
                        "failure" | "error" => *came = Case::Failed,
                        "skipped" | "disabled" if *came == Case::Passed => *came = Case::Skipped,
                        _ => {}
                    }
                }
                if opens {
                    depth += 1;
                    if depth > DEEPEST {
                        return Err(format!("its elements are nested more than {DEEPEST} deep"));
                    }
                }
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                if let Some((_, came)) = case.take_if(|(at, _)| *at == depth) {
                    counted[came as usize] += 1;
                }
            }
            Event::Eof if !root => return Err("it is empty".to_owned()),
            Event::Eof if depth > 0 => {
                return Err(broken(&reader, "it ends in the middle".to_owned()));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let [passed, failed, skipped] = counted;
    let total = passed + failed + skipped;
    match stated {
        // Some runners write only the sums.
        Some(stated) if total == 0 => Ok(stated),
        _ => Ok(Figures {
            total: Some(total),
            passed: Some(passed),
            failed: Some(failed),
            skipped: Some(skipped),
        }),
    }
}

/// The sums that a suite states of itself.
fn attributes(tag: &BytesStart<'_>) -> Option<Figures> {
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

    #[allow(clippy::unnecessary_wraps)] // It stands beside what is refused.
    fn figures(total: u64, passed: u64, failed: u64, skipped: u64) -> Result<Figures, String> {
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
            assert_eq!(Figures::of_report(text.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_report_is_refused_with_the_place() {
        for (text, expected) in [
            ("<html></html>", "it is XML but no JUnit report: its root is `html`"),
            ("<testsuites>\n<testcase>\n</testsuites>", "it is no well-formed XML: line 3"),
            (
                "<testsuites>\n<testsuite>",
                "it is no well-formed XML: line 2: it ends in the middle",
            ),
            ("<?xml version='1.0'?>", "it is empty"),
        ] {
            let why = Figures::of_report(text.as_bytes()).unwrap_err();
            assert!(why.starts_with(expected), "{text}: {why}");
        }
        let deep = "<testsuite>".repeat(100_000);
        assert!(Figures::of_report(deep.as_bytes()).unwrap_err().contains("nested"));
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><testsuite name="&b;"><testcase/></testsuite>"#;
        assert_eq!(Figures::of_report(bomb.as_bytes()), figures(1, 1, 0, 0));
    }
}
