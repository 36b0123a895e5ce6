//! The words for grades. What is severe in a field is severe in a text, so each list is only here.

/// The words for what stops everything.
const TOP_WORDS: &str = "critical|blockers?|blocking|fatal|catastrophic|show[-_ ]?stoppers?\
                         |must[-_ ]fix(?:es)?";

/// The words for what must not stay open.
fn severe_words() -> String {
    format!("{TOP_WORDS}|high|severe|urgent")
}

/// The grades of what stops everything. Only these count as a priority: a task with the priority
/// "high" is an ordinary task.
pub(super) fn top() -> String {
    format!("(?:{TOP_WORDS}|p0|sev[-_ ]?0)")
}

/// The grades of what must not stay open.
pub(super) fn severe() -> String {
    format!("(?:{}|p0|sev[-_ ]?[01])", severe_words())
}

/// The words in capitals. "P0" is written so in prose, too.
pub(super) fn shouted() -> String {
    format!("(?-i:{})", severe_words().to_uppercase())
}

/// The grades where nothing but a grade is expected. In a text, "S1" may be a step or a story.
pub(super) fn severe_value() -> String {
    format!("(?:{}|highest|s[01])", severe())
}

/// Lower grades that scales have.
pub(super) const LOWER: &str =
    "(?:lowest|low|medium|moderate|mid|minor|informational|info|trivial|negligible)";

/// Other values of a severity that is not severe.
pub(super) const HARMLESS: &str = "(?:information|none|nil|notes?|nit|nitpick|warning|warn\
    |suggestion|cosmetic|style|optional|normal|n/a|s[2-9]|p[2-9]|sev[-_ ]?[2-9])";

/// What has a grade.
pub(super) const THING: &str = "(?:issues?|findings?|vulnerabilit(?:y|ies)|problems?|concerns?\
    |bugs?|defects?|flaws?|holes?|injections?|weakness(?:es)?|leaks?|bypass(?:es)?|gaps?\
    |regressions?|exploits?|traversals?|overflows?|races?|deadlocks?|backdoors?|rce|xss|ssrf|csrf)";

/// What has been done to something that is not open any more.
pub(super) const SETTLED: &str = "(?:fixed|resolved|closed|solved|addressed|patched|mitigated\
    |remediated|removed|eliminated|repaired|corrected|gone|false[-_ ]positives?)";

/// The verbs for that.
pub(super) const SETTLES: &str = "(?:fix|resolv|clos|solv|address|patch|mitigat|remediat|remov\
    |eliminat|repair|correct|prevent|avoid)(?:es|ed|ing|e|s)?";

/// Numbers as words, and what stands for a number.
pub(super) const NUMBER: &str = "(?:[1-9][0-9]*|one|two|three|four|five|six|seven|eight|nine|ten\
    |several|some|multiple|many|both)";
