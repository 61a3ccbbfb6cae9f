//! Every import comes from the kernel or NDIS and is really there.

use anyhow::Result;
use object::{
    LittleEndian as LE,
    read::pe::{Import, PeFile64},
};

use super::{Findings, exports};

/// Modules and names of the image's imports.
fn list(image: &PeFile64<'_>) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    let Some(table) = image.import_table()? else { return Ok(all) };
    let mut descriptors = table.descriptors()?;
    while let Some(descriptor) = descriptors.next()? {
        let module = String::from_utf8_lossy(table.name(descriptor.name.get(LE))?).into_owned();
        let mut thunks = table.thunks(descriptor.original_first_thunk.get(LE))?;
        while let Some(thunk) = thunks.next::<object::pe::ImageNtHeaders64>()? {
            let name = match table.import::<object::pe::ImageNtHeaders64>(thunk)? {
                Import::Ordinal(ordinal) => format!("#{ordinal}"),
                Import::Name(_, name) => String::from_utf8_lossy(name).into_owned(),
            };
            all.push((module.clone(), name));
        }
    }
    Ok(all)
}

/// Foreign modules and names that Windows does not export.
pub(super) fn check(image: &PeFile64<'_>) -> Result<Findings> {
    let mut findings = Findings::new();
    for (module, name) in list(image)? {
        match exports::of(&module)? {
            None => findings.push(format!("{name} comes from {module}")),
            Some(names) if !names.contains(&name) => {
                findings.push(format!("{module} does not export {name}"));
            }
            Some(_) => {}
        }
    }
    Ok(findings)
}
