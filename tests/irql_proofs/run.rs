//! What must not run at DISPATCH_LEVEL cannot be called from there: each file of ui fails to compile, with the
//! error beside it.
//!
//! The recorded errors are those of the stable compiler of the day; `TRYBUILD=overwrite cargo test
//! --package irql-proofs` records them anew. What to look at in the difference is that the error is still about the proof.

#[test]
fn dispatch_paths_cannot_wait_or_call_passive_verbs() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
