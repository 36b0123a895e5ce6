//! Property tests of expressions over random scopes and values: an expression that compiles
//! evaluates to a value of its type unless the data prevents it, and the branch analysis is correct
//! for every value.

use counterfoil_contract::expr::{Expression, Scope, Type, assignable, branches};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Random choices that shrink towards the first of each.
struct Choices {
    bytes: Vec<u8>,
    at: usize,
}

impl Choices {
    /// A number below `count`.
    fn below(&mut self, count: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % count.max(1)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        let at = self.below(items.len());
        &items[at]
    }
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..900)
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Bool,
    Int,
    Double,
    Text,
    Enum,
    Mixed,
    Nullable(Box<Shape>),
    List(Box<Shape>),
    Map(Box<Shape>),
    Object(Vec<Member>),
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    name: &'static str,
    shape: Shape,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Presence {
    Required,
    Optional,
    Defaulted,
}

const LEVELS: [&str; 3] = ["low", "mid", "high"];
const TEXTS: [&str; 5] = ["a", "b", "low", "", "7"];
const NAMES: [&str; 5] = ["a", "b", "c-d", "ok", "n"];

fn shape(choices: &mut Choices, depth: usize) -> Shape {
    match choices.below(if depth == 0 { 7 } else { 11 }) {
        0 => Shape::Bool,
        1 => Shape::Int,
        2 => Shape::Double,
        3 => Shape::Text,
        4 => Shape::Enum,
        5 => Shape::Mixed,
        6 => Shape::Nullable(Box::new(match choices.below(4) {
            0 => Shape::Bool,
            1 => Shape::Int,
            2 => Shape::Enum,
            _ => Shape::Text,
        })),
        7 => Shape::List(Box::new(shape(choices, depth - 1))),
        8 => Shape::Map(Box::new(shape(choices, depth - 1))),
        9 => Shape::Nullable(Box::new(object(choices, depth - 1))),
        _ => object(choices, depth - 1),
    }
}

fn object(choices: &mut Choices, depth: usize) -> Shape {
    let count = 1 + choices.below(4);
    Shape::Object(
        NAMES[..count]
            .iter()
            .map(|name| Member {
                name,
                shape: shape(choices, depth),
                presence: *choices.pick(&[
                    Presence::Required,
                    Presence::Optional,
                    Presence::Defaulted,
                ]),
            })
            .collect(),
    )
}

impl Shape {
    fn schema(&self) -> Value {
        match self {
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Int => json!({"type": "integer"}),
            Shape::Double => json!({"type": "number"}),
            Shape::Text => json!({"type": "string"}),
            Shape::Enum => json!({"enum": LEVELS}),
            Shape::Mixed => json!({"type": ["integer", "string"]}),
            Shape::Nullable(inner) => json!({"anyOf": [inner.schema(), {"type": "null"}]}),
            Shape::List(items) => json!({"type": "array", "items": items.schema()}),
            Shape::Map(values) => {
                json!({"type": "object", "additionalProperties": values.schema()})
            }
            Shape::Object(members) => {
                let mut properties = Map::new();
                let mut required = Vec::new();
                for member in members {
                    let mut schema = member.shape.schema();
                    match member.presence {
                        Presence::Required => required.push(member.name),
                        Presence::Optional => {}
                        Presence::Defaulted => {
                            schema["default"] = value(
                                &member.shape.non_null(),
                                &mut Choices { bytes: vec![], at: 0 },
                            );
                        }
                    }
                    properties.insert(member.name.to_owned(), schema);
                }
                json!({"type": "object", "properties": properties, "required": required})
            }
        }
    }

    fn ty(&self) -> Type {
        Type::from_schema(&self.schema())
    }

    fn non_null(&self) -> Shape {
        match self {
            Shape::Nullable(inner) => inner.as_ref().clone(),
            other => other.clone(),
        }
    }
}

fn value(shape: &Shape, choices: &mut Choices) -> Value {
    match shape {
        Shape::Bool => json!(choices.below(2) == 0),
        Shape::Int => match choices.below(9) {
            7 => serde_json::from_str("2.0").unwrap(),
            8 => json!(i64::MAX),
            other => json!(i64::try_from(other).unwrap() - 2),
        },
        Shape::Double => {
            [json!(0), json!(1.5), json!(-2), json!(3.0), json!(1)][choices.below(5)].clone()
        }
        Shape::Text => json!(choices.pick(&TEXTS)),
        Shape::Enum => json!(choices.pick(&LEVELS)),
        Shape::Mixed if choices.below(2) == 0 => json!(choices.below(4)),
        Shape::Mixed => json!(choices.pick(&TEXTS)),
        Shape::Nullable(_) if choices.below(2) == 0 => Value::Null,
        Shape::Nullable(inner) => value(inner, choices),
        Shape::List(items) => (0..choices.below(4)).map(|_| value(items, choices)).collect(),
        Shape::Map(values) => {
            let mut members = Map::new();
            for name in &NAMES[..choices.below(4)] {
                members.insert((*name).to_owned(), value(values, choices));
            }
            Value::Object(members)
        }
        Shape::Object(members) => {
            let mut found = Map::new();
            for member in members {
                let is_given = match (member.presence, choices.below(3)) {
                    (Presence::Required, _) | (_, 0) => true,
                    (_, 1) => false,
                    _ => {
                        found.insert(member.name.to_owned(), Value::Null);
                        false
                    }
                };
                if is_given {
                    found.insert(member.name.to_owned(), value(&member.shape, choices));
                }
            }
            if choices.one_in(4) {
                found.insert("surplus".to_owned(), json!([1, "x"]));
            }
            Value::Object(found)
        }
    }
}

/// Whether a value has a type.
fn has_type(value: &Value, ty: &Type) -> bool {
    ty.alternatives().iter().any(|ty| match (ty, value) {
        (Type::Any, _) | (Type::Null, Value::Null) | (Type::Bool, Value::Bool(_)) => true,
        (Type::String(None), Value::String(_)) | (Type::Double, Value::Number(_)) => true,
        (Type::String(Some(values)), Value::String(text)) => values.contains(text),
        (Type::Int, Value::Number(number)) => {
            number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        (Type::List(items), Value::Array(values)) => {
            values.iter().all(|value| has_type(value, items))
        }
        (Type::Map(values), Value::Object(members)) => {
            members.values().all(|value| has_type(value, values))
        }
        (Type::Object(object), Value::Object(members)) => {
            object.fields.iter().all(|(name, field)| match members.get(name) {
                None => !field.required,
                Some(Value::Null) if !field.required => true,
                Some(value) => has_type(value, &field.ty),
            })
        }
        _ => false,
    })
}

/// A path that an expression can refer to.
#[derive(Clone, Debug)]
struct ReadablePath {
    path: String,
    shape: Shape,
}

fn collect_paths(path: &str, shape: &Shape, depth: usize, found: &mut Vec<ReadablePath>) {
    found.push(ReadablePath { path: path.to_owned(), shape: shape.clone() });
    if depth == 0 {
        return;
    }
    match &shape.non_null() {
        Shape::Object(members) => {
            for member in members {
                let inner = if member.name.contains('-') {
                    format!("{path}[\"{}\"]", member.name)
                } else {
                    format!("{path}.{}", member.name)
                };
                collect_paths(&inner, &member.shape, depth - 1, found);
            }
        }
        Shape::Map(values) => collect_paths(&format!("{path}.a"), values, depth - 1, found),
        Shape::List(items) => collect_paths(&format!("{path}[0]"), items, depth - 1, found),
        _ => {}
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Want {
    Bool,
    Int,
    Double,
    Text,
    List,
    Anything,
}

struct Writer<'c> {
    choices: &'c mut Choices,
    paths: Vec<ReadablePath>,
}

impl Writer<'_> {
    fn pick_path(&mut self, fits: impl Fn(&Shape) -> bool) -> Option<ReadablePath> {
        let fitting: Vec<ReadablePath> = if self.choices.one_in(12) {
            self.paths.clone()
        } else {
            self.paths.iter().filter(|place| fits(&place.shape.non_null())).cloned().collect()
        };
        (!fitting.is_empty()).then(|| self.choices.pick(&fitting).clone())
    }

    fn leaf(&mut self, want: Want) -> String {
        let place = self.pick_path(|shape| match want {
            Want::Bool => *shape == Shape::Bool,
            Want::Int => *shape == Shape::Int,
            Want::Double => *shape == Shape::Double,
            Want::Text => matches!(shape, Shape::Text | Shape::Enum),
            Want::List => matches!(shape, Shape::List(_)),
            Want::Anything => true,
        });
        match place {
            Some(place) if !self.choices.one_in(3) => place.path,
            _ => self.literal(want),
        }
    }

    fn literal(&mut self, want: Want) -> String {
        match want {
            Want::Bool => ["true", "false"][self.choices.below(2)].into(),
            Want::Int => ["0", "1", "3", "-1"][self.choices.below(4)].into(),
            Want::Double => ["0.0", "1.5", "-2.0", "double('nan')"][self.choices.below(4)].into(),
            Want::Text => format!("'{}'", self.choices.pick(&["a", "low", "", "7", "high"])),
            Want::List => ["[]", "[1, 2]", "['low']", "[null, 'a']"][self.choices.below(4)].into(),
            Want::Anything => {
                ["null", "1", "'low'", "true", "{'a': 1}", "2.5"][self.choices.below(6)].into()
            }
        }
    }

    fn some(&mut self, depth: usize) -> String {
        let want = *self.choices.pick(&[
            Want::Text,
            Want::Int,
            Want::Bool,
            Want::Double,
            Want::List,
            Want::Anything,
        ]);
        self.write(want, depth)
    }

    /// The text of an expression that is likely to have the wanted type.
    fn write(&mut self, want: Want, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(want);
        }
        let depth = depth - 1;
        if self.choices.one_in(7) {
            let (condition, yes, no) =
                (self.write(Want::Bool, depth), self.write(want, depth), self.write(want, depth));
            return format!("({condition} ? {yes} : {no})");
        }
        match want {
            Want::Bool => self.condition(depth),
            Want::Int => match self.choices.below(9) {
                0 => self.leaf(Want::Int),
                1 | 2 => self.binary(Want::Int, &["+", "-", "*", "/", "%"], depth),
                3 => format!("-{}", self.write(Want::Int, depth)),
                4 => format!("size({})", self.some(depth)),
                5 => format!("int({})", self.some(depth)),
                6 => format!("{}.sum()", self.write(Want::List, depth)),
                7 => format!(
                    "{}.indexOf({})",
                    self.write(Want::Text, depth),
                    self.write(Want::Text, depth)
                ),
                _ => format!("{}[{}]", self.write(Want::List, depth), self.write(Want::Int, depth)),
            },
            Want::Double => match self.choices.below(5) {
                0 => self.leaf(Want::Double),
                1 => self.binary(Want::Double, &["+", "-", "*", "/", "%"], depth),
                2 => format!("double({})", self.some(depth)),
                3 => format!("{}.sum()", self.write(Want::List, depth)),
                _ => format!("-{}", self.write(Want::Double, depth)),
            },
            Want::Text => match self.choices.below(9) {
                0 | 1 => self.leaf(Want::Text),
                2 => self.binary(Want::Text, &["+"], depth),
                3 => format!("json({})", self.some(depth)),
                4 => format!(
                    "{}.join({})",
                    self.write(Want::List, depth),
                    self.write(Want::Text, depth)
                ),
                5 => {
                    let name = *self.choices.pick(&["trim", "lowerAscii", "upperAscii", "slug"]);
                    format!("{}.{name}()", self.write(Want::Text, depth))
                }
                6 => {
                    let (part, by) = (self.write(Want::Text, depth), self.write(Want::Text, depth));
                    format!("{}.replace({part}, {by})", self.write(Want::Text, depth))
                }
                7 => {
                    let (from, to) = (self.write(Want::Int, depth), self.write(Want::Int, depth));
                    format!("{}.substring({from}, {to})", self.write(Want::Text, depth))
                }
                _ => format!("string({})", self.some(depth)),
            },
            Want::List => match self.choices.below(11) {
                0 => self.leaf(Want::List),
                1 => format!("[{}, {}]", self.some(depth), self.some(depth)),
                2 => self.binary(Want::List, &["+"], depth),
                3 => self.over_list("filter", Want::Bool, depth),
                4 => self.over_list("map", Want::Anything, depth),
                5 => {
                    let name = *self.choices.pick(&["distinct", "flatten"]);
                    format!("{}.{name}()", self.write(Want::List, depth))
                }
                6 => {
                    let (from, to) = (self.write(Want::Int, depth), self.write(Want::Int, depth));
                    format!("{}.slice({from}, {to})", self.write(Want::List, depth))
                }
                7 => format!("range({})", self.write(Want::Int, depth)),
                8 => format!(
                    "{}.split({})",
                    self.write(Want::Text, depth),
                    self.write(Want::Text, depth)
                ),
                9 => format!("{}.lines()", self.write(Want::Text, depth)),
                _ => format!("[{}]", self.some(depth)),
            },
            Want::Anything => match self.choices.below(3) {
                0 => self.leaf(Want::Anything),
                1 => format!("{{'a': {}, 'b': {}}}", self.some(depth), self.some(depth)),
                _ => self.some(depth),
            },
        }
    }

    fn binary(&mut self, want: Want, signs: &[&str], depth: usize) -> String {
        let sign = *self.choices.pick(signs);
        format!("({} {sign} {})", self.write(want, depth), self.write(want, depth))
    }

    fn condition(&mut self, depth: usize) -> String {
        match self.choices.below(16) {
            0 => self.leaf(Want::Bool),
            1 => format!("!{}", self.write(Want::Bool, depth)),
            2 | 3 => self.binary(Want::Bool, &["&&", "||", "==", "!="], depth),
            4 => {
                let want = *self.choices.pick(&[Want::Int, Want::Double, Want::Text]);
                self.binary(want, &["<", "<=", ">", ">=", "==", "!="], depth)
            }
            5 => format!("({} == {})", self.some(depth), self.some(depth)),
            6 => {
                let method = *self.choices.pick(&["contains", "startsWith", "endsWith", "matches"]);
                format!(
                    "{}.{method}({})",
                    self.write(Want::Text, depth),
                    self.write(Want::Text, depth)
                )
            }
            7 => format!("({} in {})", self.some(depth), self.write(Want::List, depth)),
            8 => format!("('a' in {})", self.leaf(Want::Anything)),
            9 => {
                let name = *self.choices.pick(&["exists", "all", "exists_one"]);
                self.over_list(name, Want::Bool, depth)
            }
            // A guard and a use of the guarded value.
            10..=12 => {
                let place =
                    self.pick_path(|_| true).map_or_else(|| "true".to_owned(), |place| place.path);
                let guard = match self.choices.below(4) {
                    0 => format!("{place} != null"),
                    1 => format!("has({place})"),
                    2 => format!("(has({place}) && {place} != null)"),
                    _ => format!("!({place} == null)"),
                };
                let rest = match self.choices.below(5) {
                    0 => format!("size({place}) > 0"),
                    1 => format!("{place} > 1"),
                    2 => format!("{place} < 'b'"),
                    3 => place,
                    _ => self.write(Want::Bool, depth),
                };
                format!("({guard} && {rest})")
            }
            13 => {
                let place = self.leaf(Want::Anything);
                format!(
                    "({place} {} {})",
                    self.choices.pick(&["==", "!="]),
                    self.literal(Want::Anything)
                )
            }
            14 => format!("has({})", self.leaf(Want::Anything)),
            _ => format!("({} {} null)", self.some(depth), self.choices.pick(&["==", "!="])),
        }
    }

    fn over_list(&mut self, name: &str, want: Want, depth: usize) -> String {
        let place = self
            .pick_path(|shape| matches!(shape, Shape::List(_) | Shape::Map(_) | Shape::Object(_)));
        let built = Shape::Object(
            ["a", "b"]
                .map(|name| Member {
                    name,
                    shape: Shape::Nullable(Box::new(Shape::Text)),
                    presence: Presence::Optional,
                })
                .into(),
        );
        let (range, item) = match place.map(|place| (place.path, place.shape.non_null())) {
            // Objects that the expression constructs.
            _ if self.choices.one_in(4) => {
                (format!("[{{'a': {}}}, {{'b': {}}}]", self.some(depth), self.some(depth)), built)
            }
            Some((path, Shape::List(items))) => (path, *items),
            Some((path, _)) => (path, Shape::Text),
            None => (self.write(Want::List, depth), Shape::Int),
        };
        // Some shadow a variable of the scope.
        let variable = *self.choices.pick(&["x", "y", "v0"]);
        let before = self.paths.clone();
        self.paths.retain(|place| !place.path.starts_with(variable));
        for _ in 0..2 {
            collect_paths(variable, &item, 2, &mut self.paths);
        }
        let body = self.write(want, depth);
        self.paths = before;
        format!("{range}.{name}({variable}, {body})")
    }
}

struct TestScope {
    shapes: Vec<(&'static str, Shape, Type)>,
    scope: Scope,
    paths: Vec<ReadablePath>,
}

fn test_scope(choices: &mut Choices) -> TestScope {
    let shapes: Vec<_> = ["v0", "v1", "v2", "v3"]
        .into_iter()
        .map(|name| {
            let shape = shape(choices, 2);
            let ty = shape.ty();
            (name, shape, ty)
        })
        .collect();
    let scope =
        shapes.iter().fold(Scope::default(), |scope, (name, _, ty)| scope.with(name, ty.clone()));
    let mut found = Vec::new();
    for (name, shape, _) in &shapes {
        collect_paths(name, shape, 3, &mut found);
    }
    TestScope { shapes, scope, paths: found }
}

/// The messages of failures that only the data can cause.
const FAULTS: [&str; 8] = [
    "it divides by zero",
    "it reads past the end of a list",
    "a number is too large to calculate with",
    "int() cannot convert the value",
    "double() cannot convert the value",
    "it compares something that is not a number",
    "the pattern is not a regular expression",
    "range() gives at most 10,000 items",
];

fn evaluate(
    expression: &Expression,
    test_scope: &TestScope,
    values: &[Value],
) -> Result<Value, String> {
    let is_read = |name: &str| {
        expression.reads().iter().any(|read| read.split(['.', '[']).next() == Some(name))
    };
    let given: Vec<(&str, &Value, &Type)> = test_scope
        .shapes
        .iter()
        .zip(values)
        .filter(|((name, ..), _)| is_read(name))
        .map(|((name, _, ty), value)| (*name, value, ty))
        .collect();
    expression.evaluate(&given).map_err(|error| error.reason)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_compiles_has_a_value_of_its_type(bytes in choices()) {
        let mut choices = Choices { bytes, at: 0 };
        let test_scope = test_scope(&mut choices);
        for _ in 0..4 {
            let mut writer = Writer { choices: &mut choices, paths: test_scope.paths.clone() };
            let source = writer.some(4);
            let Ok(expression) = Expression::compile(&source, &test_scope.scope) else { continue };
            for _ in 0..3 {
                let values: Vec<Value> =
                    test_scope.shapes.iter().map(|(_, shape, _)| value(shape, &mut choices)).collect();
                match evaluate(&expression, &test_scope, &values) {
                    Ok(found) => prop_assert!(
                        has_type(&found, expression.ty()),
                        "{source} gives {found}, not {}, for {values:?}", expression.ty()
                    ),
                    Err(why) => prop_assert!(
                        FAULTS.iter().any(|fault| why.starts_with(fault))
                            || why.ends_with("which JSON cannot represent")
                            || why == "bool() cannot convert the value",
                        "{source}: {why} for {values:?} of {:?}", test_scope.shapes
                    ),
                }
            }
        }
    }

    #[test]
    fn what_is_assignable_is_a_value_of_the_other_type(bytes in choices()) {
        let mut choices = Choices { bytes, at: 0 };
        let (from, mut to) = (shape(&mut choices, 2), shape(&mut choices, 2));
        if choices.below(2) == 0 {
            to = Shape::Nullable(Box::new(from.clone()));
        }
        for (from, to) in [(&from, &to), (&to, &from)] {
            if assignable(&from.ty(), &to.ty()).is_ok() {
                // The value after an expression: absent nulls are omitted and defaults filled in.
                let (given, ty) = (value(from, &mut choices), from.ty());
                let expression = Expression::compile("v", &Scope::for_variable("v", ty.clone())).unwrap();
                let found = expression.evaluate(&[("v", &given, &ty)]).unwrap();
                // Fields that the schema does not declare have no type.
                if !found.to_string().contains("surplus") {
                    prop_assert!(has_type(&found, &to.ty()), "{found} of {from:?} is no {to:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_said_of_branches_is_true(bytes in choices()) {
        let mut choices = Choices { bytes, at: 0 };
        let test_scope = test_scope(&mut choices);
        let mut guards: Vec<Option<Expression>> = Vec::new();
        let mut scope = test_scope.scope.clone();
        for _ in 0..5 {
            let mut writer = Writer { choices: &mut choices, paths: test_scope.paths.clone() };
            let source = writer.write(Want::Bool, 2);
            let Ok(guard) = Expression::compile(&source, &scope) else { continue };
            if *guard.ty() != Type::Bool {
                continue;
            }
            if choices.below(2) == 0 {
                scope = scope.assuming_not(&guard);
                // Often exhaustive.
                let opposite = format!("!({source})");
                guards.push(Some(guard));
                if let Ok(guard) = Expression::compile(&opposite, &scope) {
                    guards.push(Some(guard));
                }
            } else {
                scope = scope.assuming_not(&guard);
                guards.push(Some(guard));
            }
        }
        if choices.one_in(5) {
            guards.insert(choices.below(guards.len() + 1), None);
        }
        let found = branches(&guards.iter().map(Option::as_ref).collect::<Vec<_>>(), &test_scope.scope);
        let shown: Vec<&str> = guards.iter().map(|guard| guard.as_ref().map_or("else", Expression::source)).collect();
        'values: for _ in 0..12 {
            let values: Vec<Value> =
                test_scope.shapes.iter().map(|(_, shape, _)| value(shape, &mut choices)).collect();
            let mut first = None;
            for (index, guard) in guards.iter().enumerate() {
                let truth = match guard {
                    None => true,
                    Some(guard) => match evaluate(guard, &test_scope, &values) {
                        Ok(truth) => truth == json!(true),
                        Err(why) => {
                            prop_assert!(
                                FAULTS.iter().any(|fault| why.starts_with(fault))
                                    || why.ends_with("which JSON cannot represent")
                                    || why == "bool() cannot convert the value",
                                "{shown:?}: {why} for {values:?}"
                            );
                            continue 'values;
                        }
                    },
                };
                if truth {
                    first = Some(index);
                    break;
                }
            }
            match first {
                Some(first) => prop_assert!(
                    found.dead.iter().all(|(dead, _)| *dead != first),
                    "{shown:?}: {first} fires for {values:?}: {found:?}"
                ),
                None => prop_assert!(found.uncovered.is_some(), "{shown:?}: none fires for {values:?}"),
            }
        }
    }
}
