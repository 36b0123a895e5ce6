//! Values and types: whether a literal, an input or an answer has its type.

use counterfoil_contract::expr::Type;
use counterfoil_contract::text::list_values;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// A value that does not have its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ValueError {
    /// The part that does not fit, and what is expected.
    pub reason: String,
}

/// Checks that a value has a type.
///
/// # Errors
///
/// The value does not have the type. The error names the part that does not.
pub fn fits(value: &Value, ty: &Type) -> Result<(), ValueError> {
    check(value, ty).map_err(|reason| ValueError { reason })
}

fn check(value: &Value, ty: &Type) -> Result<(), String> {
    let mut first = None;
    for alternative in ty.alternatives() {
        match fits_one(value, alternative) {
            Ok(()) => return Ok(()),
            Err(why) => {
                // For a union, the alternative of the same kind gives the best message.
                if first.is_none() || (value.is_object() && matches!(alternative, Type::Object(_)))
                {
                    first = Some(why);
                }
            }
        }
    }
    Err(first.unwrap_or_else(|| format!("{} is not {ty}", excerpt(value))))
}

fn fits_one(value: &Value, ty: &Type) -> Result<(), String> {
    let wrong = || Err(format!("{} is not {}", excerpt(value), with_article(ty)));
    match (ty, value) {
        (Type::Any, _) | (Type::Null, Value::Null) | (Type::Bool, Value::Bool(_)) => Ok(()),
        (Type::Int, Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(()),
        (Type::Double, Value::Number(_)) | (Type::String(None), Value::String(_)) => Ok(()),
        (Type::String(Some(values)), Value::String(text)) => {
            if values.contains(text) {
                return Ok(());
            }
            let near = counterfoil_contract::suggest::did_you_mean(
                text,
                values.iter().map(String::as_str),
            );
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            Err(format!("\"{text}\" is not one of {}{near}", list_values(values)))
        }
        (Type::List(item), Value::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                check(value, item).map_err(|why| format!("item {index}: {why}"))?;
            }
            Ok(())
        }
        (Type::Map(item), Value::Object(members)) => {
            for (name, value) in members {
                check(value, item).map_err(|why| format!("{name}: {why}"))?;
            }
            Ok(())
        }
        (Type::Object(object), Value::Object(members)) => {
            for (name, field) in &object.fields {
                match members.get(name) {
                    Some(Value::Null) | None if !field.required => {}
                    Some(value) => {
                        check(value, &field.ty).map_err(|why| format!("{name}: {why}"))?;
                    }
                    None => return Err(format!("field '{name}' is missing")),
                }
            }
            Ok(())
        }
        _ => wrong(),
    }
}

pub(crate) fn with_article(ty: &Type) -> String {
    match ty {
        Type::Int | Type::Object(_) => format!("an {ty}"),
        Type::Any => "anything".to_owned(),
        Type::Null | Type::String(Some(_)) | Type::Union(_) => ty.to_string(),
        _ => format!("a {ty}"),
    }
}

/// A value as JSON, truncated for messages.
pub fn excerpt(value: &Value) -> String {
    const MAX_WIDTH: usize = 160;
    let text = value.to_string();
    if text.chars().count() <= MAX_WIDTH {
        return text;
    }
    text.chars().take(MAX_WIDTH - 1).chain(['…']).collect()
}

/// A value as text: a text unchanged, a list joined, anything else as JSON.
pub fn to_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(to_text).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// Parses a value of a type from an argument: `5`, `true` and `["a", "b"]` as JSON, a text
/// unchanged, and a list of texts also as `a,b`.
///
/// # Errors
///
/// The argument is not a value of the type.
pub fn parse_argument(word: &str, ty: &Type) -> Result<Value, ValueError> {
    if ty.alternatives().iter().any(|ty| matches!(ty, Type::String(_))) {
        let text = Value::String(word.to_owned());
        return fits(&text, ty).map(|()| text);
    }
    if let Type::List(item) = ty
        && matches!(**item, Type::String(_))
        && !word.trim_start().starts_with('[')
    {
        let texts = word.split(',').map(str::trim).filter(|text| !text.is_empty());
        let list = texts.map(|text| Value::String(text.to_owned())).collect();
        return fits(&list, ty).map(|()| list);
    }
    let value: Value = serde_json::from_str(word)
        .map_err(|_| format!("'{word}' is not {}; write it as JSON", with_article(ty)))
        .map_err(|reason| ValueError { reason })?;
    fits(&value, ty).map(|()| value)
}

/// Deserialises an amount within a tagged enum. With `arbitrary_precision`, serde passes a number
/// as a map that only [`Number`] understands.
pub(crate) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Number::deserialize(deserializer)?.as_f64().unwrap_or(f64::MAX))
}

/// Deserialises an optional amount within a tagged enum.
pub(crate) fn optional_amount<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?
        .map(|number| number.as_f64().unwrap_or(f64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_texts_is_read_from_words_with_commas_and_from_json() {
        let texts = Type::List(std::sync::Arc::new(Type::text()));
        let both = serde_json::json!(["a", "b c"]);
        assert_eq!(parse_argument("a, b c,", &texts).as_ref(), Ok(&both));
        assert_eq!(parse_argument(r#"["a", "b c"]"#, &texts).as_ref(), Ok(&both));
        assert_eq!(parse_argument("", &texts), Ok(serde_json::json!([])));
        let numbers = Type::List(std::sync::Arc::new(Type::Int));
        assert!(
            parse_argument("1, 2", &numbers).is_err_and(|error| error.reason.contains("as JSON"))
        );
        let choice =
            Type::List(std::sync::Arc::new(Type::String(Some(std::sync::Arc::new(vec![
                "a".into(),
            ])))));
        assert!(parse_argument("a,b", &choice).is_err());
    }
}
