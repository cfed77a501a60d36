//! Finds which top-level modules of its crate a source file uses: `use` trees, paths in code, paths in attributes
//! (`#[serde(with = "crate::…")]`) and in macro arguments. Doc comments do not count.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemMod, ItemUse, Macro, Meta, Path, UseTree};

/// A top-level module used by another.
#[derive(Debug, PartialEq, Eq)]
pub struct Use {
    pub by: String,
    /// Name of the module; `*` for a glob import of the root.
    pub what: String,
    /// From 1.
    pub line: usize,
}

/// All uses in the file whose module path is `module` (empty for the root of the crate, whose own uses are free).
pub fn find(module: &[String], text: &str) -> syn::Result<Vec<Use>> {
    let file: File = syn::parse_file(text)?;
    let mut finder = Finder { module: module.to_vec(), found: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder {
    /// Path of the module that is being read, with the inline modules entered.
    module: Vec<String>,
    found: Vec<Use>,
}

impl Finder {
    /// Notes what a path leads to, when it starts at the root or climbs up to it.
    fn follow(&mut self, path: &[String], span: Span) {
        let Some(by) = self.module.first().cloned() else {
            return;
        };
        let Some(first) = path.first() else { return };
        let climbs = path.iter().skip(usize::from(first == "self")).take_while(|part| *part == "super").count();
        let below_root = match first.as_str() {
            "crate" => 1,
            "self" | "super" if climbs >= self.module.len() => climbs + usize::from(first == "self"),
            _ => return,
        };
        if let Some(what) = path.get(below_root).filter(|part| *part != "self") {
            self.found.push(Use { by, what: what.clone(), line: span.start().line });
        }
    }

    fn follow_tree(&mut self, prefix: &[String], tree: &UseTree) {
        let with = |part: &dyn ToString| [prefix, &[part.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.follow_tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.follow(&with(&name.ident), name.ident.span()),
            UseTree::Rename(rename) => self.follow(&with(&rename.ident), rename.ident.span()),
            UseTree::Glob(glob) => self.follow(&with(&"*"), glob.star_token.spans[0]),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.follow_tree(prefix, item)),
        }
    }

    /// Paths among tokens that have no syntax of their own. `strings`: also look at what string literals begin with.
    fn follow_tokens(&mut self, tokens: TokenStream, strings: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.follow_tokens(group.stream(), strings),
                TokenTree::Ident(ident) if ident == "crate" || ident == "super" => {
                    let continues = index >= 2 && is_separator(&tokens[index - 2..index]);
                    if !continues {
                        self.follow_path_tokens(&tokens[index..], ident.span());
                    }
                }
                TokenTree::Literal(literal) if strings => {
                    self.follow_text(&literal.to_string(), literal.span());
                }
                _ => {}
            }
        }
    }

    /// `crate :: a :: b …` at the start of `tokens`; a group after `::` is a `use` list.
    fn follow_path_tokens(&mut self, tokens: &[TokenTree], span: Span) {
        let mut path = Vec::new();
        let mut rest = tokens;
        while let [TokenTree::Ident(ident), after @ ..] = rest {
            path.push(ident.to_string());
            match after {
                [first, second, next @ ..] if is_separator(&[first.clone(), second.clone()]) => rest = next,
                _ => break,
            }
        }
        self.follow(&path, span);
    }

    fn follow_text(&mut self, literal: &str, span: Span) {
        let text = literal.trim_matches('"');
        if text.starts_with("crate::") || text.starts_with("super::") {
            let path: Vec<String> = text.split("::").map(str::to_owned).collect();
            self.follow(&path, span);
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.follow_tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.follow(&parts, first.ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.follow_tokens(list.tokens.clone(), true);
        }
        visit::visit_attribute(self, attribute);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.follow_tokens(call.tokens.clone(), false);
        visit::visit_macro(self, call);
    }
}

fn is_separator(tokens: &[TokenTree]) -> bool {
    tokens.len() == 2 && tokens.iter().all(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(module: &str, text: &str) -> Vec<(String, usize)> {
        let module: Vec<String> = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let found = find(&module, text).expect("parses");
        found.into_iter().map(|found| (found.what, found.line)).collect()
    }

    fn seen(pairs: &[(&str, usize)]) -> Vec<(String, usize)> {
        pairs.iter().map(|(what, line)| ((*what).to_owned(), *line)).collect()
    }

    #[test]
    fn nested_use_lists_are_unfolded() {
        let text = "use crate::{\n    a::A,\n    b::{c, d as e},\n    f,\n};";
        assert_eq!(uses("m", text), seen(&[("a", 2), ("b", 3), ("b", 3), ("f", 4)]));
    }

    #[test]
    fn paths_in_code_are_seen() {
        let text = "fn f(x: crate::a::X) -> u8 {\n    crate::b::g::<crate::c::T>()\n}\npub(in crate::d) struct S;";
        assert_eq!(uses("m", text), seen(&[("a", 1), ("b", 2), ("c", 2), ("d", 4)]));
    }

    #[test]
    fn super_counts_only_when_it_climbs_to_the_root() {
        assert_eq!(uses("m", "use super::a::A;"), seen(&[("a", 1)]));
        assert_eq!(uses("m", "use self::super::a::A;"), seen(&[("a", 1)]));
        assert_eq!(uses("m::n", "use super::a::A;"), []);
        assert_eq!(uses("m::n", "use super::super::a::A;"), seen(&[("a", 1)]));
        assert_eq!(uses("m", "mod n { use super::a; use super::super::b; }"), seen(&[("b", 1)]));
        assert_eq!(uses("m", "#[cfg(test)] mod tests { use super::*; }"), []);
    }

    #[test]
    fn macro_arguments_and_attribute_strings_are_seen() {
        let text = "fn f() {\n    println!(\"{}\", [crate::a::N]);\n}\n#[serde(with = \"crate::b::c\")]\nstruct S;";
        assert_eq!(uses("m", text), seen(&[("a", 2), ("b", 4)]));
        assert_eq!(uses("m", "mod n { fn f() { vec![super::super::a::N] } }"), seen(&[("a", 1)]));
    }

    #[test]
    fn comments_and_strings_do_not_count() {
        let text = "//! [`crate::a`]\n/// crate::b::c\n// crate::d\nconst S: &str = \"crate::e::f\";\nuse ::std::fmt;";
        assert_eq!(uses("m", text), []);
    }

    #[test]
    fn a_glob_of_the_root_is_reported_as_such() {
        assert_eq!(uses("m", "use crate::*;"), seen(&[("*", 1)]));
    }

    #[test]
    fn the_root_is_free_but_its_inline_modules_are_not() {
        assert_eq!(uses("", "pub use crate::a::A;\nmod m { use crate::b; }"), seen(&[("b", 2)]));
    }
}
