//! `cargo xtask image`: the driver as Windows loads it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    checksum,
    toolchain::{TARGET, Toolchain},
};

/// Builds `ipoib.sys` and `ipoib.pdb` into `out` (default `target/image`) and returns the image's path.
pub(crate) fn build(out: Option<PathBuf>) -> Result<PathBuf> {
    let root = workspace_root()?;
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let build_dir = target_dir.join("image-build");
    let out = out.unwrap_or_else(|| target_dir.join("image"));

    let mut command = Toolchain::find()?.cargo("rustc")?;
    command
        .args(["--package", "ipoib", "--lib", "--crate-type", "cdylib", "--profile", "image", "--locked"])
        .env("CARGO_TARGET_DIR", &build_dir)
        // Two checkouts of one commit give one image: no path of this machine gets into it.
        .arg("--config")
        .arg(format!(
            "target.{TARGET}.rustflags=[\"--remap-path-prefix={}=.\", \"-Ctarget-feature=+crt-static\"]",
            root.display()
        ))
        .current_dir(&root);
    let status =
        command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "the driver image did not build");

    let built = build_dir.join(TARGET).join("image");
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let image = out.join("ipoib.sys");
    let mut bytes = fs::read(built.join("ipoib.dll")).context("the build left no image")?;
    checksum::set(&mut bytes)?;
    fs::write(&image, bytes).with_context(|| format!("cannot write {}", image.display()))?;
    copy(&built.join("ipoib.pdb"), &out.join("ipoib.pdb"))?;
    Ok(image)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn workspace_root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("xtask has no parent folder")
}
