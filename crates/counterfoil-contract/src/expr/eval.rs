//! Evaluation of checked expressions.

use super::library::{self, PATTERN_FUNCTION};
use super::lower::ExprCode;
use super::meter::{SharedMeter, metered};
use super::types::Type;
use cel::common::ast::{IdedExpr, operators as op};
use cel::objects::{Key, Map as CelMap};
use cel::{Context, Env, ExecutionError, ParseErrors, Program, Value as CelValue};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

/// The standard environment and our own functions, built once.
pub(crate) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // Adding fails only for duplicate names, which tests would reveal.
    let added = library::add_to(&mut env);
    debug_assert!(added.is_ok(), "{added:?}");
    Arc::new(env)
});

thread_local! {
    /// Recently parsed programs. The same guard often occurs in many states, and parsing dominates
    /// the cost of checking.
    static PARSE_CACHE: RefCell<HashMap<String, Arc<Program>>> = RefCell::default();
}

/// The maximum number of cached programs; the cache is cleared when it is full.
const MAX_CACHED_PROGRAMS: usize = 2048;

/// Parses a source, using a cache of recent results.
pub(crate) fn parse_cached(source: &str) -> Result<Arc<Program>, ParseErrors> {
    if let Some(known) = PARSE_CACHE.with_borrow(|cache| cache.get(source).cloned()) {
        return Ok(known);
    }
    let program = Arc::new(ENV.compile(source)?);
    PARSE_CACHE.with_borrow_mut(|cache| {
        if cache.len() >= MAX_CACHED_PROGRAMS {
            cache.clear();
        }
        cache.insert(source.to_owned(), program.clone());
    });
    Ok(program)
}

/// A compiled expression of a rule.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) source: String,
    code: ExprCode,
}

/// The outcome of evaluating a condition.
#[derive(Debug, PartialEq)]
pub(crate) enum Evaluated {
    True,
    False,
    Failed(String),
}

impl Expr {
    pub(crate) fn new(source: &str, code: ExprCode) -> Self {
        Self { source: source.to_owned(), code }
    }

    /// Evaluates the condition. Its steps count with those of the others that share the meter.
    pub(crate) fn test(&self, variables: &Variables<'_>, meter: &SharedMeter) -> Evaluated {
        let value = meter
            .metered(|| variables.0.resolve(self.code.expr()))
            .map_err(|error| error_message(&error));
        match value {
            Ok(CelValue::Bool(true)) => Evaluated::True,
            Ok(CelValue::Bool(false)) => Evaluated::False,
            Ok(other) => {
                Evaluated::Failed(format!("gave {} where a boolean is needed", kind_name(&other)))
            }
            Err(why) => Evaluated::Failed(why),
        }
    }
}

/// The variables of rules. They are converted once for many evaluations.
pub(crate) struct Variables<'p>(Context<'p, 'static>);

impl Variables<'_> {
    /// One variable.
    pub(crate) fn new(name: &str, value: CelValue) -> Self {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.add_variable_from_value(name, value);
        Self(context)
    }

    /// One more variable.
    pub(crate) fn with(&self, name: &str, value: CelValue) -> Variables<'_> {
        let mut context = self.0.new_inner_scope();
        context.add_variable_from_value(name, value);
        Variables(context)
    }
}

/// Evaluates an expression; an error is a message that says why it has no value.
pub(super) fn run<'n>(
    expr: &IdedExpr,
    variables: impl IntoIterator<Item = (&'n str, CelValue)>,
) -> Result<CelValue, String> {
    let mut context = Context::with_env(Arc::clone(&ENV));
    for (name, value) in variables {
        context.add_variable_from_value(name, value);
    }
    metered(|| context.resolve(expr)).map_err(|error| error_message(&error))
}

fn error_message(error: &ExecutionError) -> String {
    match error {
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "it divides by zero".into()
        }
        ExecutionError::IndexOutOfBounds(_) => "it reads past the end of a list".into(),
        ExecutionError::NoSuchKey(key) => format!("`{key}` is missing"),
        ExecutionError::Overflow(..) => "a number is too large to calculate with".into(),
        ExecutionError::FunctionError { function, message } if function == PATTERN_FUNCTION => {
            format!("the pattern is not a regular expression: {message}")
        }
        ExecutionError::FunctionError { function, .. }
            if CONVERSIONS.contains(&function.as_str()) =>
        {
            format!("{function}() cannot convert the value")
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        // Checked expressions compare only numbers with numbers, so only NaN has no ordering.
        ExecutionError::NoSuchOverload(found)
            if ORDERINGS.contains(&found.function())
                && found.argument_types().iter().any(|ty| ty == "double") =>
        {
            "it compares something that is not a number".into()
        }
        // Checked expressions do not mix integers and doubles: this integer did not fit into 64
        // bits and became a double.
        ExecutionError::UnsupportedBinaryOperator(_, left, right) if is_mixed(left, right) => {
            "a number is too large to calculate with".into()
        }
        other => other.to_string(),
    }
}

const CONVERSIONS: [&str; 4] = ["int", "double", "string", "bool"];

const ORDERINGS: [&str; 4] = [op::LESS, op::LESS_EQUALS, op::GREATER, op::GREATER_EQUALS];

fn is_mixed(left: &CelValue, right: &CelValue) -> bool {
    let is_number = |value: &CelValue| matches!(value, CelValue::Int(_) | CelValue::Float(_));
    let is_float = |value: &CelValue| matches!(value, CelValue::Float(_));
    is_number(left) && is_number(right) && (is_float(left) || is_float(right))
}

/// Checks that a string is a valid regular expression; an error is a message that says why not.
pub(super) fn validate_pattern(pattern: &str) -> Result<(), String> {
    library::check_pattern(pattern).map_err(|error| error_message(&error))
}

/// Converts a CEL value to JSON. Object keys are sorted, because CEL keeps no order.
pub(super) fn to_json(value: &CelValue) -> Result<Value, String> {
    Ok(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(flag) => Value::Bool(*flag),
        CelValue::Int(int) => Value::from(*int),
        CelValue::UInt(int) => Value::from(*int),
        CelValue::Float(float) => serde_json::Number::from_f64(*float)
            .map(Value::Number)
            .ok_or_else(|| format!("it gives {float}, which JSON cannot represent"))?,
        CelValue::String(text) => Value::String(text.as_ref().clone()),
        CelValue::List(items) => Value::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        CelValue::Map(map) => {
            let mut members = BTreeMap::new();
            for (key, value) in map.map.iter() {
                let Key::String(key) = key else {
                    return Err("it gives an object with a key that is not a string".into());
                };
                members.insert(key.as_ref().clone(), to_json(value)?);
            }
            Value::Object(members.into_iter().collect())
        }
        other => return Err(format!("it gives {}, which JSON cannot represent", kind_name(other))),
    })
}

fn kind_name(value: &CelValue) -> &'static str {
    match value {
        CelValue::List(_) => "a list",
        CelValue::Map(_) => "an object",
        CelValue::Int(_) | CelValue::UInt(_) | CelValue::Float(_) => "a number",
        CelValue::String(_) => "a string",
        CelValue::Null => "null",
        CelValue::Bytes(_) => "bytes",
        _ => "something else",
    }
}

/// Converts a JSON value to CEL. The type decides what JSON leaves open: whether `1` is an integer
/// or a double, that null means absent in an optional field, and the value of a missing field that
/// has a default.
///
/// If `wanted` is given, only these fields of a root object are converted.
pub(crate) fn to_cel(value: &Value, ty: &Type, wanted: Option<&[String]>) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Number(number) => {
            let double = ty.alternatives().contains(&Type::Double)
                && !ty.alternatives().contains(&Type::Int);
            match number.as_i64() {
                Some(int) if !double => CelValue::Int(int),
                _ => match number.as_f64() {
                    Some(float) if !double && float.fract() == 0.0 && float.abs() < 9e15 => {
                        #[allow(clippy::cast_possible_truncation)] // A whole number below 2^53.
                        CelValue::Int(float as i64)
                    }
                    Some(float) => CelValue::Float(float),
                    None => CelValue::Float(f64::INFINITY),
                },
            }
        }
        Value::Array(items) => {
            let item = ty.items().unwrap_or(&Type::Any);
            CelValue::List(Arc::new(items.iter().map(|value| to_cel(value, item, None)).collect()))
        }
        Value::Object(members) => {
            let object = ty.object();
            let mut map: HashMap<Key, CelValue> = HashMap::with_capacity(members.len());
            let is_wanted =
                |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|want| want == name));
            for (name, value) in members {
                if !is_wanted(name) {
                    continue;
                }
                let field = object.and_then(|object| object.fields.get(name));
                if value.is_null() && field.is_some_and(|field| !field.required) {
                    continue;
                }
                let ty = match field {
                    Some(field) => field.ty.clone(),
                    None => ty.at([name.as_str()]).unwrap_or(Type::Any),
                };
                map.insert(Key::from(name.clone()), to_cel(value, &ty, None));
            }
            for (name, field) in object.iter().flat_map(|object| &object.fields) {
                if let Some(default) = &field.default
                    && is_wanted(name)
                    && members.get(name).is_none_or(|value| value.is_null() && !field.required)
                {
                    map.insert(Key::from(name.clone()), to_cel(default, &field.ty, None));
                }
            }
            CelValue::Map(CelMap { map: Arc::new(map) })
        }
    }
}
