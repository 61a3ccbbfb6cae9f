//! The layouts, constants and import names of this crate against C headers and import libraries.
//!
//! clang, told to compile for Windows, judges `_Static_assert`s that this test writes. Two sources of truth that are
//! independent of the Rust code: MinGW-w64's headers (package mingw-w64-x86-64-dev) for what they have right, and
//! `include/windows-kernel` for the rest. MinGW's import libraries know what the kernel exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};
use windows_kernel_sys as sys;

/// NT types that MinGW's `ntddk.h` has as this crate does.
const MINGW_NT: &[&str] = &[
    "GUID",
    "UNICODE_STRING",
    "LIST_ENTRY",
    "SINGLE_LIST_ENTRY",
    "SLIST_HEADER",
    "DISPATCHER_HEADER",
    "KEVENT",
    "KDEVICE_QUEUE",
    "MDL",
    "IO_STATUS_BLOCK",
    "IO_STACK_LOCATION",
    "INTERFACE",
    "DRIVER_OBJECT",
    "SCATTER_GATHER_ELEMENT",
];

/// NDIS types that MinGW's `ntddndis.h` has as this crate does.
const MINGW_NDIS: &[&str] = &[
    "NDIS_OBJECT_HEADER",
    "NDIS_LINK_STATE",
    "NDIS_LINK_PARAMETERS",
    "NDIS_LINK_SPEED",
    "NDIS_OPER_STATE",
    "NDIS_PNP_CAPABILITIES",
    "NDIS_PM_WAKE_UP_CAPABILITIES",
    "NDIS_PM_CAPABILITIES",
    "NDIS_PM_PARAMETERS",
    "NDIS_STATISTICS_INFO",
    "NDIS_INTERRUPT_MODERATION_PARAMETERS",
    "NDIS_TCP_IP_CHECKSUM_OFFLOAD",
    "NDIS_TCP_LARGE_SEND_OFFLOAD_V1",
    "NDIS_TCP_LARGE_SEND_OFFLOAD_V2",
    "NDIS_OFFLOAD",
    "NDIS_OFFLOAD_PARAMETERS",
];

const NT_PRELUDE: &str =
    "#define _WIN32_WINNT 0x0A00\n#define NTDDI_VERSION 0x0A000000\n#include <ntddk.h>\n";
const NDIS_PRELUDE: &str = "#define _WIN32_WINNT 0x0A00\n#define NTDDI_VERSION 0x0A000000\n#define UM_NDIS630 1\n\
                            #include <winsock2.h>\n#include <windows.h>\n#include <ntddndis.h>\n";

/// Exported by Windows 10 2004 and later, but younger than MinGW's import libraries; or exported by ntoskrnl.exe where
/// those still name hal.dll. Each with the page of the DDI reference that names its module.
const NEWER_EXPORTS: &[&str] = &[
    "ExAllocatePool2",             // wdm/nf-wdm-exallocatepool2: NtosKrnl.exe, Windows 10 2004
    "KeQueryInterruptTimePrecise", // wdm/nf-wdm-kequeryinterrupttimeprecise: NtosKrnl.exe, Windows 8.1
    "KeQueryPerformanceCounter", // wdm/nf-wdm-kequeryperformancecounter: Hal.dll, a forwarder since Windows 10 2004
];

fn mingw() -> PathBuf {
    let root = env::var_os("MINGW_SYSROOT").map_or_else(|| "/usr/x86_64-w64-mingw32".into(), PathBuf::from);
    assert!(
        root.join("include/ddk/ntddk.h").exists(),
        "no MinGW-w64 headers in {}: install mingw-w64-x86-64-dev, or name their place in MINGW_SYSROOT",
        root.display()
    );
    root
}

fn own_headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/windows-kernel")
}

/// Runs clang on `source`, and says how it ended.
fn clang(name: &str, source: &str, arguments: &[&str]) -> Output {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    fs::write(&file, source).expect("the test's directory is writable");
    Command::new("clang")
        .args(["-w", "-std=gnu11", "-fms-extensions", "-ferror-limit=0"])
        .args(arguments)
        .arg(&file)
        .output()
        .unwrap_or_else(|error| panic!("cannot run clang ({error}): install the package clang"))
}

/// Arguments for MinGW's headers.
fn mingw_arguments() -> Vec<String> {
    let include = mingw().join("include");
    vec![
        "--target=x86_64-w64-windows-gnu".into(),
        format!("-I{}", include.join("ddk").display()),
        format!("-I{}", include.display()),
    ]
}

/// Arguments for our own headers: the MSVC target, without any system header.
fn own_arguments() -> Vec<String> {
    let include = own_headers();
    vec!["--target=x86_64-pc-windows-msvc".into(), "-nostdinc".into(), format!("-I{}", include.display())]
}

fn check(name: &str, source: &str, arguments: &[String]) -> Result<(), String> {
    let mut all: Vec<&str> = vec!["-fsyntax-only"];
    all.extend(arguments.iter().map(String::as_str));
    let output = clang(name, source, &all);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(errors) }
}

/// The assertions that C must agree with.
fn assertions<'a>(layouts: impl Iterator<Item = &'a sys::Layout>) -> (String, usize) {
    let mut source = String::new();
    let mut count = 0;
    for layout in layouts {
        let sys::Layout { c, size, align, fields, .. } = layout;
        writeln!(source, "_Static_assert(sizeof({c}) == {size}, \"size of {c}\");").unwrap();
        writeln!(source, "_Static_assert(_Alignof({c}) == {align}, \"alignment of {c}\");").unwrap();
        for sys::Field { c: field, offset } in *fields {
            writeln!(
                source,
                "_Static_assert(__builtin_offsetof({c}, {field}) == {offset}, \"offset of {c}.{field}\");"
            )
            .unwrap();
        }
        count += 1;
    }
    (source, count)
}

fn named(names: &'static [&str]) -> impl Iterator<Item = &'static sys::Layout> {
    let known: BTreeSet<&str> = sys::layouts().map(|layout| layout.c).collect();
    for name in names {
        assert!(known.contains(name), "{name} has no layout in this crate");
    }
    sys::layouts().filter(move |layout| names.contains(&layout.c))
}

#[test]
fn nt_types_are_laid_out_as_mingws_wdm() {
    let (asserted, count) = assertions(named(MINGW_NT));
    assert_eq!(count, MINGW_NT.len());
    check("mingw_nt", &format!("{NT_PRELUDE}{asserted}"), &mingw_arguments())
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn ndis_types_are_laid_out_as_mingws_ntddndis() {
    let (mut asserted, count) = assertions(named(MINGW_NDIS));
    assert_eq!(count, MINGW_NDIS.len());
    let sizes = macros("macros_sizes", NDIS_PRELUDE);
    for (name, value) in constants().iter().filter(|(name, _)| is_size(name) && sizes.contains_key(*name)) {
        writeln!(asserted, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    check("mingw_ndis", &format!("{NDIS_PRELUDE}{asserted}"), &mingw_arguments())
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_other_type_is_laid_out_as_our_headers_say() {
    let rest = sys::layouts().filter(|layout| {
        !layout.c.is_empty() && !MINGW_NT.contains(&layout.c) && !MINGW_NDIS.contains(&layout.c)
    });
    let (asserted, count) = assertions(rest);
    assert!(count >= 20, "only {count} types");
    let source = format!("#include \"nt.h\"\n#include \"ndis.h\"\n{asserted}");
    check("own", &source, &own_arguments()).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_wrong_offset_would_be_seen() {
    let wrong =
        "#include \"ndis.h\"\n_Static_assert(__builtin_offsetof(NET_BUFFER, MdlChain) == 40, \"wrong\");";
    let errors = check("wrong", wrong, &own_arguments()).expect_err("clang accepted a wrong offset");
    assert!(errors.contains("wrong"), "{errors}");
}

/// The macros that a prelude leaves defined, by name.
fn macros(name: &str, prelude: &str) -> BTreeMap<String, String> {
    let arguments = mingw_arguments();
    let mut all = vec!["-E", "-dM"];
    all.extend(arguments.iter().map(String::as_str));
    let output = clang(name, prelude, &all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// `pub const NAME: TYPE = <literal>;` of this crate's sources; the literal may be wrapped in `code(...)`.
fn constants() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in ["src/nt", "src/ndis"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for file in fs::read_dir(folder).expect("the sources are here") {
            let text =
                fs::read_to_string(file.expect("a readable folder").path()).expect("a readable source");
            for line in text.lines() {
                let Some((name, rest)) = line.strip_prefix("pub const ").and_then(|l| l.split_once(": "))
                else {
                    continue;
                };
                let Some((_, value)) = rest.trim_end_matches(';').split_once(" = ") else { continue };
                let value = value.trim_start_matches("code(").trim_end_matches(')').replace('_', "");
                if value.starts_with(|c: char| c.is_ascii_digit()) {
                    found.insert(name.to_owned(), value);
                }
            }
        }
    }
    found
}

/// Sizes of structure revisions: C can tell them only where the structures are declared.
fn is_size(name: &str) -> bool {
    name.starts_with("NDIS_SIZEOF_")
}

#[test]
fn constants_have_the_values_of_mingws_macros() {
    // Preprocessed only: MinGW's ndis.h and ntddndis.h each define some of the same types, so no unit can compile both.
    let mut theirs =
        macros("macros_nt", &format!("{NT_PRELUDE}#include <ntstatus.h>\n#include <netevent.h>\n"));
    theirs.extend(macros(
        "macros_ndis5",
        "#define NDIS620_MINIPORT 1\n#define NDIS_MINIPORT_DRIVER 1\n#include <ndis.h>\n",
    ));
    theirs.extend(macros("macros_ndis", NDIS_PRELUDE));
    let mut source = String::from(
        "typedef int NTSTATUS, NDIS_STATUS;\ntypedef unsigned DWORD, NDIS_PORT_NUMBER;\n#define __MSABI_LONG(x) x\n",
    );
    let mut checked = 0;
    for (name, value) in &theirs {
        if !name.contains('(') && !name.starts_with("__") {
            writeln!(source, "#undef {name}\n#define {name} {value}").unwrap();
        }
    }
    for (name, value) in constants().iter().filter(|(name, _)| !is_size(name) && theirs.contains_key(*name)) {
        writeln!(source, "_Static_assert((unsigned)({name}) == (unsigned)({value}), \"{name}\");").unwrap();
        checked += 1;
    }
    assert!(checked >= 200, "only {checked} constants are in MinGW's headers");
    check("constants", &source, &own_arguments()).unwrap_or_else(|e| panic!("{e}"));
}

/// The identifiers that a prelude's headers contain.
fn identifiers(name: &str, prelude: &str) -> BTreeSet<String> {
    let arguments = mingw_arguments();
    let mut all = vec!["-E"];
    all.extend(arguments.iter().map(String::as_str));
    let output = clang(name, prelude, &all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map(str::to_owned)
        .collect()
}

#[test]
fn constants_have_the_values_of_mingws_enumerators() {
    let mut checked = 0;
    for (unit, prelude, of_ndis) in [("enum_nt", NT_PRELUDE, false), ("enum_ndis", NDIS_PRELUDE, true)] {
        let theirs = identifiers(unit, prelude);
        let mut source = String::from(prelude);
        // What is spelled in lower case is no macro. A variable of that name would not be constant, and be seen.
        let ours = constants();
        let ours = ours.iter().filter(|(name, _)| {
            name.contains(|c: char| c.is_ascii_lowercase())
                && (name.starts_with("Ndis") || name.starts_with("Media")) == of_ndis
                && theirs.contains(*name)
        });
        for (name, value) in ours {
            writeln!(source, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
            checked += 1;
        }
        check(unit, &source, &mingw_arguments()).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(checked >= 40, "only {checked} enumerators are in MinGW's headers");
}

/// The symbols that the index of a static library (its first member, named `/`) lists.
fn archive_symbols(library: &Path) -> BTreeSet<String> {
    const MAGIC: &[u8] = b"!<arch>\n";
    const HEADER: usize = 60;
    let bytes = fs::read(library).unwrap_or_else(|e| panic!("{}: {e}", library.display()));
    assert!(bytes.starts_with(MAGIC) && bytes[MAGIC.len()] == b'/', "{} has no index", library.display());
    let index = &bytes[MAGIC.len() + HEADER..];
    let count = u32::from_be_bytes(index[..4].try_into().unwrap()) as usize;
    let names = &index[4 + 4 * count..];
    names
        .split(|&byte| byte == 0)
        .take(count)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

#[test]
fn every_import_is_exported_by_its_module() {
    let libraries = mingw().join("lib");
    let ntoskrnl = archive_symbols(&libraries.join("libntoskrnl.a"));
    let ndis = archive_symbols(&libraries.join("libndis.a"));
    for name in sys::NTOSKRNL_IMPORTS.iter().filter(|name| !NEWER_EXPORTS.contains(name)) {
        assert!(ntoskrnl.contains(*name), "ntoskrnl.exe does not export {name}");
    }
    for name in sys::NDIS_IMPORTS {
        assert!(ndis.contains(*name), "ndis.sys does not export {name}");
    }
    for name in NEWER_EXPORTS {
        assert!(sys::NTOSKRNL_IMPORTS.contains(name), "{name} is excused but not imported");
        assert!(!ntoskrnl.contains(*name), "{name} needs no excuse");
    }
}
