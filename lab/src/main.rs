//! `ipoib-lab`: the command line of the lab.
fn main() {}
