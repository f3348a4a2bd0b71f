//! The modules of a crate, each with its file and syntax tree, without what only tests compile.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One module and where it stands.
pub struct Module {
    /// Relative to the crate's `src`, with forward slashes.
    pub file: String,
    pub items: Vec<syn::Item>,
}

/// A crate's modules by path, `""` for the root, `a::b` below it.
pub struct Source {
    pub modules: BTreeMap<String, Module>,
    /// Lines per file.
    pub lines: BTreeMap<String, usize>,
}

impl Source {
    /// Reads the library of `folder`, or its program where there is no library.
    pub fn read(folder: &Path) -> Self {
        let src = folder.join("src");
        let mut source = Source { modules: BTreeMap::new(), lines: BTreeMap::new() };
        for root in ["lib.rs", "main.rs"] {
            if src.join(root).exists() {
                source.file(&src, &src.join(root), String::new(), &src);
                break;
            }
        }
        assert!(!source.modules.is_empty(), "{} has no source", folder.display());
        source
    }

    fn file(&mut self, src: &Path, path: &Path, module: String, children: &Path) {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = path.strip_prefix(src).expect("below src").to_string_lossy().replace('\\', "/");
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.lines.insert(file.clone(), text.lines().count());
        self.module(src, file, module, children, parsed.items);
    }

    fn module(&mut self, src: &Path, file: String, name: String, children: &Path, items: Vec<syn::Item>) {
        let items: Vec<_> = items.into_iter().filter(|item| !only_for_tests(item)).collect();
        for item in &items {
            let syn::Item::Mod(declared) = item else { continue };
            let child = declared.ident.to_string();
            let path = if name.is_empty() { child.clone() } else { format!("{name}::{child}") };
            match &declared.content {
                Some((_, inner)) => self.module(src, file.clone(), path, &children.join(&child), inner.clone()),
                None => {
                    let flat = children.join(format!("{child}.rs"));
                    let nested = children.join(&child).join("mod.rs");
                    let found: PathBuf = if flat.exists() { flat } else { nested };
                    self.file(src, &found, path, &children.join(&child));
                }
            }
        }
        self.modules.insert(name, Module { file, items });
    }
}

/// Whether an item has `#[cfg(test)]` or `#[test]`.
fn only_for_tests(item: &syn::Item) -> bool {
    attributes(item).iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        syn::Meta::NameValue(_) => false,
    })
}

pub fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        _ => &[],
    }
}
