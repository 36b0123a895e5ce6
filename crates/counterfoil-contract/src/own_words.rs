//! Whether a result can equal another one by chance.

use crate::expr::Type;
use crate::nothing;
use serde_json::Value;

/// Whether a result has words or numbers of its own. Without any, that is only with booleans,
/// values of a fixed set, zeros and empty lists, an honest result can equal another one.
pub(crate) fn carries_own_words(value: &Value, ty: &Type) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => {
            let alternatives = ty.alternatives();
            let fixed = alternatives
                .iter()
                .any(|one| matches!(one, Type::String(Some(allowed)) if allowed.contains(text)));
            !nothing::is_empty(value) && !fixed
        }
        Value::Array(items) => {
            let inner = ty.items().cloned().unwrap_or(Type::Any);
            items.iter().any(|item| carries_own_words(item, &inner))
        }
        Value::Object(fields) => {
            let Some(object) = ty.object() else {
                let inner = ty.alternatives().iter().find_map(|one| match one {
                    Type::Map(inner) => Some((**inner).clone()),
                    _ => None,
                });
                let inner = inner.unwrap_or(Type::Any);
                return fields.values().any(|value| carries_own_words(value, &inner));
            };
            // Without a known field it is an envelope of the result, if it holds one at all.
            let known = fields.keys().any(|key| object.fields.contains_key(key));
            let envelope = !known && fields.values().any(Value::is_object);
            fields.iter().any(|(key, value)| match object.fields.get(key) {
                Some(field) => carries_own_words(value, &field.ty),
                None if envelope => value.is_object() && carries_own_words(value, ty),
                None => carries_own_words(value, &Type::Any),
            })
        }
    }
}
