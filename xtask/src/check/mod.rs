//! `cargo xtask check-image`: what must hold of a driver image before anyone loads it.
//!
//! Each check reads the image alone and works on any x64 `.sys`; [`reach`] also needs its PDB, for names.

mod exports;
mod headers;
mod imports;
mod reach;
mod registers;
mod stack;
mod symbols;
#[cfg(test)]
mod tests;
mod unwind;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use object::read::pe::PeFile64;

use crate::checksum;
use symbols::Symbols;

/// What a check found wrong, one line each; empty if nothing.
type Findings = Vec<String>;

/// The outcome of a check.
struct Report {
    name: &'static str,
    /// What holds if there are no findings.
    what: String,
    findings: Findings,
}

/// Runs every check on `image` and prints a line for each; an error if any found something.
pub(crate) fn check(image: &Path, pdb: Option<&Path>) -> Result<()> {
    let bytes = fs::read(image).with_context(|| format!("cannot read {}", image.display()))?;
    let pdb = pdb.map_or_else(|| image.with_extension("pdb"), PathBuf::from);
    let reports = run(&bytes, &pdb).with_context(|| format!("cannot check {}", image.display()))?;
    for Report { name, what, findings } in &reports {
        println!("{name:<12} {}  {what}", if findings.is_empty() { "ok    " } else { "FAILED" });
        for finding in findings {
            println!("             {finding}");
        }
    }
    let wrong: usize = reports.iter().map(|report| report.findings.len()).sum();
    if wrong > 0 {
        bail!("{wrong} findings in {}", image.display());
    }
    Ok(())
}

fn run(bytes: &[u8], pdb: &Path) -> Result<Vec<Report>> {
    let pe = PeFile64::parse(bytes).context("not a PE32+ image")?;
    let symbols = if pdb.exists() { Some(Symbols::read(pdb)?) } else { None };
    let mut reports = Vec::new();
    let mut report =
        |name, what: &str, findings| reports.push(Report { name, what: what.to_owned(), findings });

    report("headers", "native x64 driver, ASLR, NX, high entropy, no TLS", headers::characteristics(&pe));
    report("checksum", "as the kernel's loader computes it", checksum::check(bytes)?);
    report("sections", "none writable and executable, page aligned (HVCI)", headers::sections(&pe));
    report("resources", "version and event-log messages", headers::resources(&pe)?);
    report("imports", "only the kernel and NDIS, each name exported by Windows", imports::check(&pe)?);
    let functions = unwind::functions(&pe)?;
    let names = symbols.as_ref().unwrap_or(const { &Symbols(std::collections::BTreeMap::new()) });
    let (largest, findings) = stack::check(&functions, names);
    report("stack", &format!("largest frame {largest} bytes, at most {} allowed", stack::LIMIT), findings);
    let (count, findings) = registers::check(&pe, &functions, names)?;
    report("registers", &format!("no x87, MMX or AVX, saved XMM kept ({count} functions)"), findings);
    if let Some(symbols) = &symbols {
        let (reached, findings) = reach::check(&pe, symbols)?;
        report("panics", &format!("none reachable from the data path ({reached} functions)"), findings);
    } else {
        let findings = vec![format!("no symbols: {} is not there", pdb.display())];
        report("panics", "none reachable from the data path", findings);
    }
    Ok(reports)
}
