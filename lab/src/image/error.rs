//! Why an image does not load.

use std::fmt::{self, Display};
use std::io;

/// Why an image does not load.
#[derive(Debug)]
pub enum ImageError {
    /// The file cannot be read.
    Read(io::Error),
    /// It is not an image that the kernel of an x64 Windows could load; says what is wrong with it.
    Format(String),
    /// It imports what the lab does not have: all of that, in the order of the file.
    MissingImports(Vec<MissingImport>),
    /// The host has no memory for it.
    Memory(io::Error),
}

/// An import that the lab does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingImport {
    /// The module, as the image spells it.
    pub module: String,
    /// The name, or `#` and the ordinal.
    pub name: String,
}

impl ImageError {
    pub(super) fn format(what: impl Into<String>) -> Self {
        Self::Format(what.into())
    }
}

impl From<object::read::Error> for ImageError {
    fn from(error: object::read::Error) -> Self {
        Self::Format(error.to_string())
    }
}

impl Display for MissingImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}!{}", self.module, self.name)
    }
}

impl Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Format(what) => write!(f, "is not a driver image for x64: {what}"),
            Self::MissingImports(missing) => {
                write!(f, "imports what the lab does not have ({}):", missing.len())?;
                missing.iter().try_for_each(|import| write!(f, "\n  {import}"))
            }
            Self::Memory(error) => write!(f, "cannot be mapped: {error}"),
        }
    }
}

impl std::error::Error for ImageError {}
