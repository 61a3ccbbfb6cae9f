//! Walking the stack through an image, by its unwind tables ("x64 exception handling", RUNTIME_FUNCTION and
//! UNWIND_INFO).
//!
//! Only return addresses are walked over, so the prologue of each function has run in full as far as the call in it, and
//! no epilogue has begun.

use std::ops::Range;

use super::modules::{Place, place};

const UWOP_PUSH_NONVOL: u8 = 0;
const UWOP_ALLOC_LARGE: u8 = 1;
const UWOP_ALLOC_SMALL: u8 = 2;
const UWOP_SET_FPREG: u8 = 3;
const UWOP_SAVE_NONVOL: u8 = 4;
const UWOP_SAVE_NONVOL_FAR: u8 = 5;
const UWOP_EPILOG: u8 = 6;
const UWOP_SPARE: u8 = 7;
const UWOP_SAVE_XMM128: u8 = 8;
const UWOP_SAVE_XMM128_FAR: u8 = 9;

const UNW_FLAG_CHAININFO: u8 = 4;

/// Chained infos that are followed: compilers make chains of two or three.
const LONGEST_CHAIN: usize = 32;

/// Number of RSP among the registers of unwind codes.
const RSP: usize = 4;

/// The functions of an image that have a frame, by address.
#[derive(Debug, Default)]
pub(super) struct FunctionTable(Vec<Function>);

#[derive(Clone, Copy, Debug)]
struct Function {
    begin: u32,
    end: u32,
    info: u32,
}

impl FunctionTable {
    /// Reads an exception directory.
    pub fn new(directory: &[u8]) -> Self {
        let word = |entry: &[u8], at: usize| {
            entry
                .get(at..at + 4)
                .and_then(|bytes| bytes.first_chunk())
                .map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let mut functions: Vec<_> = directory
            .chunks_exact(12)
            .map(|entry| Function { begin: word(entry, 0), end: word(entry, 4), info: word(entry, 8) })
            .collect();
        functions.sort_by_key(|function| function.begin);
        Self(functions)
    }

    fn find(&self, address: u32) -> Option<Function> {
        let index = self.0.partition_point(|function| function.begin <= address).checked_sub(1)?;
        self.0.get(index).copied().filter(|function| address < function.end)
    }
}

/// The registers that a frame can be found by: the instruction pointer and the nonvolatile general registers, in the
/// numbering of unwind codes (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15). One that is not known is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    /// The return address.
    pub ip: usize,
    /// The general registers.
    pub general: [Option<usize>; 16],
}

impl Registers {
    /// A frame of which only these two are known.
    pub fn new(ip: usize, sp: usize) -> Self {
        let mut general = [None; 16];
        general[RSP] = Some(sp);
        Self { ip, general }
    }
}

/// The return addresses on the stack from `frame` outward, its own included, as long as they lie in loaded images.
/// Nothing outside `stack` is read.
pub(crate) fn callers(frame: &Registers, stack: &Range<usize>) -> impl Iterator<Item = usize> {
    let stack = stack.clone();
    let mut next = Some(*frame);
    std::iter::from_fn(move || {
        let frame = next.take()?;
        let here = place(frame.ip).filter(|here| here.loaded)?;
        next = caller(frame, &here, &stack);
        Some(frame.ip)
    })
}

/// The registers of the frame that called this one.
fn caller(mut frame: Registers, here: &Place, stack: &Range<usize>) -> Option<Registers> {
    // The return address may be the first byte of the next function; the byte before it is in the call.
    if let Some(function) = here.file.0.functions.find(here.offset.checked_sub(1)?) {
        undo_prologue(&mut frame, function, here, stack)?;
    }
    let sp = frame.general[RSP]?;
    frame.ip = read(sp, stack)?;
    frame.general[RSP] = Some(sp + 8);
    // Stacks grow down: a walk that does not come nearer to their start would never end.
    (stack.start..stack.end).contains(&sp).then_some(frame)
}

/// Takes back what the prologue did to the stack and to the registers it saved.
fn undo_prologue(
    frame: &mut Registers,
    mut function: Function,
    here: &Place,
    stack: &Range<usize>,
) -> Option<()> {
    let mut passed = here.offset - function.begin;
    for _ in 0..LONGEST_CHAIN {
        let info = Info::at(here, function.info)?;
        undo_codes(frame, &info, passed, stack)?;
        match info.chained {
            Some(parent) => {
                function = parent;
                // All of the prologue of a parent has run.
                passed = u32::MAX;
            }
            None => return Some(()),
        }
    }
    None
}

fn undo_codes(frame: &mut Registers, info: &Info, passed: u32, stack: &Range<usize>) -> Option<()> {
    let has_run = |offset: u16| u32::from(offset) <= passed;
    // Saved registers are addressed from the frame as it is once the prologue is done.
    let base = match info.frame_register {
        Some((register, offset)) if has_run(info.frame_register_set()) => {
            frame.general[register]?.checked_sub(offset)?
        }
        _ => frame.general[RSP]?,
    };
    let mut slots = info.codes.iter().copied();
    while let Some(code) = slots.next() {
        let (offset, operation, operand) = (code & 0xFF, (code >> 8) as u8 & 0xF, usize::from(code >> 12));
        let mut word = || slots.next().map(usize::from);
        let run = has_run(offset);
        let sp = frame.general[RSP]?;
        match operation {
            UWOP_PUSH_NONVOL if run => {
                frame.general[operand] = Some(read(sp, stack)?);
                frame.general[RSP] = Some(sp + 8);
            }
            UWOP_ALLOC_SMALL if run => frame.general[RSP] = Some(sp + operand * 8 + 8),
            UWOP_ALLOC_LARGE => {
                let size = if operand == 0 { word()? * 8 } else { word()? | word()? << 16 };
                if run {
                    frame.general[RSP] = Some(sp.checked_add(size)?);
                }
            }
            UWOP_SET_FPREG if run => frame.general[RSP] = Some(base),
            UWOP_SAVE_NONVOL => {
                let place = base.checked_add(word()? * 8)?;
                if run {
                    frame.general[operand] = Some(read(place, stack)?);
                }
            }
            UWOP_SAVE_NONVOL_FAR => {
                let place = base.checked_add(word()? | word()? << 16)?;
                if run {
                    frame.general[operand] = Some(read(place, stack)?);
                }
            }
            UWOP_SAVE_XMM128 | UWOP_EPILOG => _ = word()?,
            UWOP_SAVE_XMM128_FAR | UWOP_SPARE => _ = (word()?, word()?),
            UWOP_PUSH_NONVOL | UWOP_ALLOC_SMALL | UWOP_SET_FPREG => {}
            // A machine frame, or what no compiler writes: nothing beyond it can be known.
            _ => return None,
        }
    }
    Some(())
}

/// The unwind information of a function.
struct Info {
    codes: Vec<u16>,
    /// The frame register and the distance between it and the stack pointer it was set from.
    frame_register: Option<(usize, usize)>,
    chained: Option<Function>,
}

impl Info {
    fn at(here: &Place, address: u32) -> Option<Self> {
        let bytes = here.file.0.bytes_at(address)?;
        let [first, _prologue, count, frame, rest @ ..] = bytes else { return None };
        let count = usize::from(*count);
        let codes = rest.get(..count * 2)?.chunks_exact(2).map(|code| u16::from_le_bytes([code[0], code[1]]));
        // The codes take an even number of slots.
        let after = rest.get((count + count % 2) * 2..)?;
        let chained = (first >> 3 & UNW_FLAG_CHAININFO != 0)
            .then(|| FunctionTable::new(after.get(..12)?).0.first().copied())
            .flatten();
        let register = usize::from(frame & 0xF);
        Some(Self {
            codes: codes.collect(),
            frame_register: (register != 0).then_some((register, usize::from(frame >> 4) * 16)),
            chained,
        })
    }

    /// The offset in the prologue after which the frame register is set.
    fn frame_register_set(&self) -> u16 {
        let mut at = 0;
        while let Some(code) = self.codes.get(at) {
            let (operation, operand) = ((code >> 8) as u8 & 0xF, code >> 12);
            at += match operation {
                UWOP_SET_FPREG => return code & 0xFF,
                UWOP_ALLOC_LARGE => 2 + usize::from(operand != 0),
                UWOP_SAVE_NONVOL | UWOP_SAVE_XMM128 | UWOP_EPILOG => 2,
                UWOP_SAVE_NONVOL_FAR | UWOP_SAVE_XMM128_FAR | UWOP_SPARE => 3,
                _ => 1,
            };
        }
        // A parent of a chain set it.
        0
    }
}

/// A word of the stack.
fn read(address: usize, stack: &Range<usize>) -> Option<usize> {
    let inside = address.is_multiple_of(8) && stack.contains(&address) && address + 8 <= stack.end;
    // SAFETY: in the stack of the running coroutine, above its stack pointer: frames that are in use.
    inside.then(|| unsafe { *(address as *const usize) })
}
