//! TLS: the certificate and key that the listener proves itself with, read anew when their files change.
//!
//! The pair is read at the start, where anything wrong with it is an error. While the node runs, a task looks at the
//! files now and then; a new pair that fits is used for connections from then on, and one that does not is warned of
//! while the old one stays in use.

use queries::sync::lock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How often to look whether the files have changed.
const LOOK: Duration = Duration::from_secs(60);
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A file larger than this is something else.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    Read { path: PathBuf, why: io::Error },
    /// There is no certificate in the file.
    #[error("{} holds no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// There is no key in the file.
    #[error("{} holds no private key in PEM form", .0.display())]
    NoKey(PathBuf),
    /// The two do not fit each other, or are of a kind that is not known here.
    #[error("the key {} does not fit the certificate {}: {why}", key.display(), certificate.display())]
    Unfit { certificate: PathBuf, key: PathBuf, why: rustls::Error },
}

impl TlsError {
    /// What the operator can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            TlsError::Read { .. } => "check the path in tls_certificate or tls_key, and who may read the file",
            TlsError::NoCertificate(_) => "set tls_certificate to the certificate with its chain, in PEM form",
            TlsError::NoKey(_) => "set tls_key to the private key of the certificate, in PEM form, not encrypted",
            TlsError::Unfit { .. } => "set tls_certificate and tls_key to two files that were issued together",
        }
    }
}

/// When a file was changed, and its length; nothing of one that is not there.
type Stamp = Option<(SystemTime, u64)>;

/// What the listener proves itself with.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// Of the files when they were last read, whether that went well or not.
    stamps: [Stamp; 2],
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls({})", self.certificate.display())
    }
}

impl Tls {
    /// Reads a certificate with its chain, and its key.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Tls, TlsError> {
        let stamps = [stamp(&certificate), stamp(&key)];
        let config = read_pair(&certificate, &key)?;
        Ok(Tls { certificate, key, current: Mutex::new(Current { config, stamps }) })
    }

    /// Reads the files again if they have changed. Whatever is wrong with them, the pair in use stays.
    pub fn reload_if_changed(&self) {
        let stamps = [stamp(&self.certificate), stamp(&self.key)];
        if lock(&self.current).stamps == stamps {
            return;
        }
        let read = read_pair(&self.certificate, &self.key);
        let mut current = lock(&self.current);
        current.stamps = stamps;
        match read {
            Ok(config) => {
                current.config = config;
                tracing::info!(certificate = %self.certificate.display(), "a new certificate is in use");
            }
            Err(why) => {
                let what_to_do = why.what_to_do();
                tracing::warn!(%why, what_to_do, "the changed certificate is not used; the one before stays in use");
            }
        }
    }

    /// Shakes hands with a client, who may take only so long.
    pub(crate) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        let config = lock(&self.current).config.clone();
        let shaken = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await;
        shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Looks now and then whether the files have changed, for as long as it is let.
pub(crate) async fn keep_fresh(tls: Arc<Tls>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let tls = tls.clone();
        // A slow disk must not hold up the connections.
        let _ = tokio::task::spawn_blocking(move || tls.reload_if_changed()).await;
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|why| TlsError::Read { path: path.to_owned(), why })
}

fn read_pair(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| TlsError::NoCertificate(certificate.to_owned()))?;
    let secret = PrivateKeyDer::from_pem_slice(&zeroize::Zeroizing::new(read(key)?));
    let secret = secret.map_err(|_| TlsError::NoKey(key.to_owned()))?;
    let unfit = |why| TlsError::Unfit { certificate: certificate.to_owned(), key: key.to_owned(), why };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(unfit)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, secret).map_err(unfit)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
