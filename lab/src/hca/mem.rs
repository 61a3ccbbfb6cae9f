//! Memory regions and the gather and scatter of work requests through them.
//!
//! A region maps the addresses that work requests use to physical memory; physical memory is reached through
//! [`Physical`], a page at a time, since neighbouring physical pages have nothing to do with one another. Rules:
//! IBA vol. 1 §10.6.3 (access control): the key must be live, the region must belong to the queue pair's protection
//! domain, cover the whole element and, for a receive, allow local writes.

use std::fmt;
use std::ptr::NonNull;

use super::handle::Handle;

/// Page size of the simulated machines.
pub const PAGE: u64 = 4096;

/// Physical memory of one machine.
pub trait Physical {
    /// Where the `length` bytes at physical address `pa`, all in one page, lie in this process.
    ///
    /// # Errors
    /// What is wrong with the address: no live allocation has all of the bytes.
    fn locate(&self, pa: u64, length: usize) -> Result<NonNull<u8>, &'static str>;
}

/// What a region covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Ranges of physical memory, one behind the other, from address `start` on (`reg_phys`).
    Physical {
        /// First address of the region, as work requests use it.
        start: u64,
        /// Bytes.
        length: u64,
        /// Offset of the first byte in the first range.
        offset: u64,
        /// (base, size) of each range.
        ranges: Vec<(u64, u64)>,
    },
    /// A range of kernel virtual memory (`reg_mem`). Addresses are the virtual ones.
    Virtual {
        /// First address.
        start: u64,
        /// Physical address of each page from the one with the first byte on.
        pages: Vec<u64>,
        /// Bytes.
        length: u64,
    },
}

/// A registered memory region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its handle.
    pub handle: Handle,
    /// Key of local access.
    pub lkey: u32,
    /// Key of remote access.
    pub rkey: u32,
    /// Protection domain.
    pub pd: Handle,
    /// May the HCA write here for a local request?
    pub local_write: bool,
    /// Access rights as given.
    pub access: u32,
    /// What it covers.
    pub backing: Backing,
}

/// One scatter/gather element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Address in the region.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Key of the region.
    pub lkey: u32,
}

/// Why an element cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No region has this key.
    UnknownKey(Element),
    /// The region belongs to another protection domain.
    ForeignDomain(Element),
    /// The element leaves the region.
    OutOfBounds(Element),
    /// A receive element in a region without local write.
    ReadOnly(Element),
    /// The region covers the address, but no memory is there: it was freed, or never existed.
    NoMemory {
        /// The element.
        element: Element,
        /// The physical address.
        pa: u64,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (element, why) = match self {
            Fault::UnknownKey(e) => (e, "no memory region has this key".to_owned()),
            Fault::ForeignDomain(e) => (e, "the region belongs to another protection domain".to_owned()),
            Fault::OutOfBounds(e) => (e, "the element leaves its region".to_owned()),
            Fault::ReadOnly(e) => (e, "a receive into a region without local write access".to_owned()),
            Fault::NoMemory { element, pa, why } => (element, format!("physical address {pa:#x} {why}")),
        };
        write!(f, "element {:#x}+{:#x}, key {:#x}: {why}", element.address, element.length, element.lkey)
    }
}

impl Region {
    /// The physical address of `address`, and how many bytes from there are contiguous in the same page.
    fn translate(&self, address: u64) -> Option<(u64, u64)> {
        match &self.backing {
            Backing::Physical { start, length, offset, ranges } => {
                let into = address.checked_sub(*start)?;
                let left = length.checked_sub(into)?;
                let mut at = into.checked_add(*offset)?;
                for (base, size) in ranges {
                    if at < *size {
                        let pa = base.checked_add(at)?;
                        let in_page = PAGE - pa % PAGE;
                        return Some((pa, in_page.min(*size - at).min(left)));
                    }
                    at -= size;
                }
                None
            }
            Backing::Virtual { start, pages, length } => {
                let into = address.checked_sub(*start)?;
                let left = length.checked_sub(into)?;
                let at = start % PAGE + into;
                let page = pages.get(usize::try_from(at / PAGE).ok()?)?;
                Some((page + at % PAGE, (PAGE - at % PAGE).min(left)))
            }
        }
    }

    /// Is an address of this region the physical address itself?
    pub fn is_physical_memory(&self) -> bool {
        matches!(&self.backing, Backing::Physical { start: 0, offset: 0, ranges, .. }
            if ranges.first().is_some_and(|(base, _)| *base == 0))
    }

    /// Does the region cover the whole element?
    fn covers(&self, element: Element) -> bool {
        let (start, length, capacity) = match &self.backing {
            Backing::Physical { start, length, offset, ranges } => {
                let sum = ranges.iter().fold(0u64, |sum, (_, size)| sum.saturating_add(*size));
                (*start, *length, sum.saturating_sub(*offset))
            }
            Backing::Virtual { start, length, .. } => (*start, *length, *length),
        };
        let length = length.min(capacity);
        element
            .address
            .checked_sub(start)
            .is_some_and(|into| into.checked_add(u64::from(element.length)).is_some_and(|end| end <= length))
    }
}

/// Looks a key up.
pub trait Keys {
    /// The live region with this local key.
    fn region(&self, lkey: u32) -> Option<std::sync::Arc<Region>>;
}

/// Calls `piece` with each contiguous stretch of memory of `elements`, in order.
fn walk(
    keys: &impl Keys,
    memory: &impl Physical,
    pd: Handle,
    elements: &[Element],
    write: bool,
    mut piece: impl FnMut(NonNull<u8>, usize) -> bool,
) -> Result<(), Fault> {
    for &element in elements {
        if element.length == 0 {
            continue;
        }
        let region = keys.region(element.lkey).ok_or(Fault::UnknownKey(element))?;
        if region.pd != pd {
            return Err(Fault::ForeignDomain(element));
        }
        if !region.covers(element) {
            return Err(Fault::OutOfBounds(element));
        }
        if write && !region.local_write {
            return Err(Fault::ReadOnly(element));
        }
        let mut address = element.address;
        let mut left = u64::from(element.length);
        while left > 0 {
            let (pa, contiguous) = region.translate(address).ok_or(Fault::OutOfBounds(element))?;
            let n = contiguous.min(left);
            let here = memory.locate(pa, n as usize).map_err(|why| Fault::NoMemory { element, pa, why })?;
            if !piece(here, n as usize) {
                return Ok(());
            }
            address += n;
            left -= n;
        }
    }
    Ok(())
}

/// Checks that every byte of `elements` may be read, or written, and is there.
///
/// # Errors
/// The first element that is not.
pub fn check(
    keys: &impl Keys,
    memory: &impl Physical,
    pd: Handle,
    elements: &[Element],
    write: bool,
) -> Result<(), Fault> {
    walk(keys, memory, pd, elements, write, |_, _| true)
}

/// Bytes of a list.
pub fn total(elements: &[Element]) -> u64 {
    elements.iter().map(|e| u64::from(e.length)).sum()
}

/// Copies the bytes that `elements` name to `to`, which is as long as they are ([`total`]).
///
/// # Errors
/// The first element that cannot be read.
pub fn gather(
    keys: &impl Keys,
    memory: &impl Physical,
    pd: Handle,
    elements: &[Element],
    mut to: &mut [u8],
) -> Result<(), Fault> {
    walk(keys, memory, pd, elements, false, |from, n| {
        let Some((place, rest)) = std::mem::take(&mut to).split_at_mut_checked(n) else { return false };
        // SAFETY: `locate` vouches for the `n` bytes at `from`;
        // `place` is `n` bytes long. The two cannot overlap: one is the machine's memory, the other this process's.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), place.as_mut_ptr(), n) };
        to = rest;
        true
    })
}

/// Writes `parts`, one behind the other, to the memory that `elements` name, which may be longer.
///
/// # Errors
/// The first element that cannot be written. [`total`] of the elements has to be checked before.
pub fn scatter(
    keys: &impl Keys,
    memory: &impl Physical,
    pd: Handle,
    elements: &[Element],
    parts: &[&[u8]],
) -> Result<(), Fault> {
    let mut parts = parts.iter().copied().filter(|part| !part.is_empty());
    let mut part = parts.next().unwrap_or_default();
    walk(keys, memory, pd, elements, true, |to, n| {
        let mut done = 0;
        while done < n && !part.is_empty() {
            let k = part.len().min(n - done);
            // SAFETY: `locate` vouches for the `n` bytes at `to` and `done + k <= n`; the source is a slice of this process that no machine owns.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), to.as_ptr().add(done), k) };
            done += k;
            part = &part[k..];
            if part.is_empty() {
                part = parts.next().unwrap_or_default();
            }
        }
        !part.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::super::handle::Kind;
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// Physical pages that are scattered over the address space.
    struct Pages(RefCell<BTreeMap<u64, Box<[u8; PAGE as usize]>>>);

    impl Physical for Pages {
        fn locate(&self, pa: u64, _length: usize) -> Result<NonNull<u8>, &'static str> {
            let mut pages = self.0.borrow_mut();
            let page = pages.get_mut(&(pa / PAGE)).ok_or("is no memory")?;
            NonNull::new(&raw mut page[(pa % PAGE) as usize]).ok_or("is null")
        }
    }

    struct Table(Vec<Arc<Region>>);

    impl Keys for Table {
        fn region(&self, lkey: u32) -> Option<Arc<Region>> {
            self.0.iter().find(|region| region.lkey == lkey).cloned()
        }
    }

    fn handle(kind: Kind, serial: u32) -> Handle {
        Handle { hca: 0, kind, serial }
    }

    fn everything(lkey: u32, local_write: bool) -> Region {
        Region {
            handle: handle(Kind::Mr, lkey),
            lkey,
            rkey: 0,
            pd: handle(Kind::Pd, 1),
            local_write,
            access: 0,
            backing: Backing::Physical { start: 0, length: u64::MAX, offset: 0, ranges: vec![(0, u64::MAX)] },
        }
    }

    fn fixture() -> (Table, Pages, Handle) {
        let pages = [7, 3, 9].map(|page| (page, Box::new([0u8; PAGE as usize])));
        let mut small = everything(3, true);
        small.backing = Backing::Physical {
            start: 0x1000,
            length: 0x1800,
            offset: 0x800,
            ranges: vec![(7 * PAGE, PAGE), (3 * PAGE, PAGE)],
        };
        let table =
            Table(vec![Arc::new(everything(1, true)), Arc::new(everything(2, false)), Arc::new(small)]);
        (table, Pages(RefCell::new(pages.into_iter().collect())), handle(Kind::Pd, 1))
    }

    fn element(address: u64, length: u32, lkey: u32) -> Element {
        Element { address, length, lkey }
    }

    /// A region over all of physical memory takes physical addresses, and a buffer over pages that are not
    /// neighbours needs an element for each.
    #[test]
    fn whole_memory_region_reads_back_what_it_wrote() {
        let (table, pages, pd) = fixture();
        let list = [element(7 * PAGE + 4090, 6, 1), element(3 * PAGE, 10, 1)];
        scatter(&table, &pages, pd, &list, &[b"hello", b"", b" world"]).unwrap();
        let mut read = vec![0; total(&list) as usize];
        gather(&table, &pages, pd, &list, &mut read).unwrap();
        assert_eq!(&read[..11], b"hello world");
        assert_eq!(read.len(), 16);
    }

    /// A region of several ranges is contiguous in its own addresses, from the offset in its first range on.
    #[test]
    fn ranges_are_one_behind_the_other() {
        let (table, pages, pd) = fixture();
        scatter(&table, &pages, pd, &[element(0x1000 + 0x7fe, 4, 3)], &[b"abcd"]).unwrap();
        let mut read = [0; 4];
        let list = [element(7 * PAGE + 4094, 2, 1), element(3 * PAGE, 2, 1)];
        gather(&table, &pages, pd, &list, &mut read).unwrap();
        assert_eq!(&read, b"abcd");
    }

    /// §10.6.3: each access rule is checked.
    #[test]
    fn access_rules() {
        let (table, pages, pd) = fixture();
        let ok = element(7 * PAGE, 8, 1);
        assert_eq!(check(&table, &pages, pd, &[ok], true), Ok(()));
        let unknown = element(7 * PAGE, 8, 77);
        assert_eq!(check(&table, &pages, pd, &[ok, unknown], true), Err(Fault::UnknownKey(unknown)));
        assert_eq!(check(&table, &pages, handle(Kind::Pd, 2), &[ok], true), Err(Fault::ForeignDomain(ok)));
        let read_only = element(7 * PAGE, 8, 2);
        assert_eq!(check(&table, &pages, pd, &[read_only], true), Err(Fault::ReadOnly(read_only)));
        assert_eq!(check(&table, &pages, pd, &[read_only], false), Ok(()));
        let beyond = element(0x1000 + 0x1700, 0x200, 3);
        assert_eq!(check(&table, &pages, pd, &[beyond], true), Err(Fault::OutOfBounds(beyond)));
    }

    /// An element that runs into a page without memory is found, at its first missing byte.
    #[test]
    fn missing_memory_is_found_at_its_page() {
        let (table, pages, pd) = fixture();
        let element = element(7 * PAGE + 4000, 200, 1);
        assert_eq!(
            check(&table, &pages, pd, &[element], false),
            Err(Fault::NoMemory { element, pa: 8 * PAGE, why: "is no memory" })
        );
    }
}
