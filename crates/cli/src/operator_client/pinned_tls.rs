//! TLS to the node on this machine. The certificate is issued for the public host name, not for the address that the node
//! listens on, so the name is not checked: the certificate must be identical to the one in the node's certificate file.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Performs the TLS handshake. The server must present the certificate in this file.
pub(super) async fn connect(stream: TcpStream, file: &Path) -> Result<TlsStream<TcpStream>, String> {
    let bytes = std::fs::read(file).map_err(|why| format!("cannot read its certificate {}: {why}", file.display()))?;
    let pinned = CertificateDer::from_pem_slice(&bytes);
    let pinned = pinned.map_err(|_| format!("{} contains no certificate", file.display()))?.into_owned();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|why| why.to_string())?.dangerous();
    let config = builder
        .with_custom_certificate_verifier(Arc::new(PinnedCertificate { pinned, provider }))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").map_err(|why| why.to_string())?;
    let handshake = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    handshake.map_err(|why| {
        format!("{why}; if {} was changed just now, the node reloads it within a minute", file.display())
    })
}

/// Accepts exactly one certificate.
#[derive(Debug)]
struct PinnedCertificate {
    pinned: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.pinned {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
