//! A folder in the OCI image layout: blobs by their digest, and an index.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A folder that is being filled.
pub(crate) struct Layout {
    folder: PathBuf,
}

/// What names a blob.
pub(crate) struct Descriptor {
    media_type: &'static str,
    /// `sha256:` and 64 digits.
    pub(crate) digest: String,
    /// Its bytes.
    pub(crate) size: u64,
}

impl Layout {
    /// Empties `folder` and begins a layout in it.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or emptied.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).with_context(|| format!("cannot make {}", blobs.display()))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Adds a blob, and returns what names it.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn add(&self, media_type: &'static str, content: &[u8]) -> Result<Descriptor> {
        let digest = digest(content);
        self.write(&format!("blobs/{}", digest.replace(':', "/")), content)?;
        Ok(Descriptor { media_type, digest, size: size(content) })
    }

    /// Ends the layout with its index.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn finish(self, index: &[u8]) -> Result<()> {
        self.write("index.json", index)?;
        self.write("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Descriptor {
    /// Returns it as the specification writes it.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": self.digest, "size": self.size })
    }
}

/// Returns the digest of `content` as OCI writes it.
pub(crate) fn digest(content: &[u8]) -> String {
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        digest.push_str(&format!("{byte:02x}"));
    }
    digest
}

/// Returns how many bytes `content` has.
pub(crate) fn size(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_one_that_sha256sum_prints() {
        let want = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(b""), want);
    }
}
