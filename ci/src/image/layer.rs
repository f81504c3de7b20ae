//! A layer: a compressed archive of one file.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::layout;

/// A layer, and the digest of what is in it.
pub(crate) struct Layer {
    /// The archive, compressed by gzip.
    pub(crate) compressed: Vec<u8>,
    /// The digest of the archive before compression, which the image's configuration names.
    pub(crate) diff_id: String,
}

impl Layer {
    /// Packs `content` as the file `/name`, which everybody may run and root owns.
    ///
    /// # Errors
    ///
    /// `name` does not fit into an archive.
    pub(crate) fn of_one_file(name: &str, content: &[u8]) -> Result<Self> {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(layout::size(content));
        let mut archive = Builder::new(Vec::new());
        archive.append_data(&mut header, name, content).context("cannot make the archive")?;
        let archive = archive.into_inner().context("cannot end the archive")?;
        // The gzip header has neither a time nor a name, and always the same operating system.
        let mut gzip =
            GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
        gzip.write_all(&archive).context("cannot compress the archive")?;
        let compressed = gzip.finish().context("cannot compress the archive")?;
        Ok(Self { compressed, diff_id: layout::digest(&archive) })
    }
}
