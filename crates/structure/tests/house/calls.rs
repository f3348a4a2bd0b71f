//! The method-call graph: a file needs the file with the method that it calls.
//!
//! A call on `self`, on `self.field` and so on, or by `Type::` is looked up among the methods of that type. Types of other
//! expressions are not inferred: a call on one counts if one file alone defines a method of that name and the standard library
//! none that is common.

use crate::graph::Graph;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::Visit;

/// Methods of the standard library's collections, options and iterators: a call says nothing of whose it is.
const COMMON: [&str; 40] = [
    "advance", "all", "any", "as_ref", "clear", "clone", "contains", "count", "default", "drain", "end", "entry",
    "extend", "filter", "find", "first", "fmt", "from", "get", "get_mut", "insert", "is_empty", "is_some", "iter",
    "iter_mut", "last", "len", "map", "max", "min", "new", "next", "position", "push", "remove", "retain", "since",
    "slice", "split", "take",
];

#[derive(Default)]
struct Methods {
    /// (type, field) to the field's type, through references, `Option` and `Box`.
    fields: BTreeMap<(String, String), String>,
    /// (type, method) to files.
    of_type: BTreeMap<(String, String), BTreeSet<String>>,
    /// Method to files.
    by_name: BTreeMap<String, BTreeSet<String>>,
}

/// A graph with an edge from each file to those whose methods it calls.
pub fn calls(source: &Source) -> Graph {
    let mut methods = Methods::default();
    for_each_impl(source, |file, own, block| {
        for item in &block.items {
            if let syn::ImplItem::Fn(function) = item {
                let name = function.sig.ident.to_string();
                methods.of_type.entry((own.to_owned(), name.clone())).or_default().insert(file.to_owned());
                methods.by_name.entry(name).or_default().insert(file.to_owned());
            }
        }
    });
    for module in source.modules.values() {
        for item in &module.items {
            let syn::Item::Struct(item) = item else { continue };
            for field in &item.fields {
                if let (Some(name), Some(of)) = (&field.ident, type_name(&field.ty)) {
                    methods.fields.insert((item.ident.to_string(), name.to_string()), of);
                }
            }
        }
    }
    let mut graph = Graph::default();
    for module in source.modules.values() {
        for item in &module.items {
            let own = match item {
                syn::Item::Impl(block) => type_name(&block.self_ty),
                _ => None,
            };
            let mut visitor = Calls { file: &module.file, own: own.as_deref(), methods: &methods, graph: &mut graph };
            visitor.visit_item(item);
        }
    }
    graph
}

fn for_each_impl(source: &Source, mut then: impl FnMut(&str, &str, &syn::ItemImpl)) {
    for module in source.modules.values() {
        for item in &module.items {
            if let syn::Item::Impl(block) = item
                && let Some(own) = type_name(&block.self_ty)
            {
                then(&module.file, &own, block);
            }
        }
    }
}

pub fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => {
            let last = path.path.segments.last()?;
            match (&last.arguments, last.ident.to_string().as_str()) {
                (syn::PathArguments::AngleBracketed(inner), "Option" | "Box") => {
                    inner.args.iter().find_map(|argument| match argument {
                        syn::GenericArgument::Type(inner) => type_name(inner),
                        _ => None,
                    })
                }
                (_, name) => Some(name.to_owned()),
            }
        }
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

struct Calls<'a> {
    file: &'a str,
    own: Option<&'a str>,
    methods: &'a Methods,
    graph: &'a mut Graph,
}

impl Calls<'_> {
    /// The type of `self`, `self.field`, `self.field.field`.
    fn type_of(&self, expression: &syn::Expr) -> Option<String> {
        match expression {
            syn::Expr::Path(path) if path.path.is_ident("self") => self.own.map(str::to_owned),
            syn::Expr::Field(field) => {
                let syn::Member::Named(name) = &field.member else { return None };
                self.methods.fields.get(&(self.type_of(&field.base)?, name.to_string())).cloned()
            }
            syn::Expr::Reference(inner) => self.type_of(&inner.expr),
            syn::Expr::Paren(inner) => self.type_of(&inner.expr),
            syn::Expr::MethodCall(call)
                if ["as_ref", "as_mut", "as_deref", "as_deref_mut"].contains(&call.method.to_string().as_str()) =>
            {
                self.type_of(&call.receiver)
            }
            _ => None,
        }
    }

    fn called(&mut self, of: Option<&str>, method: &str) {
        let by_type = of.map(|of| self.methods.of_type.get(&(of.to_owned(), method.to_owned())));
        let by_name = || self.methods.by_name.get(method).filter(|_| !COMMON.contains(&method));
        let Some(files) = by_type.unwrap_or_else(by_name) else { return };
        if let [file] = files.iter().collect::<Vec<_>>()[..] {
            self.graph.add(self.file, file, method);
        }
    }
}

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {
        // A module of its own.
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let of = self.type_of(&call.receiver);
        self.called(of.as_deref(), &call.method.to_string());
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let mut segments = path.path.segments.iter().rev();
        if let (Some(method), Some(of)) = (segments.next(), segments.next()) {
            let of = of.ident.to_string();
            let of = if of == "Self" { self.own.map(str::to_owned) } else { Some(of) };
            if let Some(of) = of
                && let Some(files) = self.methods.of_type.get(&(of, method.ident.to_string()))
                && let [file] = files.iter().collect::<Vec<_>>()[..]
            {
                self.graph.add(self.file, file, &method.ident.to_string());
            }
        }
        syn::visit::visit_expr_path(self, path);
    }
}
