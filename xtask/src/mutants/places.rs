//! Where a source can be made wrong, and how: found in its syntax tree.

mod answers;
mod without_tests;

use super::weave::Edit;
use answers::answers;
use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
pub(crate) use without_tests::code_without_tests;

/// A small mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    /// A condition is taken to hold.
    Always,
    /// A condition is taken not to hold.
    Never,
    /// A comparison is another: `<` is `<=`, `==` is `!=`.
    Compares(&'static str),
    /// A sum or difference is one too much.
    OffByOne,
    /// The greater is taken for the smaller, or the other way round.
    MinMax(&'static str),
    /// A statement is left out.
    LeftOut,
    /// A function answers this at once.
    Answers(&'static str),
}

impl Mistake {
    /// What it does to the place.
    pub(crate) fn describe(self) -> String {
        match self {
            Mistake::Always => "always holds".into(),
            Mistake::Never => "never holds".into(),
            Mistake::Compares(_) => "compares otherwise".into(),
            Mistake::OffByOne => "is one too much".into(),
            Mistake::MinMax("max") => "takes the smaller".into(),
            Mistake::MinMax(_) => "takes the greater".into(),
            Mistake::LeftOut => "is left out".into(),
            Mistake::Answers("") => "does nothing".into(),
            Mistake::Answers(value) => format!("answers {value}"),
        }
    }
}

/// A place in a source, and a mistake that can be made there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) mistake: Mistake,
    /// The bytes that it concerns.
    pub(crate) range: Range<usize>,
    pub(crate) line: usize,
    /// The bytes of the function around it.
    pub(crate) function: Range<usize>,
    /// For mistakes with two operands: where each stands.
    operands: Option<(Range<usize>, Range<usize>)>,
}

impl Place {
    /// What is written into the source so that the mistake is made when its number is switched on.
    pub(crate) fn edits(&self, number: usize) -> Vec<Edit> {
        let around = |before: String, after: &str| {
            vec![Edit::before(&self.range, before), Edit::after(&self.range, after.to_owned())]
        };
        match (self.mistake, &self.operands) {
            (Mistake::Always, _) => around(format!("(::model::mutants::is_on({number}) || ("), "))"),
            (Mistake::Never, _) => around(format!("(!::model::mutants::is_on({number}) && ("), "))"),
            (Mistake::OffByOne, _) => around(format!("::model::mutants::off({number}, "), ")"),
            (Mistake::LeftOut, _) => around(format!("if !::model::mutants::is_on({number}) {{ "), " }"),
            (Mistake::Answers(value), _) => {
                let text = format!(" if ::model::mutants::is_on({number}) {{ return {value}; }}");
                vec![Edit::before(&self.range, text)]
            }
            (Mistake::Compares(how), Some((one, other))) => vec![
                Edit::before(&self.range, format!("::model::mutants::{how}({number}, &(")),
                Edit::instead(one.end..other.start, "), &("),
                Edit::after(&self.range, "))".into()),
            ],
            (Mistake::MinMax(how), Some((one, other))) => vec![
                Edit::before(&self.range, format!("::model::mutants::{how}({number}, ")),
                Edit::instead(one.end..other.start, ", "),
                Edit::instead(other.end..self.range.end, ")"),
            ],
            (Mistake::Compares(_) | Mistake::MinMax(_), None) => Vec::new(),
        }
    }
}

/// The places of a source; none if it cannot be parsed.
pub(crate) fn places(source: &str) -> Option<Vec<Place>> {
    let file = syn::parse_file(source).ok()?;
    let mut finder = Finder { source, found: Vec::new(), function: None };
    finder.visit_file(&file);
    let is_planted = |place: &Place| source.get(place.range.clone()).is_some_and(|text| text.contains(PLANTED));
    finder.found.retain(|place| !is_planted(place));
    Some(finder.found)
}

/// The modules of a source, in files of their own, that are compiled for tests only.
pub(crate) fn modules_for_tests(source: &str) -> Vec<String> {
    let items = syn::parse_file(source).map(|file| file.items).unwrap_or_default();
    let modules = items.into_iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() => Some(module),
        _ => None,
    });
    let is_for_tests = |attribute: &syn::Attribute| {
        let tokens = attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        attribute.path().is_ident("cfg") && (tokens.contains("test") || tokens.contains("simulation"))
    };
    modules.filter(|module| module.attrs.iter().any(is_for_tests)).map(|module| module.ident.to_string()).collect()
}

/// How a bug is asked for that was planted; what it does is no mistake of ours.
const PLANTED: &str = "is_planted(";

struct Finder<'s> {
    source: &'s str,
    found: Vec<Place>,
    /// The function around; none where code runs when it is compiled.
    function: Option<Range<usize>>,
}

/// Closures that say yes or no, by the method that takes them.
const ASKING_METHODS: [&str; 12] = [
    "all",
    "any",
    "filter",
    "find",
    "is_none_or",
    "is_some_and",
    "is_ok_and",
    "position",
    "retain",
    "skip_while",
    "take_if",
    "take_while",
];

impl Finder<'_> {
    /// Whether an expression holds only when a bug is planted.
    fn is_planted(&self, condition: &syn::Expr) -> bool {
        let text = self.source.get(condition.span().byte_range()).unwrap_or_default();
        text.contains(PLANTED) && !text.contains("!is_planted(") && !text.contains("||")
    }

    fn add(&mut self, mistake: Mistake, span: Span, operands: Option<(Span, Span)>) {
        let Some(function) = self.function.clone() else { return };
        let operands = operands.map(|(one, other)| (one.byte_range(), other.byte_range()));
        let (range, line) = (span.byte_range(), span.start().line);
        self.found.push(Place { mistake, range, line, function, operands });
    }

    /// A whole condition.
    fn condition(&mut self, condition: &syn::Expr, mistakes: &[Mistake]) {
        if !has_let(condition) {
            mistakes.iter().for_each(|mistake| self.add(*mistake, condition.span(), None));
        }
    }

    fn within(&mut self, item: Span, is_const: bool, visit: impl FnOnce(&mut Self)) {
        let function = (!is_const).then(|| item.byte_range());
        let outer = std::mem::replace(&mut self.function, function);
        visit(self);
        self.function = outer;
    }

    fn function(&mut self, item: Span, attributes: &[syn::Attribute], signature: &syn::Signature, block: &syn::Block) {
        if is_left_alone(attributes) || signature.ident == "main" {
            return;
        }
        self.within(item, signature.constness.is_some(), |finder| {
            for value in answers(&signature.output) {
                let inside = block.brace_token.span.open();
                finder.add(Mistake::Answers(value), inside, None);
                if let (Some(place), Some(_)) = (finder.found.last_mut(), &finder.function) {
                    // Just behind the brace.
                    place.range = place.range.end..place.range.end;
                }
            }
            visit::visit_block(finder, block);
        });
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_left_alone(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let is_debug = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if !is_left_alone(&item.attrs) && is_debug.is_none_or(|name| name.ident != "Debug") {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(item.span(), &item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(item.span(), &item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(item.span(), &item.attrs, &item.sig, block);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.within(item.span(), true, |finder| visit::visit_item_static(finder, item));
    }

    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        match statement {
            syn::Stmt::Expr(expression, Some(_)) if is_deed(expression) => {
                self.add(Mistake::LeftOut, statement.span(), None);
            }
            syn::Stmt::Local(local) if is_left_alone(&local.attrs) => return,
            syn::Stmt::Expr(expression, _) if has_attributes(expression) => return,
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_if(&mut self, expression: &'ast syn::ExprIf) {
        if self.is_planted(&expression.cond) {
            expression.else_branch.iter().for_each(|(_, otherwise)| self.visit_expr(otherwise));
            return;
        }
        self.condition(&expression.cond, &[Mistake::Always, Mistake::Never]);
        visit::visit_expr_if(self, expression);
    }

    fn visit_expr_while(&mut self, expression: &'ast syn::ExprWhile) {
        self.condition(&expression.cond, &[Mistake::Never]);
        visit::visit_expr_while(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if is_left_alone(&arm.attrs) || arm.guard.as_ref().is_some_and(|(_, guard)| self.is_planted(guard)) {
            return;
        }
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard, &[Mistake::Always, Mistake::Never]);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let method = call.method.to_string();
        match call.args.first() {
            Some(syn::Expr::Closure(closure))
                if ASKING_METHODS.contains(&method.as_str()) && !matches!(*closure.body, syn::Expr::Block(_)) =>
            {
                self.condition(&closure.body, &[Mistake::Always, Mistake::Never]);
            }
            Some(other) if call.args.len() == 1 => {
                let operands = Some((call.receiver.span(), other.span()));
                match method.as_str() {
                    "max" => self.add(Mistake::MinMax("max"), call.span(), operands),
                    "min" => self.add(Mistake::MinMax("min"), call.span(), operands),
                    _ => {}
                }
            }
            _ => {}
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        let (left, right) = (&*expression.left, &*expression.right);
        let mut compares = |how| {
            self.add(Mistake::Compares(how), expression.span(), Some((left.span(), right.span())));
        };
        match expression.op {
            syn::BinOp::Lt(_) => compares("less"),
            syn::BinOp::Le(_) => compares("at_most"),
            syn::BinOp::Gt(_) => compares("greater"),
            syn::BinOp::Ge(_) => compares("at_least"),
            syn::BinOp::Eq(_) => compares("equal"),
            syn::BinOp::Ne(_) => compares("different"),
            syn::BinOp::And(_) => {
                for operand in [left, right] {
                    if !is_chain(operand, true) {
                        self.condition(operand, &[Mistake::Always]);
                    }
                }
            }
            syn::BinOp::Or(_) => {
                for operand in [left, right] {
                    if !is_chain(operand, false) {
                        self.condition(operand, &[Mistake::Never]);
                    }
                }
            }
            syn::BinOp::Add(_) | syn::BinOp::Sub(_) => self.add(Mistake::OffByOne, expression.span(), None),
            _ => {}
        }
        visit::visit_expr_binary(self, expression);
    }
}

/// Tests and what is there for tests only.
fn is_left_alone(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test") || attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
    })
}

/// Whether a statement does something beside computing a value.
fn is_deed(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Call(call) => call.attrs.is_empty(),
        syn::Expr::MethodCall(call) => call.attrs.is_empty(),
        syn::Expr::Assign(assign) => assign.attrs.is_empty(),
        syn::Expr::Try(tried) => is_deed(&tried.expr),
        syn::Expr::Await(awaited) => is_deed(&awaited.base),
        syn::Expr::Binary(binary) => {
            binary.attrs.is_empty()
                && matches!(
                    binary.op,
                    syn::BinOp::AddAssign(_)
                        | syn::BinOp::SubAssign(_)
                        | syn::BinOp::BitOrAssign(_)
                        | syn::BinOp::BitAndAssign(_)
                )
        }
        _ => false,
    }
}

fn has_attributes(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::If(inner) => is_left_alone(&inner.attrs),
        syn::Expr::Block(inner) => is_left_alone(&inner.attrs),
        syn::Expr::Match(inner) => is_left_alone(&inner.attrs),
        syn::Expr::MethodCall(inner) => is_left_alone(&inner.attrs),
        syn::Expr::Call(inner) => is_left_alone(&inner.attrs),
        _ => false,
    }
}

/// Whether a condition binds something, so that it cannot stand in parentheses.
fn has_let(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
            has_let(&binary.left) || has_let(&binary.right)
        }
        _ => false,
    }
}

/// Whether an operand is itself a chain of the same operator, whose parts are operands too.
fn is_chain(operand: &syn::Expr, is_and: bool) -> bool {
    match operand {
        syn::Expr::Binary(binary) => match binary.op {
            syn::BinOp::And(_) => is_and,
            syn::BinOp::Or(_) => !is_and,
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests;
