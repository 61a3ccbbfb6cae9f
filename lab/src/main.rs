//! `ipoib-lab`: the command line of the lab.
//!
//! Exit status: 0 if all that was asked for held, 1 if it did not, 2 if the question made no sense.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{run, tap};

/// Simulated Windows hosts, each with the real IPoIB driver on its own adapter, on a simulated InfiniBand fabric.
#[derive(Parser)]
#[command(name = "ipoib-lab", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Options,
}

#[derive(Subcommand)]
enum Command {
    /// Bring up hosts, carry ping and TCP between them, disturb the fabric, halt and unload (the default)
    Run(run::Options),
    /// Put each host's adapter into a network namespace as a TAP device, for real programs, until interrupted (needs root)
    Tap(tap::Options),
}

/// What a command came to.
pub(crate) enum Failure {
    /// Something that was asked for did not hold.
    Failed(String),
    /// The options cannot be served.
    Usage(String),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return complain_or_help(&error),
    };
    let outcome = match arguments.command {
        None => run::run(&arguments.run),
        Some(Command::Run(options)) => run::run(&options),
        Some(Command::Tap(options)) => tap::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(why)) => {
            eprintln!("ipoib-lab: {why}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(why)) => {
            eprintln!("ipoib-lab: {why}");
            ExitCode::from(2)
        }
    }
}

/// Help goes to stdout as it is; of a wrong option only the one line that says what is wrong.
fn complain_or_help(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        print!("{error}");
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let reason = text.lines().next().unwrap_or_default();
    eprintln!("ipoib-lab: {} (see --help)", reason.trim_start_matches("error: "));
    ExitCode::from(2)
}
