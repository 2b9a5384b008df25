//! What functions may answer at once.

/// What a function of that type may answer without having done anything.
pub(super) fn answers(output: &syn::ReturnType) -> &'static [&'static str] {
    let syn::ReturnType::Type(_, written) = output else { return &[""] };
    match &**written {
        syn::Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return &[] };
            let name = last.ident.to_string();
            if name.ends_with("Result") { answers_of_result(last) } else { plain_answers(&name) }
        }
        _ => &[],
    }
}

fn plain_answers(name: &str) -> &'static [&'static str] {
    match name {
        "bool" => &["true", "false"],
        "Option" => &["None"],
        "Vec" => &["Vec::new()"],
        "usize" | "u8" | "u16" | "u32" | "u64" => &["0"],
        _ => &[],
    }
}

fn answers_of_result(segment: &syn::PathSegment) -> &'static [&'static str] {
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else { return &[] };
    match arguments.args.first() {
        Some(syn::GenericArgument::Type(syn::Type::Tuple(tuple))) if tuple.elems.is_empty() => &["Ok(())"],
        Some(syn::GenericArgument::Type(syn::Type::Path(path))) => {
            let name = path.path.segments.last().map(|last| last.ident.to_string());
            match name.as_deref() {
                Some("bool") => &["Ok(true)", "Ok(false)"],
                Some("Option") => &["Ok(None)"],
                Some("Vec") => &["Ok(Vec::new())"],
                Some("usize" | "u32" | "u64") => &["Ok(0)"],
                _ => &[],
            }
        }
        _ => &[],
    }
}
