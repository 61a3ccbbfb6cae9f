//! Images made by hand, for the tests: small, with one of everything.

use object::pe;

/// Where the image wants to lie: nowhere that the host would put it.
pub const BASE: u64 = 0x1_4000_0000;
/// `.text`: readable and executable.
pub const TEXT: u32 = 0x1000;
/// `.rdata`: readable; the import tables come first.
pub const RDATA: u32 = 0x2000;
/// The load configuration, in `.rdata`.
pub const LOAD_CONFIG: u32 = 0x2800;
/// Unwind information, in `.rdata`.
pub const UNWIND: u32 = 0x2A00;
/// `.data`: readable and writable.
pub const DATA: u32 = 0x3000;
/// `.pdata`: readable.
pub const PDATA: u32 = 0x4000;
/// `INIT`: executable and discardable.
pub const INIT: u32 = 0x5000;
/// `.reloc`: discardable.
pub const RELOC: u32 = 0x6000;
const END: u32 = 0x7000;

/// File offset of the PE header.
pub const NT_HEADERS: usize = 0x80;
const SECTION_FILE_SIZE: usize = 0x1000;

/// An image to be.
pub struct Image {
    text: Vec<u8>,
    data: Vec<u8>,
    init: Vec<u8>,
    unwind: Vec<u8>,
    functions: Vec<[u32; 3]>,
    relocations: Vec<u32>,
    imports: Vec<(&'static str, Vec<&'static str>)>,
    cookie: Option<u32>,
    entry: u32,
}

impl Image {
    /// An image with this code, its entry point at its first byte.
    pub fn new(text: &[u8]) -> Self {
        Self {
            text: text.to_vec(),
            data: vec![0; 64],
            init: vec![0xC3],
            unwind: Vec::new(),
            functions: Vec::new(),
            relocations: Vec::new(),
            imports: Vec::new(),
            cookie: None,
            entry: TEXT,
        }
    }

    /// Adds a function of `.text` and its unwind information.
    pub fn function(mut self, begin: u32, end: u32, info: &[u8]) -> Self {
        self.functions.push([begin, end, UNWIND + self.unwind.len() as u32]);
        self.unwind.extend(info);
        self.unwind.resize(self.unwind.len().next_multiple_of(4), 0);
        self
    }

    /// Puts bytes at an address of `.data`.
    pub fn data(mut self, address: u32, bytes: &[u8]) -> Self {
        let start = (address - DATA) as usize;
        self.data[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Adds a relocation of the 64-bit word at an address of `.data`.
    pub fn relocation(mut self, address: u32) -> Self {
        self.relocations.push(address);
        self
    }

    /// Imports names from a module; the first import of the first module is bound at [`RDATA`], the next 8 bytes on.
    pub fn import(mut self, module: &'static str, names: &[&'static str]) -> Self {
        self.imports.push((module, names.to_vec()));
        self
    }

    /// Names a security cookie at this address of `.data`.
    pub fn cookie(mut self, address: u32) -> Self {
        self.cookie = Some(address);
        self
    }

    /// The bytes of the file.
    pub fn build(self) -> Vec<u8> {
        let (rdata, import_directory) = self.rdata();
        let pdata: Vec<u8> = self.functions.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let mut directories = [(0, 0); pe::IMAGE_NUMBEROF_DIRECTORY_ENTRIES];
        directories[pe::IMAGE_DIRECTORY_ENTRY_IMPORT] = import_directory;
        directories[pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION] = (PDATA, pdata.len() as u32);
        if self.cookie.is_some() {
            directories[pe::IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG] = (LOAD_CONFIG, 0x60);
        }
        let reloc = self.reloc();
        directories[pe::IMAGE_DIRECTORY_ENTRY_BASERELOC] = (RELOC, reloc.len() as u32);

        let read = pe::IMAGE_SCN_MEM_READ.0;
        let execute = pe::IMAGE_SCN_CNT_CODE.0 | pe::IMAGE_SCN_MEM_EXECUTE.0 | read;
        let discard = pe::IMAGE_SCN_MEM_DISCARDABLE.0;
        let sections = [
            (".text", TEXT, execute, &self.text),
            (".rdata", RDATA, read, &rdata),
            (".data", DATA, read | pe::IMAGE_SCN_MEM_WRITE.0, &self.data),
            (".pdata", PDATA, read, &pdata),
            ("INIT", INIT, execute | discard, &self.init),
            (".reloc", RELOC, read | discard, &reloc),
        ];
        let mut file = self.headers(sections.len(), &directories);
        for (index, (name, address, flags, content)) in sections.iter().enumerate() {
            let mut header = [0u8; 40];
            header[..name.len()].copy_from_slice(name.as_bytes());
            for (at, word) in [
                (8, content.len() as u32),
                (12, *address),
                (16, SECTION_FILE_SIZE as u32),
                (20, ((index + 1) * SECTION_FILE_SIZE) as u32),
                (36, *flags),
            ] {
                header[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            file.extend(header);
        }
        file.resize(SECTION_FILE_SIZE, 0);
        for (.., content) in sections {
            assert!(content.len() <= SECTION_FILE_SIZE, "a test image is small");
            file.extend(content);
            file.resize(file.len().next_multiple_of(SECTION_FILE_SIZE), 0);
            if content.is_empty() {
                file.resize(file.len() + SECTION_FILE_SIZE, 0);
            }
        }
        file
    }

    fn headers(&self, sections: usize, directories: &[(u32, u32)]) -> Vec<u8> {
        let mut file = vec![0; NT_HEADERS];
        file[..2].copy_from_slice(b"MZ");
        file[0x3C] = NT_HEADERS as u8;
        file.extend(b"PE\0\0");
        let characteristics = pe::IMAGE_FILE_EXECUTABLE_IMAGE.0 | pe::IMAGE_FILE_LARGE_ADDRESS_AWARE.0;
        let mut coff = [0u8; 20];
        for (at, word) in [
            (0, pe::IMAGE_FILE_MACHINE_AMD64.0),
            (2, sections as u16),
            (16, (112 + 8 * directories.len()) as u16),
            (18, characteristics),
        ] {
            coff[at..at + 2].copy_from_slice(&word.to_le_bytes());
        }
        file.extend(coff);
        let mut optional = vec![0u8; 112];
        let mut put = |at: usize, bytes: &[u8]| optional[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &0x20Bu16.to_le_bytes());
        put(16, &self.entry.to_le_bytes());
        put(24, &BASE.to_le_bytes());
        put(32, &0x1000u32.to_le_bytes());
        put(36, &0x1000u32.to_le_bytes());
        put(56, &END.to_le_bytes());
        put(60, &0x1000u32.to_le_bytes());
        put(68, &1u16.to_le_bytes());
        put(108, &(directories.len() as u32).to_le_bytes());
        file.extend(optional);
        for (address, size) in directories {
            file.extend(address.to_le_bytes());
            file.extend(size.to_le_bytes());
        }
        file
    }

    /// `.rdata`, and where its import directory is.
    fn rdata(&self) -> (Vec<u8>, (u32, u32)) {
        let slots: usize = self.imports.iter().map(|(_, names)| names.len() + 1).sum();
        let lookup_start = slots * 8;
        let directory_start = 2 * slots * 8;
        let directory_size = (self.imports.len() + 1) * 20;
        let mut out = vec![0; directory_start + directory_size];
        let mut slot = 0;
        for (index, (module, names)) in self.imports.iter().enumerate() {
            let first_slot = slot;
            for name in names {
                let hint = RDATA as usize + out.len();
                out.extend([0, 0]);
                out.extend(name.as_bytes());
                out.push(0);
                out.resize(out.len().next_multiple_of(2), 0);
                for table in [0, lookup_start] {
                    out[table + slot * 8..][..8].copy_from_slice(&(hint as u64).to_le_bytes());
                }
                slot += 1;
            }
            slot += 1;
            let module_name = RDATA as usize + out.len();
            out.extend(module.as_bytes());
            out.push(0);
            let descriptor = directory_start + index * 20;
            for (at, value) in [
                (0, RDATA as usize + lookup_start + first_slot * 8),
                (12, module_name),
                (16, RDATA as usize + first_slot * 8),
            ] {
                out[descriptor + at..][..4].copy_from_slice(&(value as u32).to_le_bytes());
            }
        }
        out.resize((UNWIND - RDATA) as usize, 0);
        if let Some(cookie) = self.cookie {
            let config = (LOAD_CONFIG - RDATA) as usize;
            out[config] = 0x60;
            out[config + 0x58..][..8].copy_from_slice(&(BASE + u64::from(cookie)).to_le_bytes());
        }
        out.extend(&self.unwind);
        let directory = if self.imports.is_empty() {
            (0, 0)
        } else {
            (RDATA + directory_start as u32, directory_size as u32)
        };
        (out, directory)
    }

    fn reloc(&self) -> Vec<u8> {
        let mut entries: Vec<u16> = self
            .relocations
            .iter()
            .map(|address| pe::IMAGE_REL_BASED_DIR64.0 << 12 | (address - DATA) as u16)
            .collect();
        // A block has an even number of entries, and this image at least one.
        entries.resize(entries.len().max(1).next_multiple_of(2), 0);
        let mut block = Vec::new();
        block.extend(DATA.to_le_bytes());
        block.extend((8 + 2 * entries.len() as u32).to_le_bytes());
        block.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
        block
    }
}
