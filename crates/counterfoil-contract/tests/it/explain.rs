//! Every code has a page, and the examples of every page are checked: the bad ones produce the
//! code, the good ones do not.
use counterfoil_contract::compat::compare;
use counterfoil_contract::question;
use counterfoil_contract::shown::Shown;
use counterfoil_contract::{
    Code, Context, Contract, Definition, LoadError, Registry, Report, ResolveError,
};
use std::sync::Arc;

/// A parsed page.
struct Page {
    blocks: Vec<Block>,
    headings: Vec<String>,
}

/// A fenced block.
struct Block {
    /// The info string after the fence, such as `text bad`.
    info: String,
    /// The heading above it.
    section: String,
    text: String,
}

fn parse(page: &str) -> Result<Page, String> {
    let mut headings: Vec<String> = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        if let Some(heading) = line.strip_prefix("## ") {
            headings.push(heading.to_owned());
        }
        if ticks < 3 {
            continue;
        }
        let info = line[ticks..].trim().to_owned();
        let mut text: Vec<&str> = Vec::new();
        loop {
            let line = lines.next().ok_or_else(|| format!("the block `{info}` is not closed"))?;
            if line.len() >= ticks && line.bytes().all(|byte| byte == b'`') {
                break;
            }
            text.push(line);
        }
        let section = headings.last().cloned().unwrap_or_default();
        blocks.push(Block { info, section, text: text.join("\n") });
    }
    Ok(Page { blocks, headings })
}

/// The kind of examples on a page.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A text that is validated against a contract.
    Text,
    /// A contract that does not load.
    Contract,
    /// A contract that loads with a warning.
    Warned,
    /// Two contracts that cannot be registered together.
    Registry,
    /// A reference that cannot be resolved.
    Reference,
    /// Two versions of a contract.
    Versions,
}

fn kind(code: Code) -> Kind {
    match code {
        Code::DuplicateContract => Kind::Registry,
        Code::UnknownContract => Kind::Reference,
        _ if code.as_str().starts_with("C04") => Kind::Contract,
        _ if code.as_str().starts_with("W04") => Kind::Warned,
        _ if code.as_str().starts_with("C05") => Kind::Versions,
        _ => Kind::Text,
    }
}

/// The text of the only block with this info.
fn only_block<'p>(page: &'p Page, info: &str) -> Result<&'p str, String> {
    match page.blocks.iter().filter(|block| block.info == info).collect::<Vec<_>>().as_slice() {
        [block] => Ok(&block.text),
        found => Err(format!("{} blocks `{info}` where there should be one", found.len())),
    }
}

fn load(yaml: &str) -> Result<Contract, String> {
    Contract::from_yaml(yaml)
        .map_err(|error| format!("a contract that should load does not: {error}"))
}

fn check_page(code: Code) -> Result<(), String> {
    let text = code.page();
    let title = format!("# {code}: {}", code.title());
    if text.lines().next() != Some(&title) {
        return Err(format!("the first line is not `{title}`"));
    }
    if code == Code::LaterNeedsRepair {
        // Earlier versions gave it; nothing produces it now.
        return Ok(());
    }
    let page = parse(text)?;
    if page.headings != ["Bad", "Good"] {
        return Err(format!("the sections are {:?}, not Bad and Good", page.headings));
    }
    let explanation =
        text.split("## Bad").next().unwrap_or_default().lines().skip(1).collect::<String>();
    if explanation.trim().is_empty() {
        return Err("nothing is explained".to_owned());
    }
    let known: &[&str] = match kind(code) {
        Kind::Text => &[
            "yaml contract",
            "text bad",
            "text bad strict",
            "text bad hex",
            "text good",
            "text good strict",
            "text shown",
            "text earlier",
            "text submitted",
            "text refused",
        ],
        Kind::Contract | Kind::Warned | Kind::Registry => &["yaml bad", "yaml good"],
        Kind::Reference => &["yaml contract", "text bad", "text good"],
        Kind::Versions => &["yaml old", "yaml bad", "yaml good"],
    };
    for block in &page.blocks {
        if !known.contains(&block.info.as_str()) {
            return Err(format!("unexpected block `{}`", block.info));
        }
        let misplaced = [("bad", "Good"), ("good", "Bad")].iter().any(|(word, section)| {
            block.info.split(' ').any(|info| info == *word) && block.section == *section
        });
        if misplaced {
            return Err(format!("a block `{}` is under {}", block.info, block.section));
        }
    }
    match kind(code) {
        Kind::Text => check_text_page(code, &page),
        Kind::Contract => check_contract_page(code, &page),
        Kind::Warned => check_warned_page(code, &page),
        Kind::Registry => check_registry_page(code, &page),
        Kind::Reference => check_reference_page(&page),
        Kind::Versions => check_compat_page(code, &page),
    }
}

/// Each text is validated against the last contract above it.
fn check_text_page(code: Code, page: &Page) -> Result<(), String> {
    let mut contract: Option<Contract> = None;
    let mut before: Option<&Block> = None;
    let (mut bad, mut good) = (0, 0);
    for block in &page.blocks {
        if block.info == "yaml contract" {
            contract = Some(load(&block.text)?);
            continue;
        }
        let contract = contract.as_ref().ok_or("a text precedes the contract")?;
        let precedes = ["text shown", "text earlier", "text submitted", "text refused"];
        if precedes.contains(&block.info.as_str()) {
            before = Some(block);
            continue;
        }
        let report = match block.info.as_str() {
            _ if before.is_some() => check_after(contract, before, &block.text),
            "text bad hex" => contract.check_bytes(&parse_hex(&block.text)?),
            "text bad strict" | "text good strict" => contract.check_strictly(&block.text),
            _ => {
                // Some codes need an attempt of which something is known.
                let known = Context { run: Some("run-1".to_owned()), ..Context::default() };
                contract.check_with(&block.text, &contract.policy().with_context(&Arc::new(known)))
            }
        };
        if block.info.starts_with("text bad") {
            bad += 1;
            check_bad_text(code, &report)?;
        } else {
            good += 1;
            if !report.is_accepted() || warning_codes(&report).contains(&code) {
                return Err(format!("the good text is not good: {}", summary(&report)));
            }
        }
    }
    if bad == 0 || good == 0 { Err("a bad or a good text is missing".to_owned()) } else { Ok(()) }
}

/// Checks a text that follows something: what was shown, an earlier result, a submission, an answer
/// that was refused.
fn check_after(contract: &Contract, before: Option<&Block>, text: &str) -> Report {
    let report = contract.check(text);
    let Some(before) = before else { return report };
    match (before.info.as_str(), contract.check(&before.text)) {
        ("text shown", _) => contract.check_bytes_shown(
            text.as_bytes(),
            contract.policy(),
            &Shown::new([&before.text]),
        ),
        ("text earlier", earlier) => match (&report.value, &earlier.value) {
            (Some(value), Some(earlier)) if question::is_copy(contract, value, earlier) => {
                question::ask_about_copy(report, "tests")
            }
            _ => report,
        },
        ("text refused", refused) => {
            let mut problems = question::ReportedProblems::default();
            for result in &contract.salvage_report(&refused).results {
                problems.note(result);
            }
            problems.ask_about_left_out(report)
        }
        (_, submitted) => match question::contradiction(&submitted, &report) {
            Some(found) => found.ask(submitted, "text"),
            None => report,
        },
    }
}

/// A bad text produces the code and no other, so that a page is about one problem.
fn check_bad_text(code: Code, report: &Report) -> Result<(), String> {
    let wanted = if code.is_warning() {
        report.is_accepted() && warning_codes(report) == [code]
    } else {
        !report.is_accepted() && report.codes() == [code] && report.warnings.is_empty()
    };
    if !wanted {
        return Err(format!("the bad text does not show {code} alone: {}", summary(report)));
    }
    let has_empty_text = report
        .violations
        .iter()
        .chain(&report.warnings)
        .any(|found| found.message.is_empty() || found.hint.is_empty());
    if has_empty_text {
        Err(format!("a message or a hint is empty: {}", summary(report)))
    } else {
        Ok(())
    }
}

fn warning_codes(report: &Report) -> Vec<Code> {
    report.warnings.iter().map(|warning| warning.code).collect()
}

fn summary(report: &Report) -> String {
    let found = report.violations.iter().chain(&report.warnings);
    let lines: Vec<String> =
        found.map(|found| format!("{} {}", found.code, found.message)).collect();
    format!(
        "{:?}, {}",
        report.status,
        if lines.is_empty() { "nothing found".to_owned() } else { lines.join("; ") }
    )
}

fn parse_hex(hex: &str) -> Result<Vec<u8>, String> {
    hex.split_whitespace()
        .map(|pair| u8::from_str_radix(pair, 16).map_err(|error| format!("{pair}: {error}")))
        .collect()
}

fn has_only(error: &LoadError, code: Code) -> Result<(), String> {
    let has_empty_text =
        error.problems.iter().any(|problem| problem.message.is_empty() || problem.hint.is_empty());
    if has_empty_text {
        return Err(format!("a message or a hint is empty: {error}"));
    }
    let good =
        !error.problems.is_empty() && error.problems.iter().all(|problem| problem.code == code);
    if good { Ok(()) } else { Err(format!("the bad contract does not show {code} alone: {error}")) }
}

fn check_contract_page(code: Code, page: &Page) -> Result<(), String> {
    load(only_block(page, "yaml good")?)?;
    match Contract::from_yaml(only_block(page, "yaml bad")?) {
        Ok(_) => Err("the bad contract loads".to_owned()),
        Err(error) => has_only(&error, code),
    }
}

fn check_warned_page(code: Code, page: &Page) -> Result<(), String> {
    let good = load(only_block(page, "yaml good")?)?.lint();
    if !good.is_empty() {
        return Err(format!("the good contract has warnings: {good:?}"));
    }
    let problems = load(only_block(page, "yaml bad")?)?.lint();
    has_only(&LoadError { name: "the bad contract".to_owned(), problems }, code)
}

/// Documents are separated by a line `---`.
fn check_registry_page(code: Code, page: &Page) -> Result<(), String> {
    let add_all = |text: &str| -> Result<(), LoadError> {
        let mut registry = Registry::new();
        text.split("\n---\n")
            .try_for_each(|document| registry.add(Definition::from_yaml(document, "contract")?))
    };
    add_all(only_block(page, "yaml good")?)
        .map_err(|error| format!("the good contracts do not load: {error}"))?;
    match add_all(only_block(page, "yaml bad")?) {
        Ok(()) => Err("the bad contracts can be registered together".to_owned()),
        Err(error) => has_only(&error, code),
    }
}

fn check_reference_page(page: &Page) -> Result<(), String> {
    let mut registry = Registry::new();
    let definition = Definition::from_yaml(only_block(page, "yaml contract")?, "contract")
        .map_err(|error| error.to_string())?;
    registry.add(definition).map_err(|error| error.to_string())?;
    registry
        .get(only_block(page, "text good")?)
        .map_err(|error| format!("the good reference cannot be resolved: {error}"))?;
    match registry.get(only_block(page, "text bad")?) {
        // The error has no code of its own: the command line adds C0408.
        Err(ResolveError::NotFound(error)) if !error.message.is_empty() => Ok(()),
        Err(error) => Err(format!("the bad reference fails in another way: {error}")),
        Ok(_) => Err("the bad reference can be resolved".to_owned()),
    }
}

/// The bad version breaks with this code only; the good one is compatible.
fn check_compat_page(code: Code, page: &Page) -> Result<(), String> {
    let old = load(only_block(page, "yaml old")?)?;
    let bad = load(only_block(page, "yaml bad")?)?;
    let good = load(only_block(page, "yaml good")?)?;
    let grown = (bad.version() > old.version()) == (code != Code::NotNewer)
        && good.version() > old.version();
    let same = old.id() == bad.id() && old.id() == good.id();
    if !grown || !same {
        return Err("the three contracts are not versions of one".to_owned());
    }
    let broken = compare(&old, &bad);
    if broken.is_additive() || broken.breaks.iter().any(|found| found.code != code) {
        return Err(format!("the bad version does not show {code} alone: {broken:#?}"));
    }
    let additive = compare(&old, &good);
    if additive.is_additive() {
        Ok(())
    } else {
        Err(format!("the good version breaks: {additive:#?}"))
    }
}

#[test]
fn every_page_does_what_it_says() {
    let failures: Vec<String> = Code::ALL
        .iter()
        .filter_map(|code| {
            check_page(*code).err().map(|why| format!("{code} ({}): {why}", code.title()))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} pages fail:\n{}",
        failures.len(),
        Code::ALL.len(),
        failures.join("\n")
    );
}

#[test]
fn codes_and_titles_stand_once() {
    for (index, code) in Code::ALL.iter().enumerate() {
        let again = Code::ALL[..index]
            .iter()
            .find(|other| other.as_str() == code.as_str() || other.title() == code.title());
        assert_eq!(again, None, "{code}");
    }
}
