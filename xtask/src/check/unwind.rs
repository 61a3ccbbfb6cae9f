//! What the prologue of each function does, out of the unwind tables ("x64 exception handling", UNWIND_INFO).

use anyhow::Result;
use object::{LittleEndian as LE, pe, read::pe::PeFile64};

use super::headers::bytes_at;

const UWOP_PUSH_NONVOL: u8 = 0;
const UWOP_ALLOC_LARGE: u8 = 1;
const UWOP_ALLOC_SMALL: u8 = 2;
const UWOP_SAVE_NONVOL: u8 = 4;
const UWOP_SAVE_NONVOL_FAR: u8 = 5;
const UWOP_EPILOG: u8 = 6;
const UWOP_SPARE: u8 = 7;
const UWOP_SAVE_XMM128: u8 = 8;
const UWOP_SAVE_XMM128_FAR: u8 = 9;

/// A function with a frame, addresses relative to the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub begin: u32,
    pub end: u32,
    /// Bytes of stack, the return address included.
    pub frame: u32,
    /// A bit for each XMM register that the prologue saves.
    pub saved_xmm: u16,
}

/// Every function that the exception directory lists, by address: all but leaves, which have no frame.
pub(super) fn functions(image: &PeFile64<'_>) -> Result<Vec<Function>> {
    let Some(directory) = image.data_directory(pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION) else {
        return Ok(Vec::new());
    };
    if directory.size.get(LE) == 0 {
        return Ok(Vec::new());
    }
    let table = bytes_at(image, directory.virtual_address.get(LE))?;
    let table = table.get(..directory.size.get(LE) as usize).unwrap_or(table);
    table
        .chunks_exact(12)
        .map(|entry| {
            let word =
                |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
            let (frame, saved_xmm) = prologue(bytes_at(image, word(8))?);
            Ok(Function { begin: word(0), end: word(4), frame, saved_xmm })
        })
        .collect()
}

/// Bytes that the prologue takes from the stack, with the return address, and the XMM registers it saves.
fn prologue(info: &[u8]) -> (u32, u16) {
    let codes = usize::from(info.get(2).copied().unwrap_or(0));
    let slot = |index: usize| {
        let at = 4 + 2 * index;
        u32::from(u16::from_le_bytes([
            info.get(at).copied().unwrap_or(0),
            info.get(at + 1).copied().unwrap_or(0),
        ]))
    };
    let (mut size, mut saved_xmm) = (8, 0);
    let mut index = 0;
    while index < codes {
        let (operation, operand) = ((slot(index) >> 8) as u8 & 0xf, slot(index) >> 12);
        index += match operation {
            UWOP_PUSH_NONVOL => {
                size += 8;
                1
            }
            UWOP_ALLOC_SMALL => {
                size += operand * 8 + 8;
                1
            }
            UWOP_ALLOC_LARGE if operand == 0 => {
                size += slot(index + 1) * 8;
                2
            }
            UWOP_ALLOC_LARGE => {
                size += slot(index + 1) | slot(index + 2) << 16;
                3
            }
            UWOP_SAVE_XMM128 => {
                saved_xmm |= 1 << operand;
                2
            }
            UWOP_SAVE_XMM128_FAR => {
                saved_xmm |= 1 << operand;
                3
            }
            UWOP_SAVE_NONVOL | UWOP_EPILOG => 2,
            UWOP_SAVE_NONVOL_FAR | UWOP_SPARE => 3,
            // UWOP_SET_FPREG, UWOP_PUSH_MACHFRAME and what is to come.
            _ => 1,
        };
    }
    (size, saved_xmm)
}

#[cfg(test)]
mod tests {
    use super::prologue;

    #[test]
    fn a_frame_is_its_pushes_and_its_allocations() {
        // push rbx; push rsi; sub rsp, 28h: UWOP_ALLOC_SMALL (28h / 8 - 1 = 4), two UWOP_PUSH_NONVOL.
        let info = [0x01, 0x06, 0x03, 0x00, 0x06, 0x42, 0x02, 0x60, 0x01, 0x30];
        assert_eq!(prologue(&info), (8 + 2 * 8 + 0x28, 0));
    }

    #[test]
    fn a_large_frame_is_read_in_both_encodings() {
        let scaled = [0x01, 0x07, 0x02, 0x00, 0x07, 0x01, 0x00, 0x02];
        assert_eq!(prologue(&scaled).0, 8 + 0x200 * 8);
        let unscaled = [0x01, 0x07, 0x03, 0x00, 0x07, 0x11, 0x34, 0x12, 0x01, 0x00];
        assert_eq!(prologue(&unscaled).0, 8 + 0x1_1234);
    }

    #[test]
    fn saved_xmm_registers_are_seen_in_both_encodings() {
        // UWOP_SAVE_XMM128 xmm6 at 20h, UWOP_SAVE_XMM128_FAR xmm15, UWOP_ALLOC_SMALL 8.
        let info = [0x01, 0x0c, 0x06, 0x00, 0x0c, 0x68, 0x02, 0x00, 0x08, 0xf9, 0, 0, 1, 0, 0x04, 0x02];
        assert_eq!(prologue(&info), (8 + 8, 1 << 6 | 1 << 15));
    }
}
