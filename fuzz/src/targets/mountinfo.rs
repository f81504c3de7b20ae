//! The parser of mount table lines reads any bytes, and again what it read.

use fettle_core::wire::proc::Mount;

/// Takes `data` as one line of `/proc/PID/mountinfo`.
pub fn target(data: &[u8]) {
    let Ok(mount) = Mount::parse(data) else {
        return;
    };
    let (major, minor) = mount.device;
    let device = format!("1 2 {major}:{minor} / ");
    let line = [
        device.as_bytes(),
        &[mount.mount_point, mount.options].join(&b' '),
        b" - ",
        &[mount.file_system, mount.source, mount.super_options].join(&b' '),
    ]
    .concat();
    let again = Mount::parse(&line);
    assert_eq!(again, Ok(mount));
    assert_eq!(again.map(|mount| mount.is_writable()), Ok(mount.is_writable()));
}
