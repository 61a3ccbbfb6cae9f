//! Rule: `include/ibal` and this crate say the same. Sizes, alignments, offsets, and the values of every
//! enumeration are compared by having clang compile assertions about the C side, for the Windows target, with
//! the numbers that rustc has for the Rust side.
//!
//! Needs clang (feature `abi-check`); no Windows header is needed.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use ibal_sys::layout::{LAYOUTS, Layout};
use ibal_sys::*;

/// The member in C: two unions have a name in Rust only.
fn c_path<'a>(layout: &Layout, path: &'a str) -> Option<&'a str> {
    match (layout.name, path) {
        ("ib_send_wr_t", "op" | "data") => None,
        ("ib_send_wr_t", path) => {
            Some(path.strip_prefix("op.").or(path.strip_prefix("data.")).unwrap_or(path))
        }
        ("ib_al_ifc_data_t", path) => Some(path.strip_prefix("r#").unwrap_or(path)),
        (_, path) => Some(path),
    }
}

fn assertions() -> String {
    let mut c = String::from(
        "#include \"ibal.h\"\n#define IS(what, number) _Static_assert((what) == (number), #what)\n",
    );
    for layout in LAYOUTS {
        let name = layout.name;
        writeln!(c, "IS(sizeof({name}), {});\nIS(_Alignof({name}), {});", layout.size, layout.align).unwrap();
        for field in layout.fields {
            if let Some(path) = c_path(layout, field.path) {
                writeln!(c, "IS(offsetof({name}, {path}), {});", field.offset).unwrap();
                writeln!(c, "IS(sizeof((({name} *)0)->{path}), {});", field.size).unwrap();
            }
        }
    }
    let enumerations: &[(&str, &[(&str, i32)])] = &[
        ("ib_api_status_t", ib_api_status_t::NAMES),
        ("ib_wc_status_t", ib_wc_status_t::NAMES),
        ("ib_wc_type_t", ib_wc_type_t::NAMES),
        ("ib_wr_type_t", ib_wr_type_t::NAMES),
        ("ib_qp_type_t", ib_qp_type_t::NAMES),
        ("ib_pd_type_t", ib_pd_type_t::NAMES),
        ("ib_apm_state_t", ib_apm_state_t::NAMES),
        ("ib_atomic_t", ib_atomic_t::NAMES),
        ("enum rdma_transport_type", rdma_transport_type::NAMES),
        ("ib_async_event_t", ib_async_event_t::NAMES),
        ("ib_query_type_t", ib_query_type_t::NAMES),
    ];
    for (name, values) in enumerations {
        writeln!(c, "IS(sizeof({name}), sizeof(int32_t));").unwrap();
        for (value, number) in *values {
            writeln!(c, "IS({value}, {number});").unwrap();
        }
    }
    let flags = [
        ("IB_SEND_OPT_SIGNALED", ib_send_opt_t::IB_SEND_OPT_SIGNALED.bits()),
        ("IB_SEND_OPT_SOLICITED", ib_send_opt_t::IB_SEND_OPT_SOLICITED.bits()),
        ("IB_SEND_OPT_TX_IP_CSUM", ib_send_opt_t::IB_SEND_OPT_TX_IP_CSUM.bits()),
        ("IB_SEND_OPT_TX_TCP_UDP_CSUM", ib_send_opt_t::IB_SEND_OPT_TX_TCP_UDP_CSUM.bits()),
        ("IB_RECV_OPT_GRH_VALID", ib_recv_opt_t::IB_RECV_OPT_GRH_VALID.bits()),
        ("IB_AC_LOCAL_WRITE", ib_access_t::IB_AC_LOCAL_WRITE.bits()),
        ("IB_QPS_RESET", ib_qp_state_t::IB_QPS_RESET.bits()),
        ("IB_QPS_INIT", ib_qp_state_t::IB_QPS_INIT.bits()),
        ("IB_QPS_RTR", ib_qp_state_t::IB_QPS_RTR.bits()),
        ("IB_QPS_RTS", ib_qp_state_t::IB_QPS_RTS.bits()),
        ("IB_QPS_ERROR", ib_qp_state_t::IB_QPS_ERROR.bits()),
        ("IB_MOD_QP_QKEY", ib_qp_opts_t::IB_MOD_QP_QKEY.bits()),
        ("IB_PNP_PORT", IB_PNP_PORT),
        ("IB_PNP_FLAG_REG_COMPLETE", IB_PNP_FLAG_REG_COMPLETE),
        ("IB_PNP_EVENT_ACTIVE", IB_PNP_EVENT_ACTIVE),
        ("IB_PNP_EVENT_LID", IB_PNP_EVENT_LID),
        ("AL_INTERFACE_VERSION", u32::from(AL_INTERFACE_VERSION)),
        ("IPOIB_INTERFACE_DATA_VERSION", u32::from(IPOIB_INTERFACE_DATA_VERSION)),
    ];
    for (name, bits) in flags {
        writeln!(c, "IS({name}, {bits}u);").unwrap();
    }
    c
}

/// The GUIDs, in C++, where a constant's members are constants.
fn guids() -> String {
    let mut c = String::from(
        "#include \"ibal.h\"\n#define IS(what, number) static_assert((what) == (number), #what)\n",
    );
    for (name, guid) in [
        ("GUID_IB_AL_INTERFACE_INIT", &GUID_IB_AL_INTERFACE),
        ("GUID_IPOIB_INTERFACE_DATA_INIT", &GUID_IPOIB_INTERFACE_DATA),
    ] {
        writeln!(c, "constexpr GUID {name}_value = {name};").unwrap();
        writeln!(c, "IS({name}_value.Data1, {:#x}u);", guid.Data1).unwrap();
        writeln!(c, "IS({name}_value.Data2, {:#x});", guid.Data2).unwrap();
        writeln!(c, "IS({name}_value.Data3, {:#x});", guid.Data3).unwrap();
        for (i, byte) in guid.Data4.iter().enumerate() {
            writeln!(c, "IS({name}_value.Data4[{i}], {byte:#x});").unwrap();
        }
    }
    c
}

/// What clang says against `source`, or nothing. Tests run at once, so each source has a file of its own
/// `name`.
fn compile(name: &str, language: &str, source: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("abi-{name}"));
    std::fs::write(&file, source).unwrap();
    let output = Command::new("clang")
        .args(["--target=x86_64-pc-windows-msvc", "-ffreestanding", "-fsyntax-only", "-ferror-limit=0"])
        .args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-const-variable",
            "-Wno-gnu-folding-constant",
            "-x",
            language,
        ])
        .arg("-I")
        .arg(root.join("include/ibal"))
        .arg(&file)
        .output()
        .expect("clang is needed for the feature abi-check");
    String::from_utf8_lossy(&output.stderr).into_owned()
        + if output.status.success() { "" } else { "\nfailed" }
}

#[test]
fn the_headers_and_the_crate_say_the_same() {
    for (name, language, source) in [("layout", "c", assertions()), ("guids", "c++", guids())] {
        let said = compile(name, language, &source);
        assert!(said.is_empty(), "{said}");
    }
}

#[test]
fn a_difference_is_found() {
    let wrong = assertions().replacen("IS(sizeof(ib_wc_t), 56)", "IS(sizeof(ib_wc_t), 64)", 1);
    assert!(compile("wrong", "c", &wrong).contains("sizeof(ib_wc_t)"), "a wrong size went unnoticed");
}
