//! The one loop: wait, collect an input, step the core, do the outputs.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use fettle_core::catalog::{Clear, ConditionType, EventReason};
use fettle_core::journal::{Stamp, Step};
use fettle_core::node::agent::{self, Agent, Input, Output, Settings};
use fettle_core::node::log::LogState;
use fettle_core::text::Text;
use log::{error, info, warn};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::clock;
use crate::config::{self, Config, ConfigError, ConfigFile};
use crate::errors::chain;
use crate::probe;
use crate::probe::clearings;
use crate::probe::kernel_log::{self, Batch, Event};
use crate::probe::runner::{Finished, Runner};
use crate::publish::metrics::{self, Observed, Question};
use crate::publish::stdout::{Format, Printer};
use crate::store::boot_id;
use crate::store::clearing::Clearing;
use crate::store::journal::{JournalError, JournalWriter};
use crate::store::state::StateFile;
use crate::sys::notify::Notifier;
use crate::sys::{mounts, task};

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Need no cluster: print each change as one line
    #[arg(long)]
    pub standalone: bool,
    /// The configuration, read again at SIGHUP; by default /etc/fettle/agent.yaml if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Take records that user space wrote for the kernel's (for tests only)
    #[arg(long)]
    pub trust_userspace_kmsg: bool,
    /// The kernel log device
    #[arg(long, default_value = "/dev/kmsg", value_name = "PATH")]
    pub kmsg: PathBuf,
    /// Where the node's file systems are mounted, for an agent in a container
    #[arg(long, default_value = "/", value_name = "DIR")]
    pub host_root: PathBuf,
    /// Where the state is kept across restarts; belongs on a tmpfs
    #[arg(long, default_value = "/run/fettle", value_name = "DIR")]
    pub state_dir: PathBuf,
    /// The kubelet's directory; what is mounted in its pods/ and plugins/ is a workload's
    #[arg(long, default_value = "/var/lib/kubelet", value_name = "DIR")]
    pub kubelet_dir: PathBuf,
    /// Write everything that the decisions depend on to this file, for `replay`
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Most bytes of the journal; at the limit it goes on in a new file and keeps one old one
    #[arg(long, default_value_t = 64 * 1024 * 1024, value_name = "BYTES")]
    pub journal_max: u64,
    /// How a condition is cleared besides by hand and by a boot: `held` not at all, `proof` by proof
    #[arg(long, value_name = "CONDITION=held|proof", value_parser = clear_rule)]
    pub clear: Vec<(ConditionType, Clear)>,
    /// Where to serve /metrics and /healthz; without it where the configuration says, if it does
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<SocketAddr>,
    /// End after this long, such as 10s or 5m
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub run_for: Option<Duration>,
}

/// Why the agent ends otherwise than it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing reads the kernel log any more.
    #[error("the thread that reads the kernel log has ended")]
    Blind,
    /// It does not know what it is meant to do.
    #[error("cannot start")]
    Config(#[source] ConfigError),
    /// It cannot run at all.
    #[error("cannot start")]
    Start(#[source] io::Error),
    /// The address for metrics cannot be listened on.
    #[error("cannot serve metrics on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The journal cannot be begun.
    #[error("cannot begin the journal")]
    Journal(#[source] JournalError),
    /// There is nobody to report to.
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
}

/// Runs until a signal, the end of the given time, or the end of standard output.
///
/// # Errors
///
/// Says why it cannot start, or whom it cannot report to.
pub async fn run(args: Args, out: &mut impl Write, format: Format) -> Result<(), RunError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Start)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Start)?;
    end_in_time().map_err(RunError::Start)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(RunError::Start)?;
    let config = ConfigFile::new(args.config.clone()).load().map_err(RunError::Config)?;
    let by_file = config.is_set("metrics.listen").then_some(config.listen);
    let mut session = Session::start(&args, config, out, format)?;
    let mut batches = kernel_log::follow(args.kmsg.clone()).map_err(RunError::Start)?;
    let mut clearings = clearings(&args);
    let mut questions = questions(args.metrics_listen.or(by_file)).await?;
    let end = sleep(args.run_for.unwrap_or(FOREVER));
    tokio::pin!(end);
    loop {
        let wakeup = sleep(session.until_wakeup());
        tokio::select! {
            biased;
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            () = &mut end => break,
            _ = hangup.recv() => session.reload(&args)?,
            batch = batches.recv() => session.on_batch(&batch.ok_or(RunError::Blind)?)?,
            Some(clearing) = clearings.recv() => session.on_clearing(clearing)?,
            Some(question) = questions.recv() => session.on_question(question),
            Some(finished) = session.runner.next() => session.on_finished(&finished)?,
            () = wakeup => session.on_wakeup()?,
        }
        session.finish_turn()?;
    }
    session.end()
}

/// Ends the process a little after a signal, if the loop has not: whoever reads standard output
/// may have stopped reading without going away.
fn end_in_time() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = move || {
        runtime.block_on(async {
            let (Ok(mut terminate), Ok(mut interrupt)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            else {
                return;
            };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        thread::sleep(END_WITHIN);
        error!("standard output takes nothing any more; ending without the rest");
        std::process::exit(1);
    };
    thread::Builder::new().name("end".to_owned()).stack_size(GUARD_STACK_BYTES).spawn(guard)?;
    Ok(())
}

/// Waits for people who clear a condition; where nobody can leave a request, none ever comes.
fn clearings(args: &Args) -> mpsc::Receiver<Clearing> {
    clearings::follow(&args.state_dir).unwrap_or_else(|problem| {
        let directory = args.state_dir.display();
        warn!("cannot watch {directory}, so `clear` does not reach this agent: {problem}");
        mpsc::channel(1).1
    })
}

/// Serves metrics where that is wanted; else no question ever comes.
async fn questions(listen: Option<SocketAddr>) -> Result<mpsc::Receiver<Question>, RunError> {
    let Some(address) = listen else {
        return Ok(mpsc::channel(1).1);
    };
    let served = metrics::serve(address).await;
    let (bound, questions) = served.map_err(|source| RunError::Listen { address, source })?;
    info!("serving /metrics and /healthz on {bound}");
    Ok(questions)
}

/// The core, and everything that its outputs go to.
struct Session<'o, W> {
    agent: Box<Agent>,
    config: Config,
    printer: Printer<'o, W>,
    runner: Runner,
    observed: Observed,
    notifier: Notifier,
    journal: Option<JournalWriter>,
    state: StateFile,
    /// When the state was last saved, and whether something has changed since.
    saved: Stamp,
    unsaved: Unsaved,
    /// Whether the last try to save failed.
    save_fails: bool,
    /// The kernel log device, to name it.
    kmsg: PathBuf,
    /// Where the node's file systems are mounted.
    host_root: PathBuf,
    /// When the watchdog last heard of the agent.
    fed: Stamp,
}

/// What of the state is not in its file yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unsaved {
    /// Something was told: a restart would tell it again.
    Told,
    /// Only the place in the log.
    Place,
    /// Nothing.
    Nothing,
}

impl<'o, W: Write> Session<'o, W> {
    fn start(
        args: &Args,
        config: Config,
        out: &'o mut W,
        format: Format,
    ) -> Result<Self, RunError> {
        let runner = Runner::new(probe::all(&args.host_root, &config));
        let mut settings = settings(args, &config);
        settings.schedule.probes = runner.offers();
        let state = StateFile::new(&args.state_dir, boot_id());
        let agent = state.load().unwrap_or_else(|problem| {
            warn!("{}", chain(&problem));
            None
        });
        let agent = agent.unwrap_or_else(|| Box::new(Agent::new(settings.clone())));
        let journal = args
            .journal
            .as_ref()
            .map(|path| JournalWriter::create(path.clone(), args.journal_max, boot_id(), &agent));
        let journal = journal.transpose().map_err(RunError::Journal)?;
        warn_of(&settings);
        let printer = Printer::new(out, format);
        let saved = clock::stamp();
        let unsaved = Unsaved::Nothing;
        let mut session = Self {
            agent,
            config,
            printer,
            runner,
            observed: Observed::default(),
            notifier: Notifier::from_environment(),
            journal,
            state,
            saved,
            unsaved,
            save_fails: false,
            kmsg: args.kmsg.clone(),
            host_root: args.host_root.clone(),
            fed: saved,
        };
        session.apply(Input::Started(settings))?;
        session.printer.flush().map_err(RunError::Write)?;
        Ok(session)
    }

    /// Reads the configuration again; a bad one changes nothing.
    fn reload(&mut self, args: &Args) -> Result<(), RunError> {
        let config = match ConfigFile::new(args.config.clone()).load() {
            Ok(config) => config,
            Err(problem) => {
                problem.lines().iter().for_each(|line| error!("{line}"));
                error!("the configuration stays as it was; mend the file and send SIGHUP again");
                return Ok(());
            }
        };
        if config.listen != self.config.listen {
            warn!("metrics.listen takes effect when the agent starts the next time");
        }
        let old = settings(args, &self.config);
        let mut new = settings(args, &config);
        self.config = config;
        if old == new {
            info!("read the configuration again: nothing changes for the checks");
            return Ok(());
        }
        new.schedule.probes = self.runner.offers();
        warn_of(&new);
        self.apply(Input::Configured(new))?;
        info!("read the configuration again: it is in force");
        Ok(())
    }

    fn on_batch(&mut self, batch: &Batch) -> Result<(), RunError> {
        for (event, record) in batch.iter() {
            match event {
                Event::Record { .. } => self.apply(Input::Record(record))?,
                Event::Overrun => self.apply(Input::LogOverrun)?,
                Event::Down { errno } => {
                    self.apply(Input::LogDown { errno })?;
                    error!("{}", outage(&self.kmsg, errno));
                }
                Event::CaughtUp => self.on_caught_up()?,
            }
        }
        Ok(())
    }

    fn on_wakeup(&mut self) -> Result<(), RunError> {
        while let Some(finished) = self.runner.give_up(clock::stamp().at) {
            self.on_finished(&finished)?;
        }
        self.apply(Input::Tick)
    }

    fn on_clearing(&mut self, clearing: Clearing) -> Result<(), RunError> {
        let Clearing { condition, by } = clearing;
        info!("{} is cleared by {by}", condition.row().name);
        self.apply(Input::ClearByHand { by: Text::display(by), condition })
    }

    fn on_question(&self, question: Question) {
        question.answer(clock::stamp(), &self.agent, &self.observed);
    }

    fn on_finished(&mut self, finished: &Finished) -> Result<(), RunError> {
        let kind = finished.kind;
        self.observed.check_took.insert(kind.index(), finished.took);
        for reading in finished.batch.readings() {
            self.apply(Input::Reading { kind, reading })?;
        }
        self.apply(Input::CheckEnded { kind, outcome: finished.outcome.clone() })
    }

    fn on_caught_up(&mut self) -> Result<(), RunError> {
        if self.agent.log().state() == LogState::Live {
            return Ok(());
        }
        self.apply(Input::LogCaughtUp)?;
        let log = self.agent.log();
        info!("following the kernel log: read {} records, lost {}", log.records(), log.lost());
        // Ready means that the reader is in its place: what comes from now on is told.
        self.notifier.send("READY=1");
        Ok(())
    }

    /// Steps the core and does what it says, until it asks for nothing more.
    fn apply(&mut self, input: Input<'_>) -> Result<(), RunError> {
        let is_record = matches!(input, Input::Record(_));
        for output in self.step(input)? {
            match output {
                Output::Check { kind } => {
                    if let Some(finished) = self.runner.start(clock::stamp().at, kind) {
                        self.on_finished(&finished)?;
                    }
                }
                Output::ReadMounts => self.read_mounts()?,
                Output::ReadTask { pid } => self.read_task(pid)?,
                Output::Event(event) => {
                    self.unsaved = Unsaved::Told;
                    self.note_event(&event);
                }
                Output::Condition { .. } | Output::Lost { .. } => self.unsaved = Unsaved::Told,
            }
        }
        if is_record && self.unsaved == Unsaved::Nothing {
            self.unsaved = Unsaved::Place;
        }
        Ok(())
    }

    fn note_event(&mut self, event: &agent::Event) {
        let reason = match event {
            agent::Event::Cleared { .. } => EventReason::ConditionCleared,
            agent::Event::Findings(write) => write.reason,
        };
        let writes = self.observed.event_writes.entry(reason.index()).or_default();
        *writes = writes.saturating_add(1);
    }

    fn read_mounts(&mut self) -> Result<(), RunError> {
        match mounts::read(&self.host_root) {
            Ok(table) => self.apply(Input::Mounts(&table)),
            Err(problem) => {
                warn!("cannot read the mount table, so a device counts as the node's: {problem}");
                self.apply(Input::MountsUnreadable)
            }
        }
    }

    fn read_task(&mut self, pid: u64) -> Result<(), RunError> {
        self.apply(Input::Task { pid, state: task::read(&self.host_root, pid) })
    }

    /// One step: journal, core, output.
    fn step(&mut self, input: Input<'_>) -> Result<Vec<Output>, RunError> {
        let step = Step { stamp: clock::stamp(), input };
        if let Some(journal) = &mut self.journal
            && let Err(problem) = journal.append(&step, &self.agent)
        {
            error!("the journal ends here: {}", chain(&problem));
            self.journal = None;
        }
        self.printer.step(&mut self.agent, step).map_err(RunError::Write)
    }

    /// Hands on what the turn has written, before the loop waits again.
    fn finish_turn(&mut self) -> Result<(), RunError> {
        self.printer.flush().map_err(RunError::Write)?;
        if let Some(journal) = &mut self.journal
            && let Err(problem) = journal.flush()
        {
            error!("the journal ends here: {}", chain(&problem));
            self.journal = None;
        }
        let now = clock::stamp();
        let due = match self.unsaved {
            Unsaved::Nothing => false,
            Unsaved::Told => now.at.since(self.saved.at) >= self.told_saved_every(),
            Unsaved::Place => now.at.since(self.saved.at) >= PLACE_SAVED_EVERY,
        };
        if due {
            self.save(now);
        }
        self.feed_watchdog(now);
        Ok(())
    }

    /// A flood is saved a few times, not once a turn.
    const fn told_saved_every(&self) -> Duration {
        if self.save_fails { SAVE_RETRIED_EVERY } else { TOLD_SAVED_EVERY }
    }

    /// Every turn of the loop is a sign of life; systemd need not hear of each.
    fn feed_watchdog(&mut self, now: Stamp) {
        if let Some(interval) = self.notifier.watchdog_interval()
            && now.at.since(self.fed.at) >= interval
        {
            self.fed = now;
            self.notifier.send("WATCHDOG=1");
        }
    }

    /// What could not be saved is tried again, and said once.
    fn save(&mut self, now: Stamp) {
        self.saved = now;
        match self.state.save(&self.agent) {
            Ok(()) => {
                self.unsaved = Unsaved::Nothing;
                self.save_fails = false;
            }
            Err(problem) if !self.save_fails => {
                self.save_fails = true;
                warn!("{}; trying again", chain(&problem));
            }
            Err(_) => {}
        }
    }

    fn until_wakeup(&self) -> Duration {
        let now = clock::stamp().at;
        let core = self.agent.next_wakeup().map(|at| at.since(now));
        let probe = self.runner.next_deadline().map(|at| at.since(now));
        let saves_every = match self.unsaved {
            Unsaved::Nothing => None,
            Unsaved::Place => Some(PLACE_SAVED_EVERY),
            Unsaved::Told => Some(self.told_saved_every()),
        };
        let place = saves_every.map(|every| every.saturating_sub(now.since(self.saved.at)));
        let watchdog = self.notifier.watchdog_interval();
        let watchdog = watchdog.map(|every| every.saturating_sub(now.since(self.fed.at)));
        // A millisecond more, so that the clock has passed the moment, not just reached it.
        let soonest = [core, probe, place, watchdog].into_iter().flatten().min();
        soonest.map_or(FOREVER, |wait| wait.saturating_add(Duration::from_millis(1)))
    }

    fn end(mut self) -> Result<(), RunError> {
        self.notifier.send("STOPPING=1");
        while !self.step(Input::Stopping)?.is_empty() {}
        self.finish_turn()?;
        self.save(clock::stamp());
        Ok(())
    }
}

/// Returns the configuration's settings under the flags, which win.
fn settings(args: &Args, config: &Config) -> Settings {
    use std::os::unix::ffi::OsStrExt as _;

    let mut settings = config.settings();
    settings.trust_userspace |= args.trust_userspace_kmsg;
    // The mount table shows paths without links.
    let directory = args.kubelet_dir.canonicalize().unwrap_or_else(|_| args.kubelet_dir.clone());
    let directory = directory.as_os_str().as_bytes();
    settings.kubelet_dir = Text::from_bytes(directory.strip_suffix(b"/").unwrap_or(directory));
    for (condition, clear) in &args.clear {
        if let Some(rule) = settings.clear.get_mut(condition.index()) {
            *rule = *clear;
        }
    }
    settings
}

fn warn_of(settings: &Settings) {
    if settings.trust_userspace {
        warn!("records that user space wrote count as the kernel's; use this for tests only");
    }
}

/// Says what an outage of the kernel log means and what to do about it.
fn outage(path: &Path, errno: i32) -> String {
    let problem = io::Error::from_raw_os_error(errno);
    let kind = problem.kind();
    let advice = if kind == io::ErrorKind::PermissionDenied {
        "run the agent as root or with CAP_SYSLOG"
    } else if kind == io::ErrorKind::NotFound {
        "mount the host's /dev/kmsg, or name the device with --kmsg"
    } else {
        "check that --kmsg names the kernel log device"
    };
    format!(
        "cannot read the kernel log {}: {problem}; its conditions are Unknown until it can be read \
         ({advice}); trying again",
        path.display()
    )
}

/// Parses `CONDITION=held|proof`.
fn clear_rule(argument: &str) -> Result<(ConditionType, Clear), String> {
    let (name, rule) = argument.split_once('=').ok_or("expected CONDITION=held or =proof")?;
    let condition = ConditionType::by_name(name)
        .ok_or_else(|| format!("there is no condition {name}; `catalog` lists them"))?;
    Ok((condition, config::clear_rule(condition, rule)?))
}

/// Parses a duration as Go writes it.
fn duration(argument: &str) -> Result<Duration, String> {
    config::duration::parse(argument).map_err(|problem| format!("{argument:?} {problem}"))
}

/// A service manager that asked is answered within 2 s.
const END_WITHIN: Duration = Duration::from_millis(1500);

/// The guard waits, and calls nothing deep.
const GUARD_STACK_BYTES: usize = 128 * 1024;

/// How often the place in the log is saved while nothing is told.
const PLACE_SAVED_EVERY: Duration = Duration::from_secs(1);

/// How often the state is saved at most while a lot is told.
///
/// What was told in this time is told again after a crash.
const TOLD_SAVED_EVERY: Duration = Duration::from_millis(50);

/// How often a state that could not be saved is tried again.
const SAVE_RETRIED_EVERY: Duration = Duration::from_secs(10);

/// As good as never: a year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_proven_is_cleared_by_proof() {
        let deadlock = ConditionType::KernelDeadlock;
        assert_eq!(clear_rule("KernelDeadlock=proof"), Ok((deadlock, Clear::Proof)));
        assert_eq!(clear_rule("KernelDeadlock=held"), Ok((deadlock, Clear::Held)));
        for wrong in
            ["KernelDeadlock", "Nonsense=held", "VerityCorruption=proof", "KernelDeadlock=x"]
        {
            assert!(clear_rule(wrong).is_err(), "{wrong}");
        }
    }

    fn args(config: PathBuf, state_dir: PathBuf) -> Args {
        Args {
            standalone: true,
            config: Some(config),
            trust_userspace_kmsg: false,
            kmsg: PathBuf::from("/dev/null"),
            state_dir,
            kubelet_dir: PathBuf::from("/var/lib/kubelet/"),
            journal: None,
            journal_max: 0,
            clear: vec![(ConditionType::KernelDeadlock, Clear::Held)],
            metrics_listen: None,
            run_for: None,
        }
    }

    #[test]
    fn a_reload_takes_a_good_file_and_keeps_the_old_one_at_a_bad() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("agent.yaml");
        let args = args(file.clone(), directory.path().to_owned());
        let mut out = Vec::new();
        let session = Session::start(&args, Config::default(), &mut out, Format::Json);
        let mut session = session.expect("started");
        session.apply(Input::LogCaughtUp).expect("applied");
        for (content, trusts, clear) in [
            ("role: king", false, Clear::Held),
            ("kmsg: {trustUserspace: true}", true, Clear::Held),
            ("kmsg: {trustUserspace: ", true, Clear::Held),
            ("conditions: {ReadonlyFilesystem: {clear: proof}}", false, Clear::Proof),
        ] {
            std::fs::write(&file, content).expect("written");
            session.reload(&args).expect("reloaded");
            let settings = session.agent.settings();
            assert_eq!(settings.trust_userspace, trusts, "{content}");
            let condition = ConditionType::ReadonlyFilesystem;
            assert_eq!(settings.clear[condition.index()], clear, "{content}");
            assert_eq!(session.agent.log().state(), LogState::Live, "{content}");
        }
    }

    #[test]
    fn flags_win_over_the_file() {
        let args = args(PathBuf::new(), PathBuf::new());
        let text =
            "conditions: {KernelDeadlock: {clear: proof}, ReadonlyFilesystem: {clear: proof}}";
        let settings = settings(&args, &Config::parse(text).expect("read"));
        assert_eq!(settings.clear[ConditionType::KernelDeadlock.index()], Clear::Held);
        assert_eq!(settings.clear[ConditionType::ReadonlyFilesystem.index()], Clear::Proof);
        assert_eq!(settings.kubelet_dir.as_str(), "/var/lib/kubelet");
    }
}
