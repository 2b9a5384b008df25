//! The system packages that tests need: found, or installed with `apt-get`.

use crate::process::{output, program, run, succeeds};
use anyhow::{Result, bail};

/// A system package and the shell command by which we see that it is there, however it was installed.
struct Package {
    name: &'static str,
    check: &'static str,
}

const NEEDED: &[Package] = &[
    Package { name: "git", check: "command -v git" },
    Package { name: "curl", check: "command -v curl" },
    Package { name: "chromium", check: "command -v chromium" },
    Package { name: "chromium-driver", check: "command -v chromedriver" },
    Package { name: "nginx", check: "PATH=$PATH:/usr/sbin command -v nginx" },
    Package { name: "caddy", check: "command -v caddy" },
    Package { name: "fcgiwrap", check: "PATH=$PATH:/usr/sbin command -v fcgiwrap" },
    Package { name: "libvips-tools", check: "command -v vipsthumbnail" },
    Package { name: "npm", check: "command -v npm && command -v node" },
    Package { name: "python3-venv", check: "python3 -c 'import venv, ensurepip'" },
];

/// How this user may install packages.
#[derive(Clone, Copy, Debug)]
enum Means {
    Root,
    Sudo,
    Nothing,
}

/// Installs the needed packages that are missing, and does nothing at all when none is.
pub(crate) fn install_missing() -> Result<()> {
    let missing: Vec<&str> = NEEDED.iter().filter(|package| !is_present(package)).map(|package| package.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for command in install_commands(&missing, means())? {
        let Some((name, arguments)) = command.split_first() else {
            continue;
        };
        run(program(name, arguments).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}

fn is_present(package: &Package) -> bool {
    succeeds(&mut program("sh", &["-c", package.check])) || is_installed(package.name)
}

fn is_installed(name: &str) -> bool {
    let mut query = program("sh", &["-c", "dpkg-query --show --showformat='${Status}' \"$0\" 2>&1 || true", name]);
    output(&mut query).is_ok_and(|status| status.contains("install ok installed"))
}

fn means() -> Means {
    if output(&mut program("id", &["-u"])).is_ok_and(|id| id.trim() == "0") {
        Means::Root
    } else if succeeds(&mut program("sudo", &["--non-interactive", "true"])) {
        Means::Sudo
    } else {
        Means::Nothing
    }
}

fn install_commands<'a>(missing: &[&'a str], means: Means) -> Result<Vec<Vec<&'a str>>> {
    let prefix: &[&str] = match means {
        Means::Root => &[],
        Means::Sudo => &["sudo"],
        Means::Nothing => bail!(
            "tests need {names}; we are not root and sudo wants a password. Run `sudo apt-get install -y {names}` first",
            names = missing.join(" ")
        ),
    };
    let update = [prefix, &["apt-get", "update"]].concat();
    let install = [prefix, &["apt-get", "install", "-y"], missing].concat();
    Ok(vec![update, install])
}

#[cfg(test)]
mod tests {
    use super::{Means, install_commands};

    fn check(missing: &[&str], means: Means, expected: &str) {
        let answer = match install_commands(missing, means) {
            Ok(commands) => commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected);
    }

    #[test]
    fn installing_follows_what_the_user_may_do() {
        check(&["git"], Means::Root, "apt-get update; apt-get install -y git");
        check(&["git", "jq"], Means::Sudo, "sudo apt-get update; sudo apt-get install -y git jq");
        check(
            &["git"],
            Means::Nothing,
            "tests need git; we are not root and sudo wants a password. Run `sudo apt-get install -y git` first",
        );
    }
}
