//! The core, and everything that its inputs come from and its outputs go to.

use core::time::Duration;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fettle_core::bounds::CLEARED_BY_MAX;
use fettle_core::catalog::ConditionType;
use fettle_core::journal::{Stamp, Step};
use fettle_core::node::agent::{self, Agent, Input, Output, RestartResult};
use fettle_core::node::log::LogState;
use fettle_core::node::publisher;
use fettle_core::node::repair::{Ended, Reason, UnitName};
use fettle_core::text::Text;
use log::{error, info, warn};

use super::args::{Args, ClusterAccess, settings, warn_of};
use super::cluster::Cluster;
use super::saver::{Saver, Unsaved};
use super::{FOREVER, RunError};
use crate::clock;
use crate::config::{Config, ConfigFile};
use crate::errors::chain;
use crate::probe;
use crate::probe::kernel_log::{Batch, Event};
use crate::probe::place::Place;
use crate::probe::runner::{Finished, Runner};
use crate::publish::metrics::{Observed, Question};
use crate::publish::stdout::{Format, Printer};
use crate::store::boot_id;
use crate::store::clearing::Clearing;
use crate::store::journal::JournalWriter;
use crate::store::kept::KeptFile;
use crate::store::state::StateFile;
use crate::sys::notify::Notifier;
use crate::sys::{mounts, task};

/// The core, and everything that its outputs go to.
pub(super) struct Session<'o, W> {
    pub(super) agent: Box<Agent>,
    pub(super) config: Config,
    printer: Printer<'o, W>,
    pub(super) runner: Runner,
    observed: Observed,
    notifier: Notifier,
    journal: Option<JournalWriter>,
    pub(super) saver: Saver,
    /// Where there is a cluster, all that is known of it.
    pub(super) cluster: Option<Cluster>,
    /// What outlives a boot, where that can be read.
    pub(super) kept: Option<KeptFile>,
    /// The kernel log device, to name it.
    kmsg: PathBuf,
    pub(super) place: Place,
    /// When the watchdog last heard of the agent.
    fed: Stamp,
}

impl<'o, W: Write> Session<'o, W> {
    pub(super) fn start(
        args: &Args,
        config: Config,
        access: Option<ClusterAccess>,
        (out, format): (&'o mut W, Format),
    ) -> Result<Self, RunError> {
        let place = args.place.place(false);
        let runner = Runner::new(probe::all(&place, &config));
        let mut settings = settings(args, &place, &config);
        settings.schedule.probes = runner.offers();
        let state = StateFile::new(&place.state_dir, boot_id());
        let loaded = state.load().unwrap_or_else(|problem| {
            warn!("{}", chain(&problem));
            None
        });
        let (agent, publisher) =
            loaded.map_or((None, None), |(agent, publisher)| (Some(agent), publisher));
        let agent = agent.unwrap_or_else(|| Box::new(Agent::new(settings.clone())));
        let journal = args
            .journal
            .as_ref()
            .map(|path| JournalWriter::create(path.clone(), args.journal_max, boot_id(), &agent));
        let journal = journal.transpose().map_err(RunError::Journal)?;
        warn_of(&settings);
        let printer = Printer::new(out, format);
        let kept = KeptFile::open(args.data_dir()).map_err(|problem| error!("{}", chain(&problem)));
        let cluster = access.map(|access| Cluster::start(access.source, access.node, publisher));
        let now = clock::stamp();
        let mut session = Self {
            agent,
            config,
            printer,
            runner,
            observed: Observed::default(),
            notifier: Notifier::from_environment(),
            journal,
            saver: Saver::new(state, now),
            cluster,
            kept: kept.ok(),
            kmsg: args.kmsg.clone(),
            place,
            fed: now,
        };
        session.start_cluster(args.reboots(&session.config))?;
        session.apply(Input::Started(settings))?;
        session.hold_kept()?;
        session.printer.flush().map_err(RunError::Write)?;
        Ok(session)
    }

    /// Reads the configuration again; a bad one changes nothing.
    pub(super) fn reload(&mut self, args: &Args) -> Result<(), RunError> {
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
        if config.probes_differ(&self.config) {
            warn!("what is looked at has changed: it takes effect when the agent starts again");
        }
        let old = settings(args, &self.place, &self.config);
        let mut new = settings(args, &self.place, &config);
        self.config = config;
        let reboots = args.reboots(&self.config);
        self.publish(publisher::Input::Configured { reboots })?;
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

    pub(super) fn on_batch(&mut self, batch: &Batch) -> Result<(), RunError> {
        for (event, record) in batch.iter() {
            match event {
                Event::Record { .. } => self.on_record(record)?,
                Event::Overrun => self.apply(Input::LogOverrun)?,
                Event::Down { errno } => {
                    self.apply(Input::LogDown { errno })?;
                    error!("{}", outage(&self.kmsg, errno));
                    // The checks run, and the conditions say what is wrong: no reason to be killed.
                    self.notifier.ready();
                }
                Event::CaughtUp => self.on_caught_up()?,
            }
        }
        Ok(())
    }

    fn on_record(&mut self, record: &[u8]) -> Result<(), RunError> {
        let before = self.agent.counts().matched;
        self.apply(Input::Record(record))?;
        if self.agent.counts().matched != before {
            self.note_record(record);
        }
        Ok(())
    }

    pub(super) fn on_wakeup(&mut self) -> Result<(), RunError> {
        self.collect_runs()?;
        self.apply(Input::Tick)?;
        self.publish(publisher::Input::Tick)
    }

    pub(super) fn on_clearing(&mut self, clearing: Clearing) -> Result<(), RunError> {
        self.clear_by_hand(clearing.condition, Text::display(clearing.by))?;
        // The request is not there any more.
        self.save_now()
    }

    pub(super) fn clear_by_hand(
        &mut self,
        condition: ConditionType,
        by: Text<CLEARED_BY_MAX>,
    ) -> Result<(), RunError> {
        info!("{} is cleared by {by}", condition.row().name);
        self.runner.forget(condition.row().reading);
        self.apply(Input::ClearByHand { by, condition })
    }

    pub(super) fn on_question(&self, question: Question) {
        let publisher = self.cluster.as_ref().map(|cluster| &*cluster.publisher);
        question.answer(clock::stamp(), &self.agent, publisher, &self.observed);
    }

    pub(super) fn on_finished(&mut self, finished: &Finished) -> Result<(), RunError> {
        let kind = finished.kind;
        self.observed.check_took.insert(kind.index(), finished.took);
        for reading in finished.batch.readings() {
            self.apply(Input::Reading { kind, reading })?;
        }
        self.apply(Input::CheckEnded { kind, outcome: finished.outcome.clone() })?;
        self.note_rows(kind, &finished.rows)
    }

    fn on_caught_up(&mut self) -> Result<(), RunError> {
        if self.agent.log().state() == LogState::Live {
            return Ok(());
        }
        self.apply(Input::LogCaughtUp)?;
        let log = self.agent.log();
        info!("following the kernel log: read {} records, lost {}", log.records(), log.lost());
        // Ready means that the reader is in its place: what comes from now on is told.
        self.notifier.ready();
        Ok(())
    }

    /// Steps the core and does what it says, until it asks for nothing more.
    pub(super) fn apply(&mut self, input: Input<'_>) -> Result<(), RunError> {
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
                Output::RestartUnit { unit, reason } => self.restart_unit(unit, reason)?,
                Output::Event(event) => {
                    self.saver.note(Unsaved::Told);
                    self.on_event(&event)?;
                }
                Output::Condition { change, condition } => {
                    self.saver.note(Unsaved::Told);
                    self.keep_held(condition);
                    self.publish(publisher::Input::Changed { condition, change })?;
                }
                Output::Lost { .. } => self.saver.note(Unsaved::Told),
            }
        }
        if is_record {
            self.saver.note(Unsaved::Place);
        }
        Ok(())
    }

    fn on_event(&mut self, event: &agent::Event) -> Result<(), RunError> {
        let writes = self.observed.event_writes.entry(event.reason().index()).or_default();
        *writes = writes.saturating_add(1);
        if let agent::Event::Cleared { condition, .. } = event {
            self.keep_cleared(*condition);
        }
        self.publish(publisher::Input::Happened(event))
    }

    fn read_mounts(&mut self) -> Result<(), RunError> {
        match mounts::read(&self.place.root) {
            Ok(table) => self.apply(Input::Mounts(&table)),
            Err(problem) => {
                warn!("cannot read the mount table, so a device counts as the node's: {problem}");
                self.apply(Input::MountsUnreadable)
            }
        }
    }

    fn read_task(&mut self, pid: u64) -> Result<(), RunError> {
        self.apply(Input::Task { pid, state: task::read(&self.place.root, pid) })
    }

    /// Refuses every restart: this version has no way to systemd.
    fn restart_unit(&mut self, unit: UnitName, reason: Reason) -> Result<(), RunError> {
        warn!("{unit} should be restarted, which this version cannot do: {reason}");
        let why = Text::from_bytes(b"this version cannot restart units");
        let result = RestartResult { ended: Ended::Refused, why };
        self.apply(Input::RestartEnded { result, unit })
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

    /// Takes the runs that have ended or are too late, however busy the log is.
    fn collect_runs(&mut self) -> Result<(), RunError> {
        while let Some(finished) = self.runner.try_next() {
            self.on_finished(&finished)?;
        }
        while let Some(finished) = self.runner.give_up(clock::stamp().at) {
            self.on_finished(&finished)?;
        }
        Ok(())
    }

    /// Hands on what the turn has written, before the loop waits again.
    pub(super) fn finish_turn(&mut self) -> Result<(), RunError> {
        self.collect_runs()?;
        self.flush()?;
        let now = clock::stamp();
        // However busy the log is, what is due is written.
        if self.until_publisher(now.at).is_zero() {
            self.publish(publisher::Input::Tick)?;
        }
        if self.saver.is_due(now) {
            self.save_now()?;
        }
        self.feed_watchdog(now);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.printer.flush().map_err(RunError::Write)?;
        if let Some(journal) = &mut self.journal
            && let Err(problem) = journal.flush()
        {
            error!("the journal ends here: {}", chain(&problem));
            self.journal = None;
        }
        Ok(())
    }

    /// Saves at the end of this turn, or as soon as that is not too often.
    pub(super) fn save_soon(&mut self) {
        self.saver.note(Unsaved::Awaited);
    }

    /// Saves, and lets go what waited for it.
    pub(super) fn save_now(&mut self) -> Result<(), RunError> {
        let is_awaited = self.saver.is_awaited();
        let publisher = self.cluster.as_ref().map(|cluster| &*cluster.publisher);
        self.saver.save(clock::stamp(), &self.agent, publisher);
        if is_awaited {
            return self.publish(publisher::Input::Saved);
        }
        Ok(())
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

    pub(super) fn until_wakeup(&self) -> Duration {
        let now_stamp = clock::stamp();
        let now = now_stamp.at;
        let core = self.agent.next_wakeup().map(|at| at.since(now));
        let probe = self.runner.next_deadline().map(|at| at.since(now));
        let save = self.saver.until_due(now_stamp);
        let watchdog = self.notifier.watchdog_interval();
        let watchdog = watchdog.map(|every| every.saturating_sub(now.since(self.fed.at)));
        // A millisecond more, so that the clock has passed the moment, not just reached it.
        let soonest = [core, probe, save, watchdog, Some(self.until_publisher(now))];
        let soonest = soonest.into_iter().flatten().min();
        soonest.map_or(FOREVER, |wait| wait.saturating_add(Duration::from_millis(1)))
    }

    /// Says what is still to be said; nothing is read after it.
    pub(super) fn stop(&mut self) -> Result<(), RunError> {
        self.notifier.send("STOPPING=1");
        loop {
            let outputs = self.step(Input::Stopping)?;
            if outputs.is_empty() {
                // A run that has ended meanwhile is left: nothing comes after the summary.
                return self.flush();
            }
            for output in outputs {
                if let Output::Event(event) = output {
                    self.on_event(&event)?;
                }
            }
        }
    }

    pub(super) fn end(mut self) -> Result<(), RunError> {
        self.save_now()
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

#[cfg(test)]
mod tests {
    use fettle_core::catalog::{Clear, ConditionType};

    use super::*;
    use crate::run::args::tests::args;

    #[test]
    fn a_reload_takes_a_good_file_and_keeps_the_old_one_at_a_bad() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("agent.yaml");
        let args = args(file.clone(), directory.path().to_owned());
        let mut out = Vec::new();
        let session = Session::start(&args, Config::default(), None, (&mut out, Format::Json));
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
    fn the_summary_is_the_last_line_whichever_checks_have_ended() {
        let directory = tempfile::tempdir().expect("a directory");
        let args = args(directory.path().join("agent.yaml"), directory.path().to_owned());
        let mut out = Vec::new();
        let session = Session::start(&args, Config::default(), None, (&mut out, Format::Json));
        let mut session = session.expect("started");
        session.apply(Input::LogCaughtUp).expect("applied");
        // The clock, at least, is read by then; its run is not collected.
        std::thread::sleep(Duration::from_millis(500));
        session.stop().expect("stopped");
        session.stop().expect("stopped");
        session.end().expect("ended");
        let text = String::from_utf8(out).expect("JSON");
        let last = text.lines().last().unwrap_or_default();
        assert!(last.contains(r#""kind":"summary""#), "{text}");
    }
}
