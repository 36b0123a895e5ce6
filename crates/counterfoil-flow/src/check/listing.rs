//! Lists whose items have a key and an order: fan-outs and states that only put a list in order.

use super::Checker;
use super::machine::{Frame, scope_of};
use super::types::{list_of, object};
use crate::draft::{ListDraft, Name};
use crate::finding::Code;
use crate::value::with_article;
use crate::workflow::{Listing, Step};
use counterfoil_contract::{Expression, Type, assignable};
use std::collections::BTreeMap;

impl<'n> Checker<'n> {
    /// The list, and what its items can see: everything around, and the item itself.
    pub(super) fn listing(
        &mut self,
        draft: &ListDraft<'n>,
        frame: &Frame<'_, 'n>,
    ) -> (Option<Listing>, BTreeMap<String, Type>) {
        let list = draft.list.and_then(|node| match node.text() {
            Some(text) => self.expression(Name { text, node }, frame.scope),
            None => {
                let message = "`in` is an expression that gives a list";
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
                        draft.list.unwrap_or(draft.node),
                        message,
                        "give a list",
                    );
                    Type::Any
                }
            },
            None => Type::Any,
        };
        let mut types = frame.types.clone();
        if let Some(bind) = draft.bind {
            if types.insert(bind.text.to_owned(), item.clone()).is_some() {
                let message = format!("'{}' is already the name of something", bind.text);
                self.report(Code::BadName, bind.node, message, "choose another name");
            } else {
                self.variable_name(bind);
            }
        }
        let scope = scope_of(&types);
        let mut typed = |name: Option<Name<'n>>, ty: &Type| -> Option<Option<Expression>> {
            let Some(name) = name else { return Some(None) };
            let expression = self.expression(name, &scope)?;
            if let Err(why) = assignable(expression.ty(), ty) {
                let message = format!("expected {ty}: {why}");
                self.report(Code::WrongType, name.node, message, "give a value of that type");
                return None;
            }
            Some(Some(expression))
        };
        let key = typed(draft.key, &Type::text());
        let after = typed(draft.after, &list_of(Type::text()));
        let rank = typed(draft.rank, &Type::Int);
        if let (Some(name), None) = (draft.after, draft.key) {
            let message = "`after` names items by their key, and they have none";
            self.report(Code::MissingKey, name.node, message, "add `key:`");
        }
        let whole = (list, draft.bind, key, after, rank);
        let (Some(list), Some(bind), Some(key), Some(after), Some(rank)) = whole else {
            return (None, types);
        };
        let listing = Listing { list, bind: bind.text.to_owned(), item, key, after, rank };
        (Some(listing), types)
    }

    /// A list that is put in order.
    pub(super) fn order(
        &mut self,
        draft: &ListDraft<'n>,
        frame: &Frame<'_, 'n>,
    ) -> Option<(Step, Type)> {
        let (listing, _) = self.listing(draft, frame);
        let listing = listing?;
        let result = object([("items", list_of(listing.item.clone()))]);
        Some((Step::Order(Box::new(listing)), result))
    }
}
