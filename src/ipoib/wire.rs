//! Reading and writing fields without a panic.

/// The `N` bytes at `AT`; that they are within `L` is checked at compile time.
#[inline]
pub(super) const fn field<const AT: usize, const N: usize, const L: usize>(bytes: &[u8; L]) -> [u8; N] {
    const { assert!(AT + N <= L) };
    match bytes.as_slice().split_at_checked(AT) {
        Some((_, tail)) => match tail.first_chunk() {
            Some(field) => *field,
            None => [0; N],
        },
        None => [0; N],
    }
}

/// The `N` bytes at `at`, if they are there.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The 16-bit integer at `at`.
#[inline]
pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// Writes `source` at `at`; `None`, with nothing written, if it does not fit.
#[inline]
pub(super) fn put(bytes: &mut [u8], at: usize, source: &[u8]) -> Option<()> {
    let end = at.checked_add(source.len())?;
    bytes.get_mut(at..end)?.copy_from_slice(source);
    Some(())
}

/// Writes `value` into the `N` bytes at `AT`; checked at compile time.
#[inline]
pub(super) const fn set<const AT: usize, const N: usize, const L: usize>(
    bytes: &mut [u8; L],
    value: [u8; N],
) {
    const { assert!(AT + N <= L) };
    if let Some((_, tail)) = bytes.as_mut_slice().split_at_mut_checked(AT)
        && let Some(place) = tail.first_chunk_mut()
    {
        *place = value;
    }
}

/// Moves `len` bytes from `from` down to `to`, which is not above it. What lies outside is left alone.
#[inline]
pub(super) fn move_down(bytes: &mut [u8], from: usize, to: usize, len: usize) {
    if from == to {
        return;
    }
    for offset in 0..len {
        if let Some(&byte) = bytes.get(from + offset)
            && let Some(place) = bytes.get_mut(to + offset)
        {
            *place = byte;
        }
    }
}
