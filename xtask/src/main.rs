//! Cross-build, image checks and packaging of `ipoib.sys`: what CI and people call as `cargo xtask`.

mod check;
mod checksum;
mod image;
mod test_image;
mod toolchain;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds and checks the driver image", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build ipoib.sys for x86_64-pc-windows-msvc with whichever toolchain is here
    Image {
        /// Where to put ipoib.sys and ipoib.pdb [default: target/image]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Check a driver image: headers, sections, imports, stack frames, registers, panics on the data path
    CheckImage {
        /// The .sys to look at
        image: PathBuf,
        /// Its symbols [default: the image's name with .pdb]
        #[arg(long, value_name = "FILE")]
        pdb: Option<PathBuf>,
    },
    /// Run every integration test on the image instead of the driver linked into the lab
    TestImage {
        /// An image that is there already [default: builds one]
        #[arg(long, value_name = "FILE")]
        image: Option<PathBuf>,
        /// For `cargo test`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Image { out } => {
            let image = image::build(out)?;
            println!("{}", image.display());
        }
        Command::CheckImage { image, pdb } => check::check(&image, pdb.as_deref())?,
        Command::TestImage { image, arguments } => test_image::run(image.as_deref(), &arguments)?,
    }
    Ok(())
}
