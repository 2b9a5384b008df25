//! Every crate follows the lints of the workspace.

use super::Violation;
use super::workspace::{Manifest, Workspace};
use toml::Value;

/// A member that does not inherit the workspace's lints is a violation.
pub(crate) fn check(workspace: &Workspace) -> Vec<Violation> {
    let deviating = workspace.members.iter().filter(|manifest| !inherits_lints(manifest));
    let what = "the lints of the workspace are not inherited; add `[lints]` with `workspace = true`";
    deviating.map(|manifest| Violation::new(&manifest.path, 1, what)).collect()
}

fn inherits_lints(manifest: &Manifest) -> bool {
    let inherits = manifest.table.get("lints").and_then(|lints| lints.get("workspace"));
    inherits.and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::{Manifest, Workspace};
    use anyhow::Result;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) -> Result<()> {
        let root = Manifest::parse("Cargo.toml", "")?;
        let members = vec![Manifest::parse("crates/a/Cargo.toml", text)?];
        assert_violations(&super::check(&Workspace { root, members }), expected);
        Ok(())
    }

    #[test]
    fn members_inherit_the_lints() -> Result<()> {
        let missing = "crates/a/Cargo.toml:1: the lints of the workspace are not inherited; \
                       add `[lints]` with `workspace = true`";
        check("[lints]\nworkspace = true", &[])?;
        check("[lints]\nworkspace = false", &[missing])?;
        check("[lints.rust]\nunsafe_code = \"allow\"", &[missing])?;
        check("", &[missing])
    }
}
