//! What the data path can reach: no panic may be among it.
//!
//! The call graph is taken from the machine code: direct calls and jumps, and addresses of functions that a
//! function loads (so a callback counts as called by whoever passes it on). Calls through pointers into the
//! kernel leave the image.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::{LittleEndian as LE, pe, read::pe::PeFile64};

use super::{Findings, headers::bytes_at, symbols::Symbols};

/// Entry points of sends, receives and completions; each must be in the image. Those of `ib` and `kernel` are generic
/// over what is called back, so these are the beginnings of names.
const DATA_PATH: [&str; 5] = [
    "ipoib::entry::miniport_send_net_buffer_lists",
    "ipoib::entry::miniport_return_net_buffer_lists",
    "ipoib::ib::client::on_receive",
    "ipoib::ib::client::on_send",
    "ipoib::kernel::sg::process_list",
];

/// Where a panic or a failed allocation ends.
const FORBIDDEN: [&str; 4] = [
    "core::panicking::",
    "rust_begin_unwind",
    "alloc::alloc::handle_alloc_error",
    "core::slice::index::slice_",
];

/// How many functions the data path reaches, and each forbidden one with the way there.
pub(super) fn check(image: &PeFile64<'_>, symbols: &Symbols) -> Result<(usize, Findings)> {
    Ok(search(&symbols.0, &call_graph(image, &symbols.0)?))
}

type Names = BTreeMap<u32, String>;

fn search(names: &Names, graph: &BTreeMap<u32, BTreeSet<u32>>) -> (usize, Findings) {
    let mut findings = Findings::new();
    if names.values().any(|name| name == "alloc::alloc::handle_alloc_error") {
        findings.push("handle_alloc_error is in the image".to_owned());
    }
    let mut came_from: HashMap<u32, u32> = HashMap::new();
    let mut reached = BTreeSet::new();
    let mut open = Vec::new();
    for entry in DATA_PATH {
        let before = open.len();
        open.extend(names.iter().filter(|(_, name)| is_called(name, entry)).map(|(&address, _)| address));
        if open.len() == before {
            findings.push(format!("{entry} is not in the image"));
        }
    }
    while let Some(function) = open.pop() {
        if !reached.insert(function) {
            continue;
        }
        for &callee in graph.get(&function).into_iter().flatten() {
            if !reached.contains(&callee) {
                came_from.entry(callee).or_insert(function);
                open.push(callee);
            }
        }
    }
    for address in &reached {
        if FORBIDDEN.iter().any(|forbidden| names[address].starts_with(forbidden)) {
            findings.push(path_to(*address, &came_from, names));
        }
    }
    (reached.len(), findings)
}

/// Whether a function is `entry`, or an instance of it.
fn is_called(name: &str, entry: &str) -> bool {
    name.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with(['<', ':']))
}

fn path_to(target: u32, came_from: &HashMap<u32, u32>, names: &Names) -> String {
    let mut path = vec![names[&target].as_str()];
    let mut at = target;
    while let Some(&caller) = came_from.get(&at) {
        path.push(&names[&caller]);
        at = caller;
    }
    path.reverse();
    path.join(" -> ")
}

/// For each function the functions it calls, jumps to, or whose address it takes.
fn call_graph(image: &PeFile64<'_>, names: &Names) -> Result<BTreeMap<u32, BTreeSet<u32>>> {
    let mut graph = BTreeMap::new();
    for section in image.section_table().iter() {
        if section.characteristics.get(LE).0 & pe::IMAGE_SCN_MEM_EXECUTE.0 == 0 {
            continue;
        }
        let start = section.virtual_address.get(LE);
        let end = start + section.virtual_size.get(LE);
        let starts: Vec<u32> = names.range(start..end).map(|(address, _)| *address).collect();
        for (index, &function) in starts.iter().enumerate() {
            let stop = starts.get(index + 1).copied().unwrap_or(end);
            let code = bytes_at(image, function)?;
            let code = code.get(..(stop - function) as usize).unwrap_or(code);
            graph.insert(function, targets(code, function, names));
        }
    }
    Ok(graph)
}

fn targets(code: &[u8], function: u32, names: &Names) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut decoder = Decoder::with_ip(64, code, u64::from(function), DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let target = match instruction.flow_control() {
            FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                if instruction.op0_kind() == OpKind::NearBranch64 =>
            {
                Some(instruction.near_branch_target())
            }
            _ if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() => {
                Some(instruction.ip_rel_memory_address())
            }
            _ => None,
        };
        if let Some(target) = target.and_then(|target| u32::try_from(target).ok())
            && target != function
            && names.contains_key(&target)
        {
            found.insert(target);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(extra: &[&str]) -> Names {
        let all = DATA_PATH.iter().chain(extra).map(|name| (*name).to_owned());
        (0..).zip(all).collect()
    }

    #[test]
    fn a_panic_is_found_through_what_is_called_on_the_way() {
        let names = names(&["ipoib::datapath::step", "core::panicking::panic", "ipoib::adapter::elsewhere"]);
        let graph = BTreeMap::from([(0, [5].into()), (5, [6].into()), (7, [6].into())]);
        let (reached, findings) = search(&names, &graph);
        assert_eq!(reached, DATA_PATH.len() + 2);
        assert_eq!(
            findings,
            [format!("{} -> ipoib::datapath::step -> core::panicking::panic", DATA_PATH[0])]
        );
    }

    #[test]
    fn a_failed_allocation_may_not_even_be_in_the_image() {
        let (_, findings) = search(&names(&["alloc::alloc::handle_alloc_error"]), &BTreeMap::new());
        assert_eq!(findings, ["handle_alloc_error is in the image"]);
    }

    #[test]
    fn an_entry_point_that_is_gone_is_a_finding() {
        let mut names = names(&[]);
        names.remove(&2);
        let (_, findings) = search(&names, &BTreeMap::new());
        assert_eq!(findings, [format!("{} is not in the image", DATA_PATH[2])]);
    }

    #[test]
    fn instances_of_an_entry_point_count_and_longer_names_do_not() {
        assert!(
            is_called("a::b", "a::b")
                && is_called("a::b<u8>", "a::b")
                && is_called("a::b::{{closure}}", "a::b")
        );
        assert!(!is_called("a::bc", "a::b"));
    }
}
