//! The shape of a value in a template: its type, and whether it may be absent.

use counterfoil_contract::expr::{Field, ObjectType, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::scope::When;

/// The shape of a value.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    /// Whether it may be a missing optional field.
    pub(super) missing: bool,
    /// Whether it may be null.
    pub(super) null: bool,
    /// The number of values concatenated in it.
    pub(super) weight: usize,
}

/// The kind of a value when it is present.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// JSON, without null, which is a flag of the shape.
    Data(Type),
    /// A fixed number of values, such as the pairs of `items`.
    Tuple(Vec<Shape>),
    /// A group of `groupby`: its common value and its members.
    Group(Box<Shape>, Box<Shape>),
    /// A list whose items cannot be described by a type.
    List(Box<Shape>),
    /// The state of a loop.
    Loop,
    /// Values of different kinds, which can only be printed.
    Mixed,
}

impl Shape {
    /// The shape of a value of a type.
    pub(super) fn from_type(ty: &Type) -> Self {
        let null = ty.alternatives().contains(&Type::Null);
        let rest = ty.alternatives().iter().filter(|ty| **ty != Type::Null);
        let ty = if null { union_of(rest.cloned().collect()) } else { ty.clone() };
        Self { null, ..Self::from_kind(Kind::Data(ty)) }
    }

    pub(super) fn from_kind(kind: Kind) -> Self {
        Self { kind, missing: false, null: false, weight: 1 }
    }

    pub(super) fn any() -> Self {
        Self::from_type(&Type::Any)
    }

    /// The shape without values, such as that of the items of an empty list.
    pub(super) fn never() -> Self {
        Self::from_type(&union_of(Vec::new()))
    }

    pub(super) fn text() -> Self {
        Self::from_type(&Type::text())
    }

    /// A list of items of a shape.
    pub(super) fn list(item: Shape) -> Self {
        match item {
            item @ Shape { kind: Kind::Data(_), missing: false, weight, .. } => {
                Self { weight, ..Self::from_type(&Type::List(Arc::new(item.ty()))) }
            }
            item => Self { weight: item.weight, ..Self::from_kind(Kind::List(Box::new(item))) },
        }
    }

    /// An object with these fields and no others.
    pub(super) fn object(fields: Vec<(String, Shape)>) -> Self {
        let fields: BTreeMap<String, Field> = fields
            .into_iter()
            .enumerate()
            .map(|(position, (name, shape))| {
                let field = Field {
                    ty: shape.ty(),
                    required: !shape.missing,
                    default: None,
                    placeholder: None,
                    description: None,
                    position,
                };
                (name, field)
            })
            .collect();
        Self::from_type(&Type::Object(Arc::new(ObjectType { fields, open: false })))
    }

    /// The closest type.
    fn ty(&self) -> Type {
        let ty = match &self.kind {
            Kind::Data(ty) => ty.clone(),
            Kind::List(item) => Type::List(Arc::new(item.ty())),
            Kind::Tuple(_) => Type::List(Arc::new(
                self.items().map_or_else(|| union_of(Vec::new()), |item| item.ty()),
            )),
            // There is no type for a value that supports no operation; this one supports almost none.
            Kind::Group(..) | Kind::Loop | Kind::Mixed => union_of(vec![Type::Bool, Type::Int]),
        };
        if self.null { union_of(vec![ty, Type::Null]) } else { ty }
    }

    /// The shape of the value when it is present.
    pub(super) fn present(self) -> Self {
        Self { missing: false, null: false, ..self }
    }

    pub(super) fn missing(self) -> Self {
        Self { missing: true, ..self }
    }

    pub(super) fn is_absent(&self) -> bool {
        self.missing || self.null
    }

    /// The union of two shapes.
    pub(super) fn or(self, other: Self) -> Self {
        let kind = match (self.kind, other.kind) {
            (kind, Kind::Data(never)) | (Kind::Data(never), kind)
                if never.alternatives().is_empty() =>
            {
                kind
            }
            (Kind::Data(one), Kind::Data(two)) => Kind::Data(union_of(vec![one, two])),
            (Kind::Tuple(one), Kind::Tuple(two)) if one.len() == two.len() => {
                Kind::Tuple(one.into_iter().zip(two).map(|(one, two)| one.or(two)).collect())
            }
            (Kind::List(one), Kind::List(two)) => Kind::List(Box::new(one.or(*two))),
            (Kind::List(one), Kind::Data(Type::List(two)))
            | (Kind::Data(Type::List(two)), Kind::List(one)) => {
                Kind::List(Box::new(one.or(Shape::from_type(&two))))
            }
            (Kind::Data(Type::Any), _) | (_, Kind::Data(Type::Any)) => Kind::Data(Type::Any),
            _ => Kind::Mixed,
        };
        Self {
            kind,
            missing: self.missing || other.missing,
            null: self.null || other.null,
            weight: self.weight.max(other.weight),
        }
    }

    /// The shape of the items in a loop over it; `None` if it cannot be looped over.
    pub(super) fn items(&self) -> Option<Shape> {
        let item = match &self.kind {
            Kind::List(item) => item.as_ref().clone(),
            Kind::Tuple(parts) => parts.iter().cloned().fold(Shape::never(), Shape::or),
            Kind::Group(..) | Kind::Loop | Kind::Mixed => return None,
            Kind::Data(ty) => {
                let mut item = Shape::never();
                for ty in ty.alternatives() {
                    item = item.or(match ty {
                        Type::Any => Shape::any(),
                        Type::List(items) => Shape::from_type(items),
                        Type::Object(_) | Type::Map(_) => Shape::text(),
                        _ => return None,
                    });
                }
                item
            }
        };
        Some(Shape { weight: self.weight, ..item })
    }

    /// Whether it is certainly a list, or unknown.
    pub(super) fn is_list(&self) -> bool {
        match &self.kind {
            Kind::List(_) | Kind::Tuple(_) => true,
            Kind::Data(ty) => {
                ty.alternatives().iter().all(|ty| matches!(ty, Type::Any | Type::List(_)))
            }
            Kind::Group(..) | Kind::Loop | Kind::Mixed => false,
        }
    }

    /// Whether every alternative of its type passes.
    pub(super) fn all(&self, passes: impl Fn(&Type) -> bool) -> bool {
        match &self.kind {
            Kind::Data(ty) => ty.alternatives().iter().all(|ty| *ty == Type::Any || passes(ty)),
            _ => false,
        }
    }

    pub(super) fn is_any(&self) -> bool {
        matches!(self.kind, Kind::Data(Type::Any))
    }

    pub(super) fn is_number(&self) -> bool {
        self.all(|ty| matches!(ty, Type::Int | Type::Double))
    }

    pub(super) fn is_text(&self) -> bool {
        self.all(|ty| matches!(ty, Type::String(_)))
    }

    /// Whether it is an object.
    pub(super) fn is_mapping(&self) -> bool {
        self.all(|ty| matches!(ty, Type::Object(_) | Type::Map(_)))
    }

    /// The union of the shapes of an object's values.
    pub(super) fn values(&self) -> Shape {
        let Kind::Data(ty) = &self.kind else { return Shape::any() };
        let mut types = Vec::new();
        for ty in ty.alternatives() {
            match ty {
                Type::Map(values) => types.push(values.as_ref().clone()),
                Type::Object(object) if !object.open => {
                    types.extend(object.fields.values().map(|field| field.ty.clone()));
                }
                _ => return Shape::any(),
            }
        }
        Shape { weight: self.weight, ..Shape::from_type(&union_of(types)) }
    }

    /// The kind of value for messages, such as `a string` or `a list`.
    pub(super) fn describe(&self) -> String {
        let one = |ty: &Type| match ty {
            Type::Any => "anything",
            Type::Null => "null",
            Type::Bool => "a boolean",
            Type::Int => "an integer",
            Type::Double => "a number",
            Type::String(_) => "a string",
            Type::List(_) => "a list",
            Type::Object(_) | Type::Map(_) | Type::Union(_) => "an object",
        };
        match &self.kind {
            Kind::Data(ty) => {
                let mut names: Vec<&str> = ty.alternatives().iter().map(one).collect();
                names.dedup();
                if names.is_empty() { "null".to_owned() } else { names.join(" or ") }
            }
            Kind::Tuple(parts) => format!("a tuple of {}", parts.len()),
            Kind::Group(..) => "a group".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Loop => "the state of the loop".to_owned(),
            Kind::Mixed => "a value of varying kind".to_owned(),
        }
    }

    /// Narrows the shape by the outcome of a test such as `is mapping`.
    pub(super) fn narrowed(self, test: &str, when: When) -> Self {
        let Kind::Data(ty) = &self.kind else { return self };
        let passes = |ty: &Type| {
            matches!(
                (test, ty),
                ("mapping", Type::Object(_) | Type::Map(_))
                    | ("string", Type::String(_))
                    | ("number", Type::Int | Type::Double | Type::Bool)
                    | ("boolean", Type::Bool)
                    | ("sequence", Type::List(_))
            )
        };
        let left = ty
            .alternatives()
            .iter()
            .filter(|ty| **ty == Type::Any || passes(ty) == (when == When::Holds));
        let kind = Kind::Data(union_of(left.cloned().collect()));
        Self { kind, ..self }
    }
}

/// The union of types. Without types, it is the type without values.
fn union_of(types: Vec<Type>) -> Type {
    if types.iter().all(|ty| ty.alternatives().is_empty()) {
        Type::Union(Arc::new(Vec::new()))
    } else {
        Type::union(types)
    }
}
