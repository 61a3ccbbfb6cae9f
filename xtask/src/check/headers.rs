//! Characteristics, sections, directories (Microsoft PE format, "Optional Header" and "Section Table").

use anyhow::{Context, Result};
use object::{
    LittleEndian as LE, pe,
    read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile64},
};

use super::Findings;

/// Subsystem, machine, entry point and the flags that Windows demands of a modern driver.
pub(super) fn characteristics(image: &PeFile64<'_>) -> Findings {
    let mut findings = Findings::new();
    let file = image.nt_headers().file_header();
    let optional = image.nt_headers().optional_header();
    if file.machine.get(LE) != pe::IMAGE_FILE_MACHINE_AMD64 {
        findings.push(format!("machine is {:#06x}, not x64", file.machine.get(LE)));
    }
    if optional.subsystem() != pe::IMAGE_SUBSYSTEM_NATIVE {
        findings.push(format!("subsystem is {}, not native", optional.subsystem()));
    }
    if optional.address_of_entry_point() == 0 {
        findings.push("no entry point".to_owned());
    }
    for (flag, name) in [
        (pe::IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE, "dynamic base"),
        (pe::IMAGE_DLLCHARACTERISTICS_NX_COMPAT, "NX compatible"),
        (pe::IMAGE_DLLCHARACTERISTICS_HIGH_ENTROPY_VA, "high-entropy VA"),
    ] {
        if optional.dll_characteristics().0 & flag.0 == 0 {
            findings.push(format!("not marked {name}"));
        }
    }
    if directory_size(image, pe::IMAGE_DIRECTORY_ENTRY_TLS) != 0 {
        findings.push("thread-local storage: the kernel has none".to_owned());
    }
    if directory_size(image, pe::IMAGE_DIRECTORY_ENTRY_BASERELOC) == 0 {
        findings.push("no relocations: the image cannot be moved".to_owned());
    }
    findings
}

/// W^X and alignment, as hypervisor-protected code integrity wants them (Windows driver docs, "Driver
/// compatibility with memory integrity and VBS").
pub(super) fn sections(image: &PeFile64<'_>) -> Findings {
    let mut findings = Findings::new();
    let alignment = image.nt_headers().optional_header().section_alignment();
    if alignment % 0x1000 != 0 {
        findings.push(format!("section alignment {alignment:#x} is not a multiple of a page"));
    }
    for section in image.section_table().iter() {
        let flags = section.characteristics.get(LE);
        let both = pe::IMAGE_SCN_MEM_WRITE.0 | pe::IMAGE_SCN_MEM_EXECUTE.0;
        if flags.0 & both == both {
            let name = String::from_utf8_lossy(section.raw_name()).into_owned();
            findings.push(format!("{name} is writable and executable"));
        }
        if section.virtual_address.get(LE) % 0x1000 != 0 {
            findings.push("a section does not begin on a page".to_owned());
        }
    }
    findings
}

/// RT_VERSION and RT_MESSAGETABLE are there.
pub(super) fn resources(image: &PeFile64<'_>) -> Result<Findings> {
    let mut findings = Findings::new();
    let sections = image.section_table();
    let Some(directory) = image.data_directories().resource_directory(image.data(), &sections)? else {
        return Ok(vec!["no resources".to_owned()]);
    };
    let types: Vec<_> = directory.root()?.entries.iter().map(|entry| entry.name_or_id().id()).collect();
    for (kind, name) in [(pe::RT_VERSION, "version"), (pe::RT_MESSAGETABLE, "message table")] {
        if !types.contains(&Some(kind)) {
            findings.push(format!("no {name} resource"));
        }
    }
    Ok(findings)
}

fn directory_size(image: &PeFile64<'_>, index: usize) -> u32 {
    image.data_directory(index).map_or(0, |directory| directory.size.get(LE))
}

/// Bytes of the image at `address`, as far as its section reaches.
pub(super) fn bytes_at<'a>(image: &PeFile64<'a>, address: u32) -> Result<&'a [u8]> {
    image
        .section_table()
        .pe_data_at(image.data(), address)
        .with_context(|| format!("no section holds address {address:#x}"))
}
