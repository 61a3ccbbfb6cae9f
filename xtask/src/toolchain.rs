//! Finding a Rust toolchain that can build for `x86_64-pc-windows-msvc`.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// The target of every driver image.
pub(crate) const TARGET: &str = "x86_64-pc-windows-msvc";

/// A way to compile for [`TARGET`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// The toolchain in use has a libcore for the target.
    Installed,
    /// Debian's `rustc-web`: its own cargo and rustc, and libcore's source to build from.
    Debian { cargo: PathBuf },
}

const INSTALL_HINT: &str = "no toolchain here can build for x86_64-pc-windows-msvc. Install one of:\n  \
    rustup target add x86_64-pc-windows-msvc      (with rustup and network access)\n  \
    apt-get install rustc-web cargo-web rust-web-src lld      (Debian)";

impl Toolchain {
    /// The first that is complete: an installed target, else Debian's compiler with its library source.
    pub(crate) fn find() -> Result<Self> {
        if has_target_library("rustc") {
            return Ok(Self::Installed);
        }
        let cargo = PathBuf::from("/usr/bin/cargo");
        if cargo.exists() && has_library_source(Path::new("/usr/bin/rustc")) {
            return Ok(Self::Debian { cargo });
        }
        bail!(INSTALL_HINT)
    }

    /// A cargo command of this toolchain, with `subcommand` and the options that make it build for the target.
    pub(crate) fn cargo(&self, subcommand: &str) -> Result<Command> {
        let mut command = match self {
            Self::Installed => Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
            Self::Debian { cargo } => Command::new(cargo),
        };
        command.arg(subcommand);
        if let Self::Debian { cargo } = self {
            // Nothing of the toolchain that runs this program may leak into the other one.
            for name in
                ["RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC", "CARGO", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"]
            {
                command.env_remove(name);
            }
            let bin = cargo.parent().context("cargo has no folder")?;
            let mut path = OsString::from(bin);
            path.push(":");
            path.push(env::var_os("PATH").unwrap_or_default());
            command.env("PATH", path);
            // Building libcore from source is a nightly option of cargo; the compiler is the stable one.
            command.env("RUSTC_BOOTSTRAP", "1");
            command.args(["-Zbuild-std=core", "-Zbuild-std-features=compiler-builtins-mem"]);
        }
        command.args(["--target", TARGET]);
        if !cfg!(windows) {
            let linker = find_linker()?;
            command.arg("--config").arg(format!("target.{TARGET}.linker={:?}", linker.display().to_string()));
        }
        Ok(command)
    }
}

/// Whether `rustc` ships a compiled libcore for the target.
fn has_target_library(rustc: &str) -> bool {
    sysroot_query(Path::new(rustc), &["--print", "target-libdir", "--target", TARGET]).is_some_and(|dir| {
        dir.read_dir().is_ok_and(|mut files| {
            files
                .any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libcore-")))
        })
    })
}

fn has_library_source(rustc: &Path) -> bool {
    sysroot_query(rustc, &["--print", "sysroot"])
        .is_some_and(|root| root.join("lib/rustlib/src/rust/library/core/src/lib.rs").exists())
}

fn sysroot_query(rustc: &Path, arguments: &[&str]) -> Option<PathBuf> {
    let output = Command::new(rustc).args(arguments).output().ok()?;
    output.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// `lld-link` under any of the names it is packaged as, or the `rust-lld` of the toolchain.
fn find_linker() -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let named = env::split_paths(&path)
        .flat_map(|dir| ["lld-link", "lld-link-19", "lld-link-16", "lld-link-14"].map(|name| dir.join(name)));
    let bundled = sysroot_query(Path::new("rustc"), &["--print", "target-libdir"])
        .and_then(|libdir| Some(libdir.parent()?.join("bin/gcc-ld/lld-link")));
    named
        .chain(bundled)
        .find(|candidate| candidate.exists())
        .context("no lld-link found to link a Windows image with: install lld (apt-get install lld)")
}
