//! What a library exports: the items and methods that its root reaches, and which of these names nobody outside uses.

use crate::imports::{absolute, flatten};
use crate::source::Source;
use std::collections::BTreeSet;
use std::path::Path;
use syn::visit::Visit;

/// A public name, as `module::Item` or `module::Type::method`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Public {
    /// The module that defines it.
    pub module: String,
    /// The type, for a method.
    pub of: Option<String>,
    pub name: String,
}

/// All items and methods that can be named from outside.
pub fn exported(source: &Source) -> BTreeSet<Public> {
    let mut items = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut modules = vec![String::new()];
    while let Some(module) = modules.pop() {
        if !seen.insert(module.clone()) {
            continue;
        }
        for item in &source.modules[&module].items {
            match item {
                syn::Item::Mod(item) if is_public(&item.vis) => modules.push(join(&module, &item.ident.to_string())),
                syn::Item::Use(item) if is_public(&item.vis) => {
                    for (path, name) in flatten(&item.tree) {
                        let Some(path) = absolute(source, &module, &path) else { continue };
                        export(source, &path, name.is_none(), &mut items, &mut modules, 0);
                    }
                }
                item => items.extend(public_name(item).map(|name| (module.clone(), name))),
            }
        }
    }
    let methods = methods(source, &items);
    let items = items.into_iter().map(|(module, name)| Public { module, of: None, name });
    items.chain(methods).collect()
}

/// What a `pub use` of `path` exports: a module, an item, or with a glob all of a module.
fn export(
    source: &Source,
    path: &[String],
    glob: bool,
    items: &mut BTreeSet<(String, String)>,
    modules: &mut Vec<String>,
    depth: usize,
) {
    if source.modules.contains_key(&path.join("::")) {
        // A glob exports the items of a module; so does the module itself.
        modules.push(path.join("::"));
        return;
    }
    let Some((name, parent)) = path.split_last().filter(|_| !glob) else { return };
    let parent = parent.join("::");
    let Some(module) = source.modules.get(&parent) else { return };
    if module.items.iter().any(|item| name_of(item).as_ref() == Some(name)) {
        items.insert((parent, name.clone()));
        return;
    }
    // Exported there again.
    for item in &module.items {
        let syn::Item::Use(item) = item else { continue };
        for (path, known) in flatten(&item.tree) {
            if known.as_ref() == Some(name)
                && depth < 8
                && let Some(path) = absolute(source, &parent, &path)
            {
                export(source, &path, false, items, modules, depth + 1);
            }
        }
    }
}

/// The public methods of exported types, wherever their `impl` is.
fn methods(source: &Source, items: &BTreeSet<(String, String)>) -> Vec<Public> {
    let types: BTreeSet<&String> = items.iter().map(|(_, name)| name).collect();
    let mut methods = Vec::new();
    for (module, content) in &source.modules {
        for item in &content.items {
            let syn::Item::Impl(item) = item else { continue };
            let syn::Type::Path(path) = &*item.self_ty else { continue };
            let of = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            let other = !items.contains(&(module.clone(), of.clone()))
                && content.items.iter().any(|item| name_of(item).as_ref() == Some(&of));
            if item.trait_.is_some() || !types.contains(&of) || other {
                continue;
            }
            let names = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(item) if is_public(&item.vis) => Some(item.sig.ident.to_string()),
                syn::ImplItem::Const(item) if is_public(&item.vis) => Some(item.ident.to_string()),
                _ => None,
            });
            methods.extend(names.map(|name| Public { module: module.clone(), of: Some(of.clone()), name }));
        }
    }
    methods
}

/// Names in the signatures, fields and variants of what is exported: a type there is used even if nobody writes its name.
pub fn named_in_signatures(source: &Source) -> BTreeSet<String> {
    let mut names = Names::default();
    for module in source.modules.values() {
        module.items.iter().for_each(|item| names.visit_item(item));
    }
    names.0
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {
        // A module of its own.
    }

    fn visit_item_use(&mut self, _: &'ast syn::ItemUse) {
        // An import is no use.
    }

    fn visit_block(&mut self, _: &'ast syn::Block) {
        // What is inside a function is nobody's business outside.
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_public(&item.vis) {
            self.visit_signature(&item.sig);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.visit_signature(&item.sig);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // `impl Trait for Type` names both by existing; only what its functions name counts.
        item.items.iter().for_each(|item| self.visit_impl_item(item));
    }

    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.0.insert(segment.ident.to_string());
        syn::visit::visit_path_segment(self, segment);
    }
}

/// All words of the code of a folder, without comments.
pub fn words(folder: &Path) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
                let split = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
                words.extend(split.map(str::to_owned));
            }
        }
    }
    words
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

fn join(module: &str, child: &str) -> String {
    if module.is_empty() { child.to_owned() } else { format!("{module}::{child}") }
}

fn public_name(item: &syn::Item) -> Option<String> {
    let public = match item {
        syn::Item::Const(item) => is_public(&item.vis),
        syn::Item::Enum(item) => is_public(&item.vis),
        syn::Item::Fn(item) => is_public(&item.vis),
        syn::Item::Static(item) => is_public(&item.vis),
        syn::Item::Struct(item) => is_public(&item.vis),
        syn::Item::Trait(item) => is_public(&item.vis),
        syn::Item::Type(item) => is_public(&item.vis),
        _ => false,
    };
    name_of(item).filter(|_| public)
}

fn name_of(item: &syn::Item) -> Option<String> {
    match item {
        syn::Item::Const(item) => Some(item.ident.to_string()),
        syn::Item::Enum(item) => Some(item.ident.to_string()),
        syn::Item::Fn(item) => Some(item.sig.ident.to_string()),
        syn::Item::Static(item) => Some(item.ident.to_string()),
        syn::Item::Struct(item) => Some(item.ident.to_string()),
        syn::Item::Trait(item) => Some(item.ident.to_string()),
        syn::Item::Type(item) => Some(item.ident.to_string()),
        _ => None,
    }
}
