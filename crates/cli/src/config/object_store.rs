//! Where large content is kept, if not in the data folder: a bucket of an S3-compatible store.

use crate::failure::Failure;
use objects::S3Options;
use std::path::{Path, PathBuf};

/// What most stores call the only region they have.
pub(super) const REGION_DEFAULT: &str = "us-east-1";
/// Who asks, where the environment says it as the tools of these stores expect it.
const KEY_ID_VARIABLE: &str = "AWS_ACCESS_KEY_ID";
const SECRET_VARIABLE: &str = "AWS_SECRET_ACCESS_KEY";

/// A bucket, and where its key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectStoreSettings {
    endpoint: String,
    bucket: String,
    prefix: String,
    region: String,
    key_file: Option<PathBuf>,
}

/// Reads `https://host/bucket` or `https://host/bucket/prefix`. Empty: there is none.
pub(super) fn parse_object_store(
    text: &str,
    region: &str,
    key_file: Option<PathBuf>,
) -> Result<Option<ObjectStoreSettings>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let bad = || {
        let shown: String = text.chars().take(80).collect();
        let what_to_do = "write it as https://HOST/BUCKET or https://HOST/BUCKET/PREFIX";
        Failure::new(format!("object_store = {shown:?} is not a bucket of an S3-compatible store"), what_to_do)
    };
    let url: http::Uri = text.trim_end_matches('/').parse().map_err(|_| bad())?;
    let scheme = url.scheme_str().filter(|scheme| ["http", "https"].contains(scheme)).ok_or_else(bad)?;
    let host = url.authority().filter(|host| !host.as_str().contains('@')).ok_or_else(bad)?;
    let (bucket, prefix) = match url.path().trim_start_matches('/').split_once('/') {
        Some((bucket, prefix)) => (bucket, prefix),
        None => (url.path().trim_start_matches('/'), ""),
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let is_name = |part: &str| !part.is_empty() && part.chars().all(is_plain) && ![".", ".."].contains(&part);
    if url.query().is_some() || !is_name(bucket) || !prefix.is_empty() && !prefix.split('/').all(is_name) {
        return Err(bad());
    }
    Ok(Some(ObjectStoreSettings {
        endpoint: format!("{scheme}://{host}"),
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        region: region.to_owned(),
        key_file,
    }))
}

impl ObjectStoreSettings {
    /// With the key, from its file or from the environment.
    pub(crate) fn with_key(&self) -> Result<S3Options, Failure> {
        let (access_key_id, secret_access_key) = match &self.key_file {
            Some(file) => read_key(file)?,
            None => environment_key().ok_or_else(|| {
                let what = "object_store is set, but not the key that it is asked with";
                let variables = format!("or {KEY_ID_VARIABLE} and {SECRET_VARIABLE} in the environment");
                Failure::new(what, format!("set object_store_key_file, {variables}"))
            })?,
        };
        let ObjectStoreSettings { endpoint, bucket, prefix, region, key_file: _ } = self.clone();
        Ok(S3Options { endpoint, region, bucket, prefix, access_key_id, secret_access_key })
    }
}

/// A file of two lines: the id of the key, and its secret.
fn read_key(file: &Path) -> Result<(String, String), Failure> {
    let text =
        std::fs::read_to_string(file).map_err(|why| Failure::file("read the key of the object store", file, &why))?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match (lines.next(), lines.next(), lines.next()) {
        (Some(id), Some(secret), None) => Ok((id.to_owned(), secret.to_owned())),
        _ => Err(Failure::new(
            format!("{} is not the key of an object store", file.display()),
            "write the id of the access key on its first line, and the secret on the second",
        )),
    }
}

fn environment_key() -> Option<(String, String)> {
    let read = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    Some((read(KEY_ID_VARIABLE)?, read(SECRET_VARIABLE)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        match parse_object_store(text, REGION_DEFAULT, None) {
            Ok(Some(ObjectStoreSettings { endpoint, bucket, prefix, .. })) => format!("{endpoint} {bucket} {prefix}"),
            Ok(None) => "none".to_owned(),
            Err(_) => "refused".to_owned(),
        }
    }

    #[test]
    fn a_bucket_has_a_host_a_name_and_perhaps_a_prefix() {
        assert_eq!(told(""), "none");
        assert_eq!(told("https://s3.example.org/attic"), "https://s3.example.org attic ");
        assert_eq!(told("http://127.0.0.1:9000/attic/a/b/"), "http://127.0.0.1:9000 attic a/b");
        let bad = [
            "https://s3.example.org",
            "https://s3.example.org/",
            "s3://attic",
            "ftp://host/attic",
            "attic",
            "https://me@host/attic",
            "https://host/attic?x=1",
            "https://host/attic/../x",
            "https://host/a b",
            "https://host/attic//x",
        ];
        for text in bad {
            assert_eq!(told(text), "refused", "{text}");
        }
    }

    #[test]
    fn a_key_has_two_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        let read = |text: &str| {
            std::fs::write(&file, text).expect("written");
            read_key(&file).ok()
        };
        assert_eq!(read("id\n secret \n\n"), Some(("id".to_owned(), "secret".to_owned())));
        assert_eq!([read("id"), read(""), read("a\nb\nc")], [None, None, None]);
    }
}
