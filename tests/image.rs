//! The driver image that `IPOIB_IMAGE` names, beside the driver linked into the lab; and images broken on purpose.

use std::path::PathBuf;

use ipoib_lab::fault::{Plan, Sweep};
use ipoib_lab::image::{ImageError, ImageFile};
use ipoib_lab::scenario::report::Wall;
use ipoib_lab::scenario::{
    DriverSource, IMAGE_VARIABLE, MainJob, Observer, Subnet, SubnetConfig, Unfinished,
};
use object::LittleEndian as LE;
use object::pe::ImageNtHeaders64;
use object::read::pe::{Import, PeFile64};

fn path() -> PathBuf {
    let path = std::env::var_os(IMAGE_VARIABLE);
    path.unwrap_or_else(|| panic!("{IMAGE_VARIABLE} names no image: run `cargo xtask test-image`")).into()
}

fn bytes() -> Vec<u8> {
    std::fs::read(path()).expect("the image")
}

struct Unobserved;

impl Observer for Unobserved {}

/// The report of the main job, all of it but the wall clock.
fn report(hosts: usize, seed: u64, source: DriverSource) -> String {
    let job = MainJob { bytes: Some(256 << 10), source, ..MainJob::new(hosts, seed) };
    let mut report = job.run(&mut Unobserved);
    assert!(report.passed, "{:?} {:?}", report.failures, report.violation_list);
    report.wall = Wall::default();
    format!("{report:#?}")
}

#[test]
fn an_image_does_what_the_linked_driver_does_step_by_step() {
    let image = DriverSource::image(&path()).expect("an image the lab can load");
    for (hosts, seed) in [(2, 1), (3, 7), (8, 23)] {
        // The trace hash is part of the report: every scheduling decision and every event.
        assert_eq!(report(hosts, seed, DriverSource::Native), report(hosts, seed, image.clone()));
    }
}

#[test]
fn call_sites_in_the_image_are_told_apart_and_named() {
    // Each run goes one fallible call further than the one before.
    let sites = |source: DriverSource| {
        let sweep = Sweep::new();
        for _ in 0..12 {
            let config = SubnetConfig { source: source.clone(), ..SubnetConfig::new(1, 1) };
            let subnet = Subnet::new(&config).expect("a topology");
            subnet.hosts[0].machine.faults().set(Plan::Sweep(sweep.clone()));
            match subnet.boot() {
                Ok(()) | Err(Unfinished::Boot(..)) => {}
                Err(error) => panic!("{error}"),
            }
            sweep.next_run();
        }
        sweep.sites()
    };
    let image = sites(DriverSource::image(&path()).expect("an image"));
    let native = sites(DriverSource::Native);
    let calls = |sites: &[ipoib_lab::fault::SiteReport]| {
        let mut calls: Vec<_> = sites.iter().map(|site| site.call).collect();
        calls.sort_unstable();
        calls
    };
    assert!(!native.is_empty());
    assert_eq!(calls(&image), calls(&native));
    for site in &image {
        let stack = site.stack();
        let entered = |line: &String| line.contains("DriverEntry") || line.contains("miniport_initialize_ex");
        assert!(stack.iter().any(entered), "{} from {stack:#?}", site.call);
    }
}

/// The image with something about it changed, or what is wrong with it.
fn broken(change: impl FnOnce(&mut Vec<u8>)) -> Result<DriverSource, ImageError> {
    let mut bytes = bytes();
    change(&mut bytes);
    DriverSource::of_file(ImageFile::from_bytes("broken.sys", bytes)?)
}

#[test]
fn an_import_that_does_not_exist_is_refused_by_its_name() {
    let result = broken(|bytes| {
        let name = b"KeLowerIrql\0";
        let at = bytes.windows(name.len()).position(|window| window == name).expect("the import's name");
        bytes[at..at + 2].copy_from_slice(b"Xy");
    });
    match result {
        Err(ImageError::MissingImports(missing)) => {
            let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
            assert_eq!(names, ["ntoskrnl.exe!XyLowerIrql"]);
        }
        other => panic!("{other:?}"),
    }
}

/// Where the file keeps the lookup and the address of an import.
fn thunks(bytes: &[u8], wanted: &str) -> [usize; 2] {
    let image = PeFile64::parse(bytes).expect("an image");
    let table = image.import_table().expect("a table").expect("imports");
    let mut descriptors = table.descriptors().expect("descriptors");
    while let Some(descriptor) = descriptors.next().expect("a descriptor") {
        let [lookup, address] = [descriptor.original_first_thunk.get(LE), descriptor.first_thunk.get(LE)]
            .map(|rva| {
                image
                    .section_table()
                    .section_containing(rva)
                    .and_then(|section| section.pe_file_range_at(rva))
            });
        let mut thunks = table.thunks(descriptor.original_first_thunk.get(LE)).expect("thunks");
        let mut index = 0;
        while let Some(thunk) = thunks.next::<ImageNtHeaders64>().expect("a thunk") {
            if let Import::Name(_, name) = table.import::<ImageNtHeaders64>(thunk).expect("an import")
                && name == wanted.as_bytes()
            {
                return [lookup, address].map(|range| range.expect("in a section").0 as usize + index * 8);
            }
            index += 1;
        }
    }
    panic!("no import {wanted}")
}

#[test]
fn a_verb_at_dispatch_ends_the_run() {
    // Releasing a lock no longer lowers the IRQL, so what follows runs at DISPATCH_LEVEL.
    let source = broken(|bytes| {
        let from = thunks(bytes, "KeReleaseSpinLockFromDpcLevel");
        let to = thunks(bytes, "KeReleaseSpinLock");
        for (from, to) in from.into_iter().zip(to) {
            bytes.copy_within(from..from + 8, to);
        }
    });
    let source = source.expect("its imports exist");
    let subnet = Subnet::new(&SubnetConfig { source, ..SubnetConfig::new(1, 1) }).expect("a topology");
    let Err(Unfinished::Run(outcome)) = subnet.bring_up() else { panic!("nobody noticed") };
    assert!(outcome.rule().is_some_and(|rule| rule.contains("IRQL")), "{outcome}");
}

#[test]
fn an_image_can_be_loaded_again_after_its_unload() {
    let source = DriverSource::image(&path()).expect("an image");
    let subnet = Subnet::new(&SubnetConfig { source, ..SubnetConfig::new(2, 5) }).expect("a topology");
    for round in 0..3 {
        subnet.bring_up().unwrap_or_else(|error| panic!("round {round}: {error}"));
        subnet.stop().unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}
