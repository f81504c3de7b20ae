//! The controller's binary; it says its version.

use clap::Parser;

/// Repairs, checks and notifies for a fleet of nodes.
#[derive(Debug, Parser)]
#[command(name = "fettle-controller", version, about, arg_required_else_help = true)]
struct Arguments {}

fn main() {
    let Arguments {} = Arguments::parse();
}
