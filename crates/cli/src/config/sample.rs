//! The sample configuration file: every setting with its meaning, bounds and default, from the doc comments.

use super::SECTIONS;
use std::fmt::Write as _;

/// What the file begins with: the settings that are texts.
const TEXT_SETTINGS_WITH_MEANING: &str = "# Anteroom configuration: every setting with its default. Remove the # to change a value.\n\
     # Flags override environment variables, and environment variables override this file.\n\
     # The environment variable for store.cache_mib is ANTEROOM_STORE_CACHE_MIB, and so on.\n\
     # Paths in this file are relative to its folder.\n\n\
     # The data folder.\n\
     # data_dir = \"./anteroom-data\"\n\n\
     # The file with the master key. If it is not set, the node takes the first of these that exists: the environment\n\
     # variable ANTEROOM_MASTER_KEY (the key itself), the systemd credential anteroom-master-key, and the file\n\
     # master.key in the data folder.\n\
     # master_key_file = \"/etc/anteroom/master.key\"\n\n\
     # The address and port to listen on. The default is reachable from this machine only.\n\
     # listen = \"127.0.0.1:7117\"\n\n\
     # The address under which others reach the node, for example through a proxy. Links that the node prints begin\n\
     # with it.\n\
     # public_url = \"https://chat.example.org\"\n\n\
     # The TLS certificate with its chain, and its private key, both in PEM format. If both are set, the node serves\n\
     # HTTPS instead of HTTP. Changed files are reloaded within a minute.\n\
     # tls_certificate = \"/etc/anteroom/fullchain.pem\"\n\
     # tls_key = \"/etc/anteroom/privkey.pem\"\n\n\
     # Origins that may call the API from a browser (CORS), separated by commas.\n\
     # cors_origins = \"https://chat.example.org\"\n\n\
     # Proxies whose X-Forwarded-For header is trusted: addresses or networks, separated by commas.\n\
     # trusted_proxies = \"10.0.0.0/8\"\n\n\
     # A separate address and port for Prometheus metrics, without authentication. Empty: only at /metrics, for the\n\
     # operator.\n\
     # metrics_listen = \"\"\n\n\
     # The folder for scheduled backups, see [backup]. Empty: no scheduled backups.\n\
     # backup_dir = \"/var/backups/anteroom\"\n\n\
     # Who may have git repositories here: public keys (npub1... or hexadecimal), separated by commas. Empty: anybody.\n\
     # git_owners = \"\"\n\n\
     # Who may publish at the Nostr relay, once they have authenticated (NIP-42): public keys. Empty: anybody.\n\
     # git_writers = \"\"\n\n\
     # Nothing of these keys is taken or served; with a slash and an identifier, only that repository.\n\
     # git_banned = \"\"\n\n\
     # Your own public key, which the Nostr relay tells as that of its operator.\n\
     # git_operator = \"\"\n\n\
     # Repositories mirrored here read-only (GRASP-05), as keys or key/identifier, and the relays asked for them.\n\
     # git_archive = \"\"\n\
     # git_archive_relays = \"wss://relay.example.org\"\n\n\
     # Private networks that missing data may be fetched from: URLs of others can then make the node ask there.\n\
     # sync_private_networks = \"\"\n\n\
     # What is made of uploaded images: words with the pixels of the longer side.\n\
     # renditions = \"thumbnail_256, preview_1024, full_2048\"\n\n\
     # Where large content is kept: a bucket of an S3-compatible store, with a prefix if you like. Empty: in the folder\n\
     # `objects` of the data folder. What is in that folder already is still found there.\n\
     # object_store = \"https://s3.example.org/BUCKET/PREFIX\"\n\
     # object_store_region = \"us-east-1\"\n\n\
     # The key of the object store: the id on the first line, the secret on the second. If it is not set,\n\
     # AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are read from the environment.\n\
     # object_store_key_file = \"/etc/anteroom/object-store.key\"\n\n\
     # The log level: off, error, warn, info, debug or trace; or a filter such as anteroom_node=debug.\n\
     # log = \"info\"\n";

/// Every line that sets something is commented out.
pub(crate) fn sample_file() -> String {
    let mut text = TEXT_SETTINGS_WITH_MEANING.to_owned();
    for section in SECTIONS {
        text.push('\n');
        section.doc.iter().for_each(|line| text.push_str(&format!("#{line}\n")));
        let _ = writeln!(text, "[{}]", section.name);
        for setting in section.settings {
            setting.doc.iter().for_each(|line| text.push_str(&format!("#{line}\n")));
            let _ = writeln!(text, "# From {} to {}.", setting.min, setting.max);
            let _ = writeln!(text, "# {} = {}", setting.name, setting.default);
        }
    }
    text.push_str(
        "\n# API keys in addition to those in the data folder. `anteroom key hash backend` prints a new key and these\n\
         # lines; repeat them for each key, at the end of the file. To revoke a key, remove its lines and restart the node.\n\
         # [[api_keys]]\n\
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
    use crate::config::file::read_settings;
    use crate::config::load::TEXT_SETTINGS;

    #[test]
    fn the_sample_is_valid_and_changes_nothing() {
        let table: toml::Table = sample_file().parse().expect("TOML");
        assert!(read_settings(&table).expect("known keys").is_empty());
    }

    #[test]
    fn every_setting_is_in_the_sample() {
        let uncommented: Vec<String> = sample_file()
            .lines()
            .filter_map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.contains(" = ") || rest == "[[api_keys]]" => Some(rest.to_owned()),
                Some(_) => None,
                None => Some(line.to_owned()),
            })
            .collect();
        let table: toml::Table = uncommented.join("\n").parse().expect("TOML");
        let settings: usize = SECTIONS.iter().map(|section| section.settings.len()).sum();
        assert_eq!(read_settings(&table).expect("known keys").len(), settings + TEXT_SETTINGS.len());
    }
}
