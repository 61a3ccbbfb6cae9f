//! Names for addresses in an image, from the PDB beside it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use pdb_addr2line::pdb::PDB;
use pdb_addr2line::{Context, ContextPdbData};

use super::modules::place;

type Data = ContextPdbData<'static, 'static, File>;

thread_local! {
    /// The symbols that this thread has asked for: a report of leaks asks for one file again and again.
    static OPEN: RefCell<HashMap<PathBuf, Option<Data>>> = RefCell::default();
}

/// The functions that the address (of the byte in question, not behind it) lies in, innermost first: more than one where
/// calls were inlined. `image+offset` where there are no symbols; nothing if it lies in no image.
pub(crate) fn describe(address: usize) -> Vec<String> {
    let Some(place) = place(address) else { return Vec::new() };
    let named = place.file.0.symbols.as_deref().and_then(|pdb| named(pdb, place.offset));
    named.unwrap_or_else(|| vec![format!("{}+{:#x}", place.file.name(), place.offset)])
}

fn named(pdb: &Path, offset: u32) -> Option<Vec<String>> {
    OPEN.with_borrow_mut(|open| {
        let data = open.entry(pdb.to_owned()).or_insert_with(|| read(pdb)).as_ref()?;
        let context: Context<'_, '_> = data.make_context().ok()?;
        let frames = context.find_frames(offset).ok()??.frames;
        let line = |frame: pdb_addr2line::Frame<'_>| {
            let name = frame.function.as_deref().map(|name| format!("{:#}", rustc_demangle::demangle(name)));
            let file =
                frame.file.as_deref().and_then(|file| file.rsplit(['/', '\\']).next().map(str::to_owned));
            let place = match (file, frame.line) {
                (Some(file), Some(line)) => format!(" ({file}:{line})"),
                _ => String::new(),
            };
            format!("{}{place}", name.unwrap_or_else(|| "?".into()))
        };
        Some(frames.into_iter().map(line).collect())
    })
}

fn read(pdb: &Path) -> Option<Data> {
    ContextPdbData::try_from_pdb(PDB::open(File::open(pdb).ok()?).ok()?).ok()
}
