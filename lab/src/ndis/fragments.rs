//! How a frame is laid out in the MDL chain of a NET_BUFFER. A protocol may put its headers and payload anywhere;
//! what counts is `DataOffset` and `DataLength` over the whole chain (nbl/ns-nbl-net_buffer_data). A plan says where.

/// Which layouts a sender uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragmentation {
    /// One MDL that holds the frame and nothing else.
    Contiguous,
    /// The link and network headers in one MDL, the rest in another, as a TCP/IP stack sends.
    HeaderSplit,
    /// Up to six MDLs cut anywhere, also within the headers, with room before and behind the data.
    Scattered,
    /// One of the above for each frame, chosen by the lab's generator.
    #[default]
    Seeded,
}

/// Where one frame goes. The chain is: `skipped` whole MDLs before the data, then one MDL a piece; the first piece
/// begins `headroom` bytes into its MDL and the last MDL goes on for `tailroom` bytes behind the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// MDLs at the head of the chain that hold no data of this frame: their lengths.
    pub skipped: Vec<usize>,
    /// Unused bytes at the start of the first piece's MDL.
    pub headroom: usize,
    /// Lengths of the pieces; none is 0 and their sum is the frame's length.
    pub pieces: Vec<usize>,
    /// Unused bytes at the end of the last MDL.
    pub tailroom: usize,
    /// Byte offset in its page at which each piece's memory begins.
    pub page_offset: usize,
    /// The last MDL's pages are locked but not mapped, as those of a user's buffer are.
    pub unmapped_tail: bool,
}

/// Bytes of Ethernet and IPv4 or IPv6 headers that a TCP/IP stack keeps together.
const HEADERS: usize = 14 + 40;

impl Plan {
    /// A plan for a frame of `length` bytes; `random(n)` gives a number below `n`.
    pub fn new(fragmentation: Fragmentation, length: usize, mut random: impl FnMut(usize) -> usize) -> Self {
        let mut plan = Self {
            skipped: vec![],
            headroom: 0,
            pieces: vec![length],
            tailroom: 0,
            page_offset: 0,
            unmapped_tail: false,
        };
        let fragmentation = match fragmentation {
            Fragmentation::Seeded => match random(8) {
                0 | 1 => Fragmentation::Contiguous,
                2 => Fragmentation::Scattered,
                _ => Fragmentation::HeaderSplit,
            },
            chosen => chosen,
        };
        match fragmentation {
            Fragmentation::Contiguous | Fragmentation::Seeded => {}
            Fragmentation::HeaderSplit => {
                if length > HEADERS {
                    plan.pieces = vec![HEADERS, length - HEADERS];
                }
                // Room in which a lower driver may put headers of its own (NdisRetreatNetBufferDataStart).
                plan.headroom = random(4) * 16;
                plan.page_offset = random(256) * 16;
                plan.unmapped_tail = plan.pieces.len() > 1 && random(8) == 0;
            }
            Fragmentation::Scattered => {
                plan.pieces = cut(length, 1 + random(6), &mut random);
                plan.headroom = random(64);
                plan.tailroom = random(64);
                plan.page_offset = random(4096);
                plan.skipped = (0..random(3)).map(|_| 1 + random(32)).collect();
            }
        }
        plan
    }

    /// `NET_BUFFER_DATA::DataOffset`.
    pub fn data_offset(&self) -> usize {
        self.skipped.iter().sum::<usize>() + self.headroom
    }
}

/// Cuts `length` into at most `count` pieces of at least one byte.
fn cut(length: usize, count: usize, random: &mut impl FnMut(usize) -> usize) -> Vec<usize> {
    let mut pieces = Vec::new();
    let mut rest = length;
    while pieces.len() + 1 < count && rest > 1 {
        // Small pieces at the front as often as large ones: that is where the headers are.
        let bound = if random(2) == 0 { (rest - 1).min(40) } else { rest - 1 };
        let piece = 1 + random(bound);
        pieces.push(piece);
        rest -= piece;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_cover_the_frame_and_none_is_empty(length in 1_usize..4100, seed: u64, kind in 0..4_usize) {
            let kind = [
                Fragmentation::Contiguous, Fragmentation::HeaderSplit, Fragmentation::Scattered,
                Fragmentation::Seeded,
            ][kind];
            let mut state = seed;
            let plan = Plan::new(kind, length, |bound| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize % bound
            });
            prop_assert_eq!(plan.pieces.iter().sum::<usize>(), length);
            prop_assert!(plan.pieces.iter().chain(&plan.skipped).all(|piece| *piece > 0));
            prop_assert!(plan.pieces.len() <= 6);
        }
    }

    #[test]
    fn headers_stay_together_in_a_header_split() {
        assert_eq!(Plan::new(Fragmentation::HeaderSplit, 1514, |_| 0).pieces, [54, 1460]);
        assert_eq!(Plan::new(Fragmentation::HeaderSplit, 42, |_| 0).pieces, [42]);
    }
}
