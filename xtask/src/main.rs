//! Cross-build, image checks and packaging of ipoib.sys.
fn main() {}
