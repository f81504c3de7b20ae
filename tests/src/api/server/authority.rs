//! The authority that both sides of a test's connections are certified by.

use core::time::Duration;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;

use crate::clock::wall;

/// The names of the files that the server reads.
pub(super) const AUTHORITY: &str = "authority.crt";
pub(super) const SERVER_CERTIFICATE: &str = "server.crt";
pub(super) const SERVER_KEY: &str = "server.key";

/// A certificate and its key, in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

/// Makes certificates that the server trusts.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// Makes one with a key of its own.
    ///
    /// # Errors
    ///
    /// There is no randomness to be had.
    pub(super) fn new() -> Result<Self> {
        let mut params = params("fettle-tests", None, DAY)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// Returns its certificate.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Certifies a client as `user` in `group` from an hour ago until `lifetime` from here.
    pub(super) fn client(
        &self,
        user: &str,
        group: Option<&str>,
        lifetime: Duration,
    ) -> Result<Pair> {
        let mut params = params(user, group, lifetime)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.certify(&params)
    }

    /// Writes what the server reads to `folder`.
    pub(super) fn write_server_files(&self, folder: &Path) -> Result<()> {
        let mut params = params("kube-apiserver", None, DAY)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names =
            CertificateParams::new(SERVER_NAMES.map(str::to_owned))?.subject_alt_names;
        let pair = self.certify(&params)?;
        let files = [
            (AUTHORITY, &self.pem),
            (SERVER_CERTIFICATE, &pair.certificate),
            (SERVER_KEY, &pair.key),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }

    fn certify(&self, params: &CertificateParams) -> Result<Pair> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

fn params(name: &str, group: Option<&str>, lifetime: Duration) -> Result<CertificateParams> {
    let now = OffsetDateTime::from(wall());
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    params.not_before = now - HOUR;
    params.not_after = now.checked_add(lifetime.try_into()?).context("the lifetime is too long")?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// By which names clients reach the server.
const SERVER_NAMES: [&str; 4] = ["127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc"];

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
