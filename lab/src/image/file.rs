//! An image as it lies in its file, checked.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::LittleEndian as LE;
use object::pe;
use object::read::pe::{Import as PeImport, PeFile64, SectionTable};

use super::error::{ImageError, MissingImport};
use super::unwind::FunctionTable;

/// The page size that images are laid out for.
pub(super) const PAGE: u32 = 0x1000;

/// The default value of a security cookie, which tells that nobody has set it yet.
const DEFAULT_COOKIE: u64 = 0x0000_2B99_2DDF_A232;

/// The largest image that the lab maps: more than any network driver has.
const LARGEST: u32 = 256 << 20;

/// A driver image that has been read and checked. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ImageFile(pub(super) Arc<Contents>);

/// What loading needs to know of an image. Addresses are relative to its start.
#[derive(Debug)]
pub(super) struct Contents {
    pub name: String,
    pub symbols: Option<PathBuf>,
    pub bytes: Vec<u8>,
    pub preferred_base: u64,
    pub size: u32,
    pub headers: u32,
    pub entry: u32,
    pub sections: Vec<Section>,
    pub relocations: Vec<u32>,
    pub imports: Vec<Import>,
    /// Where the security cookie lies, if it still has its default value.
    pub cookie: Option<u32>,
    pub functions: Arc<FunctionTable>,
}

/// A section: where it lies in memory and in the file.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub name: String,
    pub address: u32,
    /// Bytes in memory, whole pages.
    pub size: u32,
    /// Its part of the file; what is missing to `size` is zero.
    pub data: Range<usize>,
    pub read: bool,
    pub write: bool,
    pub execute: bool,
    /// Not needed once DriverEntry has returned.
    pub discardable: bool,
}

/// An import: what is wanted and where its address goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The module, as the image spells it.
    pub module: String,
    /// The name, or `#` and the ordinal.
    pub name: String,
    pub(super) slot: u32,
}

impl ImageFile {
    /// Reads and checks an image. A `.pdb` of the same name beside it gives the names for reports.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        let bytes = fs::read(path).map_err(ImageError::Read)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let symbols = Some(path.with_extension("pdb")).filter(|pdb| pdb.is_file());
        Self::parse(name, bytes, symbols)
    }

    /// Checks an image that has been read.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, ImageError> {
        Self::parse(name.into(), bytes, None)
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether `resolve` has all that it imports.
    pub fn check_imports(&self, resolve: impl Fn(&str, &str) -> Option<*const ()>) -> Result<(), ImageError> {
        self.bind(resolve).map(drop)
    }

    /// The address of each import and where it goes, or all imports that `resolve` does not know.
    pub(super) fn bind(
        &self,
        resolve: impl Fn(&str, &str) -> Option<*const ()>,
    ) -> Result<Vec<(usize, u64)>, ImageError> {
        let mut missing = Vec::new();
        let mut bound = Vec::new();
        for Import { module, name, slot } in &self.0.imports {
            match resolve(module, name) {
                Some(address) => bound.push((*slot as usize, address as u64)),
                None => missing.push(MissingImport { module: module.clone(), name: name.clone() }),
            }
        }
        if missing.is_empty() { Ok(bound) } else { Err(ImageError::MissingImports(missing)) }
    }

    /// What it imports, in the order of the file.
    pub fn imports(&self) -> &[Import] {
        &self.0.imports
    }

    fn parse(name: String, bytes: Vec<u8>, symbols: Option<PathBuf>) -> Result<Self, ImageError> {
        let image = PeFile64::parse(&*bytes)?;
        check_headers(&image)?;
        let optional = &image.nt_headers().optional_header;
        let size = optional.size_of_image.get(LE).next_multiple_of(PAGE);
        let headers = optional.size_of_headers.get(LE);
        let preferred_base = optional.image_base.get(LE);
        let entry = optional.address_of_entry_point.get(LE);
        let sections = sections(&image.section_table(), size, headers, bytes.len())?;
        if !sections.iter().any(|section| section.execute && section.contains(entry)) {
            return Err(ImageError::format(format!(
                "the entry point {entry:#x} is not in an executable section"
            )));
        }
        let contents = Contents {
            relocations: relocations(&image, &sections)?,
            imports: imports(&image, &sections)?,
            cookie: cookie(&image, &sections, preferred_base)?,
            functions: Arc::new(functions(&image)),
            name,
            symbols,
            preferred_base,
            size,
            headers,
            entry,
            sections,
            bytes,
        };
        Ok(Self(Arc::new(contents)))
    }
}

impl Contents {
    /// What the file holds for the address, as far as its section reaches.
    pub fn bytes_at(&self, address: u32) -> Option<&[u8]> {
        let section = self.sections.iter().find(|section| section.contains(address))?;
        self.bytes.get(section.data.clone())?.get((address - section.address) as usize..)
    }
}

impl Section {
    /// Whether the address, relative to the image, lies in this section.
    pub fn contains(&self, address: u32) -> bool {
        (self.address..self.address + self.size).contains(&address)
    }
}

fn check_headers(image: &PeFile64<'_>) -> Result<(), ImageError> {
    let headers = image.nt_headers();
    let optional = &headers.optional_header;
    let refuse = |what: String| Err(ImageError::Format(what));
    let machine = headers.file_header.machine.get(LE);
    if machine != pe::IMAGE_FILE_MACHINE_AMD64 {
        return refuse(format!("it is for machine {machine:?}"));
    }
    if optional.subsystem.get(LE) != pe::IMAGE_SUBSYSTEM_NATIVE {
        return refuse(format!("its subsystem is {:?}, not native", optional.subsystem.get(LE)));
    }
    if optional.address_of_entry_point.get(LE) == 0 {
        return refuse("it has no entry point".into());
    }
    let alignment = optional.section_alignment.get(LE);
    if alignment == 0 || alignment % PAGE != 0 {
        return refuse(format!("its section alignment {alignment:#x} is not a multiple of a page"));
    }
    if !(1..=LARGEST).contains(&optional.size_of_image.get(LE)) {
        return refuse(format!("it wants {:#x} bytes of memory", optional.size_of_image.get(LE)));
    }
    if headers.file_header.characteristics.get(LE).0 & pe::IMAGE_FILE_RELOCS_STRIPPED.0 != 0 {
        return refuse("its relocations are stripped: it cannot be moved".into());
    }
    let present = |index| image.data_directory(index).is_some_and(|directory| directory.size.get(LE) != 0);
    if present(pe::IMAGE_DIRECTORY_ENTRY_TLS) {
        return refuse("it has thread-local storage, which the kernel does not".into());
    }
    if present(pe::IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT) {
        return refuse("it has delayed imports, which the kernel does not resolve".into());
    }
    Ok(())
}

fn sections(
    table: &SectionTable<'_>,
    image: u32,
    headers: u32,
    file: usize,
) -> Result<Vec<Section>, ImageError> {
    let mut sections = Vec::new();
    let mut end = headers.next_multiple_of(PAGE);
    if headers as usize > file {
        return Err(ImageError::format("the headers reach past the end of the file"));
    }
    for header in table.iter() {
        let name = String::from_utf8_lossy(header.raw_name()).into_owned();
        let address = header.virtual_address.get(LE);
        let raw = header.size_of_raw_data.get(LE);
        let wanted = match header.virtual_size.get(LE) {
            0 => raw,
            size => size,
        };
        let size = wanted.checked_next_multiple_of(PAGE).unwrap_or(u32::MAX);
        // The kernel demands sections in order, without overlap, inside the image.
        if address % PAGE != 0 || address < end || size > image.saturating_sub(address) {
            return Err(ImageError::format(format!("section {name} does not fit where it shall lie")));
        }
        end = address + size;
        let start = header.pointer_to_raw_data.get(LE) as usize;
        let data = start..start.saturating_add(raw.min(size) as usize);
        if raw > 0 && data.end > file {
            return Err(ImageError::format(format!("section {name} reaches past the end of the file")));
        }
        let flags = header.characteristics.get(LE).0;
        sections.push(Section {
            name,
            address,
            size,
            data: if raw == 0 { 0..0 } else { data },
            read: flags & pe::IMAGE_SCN_MEM_READ.0 != 0,
            write: flags & pe::IMAGE_SCN_MEM_WRITE.0 != 0,
            execute: flags & pe::IMAGE_SCN_MEM_EXECUTE.0 != 0,
            discardable: flags & pe::IMAGE_SCN_MEM_DISCARDABLE.0 != 0,
        });
    }
    Ok(sections)
}

/// The places of 64-bit addresses that move with the image.
fn relocations(image: &PeFile64<'_>, sections: &[Section]) -> Result<Vec<u32>, ImageError> {
    let mut places = Vec::new();
    let table = image.section_table();
    let Some(mut blocks) = image.data_directories().relocation_blocks(image.data(), &table)? else {
        return Ok(places);
    };
    while let Some(block) = blocks.next()? {
        for relocation in block {
            match relocation.typ {
                pe::IMAGE_REL_BASED_ABSOLUTE => {}
                pe::IMAGE_REL_BASED_DIR64 => {
                    places.push(slot(relocation.virtual_address, sections, "relocation")?);
                }
                other => {
                    return Err(ImageError::format(format!("relocation type {other:?} is not one of x64")));
                }
            }
        }
    }
    Ok(places)
}

fn imports(image: &PeFile64<'_>, sections: &[Section]) -> Result<Vec<Import>, ImageError> {
    let mut imports = Vec::new();
    let Some(table) = image.import_table()? else { return Ok(imports) };
    let mut descriptors = table.descriptors()?;
    while let Some(descriptor) = descriptors.next()? {
        let module = String::from_utf8_lossy(table.name(descriptor.name.get(LE))?).into_owned();
        let mut address = descriptor.first_thunk.get(LE);
        // A linker that leaves the lookup table out keeps the names in the address table.
        let lookup = match descriptor.original_first_thunk.get(LE) {
            0 => address,
            lookup => lookup,
        };
        let mut thunks = table.thunks(lookup)?;
        while let Some(thunk) = thunks.next::<pe::ImageNtHeaders64>()? {
            let name = match table.import::<pe::ImageNtHeaders64>(thunk)? {
                PeImport::Ordinal(ordinal) => format!("#{ordinal}"),
                PeImport::Name(_, name) => String::from_utf8_lossy(name).into_owned(),
            };
            imports.push(Import { module: module.clone(), name, slot: slot(address, sections, "import")? });
            address = address.wrapping_add(8);
        }
    }
    Ok(imports)
}

/// Checks that eight bytes at `address` lie in a section.
fn slot(address: u32, sections: &[Section], what: &str) -> Result<u32, ImageError> {
    let fits = |section: &Section| section.contains(address) && address + 8 <= section.address + section.size;
    if sections.iter().any(fits) {
        return Ok(address);
    }
    Err(ImageError::format(format!("the {what} at {address:#x} is in no section")))
}

/// Where the security cookie lies, if the load configuration names one that is still to be set.
fn cookie(image: &PeFile64<'_>, sections: &[Section], base: u64) -> Result<Option<u32>, ImageError> {
    // IMAGE_LOAD_CONFIG_DIRECTORY64: SecurityCookie is the virtual address at 0x58.
    const SECURITY_COOKIE: usize = 0x58;
    let directory = image.data_directory(pe::IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG);
    let Some(directory) = directory.filter(|directory| directory.virtual_address.get(LE) != 0) else {
        return Ok(None);
    };
    let at = |address: u32| image.section_table().pe_data_at(image.data(), address);
    let word = |bytes: &[u8]| bytes.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let configuration = at(directory.virtual_address.get(LE))
        .ok_or_else(|| ImageError::format("the load configuration is in no section"))?;
    // Its first field is its size, which decides what fields there are.
    let size = configuration.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    if size < SECURITY_COOKIE + 8 {
        return Ok(None);
    }
    let Some(address) = configuration.get(SECURITY_COOKIE..).and_then(word).filter(|address| *address != 0)
    else {
        return Ok(None);
    };
    let relative = address.checked_sub(base).and_then(|relative| u32::try_from(relative).ok());
    let Some(relative) = relative else {
        return Err(ImageError::format("the security cookie is outside the image"));
    };
    let relative = slot(relative, sections, "security cookie")?;
    Ok((at(relative).and_then(word) == Some(DEFAULT_COOKIE)).then_some(relative))
}

fn functions(image: &PeFile64<'_>) -> FunctionTable {
    let table = image.data_directory(pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION).and_then(|directory| {
        let bytes = image.section_table().pe_data_at(image.data(), directory.virtual_address.get(LE))?;
        bytes.get(..directory.size.get(LE) as usize)
    });
    FunctionTable::new(table.unwrap_or_default())
}
