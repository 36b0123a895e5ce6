//! Checks lists whose items have a key and an order, as used by `each` and `order`.

use super::Checker;
use super::machine::{MachineContext, scope_from_types};
use crate::ast::{self, SpannedStr};
use crate::finding::Code;
use crate::value::with_article;
use crate::variable_types::{list_of, object};
use crate::workflow::{Listing, Step};
use counterfoil_contract::expr::{Expression, Type, assignable};
use std::collections::BTreeMap;

impl<'n> Checker<'n> {
    /// The list, and the types of the variables that its items can read: those of the machine and the
    /// item itself.
    pub(super) fn listing(
        &mut self,
        decl: &ast::Listing<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> (Option<Listing>, BTreeMap<String, Type>) {
        let list = decl.list.and_then(|node| match node.text() {
            Some(text) => self.expression(SpannedStr { text, node }, context.scope),
            None => {
                let message = "`in` must be an expression for a list";
                self.report(Code::WrongForm, node, message, "write in: tasks");
                None
            }
        });
        let item = match &list {
            Some(list) => match list.ty() {
                Type::List(item) => item.as_ref().clone(),
                other => {
                    let message = format!("`in` is {}, not a list", with_article(other));
                    self.report(
                        Code::WrongType,
                        decl.list.unwrap_or(decl.node),
                        message,
                        "use an expression for a list",
                    );
                    Type::Any
                }
            },
            None => Type::Any,
        };
        let mut types = context.types.clone();
        if let Some(bind) = decl.bind {
            if types.insert(bind.text.to_owned(), item.clone()).is_some() {
                let message = format!("the name '{}' is already in use", bind.text);
                self.report(Code::BadName, bind.node, message, "choose another name");
            } else {
                self.check_variable_name(bind);
            }
        }
        let scope = scope_from_types(&types);
        let mut typed = |name: Option<SpannedStr<'n>>, ty: &Type| -> Option<Option<Expression>> {
            let Some(name) = name else { return Some(None) };
            let expression = self.expression(name, &scope)?;
            if let Err(why) = assignable(expression.ty(), ty) {
                let message = format!("expected {ty}: {why}");
                self.report(Code::WrongType, name.node, message, "use a value of that type");
                return None;
            }
            Some(Some(expression))
        };
        let key = typed(decl.key, &Type::text());
        let after = typed(decl.after, &list_of(Type::text()));
        let rank = typed(decl.rank, &Type::Int);
        if let (Some(name), None) = (decl.after, decl.key) {
            let message = "`after` refers to items by key, but they have no `key`";
            self.report(Code::MissingKey, name.node, message, "add `key:`");
        }
        let parts = (list, decl.bind, key, after, rank);
        let (Some(list), Some(bind), Some(key), Some(after), Some(rank)) = parts else {
            return (None, types);
        };
        let listing = Listing { list, bind: bind.text.to_owned(), item, key, after, rank };
        (Some(listing), types)
    }

    /// An `order` state, which sorts a list.
    pub(super) fn order(
        &mut self,
        decl: &ast::Listing<'n>,
        context: &MachineContext<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let (listing, _) = self.listing(decl, context);
        let listing = listing?;
        let result = object([("items", list_of(listing.item.clone()))]);
        Some((Step::Order(Box::new(listing)), result))
    }
}
