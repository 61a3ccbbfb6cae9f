//! The built image passes every check, and each way to break it is found by the check that is for it and by no other.

use std::path::PathBuf;
use std::sync::LazyLock;

use object::LittleEndian as LE;
use object::read::pe::{ImageNtHeaders, PeFile64};

use super::headers::bytes_at;
use super::symbols::Symbols;
use super::{Report, run, unwind};
use crate::{checksum, image};

/// The image and its symbols, built once.
static BUILT: LazyLock<(Vec<u8>, PathBuf)> = LazyLock::new(|| {
    let out = image::target_dir().expect("a workspace").join("image-checked");
    let sys = image::build(Some(out)).expect("the image builds");
    (std::fs::read(&sys).expect("the image"), sys.with_extension("pdb"))
});

/// What the checks find in the image after `change`, as `check: finding`.
fn findings(change: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
    let (image, pdb) = &*BUILT;
    let mut image = image.clone();
    change(&mut image);
    let reports = run(&image, pdb).expect("still an image");
    let lines = |Report { name, findings, .. }: Report| {
        findings.into_iter().map(move |line| format!("{name}: {line}"))
    };
    reports.into_iter().flat_map(lines).collect()
}

/// As above, with the checksum made right again.
fn found(change: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
    findings(|image| {
        change(image);
        checksum::set(image).expect("headers");
    })
}

fn pe(image: &[u8]) -> PeFile64<'_> {
    PeFile64::parse(image).expect("an image")
}

/// File offset of the PE signature.
fn nt_headers(image: &[u8]) -> usize {
    pe(image).dos_header().nt_headers_offset() as usize
}

/// File offset of an address.
fn offset(image: &[u8], address: u32) -> usize {
    let pe = pe(image);
    let bytes = bytes_at(&pe, address).expect("in a section");
    bytes.as_ptr() as usize - image.as_ptr() as usize
}

fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

#[test]
fn the_built_image_passes() {
    assert!(findings(|_| ()).is_empty());
}

#[test]
fn each_header_field_is_checked() {
    // Offsets from the PE signature ("PE Format", COFF File Header and Optional Header).
    let directory = |index: usize| 24 + 112 + 8 * index;
    let cases: [(usize, &[u8], &str); 7] = [
        (4, &[0x64, 0xaa], "headers: machine is "),
        (24 + 16, &[0; 4], "headers: no entry point"),
        (24 + 68, &[3, 0], "headers: subsystem is "),
        (directory(5), &[0; 8], "headers: no relocations"),
        (directory(9), &[0, 0x10, 0, 0, 40, 0, 0, 0], "headers: thread-local storage"),
        (24 + 32, &[0, 2, 0, 0], "sections: section alignment"),
        (directory(2), &[0; 8], "resources: no resources"),
    ];
    for (at, bytes, finding) in cases {
        let found = found(|image| {
            let at = nt_headers(image) + at;
            put(image, at, bytes);
        });
        assert!(matches!(&found[..], [only] if only.starts_with(finding)), "{finding}: {found:?}");
    }
}

#[test]
fn each_mitigation_flag_is_checked() {
    for (bit, name) in [(0x40_u16, "dynamic base"), (0x100, "NX compatible"), (0x20, "high-entropy VA")] {
        let found = found(|image| {
            let at = nt_headers(image) + 24 + 70;
            let flags = pe(image).nt_headers().optional_header().dll_characteristics.get(LE).0 & !bit;
            put(image, at, &flags.to_le_bytes());
        });
        assert_eq!(found, [format!("headers: not marked {name}")]);
    }
}

#[test]
fn a_wrong_checksum_is_found() {
    let found = findings(|image| {
        let at = nt_headers(image) + 24 + 64;
        put(image, at, &[0; 4]);
    });
    assert!(matches!(&found[..], [only] if only.starts_with("checksum: it is 0x0")), "{found:?}");
}

/// File offset of the header of a section.
fn section(image: &[u8], name: &str) -> usize {
    let table = nt_headers(image)
        + 24
        + usize::from(pe(image).nt_headers().file_header().size_of_optional_header.get(LE));
    let index = pe(image).section_table().iter().position(|section| section.raw_name() == name.as_bytes());
    table + 40 * index.expect("a section of this name")
}

#[test]
fn writable_code_is_found() {
    let found = found(|image| {
        let at = section(image, ".text") + 36 + 3;
        image[at] |= 0x80; // IMAGE_SCN_MEM_WRITE
    });
    assert_eq!(found, ["sections: .text is writable and executable"]);
}

#[test]
fn each_resource_is_missed() {
    for (kind, name) in [(16_u32, "version"), (11, "message table")] {
        let found = found(|image| {
            let start =
                offset(image, pe(image).data_directory(2).expect("resources").virtual_address.get(LE));
            // The root: 16 bytes, the last two being the number of entries by number, then 8 bytes an entry.
            let count = usize::from(image[start + 14]);
            let entry = (0..count)
                .map(|index| start + 16 + 8 * index)
                .find(|&at| image[at..at + 4] == kind.to_le_bytes())
                .expect("a resource of this type");
            image[entry + 1] = 0x70;
        });
        assert_eq!(found, [format!("resources: no {name} resource")]);
    }
}

fn replace(image: &mut [u8], from: &[u8], to: &[u8]) {
    let at = image.windows(from.len()).position(|window| window == from).expect("the text");
    put(image, at, to);
}

#[test]
fn an_import_that_windows_lacks_is_found() {
    let found = found(|image| replace(image, b"KeLowerIrql\0", b"KeLowerIrqx\0"));
    assert_eq!(found, ["imports: ntoskrnl.exe does not export KeLowerIrqx"]);
}

#[test]
fn imports_from_a_module_of_user_mode_are_found() {
    let found = found(|image| replace(image, b"ndis.sys\0", b"ntdl.dll\0"));
    assert!(!found.is_empty());
    assert!(
        found.iter().all(|line| line.starts_with("imports: Ndis") && line.ends_with(" comes from ntdl.dll")),
        "{found:?}"
    );
}

#[test]
fn a_large_frame_is_found_with_its_function() {
    let found = found(|image| {
        let exceptions = pe(image).data_directory(3).expect("functions").virtual_address.get(LE);
        let table = offset(image, exceptions);
        let info = (table..).step_by(12).find_map(|entry| {
            let word = u32::from_le_bytes(image[entry + 8..entry + 12].try_into().expect("four bytes"));
            let info = offset(image, word);
            // Its first code is UWOP_ALLOC_LARGE, scaled by 8.
            (image[info + 2] > 1 && image[info + 5] == 0x01).then_some(info)
        });
        put(image, info.expect("a large frame") + 6, &0x200_u16.to_le_bytes());
    });
    assert!(!found.is_empty());
    // Functions with equal prologues share one description.
    assert!(
        found.iter().all(|line| line.starts_with("stack: ") && line.ends_with("bytes of stack")),
        "{found:?}"
    );
}

#[test]
fn each_forbidden_register_is_found() {
    let cases: [(&[u8], &str); 4] = [
        (&[0xd9, 0xe8], " uses x87 state"),
        (&[0x0f, 0x77], " uses MMX state"),
        (&[0xc5, 0xf8, 0x77], " uses AVX state"),
        (&[0x44, 0x0f, 0x28, 0xf8], " changes xmm15 without saving it"),
    ];
    for (code, finding) in cases {
        let found = found(|image| {
            let functions = unwind::functions(&pe(image)).expect("functions");
            let starts: Vec<_> = functions.iter().map(|function| function.begin).collect();
            // Into the padding behind a function.
            let padded = functions.iter().find(|function| {
                let after = offset(image, function.end);
                image[after..after + 4] == [0xcc; 4]
                    && !starts.contains(&function.end)
                    && function.saved_xmm == 0
            });
            let at = offset(image, padded.expect("a function with padding").end);
            put(image, at, code);
        });
        assert!(
            matches!(&found[..], [only] if only.starts_with("registers: ") && only.ends_with(finding)),
            "{finding}: {found:?}"
        );
    }
}

#[test]
fn a_panic_on_the_data_path_is_found_with_the_way_there() {
    let symbols = Symbols::read(&BUILT.1).expect("symbols");
    let address = |wanted: &str| {
        let found = symbols.0.iter().find(|(_, name)| name.starts_with(wanted));
        *found.unwrap_or_else(|| panic!("no {wanted}")).0
    };
    let send = address("ipoib::entry::miniport_send_net_buffer_lists");
    let panic = address("core::panicking::panic");
    let found = found(|image| {
        // call panic, over whatever the function begins with.
        let mut call = vec![0xe8];
        call.extend(panic.wrapping_sub(send + 5).to_le_bytes());
        let at = offset(image, send);
        put(image, at, &call);
    });
    let way = |line: &String| {
        line.starts_with("panics: ipoib::entry::miniport_send_net_buffer_lists")
            && line.contains(" -> core::panicking::")
    };
    assert!(!found.is_empty() && found.iter().all(way), "{found:?}");
}

#[test]
fn without_symbols_nothing_is_said_about_panics() {
    let reports = run(&BUILT.0, &BUILT.1.with_extension("none")).expect("an image");
    let last = reports.last().expect("reports");
    assert_eq!(last.name, "panics");
    assert!(matches!(&last.findings[..], [only] if only.starts_with("no symbols")));
}
