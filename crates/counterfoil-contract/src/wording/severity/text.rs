//! Whether a text says that something severe is open.

use super::super::parts::{lines, pattern};
use super::words::{LOWER, NUMBER, SETTLED, SETTLES, THING, severe, shouted, top};
use crate::pattern::Pattern;
use regex::Captures;
use std::sync::LazyLock;

/// A text in which a line says that something severe is open. The word in prose ("High test
/// coverage") does not say so: it has to be a label, behind a place too, a count, or the grade of a
/// finding ("a critical vulnerability").
pub(super) fn is_severe_text(text: &str) -> bool {
    lines(text).any(|line| is_severe_line(&line))
}

/// Whether a text under a name such as `critical` says that there is something.
pub(super) fn is_severe_under_name(text: &str) -> bool {
    let mut lines = lines(text).skip_while(|line| line.trim().is_empty());
    lines.next().is_some_and(|first| is_severe_line(&format!("CRITICAL: {first}")))
        || lines.any(|line| is_severe_line(&line))
}

/// Whether a text says that something is still there.
pub(super) fn says_open(text: &str) -> bool {
    WORDS.open.is_match(&WORDS.not_settled.replace_all(text, "unfixed"))
}

fn is_severe_line(line: &str) -> bool {
    // Most lines. All other patterns need such a word, and take long to compile.
    if !WORDS.mention.is_match(line) {
        return false;
    }
    let line = WORDS.not_settled.replace_all(line, "unfixed");
    // It is not a critical path.
    let line = WORDS.path_traversal.replace_all(&line, "traversal");
    let line = WORDS.several_grades.replace_all(&line, one_grade);
    if WORDS.none_but.is_match(&line) || WORDS.none.is_match(&line) {
        return WORDS.none_but.is_match(&line);
    }
    let clauses = line.replace(". ", ", ").replace("; ", ", ");
    let mut clauses = clauses.split(", ").peekable();
    while let Some(clause) = clauses.next() {
        // "HIGH: eval on input. Fixed by a check."
        let is_settled = clauses.peek().is_some_and(|next| WORDS.settled_clause.is_match(next));
        if (!is_settled && has_label(clause, clause.len() == line.len())) || has_statement(clause) {
            return true;
        }
    }
    false
}

/// "no critical, high or medium findings" has no high finding. A scale ("LOW, MEDIUM, HIGH") says
/// nothing of a finding.
fn one_grade(found: &Captures<'_>) -> String {
    let all = found.get(0).map_or("", |all| all.as_str());
    let mut severe = WORDS.severe.find_iter(all);
    let first = severe.next();
    let severe = severe.count() + usize::from(first.is_some());
    let lower = WORDS.lower.find_iter(all).count();
    let is_list = !all.contains(['/', '–']) && !WORDS.joined.is_match(all);
    let kept = match first {
        Some(_) if lower > 0 && (severe + lower > 2 || WORDS.from_end_to_end.is_match(all)) => {
            "graded"
        }
        // "severity medium, high confidence".
        Some(first) if lower == 0 || !is_list => first.as_str(),
        _ => all,
    };
    kept.to_owned()
}

fn has_label(clause: &str, is_line: bool) -> bool {
    (WORDS.label.is_match(clause) || (is_line && WORDS.alone.is_match(clause)))
        && !WORDS.none.is_match(clause)
        && !WORDS.no_severity.is_match(clause)
        && !WORDS.other_meaning.is_match(clause)
        && !WORDS.settled_label.is_match(clause)
}

fn has_statement(clause: &str) -> bool {
    if WORDS.settled_label.is_match(clause) {
        return false;
    }
    let mut from = 0;
    let mut found = WORDS.statement.captures_iter(clause).peekable();
    while let Some(captures) = found.next() {
        let Some(all) = captures.get(0) else { continue };
        let to =
            found.peek().and_then(|next| next.get(0)).map_or(clause.len(), |next| next.start());
        let is_known = captures.name("known").is_some();
        if says_of_finding(&clause[from..all.end()], &clause[all.end()..to], is_known)
            && !WORDS.other_kind.is_match(all.as_str())
        {
            return true;
        }
        from = all.end();
    }
    false
}

/// Whether the words up to a graded finding and behind it say that there is one. One that is known
/// ("the critical bug") has to be called open.
fn says_of_finding(up_to: &str, behind: &str, is_known: bool) -> bool {
    let near = WORDS.new_thought.find_iter(up_to).last().map_or(up_to, |at| &up_to[at.end()..]);
    if WORDS.denied.is_match(near) || WORDS.absent.is_match(behind) {
        return false;
    }
    if WORDS.open.is_match(behind) || WORDS.open.is_match(near) {
        return true;
    }
    !is_known
        && !WORDS.conditional.is_match(up_to)
        && !WORDS.imagined.is_match(near)
        && !WORDS.settles.is_match(near)
        && !WORDS.settled.is_match(behind)
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

struct Words {
    /// What a line has to hold to be severe.
    mention: Pattern,
    path_traversal: Pattern,
    severe: Pattern,
    lower: Pattern,
    /// "high, critical and low".
    several_grades: Pattern,
    /// "low to high".
    from_end_to_end: Pattern,
    joined: Pattern,
    /// A severe word as the label of a clause, or a count of severe findings.
    label: Pattern,
    /// A line that is nothing but a label.
    alone: Pattern,
    /// "a critical vulnerability", "two high severity issues", "the issue is critical".
    statement: Pattern,
    /// What begins a thought of its own: "not checked, and this is …".
    new_thought: Pattern,
    /// What says that there is no such finding, before it and behind it.
    denied: Pattern,
    absent: Pattern,
    /// What speaks of a finding that could be there, or was.
    conditional: Pattern,
    imagined: Pattern,
    /// What makes an end of a finding, before it and behind it.
    settles: Pattern,
    settled: Pattern,
    settled_label: Pattern,
    settled_clause: Pattern,
    /// "not fixed", "does not fix".
    not_settled: Pattern,
    open: Pattern,
    /// "HIGH: none", "Critical: 0", "HIGH, CRITICAL: none".
    none: Pattern,
    /// "no HIGH issues except …", "HIGH: none, but …".
    none_but: Pattern,
    no_severity: Pattern,
    /// "High-level names", "[HIGH] … (fixed)".
    other_meaning: Pattern,
    other_kind: Pattern,
}

impl Words {
    fn new() -> Self {
        let severe = severe();
        let shouted = shouted();
        let top = top();
        let kind = "([ -](severity|risk|impact|priority))";
        // What stands before the first word: marks of lists, numbers, brackets.
        let lead = "([^a-z0-9]|[0-9]+[.)] )*";
        let scale = "((severity|risk|priority|impact|level|rated|graded)[^a-z0-9]*)";
        // "F1", "#12", "calc.py:3".
        let place = "(#[0-9]+|[a-z]{1,12}[-_]?[0-9]+|[a-z0-9_/-]+[.][a-z]{1,5}(:[0-9]+)*)";
        let marks = "[^a-z0-9: |!–—-]*";
        let nothing = format!("(none|nil|nothing|n/a|no|0|zero|no (more )?{THING})");
        let found = "( (found|identified|open|remaining|left|detected|reported|to report|to fix\
                     |so far))?";
        let but = "(except|apart from|other than|besides|aside from|but)([^a-z]|$)";
        let adjective = "((still|open|new|unresolved|remaining|other|more|further|additional|known\
                         |existing|possible|potential|separate) )*";
        let graded = format!("{severe}([ -](severity|risk|impact))?( [a-z-]+){{0,2}} {THING}");
        let label = [
            // "HIGH: …", "1. [Critical] …", "Severity: high", "high severity issue: …".
            format!("^{lead}{scale}?{severe}{kind}?( {THING})?{marks} *(:|[|!]|[-–—] )"),
            format!("^{lead}({scale}{severe}|{shouted}){kind}?( {THING})?{marks}$"),
            format!("^{lead}({severe}[ -]severity|{shouted})([^a-z=-]|$|=[1-9])"),
            // "F1 HIGH …", "F1 high: …".
            format!(
                "^{lead}{place}[^a-z0-9]+({shouted}([^a-z-]|$)|{severe}{kind}?{marks} *([:|]\
                     |[-–—] ))"
            ),
            // "… (CRITICAL)", "[high] …", but not "lines[high]".
            format!(r"(^|[^a-z0-9_)\]])[\[(]{lead}{severe}{kind}?[^a-z0-9]*[\])]"),
            // "a.py:3: HIGH: …", "F1 | HIGH | …".
            format!("[:|] *[*_`]*{severe}[*_`]* *[:|]"),
            format!("[-–—] {shouted} *([-–—] |:)"),
            // "eval on input: critical".
            format!("([-–—] |: ){marks}({shouted}|{top}){marks}$"),
            // "(severity: high)".
            format!("severity[^a-z0-9]{{0,5}}(is )?(very )?{severe}([^a-z]|$)"),
            // "found 2 critical", "both critical".
            format!(
                "(^|(found|has|have|are|is|with|[:(]) *){lead}{NUMBER} (of them )?((is|are) )?\
                 {adjective}{severe}{kind}?( {THING})?[^a-z0-9]*$"
            ),
            "cvss( ?v?[0-9][.]?[0-9]?)?( base)?( score)?( of| is)?[^a-z0-9]{1,3}([789]([.][0-9])?\
             |10([.]0)?)([^0-9./]|$)"
                .to_owned(),
        ]
        .join("|");
        let intro = format!(
            "(an?|this|that|another|following|these|those|{NUMBER}|more|further|other|new|open\
             |known\
             |still|unfixed|there (is|are|remains?)|is|are|remains?|ha(s|ve|d)|with|found|finds?\
             |saw|sees?\
             |contains?|introduc(es?|ed|ing)|leaves?|caus(es?|ed|ing)|creat(es?|ed|ing)|reveal(s\
             |ed)?\
             |identified|discovered|detected|(?P<known>the|our|its|their))"
        );
        let statement = [
            format!("(^{lead}|[:–—] |(^|[^a-z-]){intro} {adjective}){graded}([^a-z]|$)"),
            // "this is a blocker", "it is critical".
            format!("(is|are|remains?) (still )?an? {top}[^a-z0-9]*$"),
            format!("^{lead}(this|it|that) (is|remains) (still |very )?{top}[^a-z0-9]*$"),
            // "the vulnerability in calc.py is critical".
            format!(
                "{THING}( [^ ]+){{0,4}} (is|are|remains?) (rated |of |still |very )?{severe}\
                 ([^a-z-]|$)"
            ),
        ]
        .join("|");
        let none = format!(
            "^([a-z ]+[:|-] *)?{lead}{scale}?{severe}([^a-z0-9]+(and |or )?{severe})*{kind}?\
             ( {THING})?[^a-z0-9]+{nothing}{found}[^a-z0-9]*$"
        );
        let none_but = [
            format!("(^|[^a-z0-9])(no|zero|0|without|any) {severe}[a-z -]*[^a-z0-9]+{but}"),
            format!("(^|[^a-z]){severe}[a-z -]*[^a-z0-9]+{nothing}{found}[^a-z0-9]+{but}"),
        ]
        .join("|");
        let now = "((is|are|was|were|has been|have been|now|already|all|both|also|verified) )";
        let quality = "(confidence|coverage|quality|cohesion|readability|performance|availability\
                       |throughput|contrast|effort|complexity)";
        let other_kind = format!(
            "(high[ -](level|{quality}|standards?|end|order|resolution|precision|load|traffic\
             |number|amount|share|rate|volume|count)|critical[ -](paths?|sections?))([^a-z]|$)"
        );
        let other_meaning = [
            format!("^{lead}{other_kind}"),
            format!("{quality}( is)?[^a-z0-9]*(very )?high"),
            format!(r"[(\[]{now}*{SETTLED}( in [^)\]]*)?[)\]]"),
        ]
        .join("|");
        let settled_label = [
            format!(r"^{lead}{now}*{SETTLED}[^a-z0-9]*[:\])]"),
            // "HIGH finding F1 is fixed by …".
            format!(
                "^{lead}({place}[^a-z0-9]+)?{severe}{kind}?( {THING})?\
                 ([^a-z0-9]+(and )?{place})*[^a-z0-9]+{now}*{SETTLED}( (in|by|with|now)([^a-z]|$)\
                 |[^a-z0-9 -]|$)"
            ),
            // "HIGH: eval on input - fixed".
            format!("( [-–—→]|[:|]|=>) *{now}*{SETTLED}( in [^ ]+)?[^a-z0-9]*$"),
        ]
        .join("|");
        let separator = "(?:, (?:and |or )?| and | or | & |/| / | ?[|] ?| to |–)";
        Self {
            mention: pattern(&format!("{severe}|cvss")),
            path_traversal: pattern("path[- ]traversal"),
            severe: pattern(&severe),
            lower: pattern(LOWER),
            several_grades: pattern(&format!(
                r"\b(?:{severe}|{LOWER})(?:{separator}(?:{severe}|{LOWER}))+\b"
            )),
            from_end_to_end: pattern("^low(est)? to |[^a-z]to low"),
            joined: pattern("[^a-z](and|or|to)[^a-z]"),
            label: pattern(&format!("({label})")),
            alone: pattern(&format!("^{lead}{severe}{kind}?( {THING})?{marks}$")),
            statement: pattern(&format!("({statement})")),
            new_thought: pattern(
                "(^|[^a-z])((this|it|that|there|here|which) (is|are|remains?|has)|(and|but) (found\
                 |finds?|has|have|contains?|leaves?|opens?)|so|because|therefore|hence|making\
                 |caus(es?|ed|ing)|leads? to|results? in|creat(es?|ed|ing)|introduc(es?|ed|ing)) \
                 |: ",
            ),
            denied: pattern(&format!(
                "(^|[^a-z])(no|none|not|never|nothing|neither|nor|without|zero|0\
                 |any {adjective}{severe}|cannot\
                 |[a-z]+n['’]t|(test|check|look|search|scan|review|watch|audit|guard\
                 |case)[a-z]* for\
                 |against|(check|ensure|assert|test)s? that)([^a-z]|$)"
            )),
            absent: pattern(
                "(^|[^a-z])(no longer|not (there|present|found|possible|introduced|exploitable\
                 |reachable|reproducible|applicable|seen|detected|identified|open))([^a-z]|$)\
                 |^[^a-z0-9]+(0|zero|none|nil|no|n/a)[^a-z0-9]*$",
            ),
            conditional: pattern(&format!(
                "(^|[^a-z])(if|unless|whether|when|in case)( (there|it|this|that|they|you|we|i))?\
                 ( (is|are|was|were|has|have|had|finds?|found|sees?))?( (an?|any|some|one))? \
                 {adjective}{severe}"
            )),
            imagined: pattern("(^|[^a-z])(would|could|might|may|was|were|had)([^a-z]|$)"),
            settles: pattern(&format!("(^|[^a-z])(hot)?{SETTLES}([^a-z]|$)")),
            settled: pattern(&format!(
                "^[^:]*(^|[^a-z]){now}+{SETTLED}([^a-z]|$)|^[^a-z]*{SETTLED}([^a-z-]|$)\
                 |[^a-z]{SETTLED}[^a-z]*$|^[^:]*[(\\[]{now}*{SETTLED}|^ ?(fix(es)?|would)([^a-z]|$)\
                 |^( in [^ ]+)?( that| which)? ?(was|were|had|has been|have been) \
                 (there|in|here|present|reported (earlier|before)|open|possible)([^a-z]|$)"
            )),
            settled_clause: pattern(&format!(
                "^[^a-z]*((it|this) )?{now}*{SETTLED}( (in|by|with|now)([^a-z]|$)|[^a-z0-9 -]|$)"
            )),
            settled_label: pattern(&format!("({settled_label})")),
            not_settled: pattern(&format!(
                "(?:\\b(?:is|are|was|were|does|do|did|has|have|could|can)n['’]t|\\b(?:not|never\
                 |cannot\
                 |yet to|fails? to|failed to|unable to|without))(?: (?:be|been|yet|fully|completely\
                 |properly|actually|really|even|entirely))* (?:{SETTLED}|{SETTLES})\\b\
                 |\\bnot (?:all|every|each)\\b"
            )),
            open: pattern(
                "(^|[^a-z])(unfixed|unresolved|remains?|reopened|(is|are) open|still (open|there\
                 |present|exploitable|vulnerable|possible|broken|exposed|reachable|unsafe|affected\
                 |works?|fails?|happens?|occurs?|reproducible|leaks?|exists?|(is|are) \
                 (open|there|present|exploitable|possible|exposed|reachable)))([^a-z]|$)",
            ),
            none: pattern(&none),
            none_but: pattern(&format!("({none_but})")),
            no_severity: pattern(
                "(^|[^a-z0-9])(no|zero|0|without|any|nothing|none)( [a-z]+){0,4} severity([^a-z]\
                 |$)",
            ),
            other_kind: pattern(&format!("(^|[^a-z-]){other_kind}")),
            other_meaning: pattern(&format!("({other_meaning})")),
        }
    }
}
