//! The one loop: wait, collect an input, step the core, do the outputs.

mod args;
mod cluster;
mod evidence;
mod saver;
mod session;

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, Write};
use std::thread;

use log::{error, info, warn};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::sleep;

use self::cluster::Cluster;
use self::session::Session;
use crate::config::{ConfigError, ConfigFile};
use crate::probe::{clearings, kernel_log};
use crate::publish::metrics::{self, Question};
use crate::publish::stdout::Format;
use crate::store::clearing::Clearing;
use crate::store::journal::JournalError;

pub use self::args::Args;

/// Why the agent ends otherwise than it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing reads the kernel log any more.
    #[error("the thread that reads the kernel log has ended")]
    Blind,
    /// It does not know which Node is its own, or who it is.
    #[error("cannot start: {0}")]
    Cluster(String),
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
    let usual = config.listen;
    let by_file = config.is_set("metrics.listen").then_some(usual);
    let access = args.cluster().map_err(RunError::Cluster)?;
    let mut session = Session::start(&args, config, access, (out, format))?;
    let mut batches = kernel_log::follow(args.kmsg.clone()).map_err(RunError::Start)?;
    let mut clearings = clearings(&args);
    let mut questions = questions(args.metrics_listen.or(by_file), usual).await?;
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
            Some(asked) = Cluster::next(&mut session.cluster) => session.on_asked(asked)?,
            batch = batches.recv() => session.on_batch(&batch.ok_or(RunError::Blind)?)?,
            Some(clearing) = clearings.recv() => session.on_clearing(clearing)?,
            Some(question) = questions.recv() => session.on_question(question),
            Some(finished) = session.runner.next() => session.on_finished(&finished)?,
            () = wakeup => session.on_wakeup()?,
        }
        session.finish_turn()?;
        if session.cluster.is_some() {
            // However busy the log is, requests are to be sent.
            yield_now().await;
        }
    }
    session.stop()?;
    session.flush_cluster().await?;
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
    clearings::follow(&args.place.state_dir).unwrap_or_else(|problem| {
        let directory = args.place.state_dir.display();
        warn!("cannot watch {directory}, so `clear` does not reach this agent: {problem}");
        mpsc::channel(1).1
    })
}

/// Serves metrics on the address that is named, or on the usual one if nobody else does.
async fn questions(
    named: Option<SocketAddr>,
    usual: SocketAddr,
) -> Result<mpsc::Receiver<Question>, RunError> {
    let address = named.unwrap_or(usual);
    match metrics::serve(address).await {
        Ok((bound, questions)) => {
            info!("serving /metrics and /healthz on {bound}");
            Ok(questions)
        }
        Err(source) if named.is_some() => Err(RunError::Listen { address, source }),
        Err(problem) => {
            warn!("cannot serve metrics on {address}, going on without: {problem}");
            Ok(mpsc::channel(1).1)
        }
    }
}

/// A service manager that asked is answered within 2 s.
const END_WITHIN: Duration = Duration::from_millis(1500);

/// The guard waits, and calls nothing deep.
const GUARD_STACK_BYTES: usize = 128 * 1024;

/// As good as never: a year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
