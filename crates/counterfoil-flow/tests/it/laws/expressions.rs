//! Random expressions over what a place can see, mostly well typed.

use super::dice::Dice;
use serde_json::{Value, json};

/// The types that generated contracts, inputs and variables have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Flag,
    Whole,
    Number,
    Text,
    Word(Vec<String>),
    Texts,
    Things,
}

/// The short form of an item of a list of things.
const THING: &str = "{ id: string, rank: integer, after: [string], note?: string }";

impl Kind {
    pub(crate) fn any(dice: &mut Dice) -> Self {
        match dice.below(8) {
            0 => Self::Flag,
            1 => Self::Whole,
            2 => Self::Number,
            3 => Self::Text,
            4 | 5 => Self::Word((0..2 + dice.below(3)).map(|at| format!("w{at}")).collect()),
            6 => Self::Texts,
            _ => Self::Things,
        }
    }

    /// As a type is written.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::Flag => "boolean".to_owned(),
            Self::Whole => "integer".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Word(words) => words.join(" | "),
            Self::Texts => "[string]".to_owned(),
            Self::Things => format!("[{THING}]"),
        }
    }

    /// The type as a value of the workflow's file.
    pub(crate) fn form(&self) -> Value {
        match self {
            Self::Texts => json!(["string"]),
            Self::Things => {
                json!([{"id": "string", "rank": "integer", "after": ["string"], "note?": "string"}])
            }
            other => json!(other.written()),
        }
    }

    /// A value of the type.
    pub(crate) fn value(&self, dice: &mut Dice) -> Value {
        match self {
            Self::Flag => json!(dice.chance(50)),
            Self::Whole => json!(i64::try_from(dice.below(9)).unwrap() - 2),
            // A number may be written without a point.
            Self::Number if dice.chance(40) => json!(dice.below(4)),
            Self::Number => json!([0.25, 1.5, -2.75][dice.below(3)]),
            Self::Text => json!(["", "a", "abc", "some words, ä"][dice.below(4)]),
            Self::Word(words) => json!(dice.pick(words)),
            Self::Texts => {
                Value::Array((0..dice.below(4)).map(|_| Self::Text.value(dice)).collect())
            }
            Self::Things => Value::Array((0..dice.below(5)).map(|at| thing(dice, at)).collect()),
        }
    }
}

fn thing(dice: &mut Dice, at: usize) -> Value {
    // Duplicate keys and missing dependencies have no order; most lists have one.
    let id = if dice.chance(4) { "t0".to_owned() } else { format!("t{at}") };
    let after: Vec<String> = match dice.below(20) {
        0 => vec!["missing".to_owned()],
        1 => vec![format!("t{}", at + 1)],
        2..10 if at > 0 => vec![format!("t{}", dice.below(at))],
        _ => Vec::new(),
    };
    let mut thing = json!({"id": id, "rank": dice.below(4), "after": after});
    if dice.chance(40) {
        thing["note"] = json!("a note");
    }
    thing
}

/// Whether a value is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum There {
    Always,
    /// A field that may be missing.
    Sometimes,
    /// A variable that may be null.
    OrNull,
}

/// Something an expression can read.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) there: There,
}

impl Seen {
    pub(crate) fn new(path: impl Into<String>, kind: Kind, there: There) -> Self {
        Self { path: path.into(), kind, there }
    }
}

/// A condition over what can be seen.
pub(crate) fn condition(dice: &mut Dice, seen: &[Seen], depth: usize) -> String {
    if depth > 0 && dice.chance(45) {
        let (a, b) = (condition(dice, seen, depth - 1), condition(dice, seen, depth - 1));
        return match dice.below(4) {
            0 => format!("({a}) && ({b})"),
            1 => format!("({a}) || ({b})"),
            2 => format!("!({a})"),
            _ => format!("({a}) ? ({b}) : ({})", condition(dice, seen, depth - 1)),
        };
    }
    let one = dice.pick(seen).clone();
    let test = test(dice, &one);
    // Now and then a guard is forgotten, and the checker must see it.
    match one.there {
        There::Always => test,
        _ if dice.chance(3) => test,
        There::Sometimes => format!("has({}) && ({test})", one.path),
        There::OrNull => format!("{} != null && ({test})", one.path),
    }
}

fn test(dice: &mut Dice, one: &Seen) -> String {
    let path = &one.path;
    match &one.kind {
        Kind::Flag => match dice.below(3) {
            0 => path.clone(),
            1 => format!("!{path}"),
            _ => format!("{path} == true"),
        },
        Kind::Whole => match dice.below(7) {
            0 => format!("{path} < 3"),
            1 => format!("{path} == 1"),
            2 => format!("{path} + 1 > 2"),
            3 => format!("{path} % 2 == 0"),
            4 => format!("6 / {path} > 1"),
            5 => format!("double({path}) * 0.5 < 1.0"),
            _ => format!("{path} in [0, 1, 2]"),
        },
        Kind::Number => match dice.below(3) {
            0 => format!("{path} > 0.5"),
            1 => format!("{path} * 2.0 < 3.0"),
            _ => format!("{path} + 1.0 != 2.0"),
        },
        Kind::Text => match dice.below(5) {
            0 => format!("{path} == 'a'"),
            1 => format!("size({path}) > 2"),
            2 => format!("{path}.startsWith('a')"),
            3 => format!("({path} + 'x').contains('ax')"),
            _ => format!("{path}.matches('^[a-c]*$')"),
        },
        Kind::Word(words) => {
            let word = dice.pick(words).clone();
            match dice.below(4) {
                0 => format!("{path} != '{word}'"),
                1 => format!("{path} in ['{word}', '{}']", words[0]),
                _ if dice.chance(2) => format!("{path} == '{}'", word.to_uppercase()),
                _ => format!("{path} == '{word}'"),
            }
        }
        Kind::Texts => match dice.below(4) {
            0 => format!("size({path}) > 1"),
            1 => format!("{path}.exists(x, x == 'a')"),
            2 => format!("'abc' in {path}"),
            _ => format!("{path}[0] == 'a'"),
        },
        Kind::Things => match dice.below(5) {
            0 => format!("size({path}) > 2"),
            1 => format!("{path}.exists(t, t.rank > 1)"),
            2 => format!("{path}.all(t, has(t.note) || t.rank < 3)"),
            3 => format!("size({path}.filter(t, has(t.note) && t.note != '')) == 0"),
            _ => format!("{path}.map(t, t.id).exists(id, id in ['t0', 't1'])"),
        },
    }
}

/// A value of a type, as `set` and `with` write it: anything but a text as it stands, an expression
/// as a text.
pub(crate) fn term(dice: &mut Dice, seen: &[Seen], kind: &Kind, there: There) -> Value {
    if there == There::OrNull && dice.chance(25) {
        return Value::Null;
    }
    // A value that may be missing is null for an optional variable, and wrong for any other.
    let fits =
        |one: &&Seen| one.kind == *kind && (one.there == There::Always || there == There::OrNull);
    let same: Vec<&Seen> = seen.iter().filter(fits).collect();
    if !same.is_empty() && dice.chance(60) {
        return json!(dice.pick(&same).path);
    }
    let whole = |dice: &mut Dice| {
        let wholes: Vec<&Seen> = seen
            .iter()
            .filter(|one| one.kind == Kind::Whole && one.there == There::Always)
            .collect();
        if wholes.is_empty() { "2".to_owned() } else { dice.pick(&wholes).path.clone() }
    };
    match kind {
        Kind::Flag if dice.chance(60) => json!(condition(dice, seen, 1)),
        Kind::Whole if dice.chance(60) => {
            let (a, b) = (whole(dice), whole(dice));
            json!(format!("{a} {} {b}", dice.pick(&["+", "-", "*"])))
        }
        Kind::Whole if dice.chance(30) => {
            let when = condition(dice, seen, 1);
            json!(format!("({when}) ? 1 : {}", whole(dice)))
        }
        Kind::Number if dice.chance(50) => json!(format!("double({}) / 4.0", whole(dice))),
        Kind::Text if dice.chance(50) => json!(format!("'n' + string({})", whole(dice))),
        Kind::Texts if dice.chance(50) => {
            let things: Vec<&Seen> = seen
                .iter()
                .filter(|one| one.kind == Kind::Things && one.there == There::Always)
                .collect();
            match things.first() {
                Some(one) => json!(format!("{}.map(t, t.id)", one.path)),
                None => json!("['a', 'b'].filter(x, x != 'b')"),
            }
        }
        Kind::Text => json!("'a text'"),
        Kind::Word(words) => json!(format!("'{}'", dice.pick(words))),
        other => other.value(dice),
    }
}
