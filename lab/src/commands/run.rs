//! The main job: hosts come up, talk, are disturbed, and go down in order.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ipoib_lab::fabric::capture::CaptureWriter;
use ipoib_lab::fabric::{Nanos, Packet};
use ipoib_lab::scenario::report::{Report, Wall};
use ipoib_lab::scenario::{MainJob, Observer, Part, Subnet, render};
use ipoib_lab::sim::Mode;

use super::driver::DriverOptions;
use crate::Failure;

/// How the main job is to be run.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Hosts on the fabric
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=256))]
    hosts: u16,
    /// Seed of every choice the simulation makes
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Bytes of each TCP transfer [default: 8 MiB, less when there are many pairs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    bytes: Option<u64>,
    /// Write every packet of the fabric to a capture file (pcap that Wireshark opens)
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Run on real threads and real time instead of the deterministic scheduler
    #[arg(long)]
    threads: bool,
    #[command(flatten)]
    driver: DriverOptions,
}

/// Runs it and prints what it found.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let source = options.driver.source()?;
    let capture = options.capture.as_ref().map(|path| Capture::create(path)).transpose()?;
    let job = MainJob {
        bytes: options.bytes,
        mode: if options.threads { Mode::Threaded } else { Mode::Deterministic },
        source,
        ..MainJob::new(usize::from(options.hosts), options.seed)
    };
    if !options.json {
        println!(
            "{} Windows hosts on an InfiniBand fabric, {}, seed {}",
            options.hosts,
            if options.threads { "threaded" } else { "deterministic" },
            options.seed
        );
    }
    let started = Instant::now();
    let mut watcher =
        Watcher { json: options.json, capture: capture.as_ref(), bar: None, packets: Arc::default() };
    let mut report = job.run(&mut watcher);
    watcher.clear();
    let seconds = started.elapsed().as_secs_f64();
    let packets = watcher.packets.load(Ordering::Relaxed);
    #[allow(clippy::cast_precision_loss, reason = "a rate for people to read")]
    let packets_per_second = packets as f64 / seconds;
    report.wall = Wall { seconds, packets_per_second };

    if let Some(capture) = capture {
        capture.finish()?;
    }
    if options.json {
        let json =
            serde_json::to_string_pretty(&report).map_err(|error| Failure::Failed(error.to_string()))?;
        println!("{json}");
    } else {
        print!("{}", render::verdict(&report));
    }
    if report.passed { Ok(()) } else { Err(Failure::Failed("not everything held".to_owned())) }
}

/// A capture file that the fabric writes to while it runs.
struct Capture {
    path: PathBuf,
    shared: Arc<Mutex<Writing>>,
}

struct Writing {
    writer: Option<CaptureWriter<BufWriter<File>>>,
    failed: Option<io::Error>,
}

impl Capture {
    fn create(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| Failure::Usage(format!("cannot write {}: {error}", path.display()));
        let file = File::create(path).map_err(cannot)?;
        let writer = CaptureWriter::new(BufWriter::new(file)).map_err(cannot)?;
        let shared = Arc::new(Mutex::new(Writing { writer: Some(writer), failed: None }));
        Ok(Self { path: path.to_path_buf(), shared })
    }

    fn finish(self) -> Result<(), Failure> {
        let mut writing = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = match (writing.failed.take(), writing.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish().and_then(|mut file| file.flush()),
            (None, None) => Ok(()),
        };
        ended.map_err(|error| Failure::Failed(format!("cannot write {}: {error}", self.path.display())))
    }
}

impl Writing {
    fn write(&mut self, at: Nanos, packet: &Packet) {
        if self.failed.is_none()
            && let Some(writer) = &mut self.writer
        {
            self.failed = writer.write(at, packet).err();
        }
    }
}

/// Prints each part when it is over, and a bar while bytes are under way.
struct Watcher<'a> {
    json: bool,
    capture: Option<&'a Capture>,
    bar: Option<ProgressBar>,
    packets: Arc<AtomicU64>,
}

impl Watcher<'_> {
    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Watcher<'_> {
    fn wired(&mut self, subnet: &Subnet) {
        let packets = Arc::clone(&self.packets);
        let writing = self.capture.map(|capture| Arc::clone(&capture.shared));
        let tap = move |at: Nanos, _port, packet: &Packet| {
            packets.fetch_add(1, Ordering::Relaxed);
            if let Some(writing) = &writing {
                writing.lock().unwrap_or_else(PoisonError::into_inner).write(at, packet);
            }
        };
        subnet.net.with(|fabric, _| fabric.set_tap(Some(Box::new(tap))));
    }

    fn finished(&mut self, part: Part, report: &Report) {
        self.clear();
        if self.json {
            return;
        }
        let text = match part {
            Part::BringUp => render::timeline(&report.hosts, "Bring-up: every transition of a queue pair"),
            Part::Ping => render::ping(report),
            Part::Transfers => render::transfers(&report.transfers),
            Part::Disturbances => render::disturbances(&report.disturbances),
            Part::Addresses => render::addresses(&report.hosts, report.addresses_agree),
            Part::Stop => render::ends(report),
        };
        print!("{text}");
        // What was printed is on the screen before the next part runs.
        let _ = io::stdout().flush();
    }

    fn progress(&mut self, what: &str, done: u64, total: u64) {
        if self.json {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("  {msg:<28} {wide_bar} {bytes}/{total_bytes}")
                .expect("the template is constant and right");
            ProgressBar::new(total).with_style(style)
        });
        bar.set_message(what.to_owned());
        bar.set_length(total);
        bar.set_position(done);
    }
}
