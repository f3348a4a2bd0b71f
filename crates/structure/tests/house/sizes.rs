//! Sizes that a reader meets: lines of files and functions, branches of functions, fields of structs.

use crate::source::Source;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A function and what it weighs.
pub struct Function {
    pub name: String,
    pub lines: usize,
    /// McCabe's cyclomatic complexity: one, and one more for each way to go elsewhere.
    pub complexity: usize,
}

/// A struct with named fields.
pub struct Fields {
    pub name: String,
    pub all: usize,
    pub bools: usize,
}

/// Every function of a crate, `file:name`.
pub fn functions(source: &Source) -> Vec<Function> {
    let mut found = Functions { file: "", functions: Vec::new() };
    for module in source.modules.values() {
        found.file = &module.file;
        module.items.iter().for_each(|item| found.visit_item(item));
    }
    found.functions
}

/// Every struct of a crate, `file:name`.
pub fn structs(source: &Source) -> Vec<Fields> {
    let mut found = Vec::new();
    for module in source.modules.values() {
        for item in &module.items {
            let syn::Item::Struct(item) = item else { continue };
            let bools = item
                .fields
                .iter()
                .filter(|field| matches!(&field.ty, syn::Type::Path(path) if path.path.is_ident("bool")))
                .count();
            found.push(Fields { name: format!("{}:{}", module.file, item.ident), all: item.fields.len(), bools });
        }
    }
    found
}

struct Functions<'a> {
    file: &'a str,
    functions: Vec<Function>,
}

impl Functions<'_> {
    fn add(&mut self, name: &syn::Ident, block: &syn::Block, whole: proc_macro2::Span) {
        let mut branches = Branches(1);
        branches.visit_block(block);
        let lines = whole.end().line + 1 - whole.start().line;
        self.functions.push(Function { name: format!("{}:{name}", self.file), lines, complexity: branches.0 });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {
        // A module of its own.
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(
            &item.sig.ident,
            &item.block,
            item.sig.span().join(item.block.span()).unwrap_or_else(|| item.block.span()),
        );
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(
            &item.sig.ident,
            &item.block,
            item.sig.span().join(item.block.span()).unwrap_or_else(|| item.block.span()),
        );
        syn::visit::visit_impl_item_fn(self, item);
    }
}

struct Branches(usize);

impl<'ast> Visit<'ast> for Branches {
    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.0 += 1;
        syn::visit::visit_expr_if(self, branch);
    }

    fn visit_expr_match(&mut self, branch: &'ast syn::ExprMatch) {
        self.0 += branch.arms.len().saturating_sub(1);
        syn::visit::visit_expr_match(self, branch);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.0 += usize::from(arm.guard.is_some());
        syn::visit::visit_arm(self, arm);
    }

    fn visit_expr_while(&mut self, branch: &'ast syn::ExprWhile) {
        self.0 += 1;
        syn::visit::visit_expr_while(self, branch);
    }

    fn visit_expr_for_loop(&mut self, branch: &'ast syn::ExprForLoop) {
        self.0 += 1;
        syn::visit::visit_expr_for_loop(self, branch);
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        self.0 += usize::from(matches!(both.op, syn::BinOp::And(_) | syn::BinOp::Or(_)));
        syn::visit::visit_expr_binary(self, both);
    }

    fn visit_expr_try(&mut self, early: &'ast syn::ExprTry) {
        self.0 += 1;
        syn::visit::visit_expr_try(self, early);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.0 += usize::from(local.init.as_ref().is_some_and(|init| init.diverge.is_some()));
        syn::visit::visit_local(self, local);
    }
}
