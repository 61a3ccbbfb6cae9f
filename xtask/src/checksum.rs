//! The checksum in a PE header, which the kernel's loader verifies of a driver. Older versions of lld-link, which have
//! no `/RELEASE`, leave it zero.

use anyhow::{Context, Result};

/// Where the header's offset is (Microsoft PE format, "MS-DOS Stub").
const E_LFANEW: usize = 0x3c;
/// Where the checksum is, from the header on: signature 4, file header 20, optional header 64.
const CHECKSUM: usize = 4 + 20 + 64;

/// Computes the checksum of an image and stores it.
pub(crate) fn set(image: &mut [u8]) -> Result<()> {
    let header = image.get(E_LFANEW..E_LFANEW + 4).context("no PE header")?;
    let header = u32::from_le_bytes(header.try_into()?) as usize;
    let at = header + CHECKSUM;
    image.get_mut(at..at + 4).context("no optional header")?.fill(0);
    let sum = checksum(image);
    image[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

/// What is wrong with the checksum that an image has.
pub(crate) fn check(image: &[u8]) -> Result<Vec<String>> {
    let mut right = image.to_vec();
    set(&mut right)?;
    let stored = |image: &[u8]| -> Result<u32> {
        let header =
            u32::from_le_bytes(image.get(E_LFANEW..E_LFANEW + 4).context("no PE header")?.try_into()?);
        let at = header as usize + CHECKSUM;
        Ok(u32::from_le_bytes(image.get(at..at + 4).context("no optional header")?.try_into()?))
    };
    let (found, wanted) = (stored(image)?, stored(&right)?);
    Ok(if found == wanted { vec![] } else { vec![format!("it is {found:#x}, and should be {wanted:#x}")] })
}

/// `CheckSumMappedFile` (imagehlp.h): the 16-bit words are added with the carry fed back, then the length is added.
/// The field itself counts as zero.
fn checksum(image: &[u8]) -> u32 {
    let sum = image.chunks(2).fold(0_u32, |sum, word| {
        let word = u32::from(word[0]) | u32::from(*word.get(1).unwrap_or(&0)) << 8;
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    });
    sum + image.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_carry_is_fed_back_and_the_length_added() {
        assert_eq!(checksum(&[0xff, 0xff, 0x02, 0x00]), 2 + 4);
        assert_eq!(checksum(&[0x01, 0x02, 0x03]), 0x0201 + 0x03 + 3);
    }

    #[test]
    fn an_image_that_has_its_checksum_keeps_it() {
        let mut image = vec![0x5a; 0x200];
        image[E_LFANEW..E_LFANEW + 4].copy_from_slice(&0x80_u32.to_le_bytes());
        set(&mut image).unwrap();
        let once = image.clone();
        set(&mut image).unwrap();
        assert_eq!(image, once);
        assert_ne!(image[0x80 + CHECKSUM..][..4], [0x5a; 4]);
        assert!(set(&mut [0; 0x40]).is_err());
    }
}
