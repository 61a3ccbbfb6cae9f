//! Register state that a driver may not touch.
//!
//! The kernel keeps a thread's x87, MMX and AVX state where it is: a driver that changes it, without
//! KeSaveExtendedProcessorState around, damages whatever thread it interrupted (kernel, "Using Floating Point or MMX in a
//! WDM Driver"; "Using extended processor features in Windows drivers"). XMM0 to XMM5 are free to use, and XMM6 to XMM15 for
//! who saves them ("x64 ABI conventions", caller/callee saved registers).

use std::collections::BTreeSet;

use anyhow::Result;
use iced_x86::{
    Decoder, DecoderOptions, EncodingKind, Instruction, InstructionInfoFactory, OpAccess, Register,
};
use object::{LittleEndian as LE, pe, read::pe::PeFile64};

use super::{Findings, headers::bytes_at, symbols::Symbols, unwind::Function};

/// How many functions there are, and each that touches what it may not.
pub(super) fn check(
    image: &PeFile64<'_>,
    functions: &[Function],
    symbols: &Symbols,
) -> Result<(usize, Findings)> {
    let mut findings = Findings::new();
    let mut count = 0;
    for section in image.section_table().iter() {
        if section.characteristics.get(LE).0 & pe::IMAGE_SCN_MEM_EXECUTE.0 == 0 {
            continue;
        }
        let start = section.virtual_address.get(LE);
        let end = start + section.virtual_size.get(LE);
        let range = start..end;
        let starts: BTreeSet<u32> = functions
            .iter()
            .map(|function| function.begin)
            .chain(symbols.0.keys().copied())
            .filter(|begin| range.contains(begin))
            .collect();
        count += starts.len();
        for &begin in &starts {
            let stop = starts.range(begin + 1..).next().copied().unwrap_or(end);
            let code = bytes_at(image, begin)?;
            let code = code.get(..(stop - begin) as usize).unwrap_or(code);
            let saved = functions.iter().filter(|function| (begin..stop).contains(&function.begin));
            let saved = saved.fold(0, |saved, function| saved | function.saved_xmm);
            for what in touched(code, begin, saved) {
                findings.push(format!("{} {what}", symbols.name(begin)));
            }
        }
    }
    Ok((count, findings))
}

/// What the code touches that it may not; `saved_xmm` has a bit for each XMM register that the prologue saves.
fn touched(code: &[u8], address: u32, saved_xmm: u16) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut factory = InstructionInfoFactory::new();
    let mut decoder = Decoder::with_ip(64, code, u64::from(address), DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            break;
        }
        let extended = !matches!(instruction.encoding(), EncodingKind::Legacy);
        let features = instruction.cpuid_features();
        if features.iter().any(|feature| format!("{feature:?}").starts_with("FPU")) {
            found.insert("uses x87 state".to_owned());
        }
        if extended || features.iter().any(|feature| format!("{feature:?}").starts_with("AVX")) {
            found.insert("uses AVX state".to_owned());
        }
        for used in factory.info(&instruction).used_registers() {
            let register = used.register();
            let written = matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            if register.is_mm() {
                found.insert("uses MMX state".to_owned());
            }
            if register.is_xmm() && written {
                let number = register as u32 - Register::XMM0 as u32;
                if (6..16).contains(&number) && saved_xmm & 1 << number == 0 {
                    found.insert(format!("changes xmm{number} without saving it"));
                }
            }
        }
        if format!("{:?}", instruction.mnemonic()) == "Emms" {
            found.insert("uses MMX state".to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8]) -> Vec<String> {
        touched(code, 0x1000, 1 << 6).into_iter().collect()
    }

    #[test]
    fn ordinary_code_touches_nothing_forbidden() {
        // push rbx; movups xmm0, [rcx]; movaps xmm6, xmm0 (saved); movaps [rsp], xmm7 (a save itself); ret
        assert!(of(&[0x53, 0x0f, 0x10, 0x01, 0x0f, 0x28, 0xf0, 0x0f, 0x29, 0x3c, 0x24, 0xc3]).is_empty());
    }

    #[test]
    fn each_forbidden_state_is_seen() {
        assert_eq!(of(&[0xd9, 0xe8]), ["uses x87 state"]); // fld1
        assert_eq!(of(&[0x0f, 0x77]), ["uses MMX state"]); // emms
        assert_eq!(of(&[0x0f, 0xef, 0xc0]), ["uses MMX state"]); // pxor mm0, mm0
        assert_eq!(of(&[0xc5, 0xf8, 0x77]), ["uses AVX state"]); // vzeroupper
        assert_eq!(of(&[0x0f, 0x28, 0xf8]), ["changes xmm7 without saving it"]); // movaps xmm7, xmm0
    }
}
