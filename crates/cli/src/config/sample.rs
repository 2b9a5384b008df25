//! A configuration file with every setting, its meaning and its default, made from the doc comments.

use super::SECTIONS;
use std::fmt::Write as _;

/// The sample: every line that sets something is commented out.
pub(crate) fn sample() -> String {
    let mut text = String::from(
        "# Anteroom: every setting with its default. Remove the # in front of what you change.\n\
         # Flags come before the environment, the environment before this file.\n\
         # The environment's name of store.cache_mib is ANTEROOM_STORE_CACHE_MIB, and so on.\n\n\
         # Where everything is kept. A path is relative to the folder of this file.\n\
         # data_dir = \"./anteroom-data\"\n\n\
         # The file with the master key. If it is not set, ANTEROOM_MASTER_KEY in the environment holds the key itself,\n\
         # else the systemd credential anteroom-master-key does, else it is in master.key in the data folder.\n\
         # In the environment this setting is ANTEROOM_MASTER_KEY_FILE.\n\
         # master_key = \"/etc/anteroom/master.key\"\n\n\
         # Where the node listens: this machine only, unless you change it.\n\
         # listen = \"127.0.0.1:7117\"\n\n\
         # With both of these the node speaks HTTPS and nothing else: the certificate with its chain, and its private\n\
         # key, in PEM form. Files that change are read again within a minute.\n\
         # tls_certificate = \"/etc/anteroom/fullchain.pem\"\n\
         # tls_key = \"/etc/anteroom/privkey.pem\"\n\n\
         # Web pages from these origins may call the API from a browser, between commas.\n\
         # cors_origins = \"https://chat.example.org\"\n\n\
         # Proxies whose X-Forwarded-For is believed: addresses or networks, between commas.\n\
         # trusted_proxies = \"10.0.0.0/8\"\n\n\
         # Where metrics are served without a key; nowhere if it is empty. The operator always has them at /metrics.\n\
         # metrics_listen = \"\"\n\n\
         # Where backups are written by the clock, see [backup]; none are if it is empty.\n\
         # backup_dir = \"/var/backups/anteroom\"\n\n\
         # How much to log: error, warn, info, debug, trace, or a filter.\n\
         # log = \"info\"\n",
    );
    for section in SECTIONS {
        text.push('\n');
        section.doc.iter().for_each(|line| text.push_str(&format!("#{line}\n")));
        let _ = writeln!(text, "[{}]", section.name);
        for setting in section.settings {
            setting.doc.iter().for_each(|line| text.push_str(&format!("#{line}\n")));
            let _ = writeln!(text, "# From {} to {}.", setting.least, setting.most);
            let _ = writeln!(text, "# {} = {}", setting.name, setting.default);
        }
    }
    text.push_str(
        "\n# An API key that is declared here works beside those in the data folder; remove it here to revoke it.\n\
         # `anteroom key hash backend` prints a new key and these lines. Repeat them for each key, at the end of the file.\n\
         # [[keys]]\n\
         # id = \"0123456789abcdef\"\n\
         # hash = \"0000000000000000000000000000000000000000000000000000000000000000\"\n\
         # role = \"backend\"\n\
         # space = \"home\"\n\
         # label = \"my application\"\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::keys_of;

    #[test]
    fn the_sample_is_a_configuration_file_that_changes_nothing() {
        let table: toml::Table = sample().parse().expect("TOML");
        assert!(keys_of(&table).expect("known keys").is_empty());
    }

    #[test]
    fn with_every_setting_put_in_it_says_the_defaults() {
        let uncommented: Vec<String> = sample()
            .lines()
            .filter_map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.contains(" = ") || rest == "[[keys]]" => Some(rest.to_owned()),
                Some(_) => None,
                None => Some(line.to_owned()),
            })
            .collect();
        let table: toml::Table = uncommented.join("\n").parse().expect("TOML");
        let settings: usize = SECTIONS.iter().map(|section| section.settings.len()).sum();
        assert_eq!(keys_of(&table).expect("known keys").len(), settings + 10);
    }
}
