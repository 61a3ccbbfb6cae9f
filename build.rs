//! Link settings and resources of `ipoib.sys`.
//!
//! A driver image needs no import library here: every import is `raw-dylib`. With feature `wdk` the Windows
//! Driver Kit gives the settings instead, through wdk-build.

#[path = "build/resources.rs"]
mod resources;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");

    #[cfg(feature = "wdk")]
    wdk_build::configure_wdk_binary_build()
        .expect("feature `wdk` needs a Windows host with the WDK installed");

    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("windows") {
        #[cfg(not(feature = "wdk"))]
        for argument in IMAGE_LINK_ARGUMENTS {
            println!("cargo:rustc-cdylib-link-arg={argument}");
        }
        if let Err(what) = resources::link() {
            println!("cargo:error={what}");
        }
    }
}

/// What makes a DLL a driver image fit for HVCI: native subsystem, its own entry point, page-aligned sections,
/// no executable import thunks or initialiser sections, reproducible bytes.
#[cfg(not(feature = "wdk"))]
const IMAGE_LINK_ARGUMENTS: [&str; 11] = [
    "/DRIVER",
    "/SUBSYSTEM:NATIVE,10.00",
    "/ENTRY:DriverEntry",
    "/NODEFAULTLIB",
    "/DYNAMICBASE",
    "/HIGHENTROPYVA",
    "/NXCOMPAT",
    "/OPT:REF",
    "/OPT:ICF",
    "/Brepro",
    "/PDBALTPATH:%_PDB%",
];
