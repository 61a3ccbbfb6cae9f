//! What `ntoskrnl.exe` and `ndis.sys` export, out of mingw-w64's import libraries: a list that is not ours.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, Result};
use object::{Object, ObjectSymbol, read::archive::ArchiveFile};

/// Where Debian's `mingw-w64-x86-64-dev` puts the libraries.
const LIBRARIES: &str = "/usr/x86_64-w64-mingw32/lib";

/// Exports that are younger than those lists, each with its page in the DDI reference.
const NEWER: [(&str, &str); 3] = [
    ("ntoskrnl.exe", "ExAllocatePool2"), // wdm/nf-wdm-exallocatepool2: Windows 10 2004
    ("ntoskrnl.exe", "KeQueryInterruptTimePrecise"), // wdm/nf-wdm-kequeryinterrupttimeprecise: Windows 8.1
    ("ntoskrnl.exe", "KeQueryPerformanceCounter"), // wdm/nf-wdm-kequeryperformancecounter: in hal.dll before 2004
];

/// Names that `module` (`ntoskrnl.exe`, `ndis.sys`, `hal.dll`) exports, or `None` for a module that a miniport has
/// no business with.
pub(super) fn of(module: &str) -> Result<Option<BTreeSet<String>>> {
    let library = match module.to_ascii_lowercase().as_str() {
        "ntoskrnl.exe" => "libntoskrnl.a",
        "ndis.sys" => "libndis.a",
        "hal.dll" => "libhal.a",
        _ => return Ok(None),
    };
    let path = PathBuf::from(LIBRARIES).join(library);
    let bytes = fs::read(&path)
        .with_context(|| format!("cannot read {}: apt-get install mingw-w64-x86-64-dev", path.display()))?;
    let mut names: BTreeSet<String> = NEWER
        .iter()
        .filter(|(of, _)| of.eq_ignore_ascii_case(module))
        .map(|(_, name)| (*name).to_owned())
        .collect();
    for member in ArchiveFile::parse(&*bytes)?.members() {
        let Ok(object) = object::File::parse(member?.data(&*bytes)?) else { continue };
        names.extend(
            object
                .symbols()
                .filter_map(|symbol| symbol.name().ok()?.strip_prefix("__imp_").map(str::to_owned)),
        );
    }
    Ok(Some(names))
}
