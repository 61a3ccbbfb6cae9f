//! Names of functions, out of the image's PDB.

use std::{collections::BTreeMap, fs::File, path::Path};

use anyhow::{Context, Result};
use pdb2::FallibleIterator;

/// Address (relative to the image) and demangled name, without its hash, of each function. Empty without a PDB.
#[derive(Debug, Default)]
pub(super) struct Symbols(pub BTreeMap<u32, String>);

impl Symbols {
    /// Reads a PDB.
    pub fn read(pdb: &Path) -> Result<Self> {
        let file = File::open(pdb).with_context(|| format!("cannot read {}", pdb.display()))?;
        let mut pdb = pdb2::PDB::open(file)?;
        let addresses = pdb.address_map()?;
        let mut names = BTreeMap::new();
        let globals = pdb.global_symbols()?;
        let mut add = |symbol: pdb2::Symbol<'_>| {
            let (offset, name) = match symbol.parse() {
                Ok(pdb2::SymbolData::Public(public)) if public.function => (public.offset, public.name),
                Ok(pdb2::SymbolData::Procedure(procedure)) => (procedure.offset, procedure.name),
                _ => return,
            };
            if let Some(address) = offset.to_rva(&addresses) {
                names.entry(address.0).or_insert_with(|| demangled(&name.to_string()));
            }
        };
        let mut symbols = globals.iter();
        while let Some(symbol) = symbols.next()? {
            add(symbol);
        }
        let debug = pdb.debug_information()?;
        let mut modules = debug.modules()?;
        while let Some(module) = modules.next()? {
            let Some(info) = pdb.module_info(&module)? else { continue };
            let mut symbols = info.symbols()?;
            while let Some(symbol) = symbols.next()? {
                add(symbol);
            }
        }
        Ok(Self(names))
    }

    /// The name of the function that begins at `address`; the address if nobody knows.
    pub fn name(&self, address: u32) -> String {
        self.0.get(&address).cloned().unwrap_or_else(|| format!("{address:#x}"))
    }
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
