//! Type checks of objects: access to their members, and object literals.

use super::assign::with_article;
use super::check::{Checker, Inferred, narrowed, union_of};
use super::path::{Path, Step};
use super::scope::{Fact, Facts, Scope};
use super::types::Type;
use crate::suggest::did_you_mean;
use cel::common::ast::{
    CallExpr, EntryExpr, Expr as Ast, IdedExpr, LiteralValue, MapExpr, operators as op,
};

/// How a member of an object is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// Reads the member, or null if it is missing.
    ReadOrNull,
    /// Tests only whether the member is present.
    Test,
}

/// The result of checking the access to a member.
pub(super) struct Member {
    pub(super) ty: Type,
    /// The fact that a successful presence test establishes.
    pub(super) proves: Fact,
}

impl Checker<'_> {
    pub(super) fn object_literal(&mut self, map: &MapExpr, scope: &Scope) -> Type {
        let mut fields = Vec::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(member) = &entry.expr else { continue };
            if member.optional {
                self.report(
                    entry.id,
                    "optional members are not supported".into(),
                    "write them without ?",
                );
            }
            let ty = self.member_value(&member.value, scope);
            let Ast::Literal(LiteralValue::String(key)) = &member.key.expr else {
                self.report(
                    member.key.id,
                    "the keys of an object must be string literals".into(),
                    "write {\"key\": value}",
                );
                continue;
            };
            let key = key.inner().to_owned();
            if fields.iter().any(|(known, _)| *known == key) {
                self.report(
                    member.key.id,
                    format!("the key '{key}' appears twice"),
                    "leave one out",
                );
                continue;
            }
            fields.push((key, ty));
        }
        Type::object_of(fields)
    }

    /// The type of a member value in an object literal. A field that may be missing yields null,
    /// which means absent again where the object is assigned to a type with an optional field.
    fn member_value(&mut self, value: &IdedExpr, scope: &Scope) -> Type {
        let (target, name) = match &value.expr {
            Ast::Select(select) if !select.test => (select.operand.as_ref(), select.field.as_str()),
            Ast::Call(CallExpr { func_name, args, .. }) if func_name == op::INDEX => {
                match args.as_slice() {
                    [target, IdedExpr { expr: Ast::Literal(LiteralValue::String(key)), .. }] => {
                        (target, key.inner())
                    }
                    _ => return self.expr(value, scope).ty,
                }
            }
            _ => return self.expr(value, scope).ty,
        };
        self.member(value.id, target, name, Access::ReadOrNull, scope).ty
    }

    /// Checks the access to a member by name: `object.name`, `object["name"]`, `has(object.name)`
    /// or `"name" in object`.
    pub(super) fn member(
        &mut self,
        id: u64,
        target: &IdedExpr,
        name: &str,
        access: Access,
        scope: &Scope,
    ) -> Inferred {
        let before = self.paths.len();
        let operand = self.expr(target, scope).ty;
        let path = Path::from_expr(target).map(|path| path.child(Step::Field(name.to_owned())));
        let member = self.member_of(id, &operand, target, name, access, scope);
        if let Some(path) = &path {
            // The objects on the way to the member are not read as a whole.
            self.paths.truncate(before);
            self.record_read(path, scope);
        }
        match access {
            Access::Read | Access::ReadOrNull => {
                Inferred::from_type(narrowed(&member.ty, path.as_ref(), scope))
            }
            Access::Test => Inferred {
                ty: Type::Bool,
                if_true: path.map(|path| Facts::single(path, member.proves)).unwrap_or_default(),
                if_false: Facts::default(),
            },
        }
    }

    pub(super) fn member_of(
        &mut self,
        id: u64,
        operand: &Type,
        target: &IdedExpr,
        name: &str,
        access: Access,
        scope: &Scope,
    ) -> Member {
        let before = self.problems.len();
        let operand = self.require_non_null(target, operand.clone());
        let path = Path::from_expr(target).map(|path| path.child(Step::Field(name.to_owned())));
        let display = path.as_ref().map_or_else(|| name.to_owned(), Path::to_string);
        let is_constructed =
            path.as_ref().is_none_or(|path| scope.constructed.contains(&path.root));
        let is_known = path.is_some_and(|path| scope.known.is_present(&path));
        let needed = access == Access::Read && !is_known;
        let or_null = access == Access::ReadOrNull && !is_known;
        let mut may_be_missing = false;
        let guard = format!("guard it: has({display}) && …");
        let mut types = Vec::new();
        let mut proves = Fact::NotNull;
        for alternative in operand.alternatives() {
            let message = match alternative {
                Type::Any => {
                    types.push(Type::Any);
                    proves = Fact::Present;
                    may_be_missing = true;
                    continue;
                }
                Type::Object(object) => match object.fields.get(name) {
                    Some(field) if field.required => {
                        types.push(field.ty.clone());
                        proves = Fact::Present;
                        continue;
                    }
                    Some(field) => {
                        // A present optional field is not null, because null means absent there.
                        if is_constructed {
                            types.push(field.ty.clone());
                            proves = Fact::Present;
                        } else {
                            types.push(field.ty.non_null());
                        }
                        may_be_missing |= !field.is_present();
                        if field.is_present() || !needed {
                            continue;
                        }
                        (format!("'{display}' is optional and may be missing here"), guard.clone())
                    }
                    None if object.open => {
                        types.push(Type::Any);
                        proves = Fact::Present;
                        may_be_missing = true;
                        continue;
                    }
                    None => {
                        let names = object.fields.keys().map(String::as_str);
                        let hint = did_you_mean(name, names.clone()).unwrap_or_else(|| {
                            format!("known fields: {}", names.collect::<Vec<_>>().join(", "))
                        });
                        (format!("unknown field '{name}'"), hint)
                    }
                },
                Type::Map(values) => {
                    types.push(values.as_ref().clone());
                    proves = Fact::Present;
                    may_be_missing = true;
                    if !needed || **values == Type::Any {
                        continue;
                    }
                    (format!("'{display}' may be missing here"), guard.clone())
                }
                _ => (
                    format!("{} has no field '{name}'", with_article(&operand)),
                    "only objects have fields".to_owned(),
                ),
            };
            types.push(Type::Any);
            if self.problems.len() == before {
                self.report(id, message.0, message.1);
            }
        }
        if or_null && may_be_missing {
            self.notes.or_null.insert(id);
            types.push(Type::Null);
        }
        Member { ty: union_of(types), proves }
    }
}
