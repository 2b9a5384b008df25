//! The part of a source that is the product's.

use std::ops::Range;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// The code of a source without what is compiled for tests only, and without empty lines; none if it cannot be parsed.
pub(crate) fn code_without_tests(source: &str) -> Option<String> {
    let mut finder = TestFinder { found: Vec::new() };
    finder.visit_file(&syn::parse_file(source).ok()?);
    let (mut code, mut at) = (String::with_capacity(source.len()), 0);
    for range in finder.found {
        code.push_str(source.get(at..range.start)?);
        at = range.end;
    }
    code.push_str(source.get(at..)?);
    let lines: Vec<&str> = code.lines().filter(|line| !line.trim().is_empty()).collect();
    Some(lines.join("\n"))
}

/// Finds the items that are compiled for tests only.
struct TestFinder {
    found: Vec<Range<usize>>,
}

impl<'ast> Visit<'ast> for TestFinder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return,
        };
        let is_test = |list: &syn::MetaList| list.path.is_ident("cfg") && list.tokens.to_string() == "test";
        match attributes.iter().any(|attribute| attribute.meta.require_list().is_ok_and(is_test)) {
            true => self.found.push(item.span().byte_range()),
            false => visit::visit_item(self, item),
        }
    }
}
