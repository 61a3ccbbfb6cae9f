//! `cargo xtask image`: the driver as Windows loads it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    checksum,
    toolchain::{TARGET, Toolchain},
};

/// Builds `ipoib.sys` and `ipoib.pdb` into `out` (default `target/image`) and returns the image's path.
pub(crate) fn build(out: Option<PathBuf>) -> Result<PathBuf> {
    let target = target_dir()?;
    let out = out.unwrap_or_else(|| target.join("image"));
    build_in(&workspace_root()?, &target.join("image-build"), &out)
}

/// Builds the image of the workspace in `root`, with everything that comes with it in `build_dir`.
fn build_in(root: &Path, build_dir: &Path, out: &Path) -> Result<PathBuf> {
    // Two checkouts of one commit give one image: no path of this machine gets into it.
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned(), remap(root, ".")];
    flags.extend(cargo_home.map(|home| remap(&home, "cargo")));

    let mut command = Toolchain::find()?.cargo("rustc")?;
    command
        .args(["--package", "ipoib", "--lib", "--crate-type", "cdylib", "--profile", "image", "--locked"])
        .env("CARGO_TARGET_DIR", build_dir)
        .arg("--config")
        .arg(format!("target.{TARGET}.rustflags={flags:?}"))
        .current_dir(root);
    let status =
        command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "the driver image did not build");

    let built = build_dir.join(TARGET).join("image");
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
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

fn remap(from: &Path, to: &str) -> String {
    format!("--remap-path-prefix={}={to}", from.display())
}

/// Where this workspace builds.
pub(crate) fn target_dir() -> Result<PathBuf> {
    Ok(env::var_os("CARGO_TARGET_DIR").map_or(workspace_root()?.join("target"), PathBuf::from))
}

pub(crate) fn workspace_root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("xtask has no parent folder")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A copy of the workspace, uncommitted changes included, as a fresh checkout would be.
    fn checkout(to: &Path) {
        let root = workspace_root().expect("a workspace");
        let list = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("git");
        let list = String::from_utf8(list.stdout).expect("names in UTF-8");
        for name in list.split('\0').filter(|name| root.join(name).is_file()) {
            let target = to.join(name);
            fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
            fs::copy(root.join(name), target).expect("a copy");
        }
    }

    #[test]
    fn two_folders_give_the_same_bytes() {
        let scratch = target_dir().expect("a workspace").join("reproducible");
        let folders = ["a", "another/with a longer name"].map(|folder| scratch.join(folder));
        let _ = fs::remove_dir_all(&scratch);
        for folder in &folders {
            checkout(folder);
        }
        let [first, second] = folders.map(|root| {
            let image = build_in(&root, &root.join("target"), &root.join("out")).expect("an image");
            fs::read(image).expect("the image")
        });
        let differing = first.iter().zip(&second).position(|(a, b)| a != b);
        assert!(first == second, "the images in {} differ from byte {differing:x?} on", scratch.display());
        let _ = fs::remove_dir_all(&scratch);
    }
}
