//! Evaluation of checked expressions.

use super::types::Type;
use cel::objects::{Key, Map as CelMap};
use cel::{Context, Env, ExecutionError, Program, Value as CelValue};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The standard environment, built once.
pub(crate) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) source: String,
    program: Program,
}

/// What came of an evaluation.
#[derive(Debug, PartialEq)]
pub(crate) enum Evaluated {
    True,
    False,
    Failed(String),
}

impl Expr {
    pub(crate) fn new(source: &str, program: Program) -> Self {
        Self { source: source.to_owned(), program }
    }

    pub(crate) fn test(&self, variables: &[(&str, CelValue)]) -> Evaluated {
        let mut context = Context::with_env(Arc::clone(&ENV));
        for (name, value) in variables {
            context.add_variable_from_value(*name, value.clone());
        }
        match self.program.execute(&context) {
            Ok(CelValue::Bool(true)) => Evaluated::True,
            Ok(CelValue::Bool(false)) => Evaluated::False,
            Ok(other) => Evaluated::Failed(format!("gave {} where a boolean is needed", name_of(&other))),
            Err(error) => Evaluated::Failed(in_words(&error)),
        }
    }
}

fn in_words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "it divides by zero".into(),
        ExecutionError::IndexOutOfBounds(_) => "it reads past the end of a list".into(),
        ExecutionError::NoSuchKey(key) => format!("`{key}` is missing"),
        ExecutionError::Overflow(..) => "a number is too large to calculate with".into(),
        other => other.to_string(),
    }
}

fn name_of(value: &CelValue) -> &'static str {
    match value {
        CelValue::List(_) => "a list",
        CelValue::Map(_) => "an object",
        CelValue::Int(_) | CelValue::UInt(_) | CelValue::Float(_) => "a number",
        CelValue::String(_) => "a string",
        CelValue::Null => "null",
        _ => "something else",
    }
}

/// A JSON value as CEL sees it. The type decides what JSON leaves open: whether `1` is an integer or a number, that
/// null is absence where a field is optional, and what stands for a field that has a default.
///
/// Of a root object only the fields in `wanted` are converted, if it is given.
pub(crate) fn to_cel(value: &Value, ty: &Type, wanted: Option<&[String]>) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Number(number) => {
            let double = ty.alternatives().contains(&Type::Double) && !ty.alternatives().contains(&Type::Int);
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
            let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|want| want == name));
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
                    && !members.contains_key(name)
                {
                    map.insert(Key::from(name.clone()), to_cel(default, &field.ty, None));
                }
            }
            CelValue::Map(CelMap { map: Arc::new(map) })
        }
    }
}
