//! `cargo xtask check-image`: what must hold of a driver image before anyone loads it.
//!
//! Each check reads the image alone and works on any x64 `.sys`; [`reach`] also needs its PDB, for names.

mod exports;
mod headers;
mod imports;
mod reach;
mod stack;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use object::read::pe::PeFile64;

/// What a check found wrong, one line each; empty if nothing.
type Findings = Vec<String>;

/// Runs every check on `image` and prints a line for each; an error if any found something.
pub(crate) fn check(image: &Path, pdb: Option<&Path>) -> Result<()> {
    let bytes = fs::read(image).with_context(|| format!("cannot read {}", image.display()))?;
    let pe = PeFile64::parse(&*bytes).with_context(|| format!("{} is not a PE32+ image", image.display()))?;
    let pdb = pdb.map_or_else(|| image.with_extension("pdb"), PathBuf::from);

    let mut wrong = 0;
    let mut report = |name: &str, what: &str, findings: Findings| {
        println!("{name:<12} {}  {what}", if findings.is_empty() { "ok    " } else { "FAILED" });
        for finding in &findings {
            println!("             {finding}");
        }
        wrong += findings.len();
    };

    report("headers", "native x64 driver, ASLR, NX, high entropy, no TLS", headers::characteristics(&pe));
    report("sections", "none writable and executable, page aligned (HVCI)", headers::sections(&pe));
    report("resources", "version and event-log messages", headers::resources(&pe)?);
    report("imports", "only the kernel and NDIS, each name exported by Windows", imports::check(&pe)?);
    let (largest, findings) = stack::check(&pe)?;
    report("stack", &format!("largest frame {largest} bytes, below {} allowed", stack::LIMIT), findings);
    if pdb.exists() {
        let (functions, findings) = reach::check(&pe, &pdb)?;
        report("panics", &format!("none reachable from the data path ({functions} functions)"), findings);
    } else {
        report("panics", "no panic reachable", vec![format!("no symbols: {} is not there", pdb.display())]);
    }
    if wrong > 0 {
        bail!("{wrong} findings in {}", image.display());
    }
    Ok(())
}
