//! The listener under TLS: who is spoken to how, and what happens when the certificate changes.

use super::Home;
use rcgen::CertifiedKey;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use server::ServerOptions;
use server::Tls;
use server::serve;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A new certificate for `localhost` in two files.
struct Pair {
    der: CertificateDer<'static>,
    certificate: String,
    key: String,
}

impl Pair {
    fn new() -> Pair {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        Pair { der: cert.der().clone(), certificate: cert.pem(), key: signing_key.serialize_pem() }
    }

    /// Writes it, as if it were so many minutes old.
    fn write(&self, folder: &Path, minutes: u64) -> (PathBuf, PathBuf) {
        let put = |name: &str, text: &str| put(&folder.join(name), text, minutes);
        (put("certificate.pem", &self.certificate), put("key.pem", &self.key))
    }
}

fn put(path: &Path, text: &str, minutes: u64) -> PathBuf {
    std::fs::write(path, text).expect("written");
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 - 60 * minutes);
    std::fs::File::options().write(true).open(path).expect("a file").set_modified(at).expect("a time");
    path.to_owned()
}

async fn connect(address: SocketAddr, pair: &Pair, protocols: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(pair.der.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.expect("versions").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

#[tokio::test]
async fn clients_choose_between_both_versions_of_http_and_speak_neither_in_the_clear() {
    let (pair, folder) = (Pair::new(), tempfile::tempdir().expect("a folder"));
    let (certificate, key) = pair.write(folder.path(), 0);
    let tls = Arc::new(Tls::load(certificate, key).expect("a pair"));
    let home = Home::with(ServerOptions { tls: Some(tls), ..ServerOptions::default() });
    let server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    // Somebody who says nothing keeps nobody waiting.
    let _silent = TcpStream::connect(server.address).await.expect("a connection");
    for protocol in ["h2", "http/1.1"] {
        let stream = connect(server.address, &pair, &[protocol]).await.expect("a handshake");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
    }
    let mut stream = connect(server.address, &pair, &[]).await.expect("a handshake");
    let mut answer = String::new();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.expect("sent");
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut plain = TcpStream::connect(server.address).await.expect("a connection");
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1"), "{answer:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_changed_certificate_is_taken_and_a_bad_one_is_not() {
    let (old, new, folder) = (Pair::new(), Pair::new(), tempfile::tempdir().expect("a folder"));
    let (certificate, key) = old.write(folder.path(), 9);
    let tls = Arc::new(Tls::load(certificate.clone(), key.clone()).expect("a pair"));
    let home = Home::with(ServerOptions { tls: Some(tls.clone()), ..ServerOptions::default() });
    let server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    let is_used = async |pair: &Pair| connect(server.address, pair, &[]).await.is_ok();
    assert!(is_used(&old).await && !is_used(&new).await);
    // Half of the new pair is there: it does not fit.
    put(&certificate, &new.certificate, 8);
    tls.reload_if_changed();
    assert!(is_used(&old).await && !is_used(&new).await);
    put(&key, &new.key, 7);
    tls.reload_if_changed();
    assert!(!is_used(&old).await && is_used(&new).await);
    for nonsense in ["", "-----BEGIN CERTIFICATE-----\n!\n"] {
        put(&certificate, nonsense, 6);
        tls.reload_if_changed();
        assert!(is_used(&new).await);
    }
    std::fs::remove_file(&certificate).expect("removed");
    tls.reload_if_changed();
    assert!(is_used(&new).await);
    old.write(folder.path(), 5);
    tls.reload_if_changed();
    assert!(is_used(&old).await);
    server.stop().await;
}

#[test]
fn what_cannot_be_used_is_named() {
    let (pair, other, folder) = (Pair::new(), Pair::new(), tempfile::tempdir().expect("a folder"));
    let (certificate, key) = pair.write(folder.path(), 0);
    let strange = put(&folder.path().join("strange.pem"), &other.key, 0);
    let check = |certificate: &Path, key: &Path, says: &str| {
        let why = Tls::load(certificate.to_owned(), key.to_owned()).expect_err("a mistake");
        assert!(why.to_string().contains(says) && why.what_to_do().contains("tls_"), "{why}");
    };
    check(&folder.path().join("nowhere"), &key, "cannot read");
    check(&certificate, &folder.path().join("nowhere"), "cannot read");
    check(&key, &key, "holds no certificate");
    check(&certificate, &certificate, "holds no private key");
    check(&certificate, &strange, "does not fit the certificate");
}
