//! The import graph: a file needs the file that defines what it names by `crate::`, `super::` or `self::` paths and `use`.

use crate::graph::Graph;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::Visit;

/// Names that a module defines or exports again.
#[derive(Default)]
struct Names {
    own: BTreeSet<String>,
    /// Name to the path it stands for, as segments from the crate's root.
    again: BTreeMap<String, Vec<String>>,
    /// Modules whose names are all exported again.
    globs: Vec<Vec<String>>,
}

/// A graph with an edge from each file to those that define what it names.
pub fn imports(source: &Source) -> Graph {
    let names: BTreeMap<&str, Names> =
        source.modules.keys().map(|name| (name.as_str(), names_of(source, name))).collect();
    let mut graph = Graph::default();
    for (module, content) in &source.modules {
        let mut visitor = Paths { module, source, found: Vec::new() };
        for item in &content.items {
            visitor.visit_item(item);
        }
        for path in visitor.found {
            if let Some(file) = defined_in(source, &names, &path, 0) {
                graph.add(&content.file, &file, &path.join("::"));
            }
        }
    }
    graph
}

fn names_of(source: &Source, module: &str) -> Names {
    let mut names = Names::default();
    for item in &source.modules[module].items {
        match item {
            syn::Item::Const(item) => drop(names.own.insert(item.ident.to_string())),
            syn::Item::Enum(item) => drop(names.own.insert(item.ident.to_string())),
            syn::Item::Fn(item) => drop(names.own.insert(item.sig.ident.to_string())),
            syn::Item::Static(item) => drop(names.own.insert(item.ident.to_string())),
            syn::Item::Struct(item) => drop(names.own.insert(item.ident.to_string())),
            syn::Item::Trait(item) => drop(names.own.insert(item.ident.to_string())),
            syn::Item::Type(item) => drop(names.own.insert(item.ident.to_string())),
            syn::Item::Macro(item) => drop(item.ident.as_ref().map(|name| names.own.insert(name.to_string()))),
            syn::Item::Use(item) => {
                for (path, name) in flatten(&item.tree) {
                    let Some(path) = absolute(source, module, &path) else { continue };
                    match name {
                        Some(name) => drop(names.again.insert(name, path)),
                        None => names.globs.push(path),
                    }
                }
            }
            _ => {}
        }
    }
    names
}

/// The file that defines what a path from the root names; follows what is exported again.
fn defined_in(source: &Source, names: &BTreeMap<&str, Names>, path: &[String], depth: usize) -> Option<String> {
    let mut module = String::new();
    for (place, segment) in path.iter().enumerate() {
        let below = if module.is_empty() { segment.clone() } else { format!("{module}::{segment}") };
        if source.modules.contains_key(&below) {
            module = below;
            continue;
        }
        let known = names.get(module.as_str())?;
        if known.own.contains(segment) || depth > 8 {
            return Some(source.modules[&module].file.clone());
        }
        if let Some(target) = known.again.get(segment) {
            let mut target = target.clone();
            target.extend_from_slice(&path[place + 1..]);
            return defined_in(source, names, &target, depth + 1);
        }
        return known.globs.iter().find_map(|glob| {
            let mut target = glob.clone();
            target.extend_from_slice(&path[place..]);
            defined_in(source, names, &target, depth + 1)
        });
    }
    // A module as such: `use super::module;` needs what is named by it later, which is found there.
    None
}

/// The segments of a path from the crate's root, or nothing if it leads out of the crate.
pub fn absolute(source: &Source, module: &str, path: &[String]) -> Option<Vec<String>> {
    let here: Vec<String> = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let (first, rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => here,
        "super" => {
            let mut up = here;
            up.pop();
            let mut rest = rest;
            while rest.first().is_some_and(|segment| segment == "super") {
                up.pop();
                rest = &rest[1..];
            }
            up.extend_from_slice(rest);
            return Some(up);
        }
        name => {
            let child = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
            if !source.modules.contains_key(&child) {
                return None;
            }
            let mut base = here;
            base.push(name.to_owned());
            base
        }
    };
    base.extend_from_slice(rest);
    Some(base)
}

/// Every leaf of a `use`: its path, and the name it gets; no name for a glob.
pub fn flatten(tree: &syn::UseTree) -> Vec<(Vec<String>, Option<String>)> {
    match tree {
        syn::UseTree::Path(path) => {
            let mut leaves = flatten(&path.tree);
            leaves.iter_mut().for_each(|(segments, _)| segments.insert(0, path.ident.to_string()));
            leaves
        }
        syn::UseTree::Name(name) if name.ident == "self" => vec![(Vec::new(), Some(String::from("self")))],
        syn::UseTree::Name(name) => vec![(vec![name.ident.to_string()], Some(name.ident.to_string()))],
        syn::UseTree::Rename(name) => vec![(vec![name.ident.to_string()], Some(name.rename.to_string()))],
        syn::UseTree::Glob(_) => vec![(Vec::new(), None)],
        syn::UseTree::Group(group) => group.items.iter().flat_map(flatten).collect(),
    }
}

/// Collects the paths into the own crate, of `use` and of expressions and types.
struct Paths<'a> {
    module: &'a str,
    source: &'a Source,
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {
        // A module of its own.
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for (path, _) in flatten(&item.tree) {
            self.found.extend(absolute(self.source, self.module, &path));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 {
            // The first segment may be a module that a `use` brought in.
            let resolved = absolute(self.source, self.module, &segments).or_else(|| self.by_use(&segments));
            self.found.extend(resolved);
        }
        syn::visit::visit_path(self, path);
    }
}

impl Paths<'_> {
    fn by_use(&self, segments: &[String]) -> Option<Vec<String>> {
        let uses = self.source.modules[self.module].items.iter().filter_map(|item| match item {
            syn::Item::Use(item) => Some(flatten(&item.tree)),
            _ => None,
        });
        let (path, _) = uses.flatten().find(|(_, name)| name.as_ref() == segments.first())?;
        let mut path = absolute(self.source, self.module, &path)?;
        path.extend_from_slice(&segments[1..]);
        Some(path)
    }
}
