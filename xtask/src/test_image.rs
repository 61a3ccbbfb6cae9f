//! `cargo xtask test-image`: every integration test, on the image instead of the linked driver.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::{check, image};

/// Builds and checks the image (or checks the one given), then runs the integration tests of the driver on it.
pub(crate) fn run(given: Option<&Path>, arguments: &[String]) -> Result<()> {
    let image = match given {
        Some(image) => image.to_owned(),
        None => image::build(None)?,
    };
    check::check(&image, None)?;
    let image = fs::canonicalize(&image).with_context(|| format!("cannot find {}", image.display()))?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--locked", "--package", "ipoib", "--features", "image-tests", "--test", "*"])
        .args(arguments)
        .env("IPOIB_IMAGE", &image)
        .current_dir(image::workspace_root()?)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the image does not pass the integration tests");
    Ok(())
}
