//! Reads what the benchmark `driver` measured, prints it as the table of docs/performance.md, and checks that it is
//! what the design asks for: no copy of the payload, and a cost that does not depend on how many peers are known.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the names are callgrind's own")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ipoib_benches::cases::{BATCHES, PACKETS, PEERS, SIZES};
use ipoib_benches::profile::Profile;
use ipoib_lab::{kernel, ndis};

/// Instructions by which a packet of 2,044 bytes may differ from one of 64: a copy of what it is longer by would
/// take 1,980 bytes / 32 bytes = 62 loads and as many stores at the very least.
const SIZE_ALLOWANCE: u64 = 40;
/// Parts in a hundred by which 100,000 known peers may cost more than one.
const PEERS_ALLOWANCE: u64 = 10;

fn main() -> ExitCode {
    let Some(home) = gungraun_home() else {
        println!("figures: nothing measured yet");
        return ExitCode::SUCCESS;
    };
    let exports: Vec<_> = kernel::exports().chain(ndis::exports()).map(|export| export.name).collect();
    let mut faults = Vec::new();
    println!("\nInstructions inside the driver, for each packet (callgrind, {PACKETS} packets a case)\n");
    println!("| | peers | {} | {} |", header(SIZES[0]), header(SIZES[1]));
    println!("|---|---:|---:|---:|---:|---:|");
    let mut dearest = Vec::new();
    for direction in ["send", "receive"] {
        let mut first = None;
        for peers in PEERS {
            let mut row = Vec::new();
            for size in SIZES {
                for batch in BATCHES {
                    let name = format!("{direction}.p{peers}_b{size}_x{batch}");
                    let Some(profile) = read(&home, &name) else {
                        println!("figures: no profile of {name}");
                        return ExitCode::FAILURE;
                    };
                    row.push(profile.outside_lab(&exports) / PACKETS as u64);
                    if peers == PEERS[0] && size == SIZES[0] && batch == BATCHES[1] {
                        dearest.push((direction, profile));
                    }
                }
            }
            let cells: Vec<_> = row.iter().map(u64::to_string).collect();
            println!("| {direction} | {peers} | {} |", cells.join(" | "));
            for (small, large) in row.iter().zip(&row[BATCHES.len()..]) {
                if small.abs_diff(*large) > SIZE_ALLOWANCE {
                    faults.push(format!(
                        "{direction}, {peers} peers: {small} or {large}, depending on the size"
                    ));
                }
            }
            let few = first.get_or_insert_with(|| row.clone());
            for (few, many) in few.iter().zip(&row) {
                if many * 100 > few * (100 + PEERS_ALLOWANCE) {
                    faults.push(format!("{direction}: {few} with one peer known, {many} with {peers}"));
                }
            }
        }
    }
    if std::env::var_os("FIGURES_FUNCTIONS").is_some() {
        for (direction, profile) in &dearest {
            println!("\n{direction}, one peer, {} at a time:", BATCHES[1]);
            for (name, cost) in profile.functions(&exports).into_iter().take(25) {
                println!("{:>6} {name}", cost / PACKETS as u64);
            }
        }
    }
    println!();
    for fault in &faults {
        println!("figures: {fault}");
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn header(size: usize) -> String {
    BATCHES.map(|batch| format!("{size} bytes, {batch} at a time")).join(" | ")
}

/// Where the runner keeps profiles: in the target directory that this program was built in.
fn gungraun_home() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let home = program.ancestors().map(|above| above.join("gungraun")).find(|home| home.is_dir());
    home.filter(|home| find(home, "send.p1_b64_x1").is_some())
}

/// The directory of this name, anywhere below.
fn find(below: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(below).ok()?.filter_map(Result::ok);
    let mut directories: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    directories.sort();
    directories
        .iter()
        .find(|path| path.file_name().is_some_and(|found| found == name))
        .cloned()
        .or_else(|| directories.iter().find_map(|path| find(path, name)))
}

/// The profile of a case, its parts added up.
fn read(home: &Path, name: &str) -> Option<Profile> {
    let directory = find(home, name)?;
    let files = std::fs::read_dir(directory).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let profiles = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("callgrind.") && name.ends_with(".out")
    });
    let text: String = profiles.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    (!text.is_empty()).then(|| Profile::parse(&text))
}
