//! Every capacity of the core, each with the reason for its size.

/// Most bytes of a kernel record's text after its escapes are undone.
///
/// `PRINTKRB_RECORD_MAX` in `kernel/printk/printk.c` is 1,024 and grew to 2,048 in 6.4; what is
/// longer was cut by the kernel already.
pub const RECORD_TEXT_MAX: usize = 2048;

/// Most bytes that one read of `/dev/kmsg` returns.
///
/// `CONSOLE_EXT_LOG_MAX` in `kernel/printk/internal.h`: text and dictionary, escaped.
pub const RECORD_MAX: usize = 8192;

/// Most findings in one record: an Xid 79 is two, and no other wording is more.
pub const FINDINGS_MAX: usize = 4;

/// Most bytes of an object's name in a finding.
///
/// Room for `superblock.s_id` (32), for a 15-byte task name with its pid, and for an EDAC label.
pub const OBJECT_MAX: usize = 48;

/// Most bytes of a task's name: `TASK_COMM_LEN` in `include/linux/sched.h`, less its zero.
pub const COMM_MAX: usize = 15;

/// Most bytes of a kernel line that a finding quotes: enough for two lines of a terminal.
pub const LINE_MAX: usize = 200;

/// Most bytes of what the lines of a block add to a finding: four figures with their names.
pub const EXTRA_MAX: usize = 96;

/// Most bytes of a condition's or an event's message.
///
/// The API server refuses event messages above 1,024 bytes; this leaves room for a prefix, and
/// holds a quoted line, what it means, and how it is cleared.
pub const MESSAGE_MAX: usize = 640;

/// Most faults that are open at once over all kernel conditions.
///
/// One for each object: a node that has 64 failed disks, tasks and GPUs is not told apart better
/// by the 65th. What does not fit holds its condition until a person or a boot clears it.
pub const OPEN_FAULTS_MAX: usize = 64;

/// Most (reason, object) pairs whose events are folded at once.
///
/// A rack of 24 drives with all of its partitions and links fits.
pub const FOLDED_MAX: usize = 128;

/// Most event writes an hour for one reason (decisions: Events).
pub const EVENT_WRITES_MAX: usize = 20;

/// Most mounted block devices that are told apart.
///
/// The largest published attach limit for volumes is 256 a node; this is twice that.
pub const DEVICES_MAX: usize = 512;

/// Most bytes of the path of the kubelet's directory; the usual one has 16.
pub const KUBELET_DIR_MAX: usize = 64;

/// Most bytes of the name of who cleared a condition by hand.
pub const CLEARED_BY_MAX: usize = 64;

/// Most read-only file systems whose device is being looked up at once.
///
/// The shell answers each request before it reads the next record, so there is one.
pub const LOOKUPS_MAX: usize = 4;

/// Most lines of the block after a finding that may still add to it.
///
/// A CPER block prints some 30 lines for one error section; other records come in between.
pub const BLOCK_LINES_MAX: u64 = 48;

/// Most outputs of one step.
///
/// One for each condition when the log is lost (24), or two for each finding (8): and a wake-up
/// that finds more asks to be woken again at once.
pub const OUTPUTS_MAX: usize = 32;

/// Outputs of one step that are kept for events when many checks or tasks are asked for.
///
/// One record has as many findings at most, and its events are to be written at once.
pub const OUTPUTS_KEPT: usize = FINDINGS_MAX;

/// Most bytes of one journal frame before framing.
///
/// The largest is the whole agent at the start of a journal; see `node::agent::Agent`.
pub const FRAME_MAX: usize = 256 * 1024;

/// Most other objects that the message of a kernel condition names: more is no easier to act on.
pub const OTHERS_SHOWN_MAX: usize = 8;

/// Most bytes of the name of a block layer error; `blk_errors` has none above 25.
pub const BLOCK_ERROR_NAME_MAX: usize = 32;

/// Most bytes of what a judge says of one object: a sentence with its figures and two hashes.
pub const NOTE_MAX: usize = 208;

/// Errors within the seed's 10 minutes that make a disk a failing one; more need not be remembered.
pub const IO_ERRORS_MAX: usize = 5;

/// Most bytes of the name of an object that is checked: the front of a long path still tells.
pub const SUBJECT_MAX: usize = 96;

/// Most objects that are not well, or of which a judge remembers something.
///
/// As many for each of ten conditions as one may have, and twice the probes and units by default.
pub const SUBJECTS_MAX: usize = 10 * SUBJECTS_OF_ONE_MAX + 24;

/// Most of them for one condition: the drives of a full storage node.
pub const SUBJECTS_OF_ONE_MAX: usize = 24;

/// Most objects that the message of a checked condition names.
pub const SUBJECTS_SHOWN_MAX: usize = 6;

/// Most bytes of the name of a unit that is restarted.
///
/// `containerd.service` has 18; no person sets one.
pub const UNIT_NAME_MAX: usize = 64;

/// Most memory controllers whose error counts are followed.
///
/// Four sockets with four controllers each; few servers have as many.
pub const MEMORY_CONTROLLERS_MAX: usize = 16;

/// Most bytes of a disk's name: `DISK_NAME_LEN` in `include/linux/blkdev.h`.
pub const DISK_NAME_MAX: usize = 32;

/// Most disks that are known as foreign at once: 32 volumes of a storage network on four paths.
pub const FOREIGN_DISKS_MAX: usize = 128;

/// Most bytes of one document of the report.
///
/// The API server allows an object 256 KiB for the keys and values of all its annotations
/// (`TotalAnnotationSizeLimitB` in `apimachinery/pkg/api/validation/objectmeta.go`). Five documents
/// and 32 KiB of evidence make 232 KiB, which leaves 24 KiB to all others who annotate a Node.
pub const REPORT_MAX: usize = 40 * 1024;

/// Most bytes of a Node's uid: a UUID in text has 36.
pub const UID_MAX: usize = 64;

/// Most bytes of a condition's type that the agent removes; the longest of the catalogue has 29.
pub const CONDITION_NAME_MAX: usize = 64;

/// Most conditions of an earlier version that are removed in one patch; more wait for the next.
pub const RETIRED_MAX: usize = 8;

/// Changes by somebody else within ten minutes that end the fight for a condition (decisions).
pub const CONTESTED_MIN: usize = 3;

/// Most bytes of the name of who writes a condition besides the agent; a field manager has 128.
pub const WRITER_MAX: usize = 64;

/// Most series of events that are followed at once.
///
/// Each of the kernel's 13 event reasons for four objects, and some conditions that turned; what is
/// beyond is merged with others of its reason.
pub const SERIES_MAX: usize = 64;

/// Most bytes of the id of an ordered operation: a UUID in text with a word before it.
pub const OPERATION_ID_MAX: usize = 64;

/// Most ordered reboots that are remembered, so that none is done twice.
///
/// A node that is rebooted daily remembers a month of them.
pub const REBOOTS_MAX: usize = 32;

/// Most outcomes of the ordered reboots at a start: one for each, and one to record them.
pub const REBOOT_STEPS_MAX: usize = REBOOTS_MAX + 1;

/// Most bytes of a mark that asks to clear; every condition's name at once has some 500.
pub const CLEAR_VALUE_MAX: usize = 640;

/// Bytes of a boot id: a UUID in text.
pub const BOOT_ID_MAX: usize = 36;

/// Most outputs of one step of the publisher.
///
/// A mark may name every condition (25); each tamper condition may be held (2), the ordered reboots
/// be recorded (1), the contest change (1), and five things be written.
pub const PUBLISHED_MAX: usize = 36;

/// Most bytes of the evidence of a fault (decisions, "evidence").
pub const EVIDENCE_MAX: usize = 32 * 1024;

/// Most kernel records that the evidence of a fault is chosen from (decisions, "evidence").
pub const EVIDENCE_RECORDS_MAX: usize = 200;
