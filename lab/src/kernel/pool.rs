//! The nonpaged and paged pool.
//!
//! Blocks of a page or more begin at a page; smaller ones do not cross a page boundary and are aligned to 16 bytes
//! (wdm/nf-wdm-exallocatepool2). Fresh memory that need not be zero is filled with a pattern. What lies behind a
//! block up to its slot's end is filled and checked when it is freed; a freed block is filled and checked when its
//! memory is used again, which a quarantine delays. With guard pages every block has pages of its own, its end at
//! an inaccessible page, and becomes inaccessible when freed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering;

use windows_kernel_sys::PAGE_SIZE;

use super::Machine;
use crate::fault::Site;
use crate::sim;
use crate::verifier::rules::{
    LOCK_FREED_WHILE_HELD, OBJECT_FREED_WHILE_WAITED, OBJECT_IN_PAGED_POOL, POOL_BAD_FREE, POOL_DOUBLE_FREE,
    POOL_OVERRUN, POOL_USE_AFTER_FREE, POOL_WRONG_TAG,
};
use crate::verifier::{Leak, Rule, violation};

/// Fills memory that was not asked to be zero.
const FRESH: u8 = 0xCD;
/// Fills the rest of a slot.
const TAIL: u8 = 0xFD;
/// Fills freed memory.
const FREED: u8 = 0xDD;
/// Bytes mapped at a time for blocks smaller than a page.
const CHUNK: usize = 256 * 1024;
/// Alignment of every block.
const ALIGNMENT: usize = 16;

/// How the pool is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolConfig {
    pub guard_pages: bool,
    pub quarantine: usize,
}

/// Who allocated a block: what the driver does not free has leaked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Driver,
    System,
}

/// What memory is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolKind {
    pub zero: bool,
    pub paged: bool,
}

impl PoolKind {
    /// Zeroed nonpaged pool.
    pub const SYSTEM: Self = Self { zero: true, paged: false };
}

/// Figures of a machine's pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Allocations the driver made in all.
    pub driver_allocations: u64,
    /// Blocks the driver holds.
    pub driver_blocks: usize,
    /// Bytes in them.
    pub driver_bytes: usize,
    /// Most bytes the driver ever held.
    pub driver_peak_bytes: usize,
    /// Allocations made for the driver by the system in all (MDLs, IRPs, packet pools).
    pub system_allocations: u64,
}

struct Block {
    tag: u32,
    size: usize,
    owner: Owner,
    paged: bool,
    sequence: u64,
    site: Option<Site>,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    /// A slot of this many bytes in a shared page.
    Slot(usize),
    /// Pages of its own: start and length of the mapping, inaccessible last page included.
    Pages { start: usize, length: usize },
}

struct Freed {
    address: usize,
    tag: u32,
    size: usize,
    place: Place,
}

/// The pool of one machine.
pub(super) struct Pool {
    config: PoolConfig,
    live: BTreeMap<usize, Block>,
    /// Slots ready for use, by size.
    slots: HashMap<usize, Vec<usize>>,
    /// Unused part of the last chunk.
    fresh: Range<usize>,
    chunks: Vec<(usize, usize)>,
    quarantine: VecDeque<Freed>,
    next_sequence: u64,
    stats: PoolStats,
}

/// A broken rule, found with the pool locked and reported after.
struct Broken(Rule, String);

impl Pool {
    pub fn new(config: PoolConfig) -> Self {
        Self {
            config,
            live: BTreeMap::new(),
            slots: HashMap::new(),
            fresh: 0..0,
            chunks: Vec::new(),
            quarantine: VecDeque::new(),
            next_sequence: 0,
            stats: PoolStats::default(),
        }
    }

    fn allocate(&mut self, size: usize, tag: u32, kind: PoolKind, owner: Owner, site: Option<Site>) -> usize {
        let (address, place) = if self.config.guard_pages || size >= PAGE_SIZE {
            Self::map_pages(size)
        } else {
            // At least one byte of tail to check, unless the block fills a page.
            let slot = (size + ALIGNMENT).next_multiple_of(ALIGNMENT).min(PAGE_SIZE);
            (self.take_slot(slot), Place::Slot(slot))
        };
        let end = slot_end(address, place);
        // SAFETY: the block and its tail were just taken out of mapped, unused memory.
        unsafe {
            std::ptr::write_bytes(address as *mut u8, if kind.zero { 0 } else { FRESH }, size);
            std::ptr::write_bytes((address + size) as *mut u8, TAIL, end - address - size);
        }
        self.next_sequence += 1;
        let block = Block { tag, size, owner, paged: kind.paged, sequence: self.next_sequence, site, place };
        self.live.insert(address, block);
        match owner {
            Owner::Driver => {
                self.stats.driver_allocations += 1;
                self.stats.driver_blocks += 1;
                self.stats.driver_bytes += size;
                self.stats.driver_peak_bytes = self.stats.driver_peak_bytes.max(self.stats.driver_bytes);
            }
            Owner::System => self.stats.system_allocations += 1,
        }
        address
    }

    /// A slot for a small block: a used one or a new one, never across a page.
    fn take_slot(&mut self, slot: usize) -> usize {
        if let Some(address) = self.slots.get_mut(&slot).and_then(Vec::pop) {
            return address;
        }
        if self.fresh.len() < PAGE_SIZE {
            let start = map(CHUNK);
            self.chunks.push((start, CHUNK));
            self.fresh = start..start + CHUNK;
        }
        let page = self.fresh.start;
        self.fresh.start += PAGE_SIZE;
        let addresses = (0..PAGE_SIZE / slot).rev().map(|i| page + i * slot);
        let slots = self.slots.entry(slot).or_default();
        slots.extend(addresses);
        slots.pop().expect("a slot is no larger than a page")
    }

    /// Pages for one block, with an inaccessible page after them.
    fn map_pages(size: usize) -> (usize, Place) {
        let body = size.next_multiple_of(PAGE_SIZE);
        let length = body + PAGE_SIZE;
        let start = map(length);
        // SAFETY: the last page of the mapping just made.
        let result = unsafe { libc::mprotect((start + body) as *mut _, PAGE_SIZE, libc::PROT_NONE) };
        assert!(result == 0, "mprotect failed: {}", std::io::Error::last_os_error());
        // A block smaller than a page ends as near to the guard page as its alignment allows; others begin at a page.
        let offset = if size < PAGE_SIZE { PAGE_SIZE - size.next_multiple_of(ALIGNMENT) } else { 0 };
        (start + offset, Place::Pages { start, length })
    }

    fn free(
        &mut self,
        address: usize,
        tag: u32,
        owner: Owner,
    ) -> Result<(Range<usize>, Vec<Range<usize>>), Broken> {
        let Some(block) = self.live.get(&address) else {
            return Err(self.describe_bad_free(address));
        };
        if block.tag != tag && tag != 0 {
            let detail = format!("allocated with tag {}, freed with {}", tag_text(block.tag), tag_text(tag));
            return Err(Broken(POOL_WRONG_TAG, detail));
        }
        if block.owner != owner {
            return Err(Broken(
                POOL_BAD_FREE,
                format!("the block with tag {} is the system's", tag_text(block.tag)),
            ));
        }
        let end = slot_end(address, block.place);
        // SAFETY: the rest of a live block's slot is mapped memory that nobody else uses.
        let tail = unsafe {
            std::slice::from_raw_parts((address + block.size) as *const u8, end - address - block.size)
        };
        if let Some(offset) = tail.iter().position(|byte| *byte != TAIL) {
            let detail = format!(
                "block of {} bytes with tag {}: byte {offset} past its end was written",
                block.size,
                tag_text(block.tag)
            );
            return Err(Broken(POOL_OVERRUN, detail));
        }
        let block = self.live.remove(&address).expect("found above");
        if owner == Owner::Driver {
            self.stats.driver_blocks -= 1;
            self.stats.driver_bytes -= block.size;
        }
        let memory = address..address + block.size;
        let mut gone = Vec::new();
        match block.place {
            Place::Slot(slot) => {
                // SAFETY: the slot is free now.
                unsafe { std::ptr::write_bytes(address as *mut u8, FREED, slot) };
            }
            Place::Pages { start, length } => {
                // SAFETY: the mapping is this block's own, and the block is free now.
                let result = unsafe { libc::mprotect(start as *mut _, length, libc::PROT_NONE) };
                assert!(result == 0, "mprotect failed: {}", std::io::Error::last_os_error());
                gone.push(start..start + length);
            }
        }
        self.quarantine.push_back(Freed { address, tag: block.tag, size: block.size, place: block.place });
        while self.quarantine.len() > self.config.quarantine {
            let Some(freed) = self.quarantine.pop_front() else { break };
            self.reuse(&freed)?;
        }
        Ok((memory, gone))
    }

    /// Ends a freed block's quarantine.
    fn reuse(&mut self, freed: &Freed) -> Result<(), Broken> {
        match freed.place {
            Place::Slot(slot) => {
                check_freed(freed, slot)?;
                self.slots.entry(slot).or_default().push(freed.address);
            }
            Place::Pages { start, length } => unmap(start, length),
        }
        Ok(())
    }

    fn describe_bad_free(&self, address: usize) -> Broken {
        if let Some(freed) = self.quarantine.iter().find(|freed| freed.address == address) {
            let detail =
                format!("the block of {} bytes with tag {} is free", freed.size, tag_text(freed.tag));
            return Broken(POOL_DOUBLE_FREE, detail);
        }
        match self.find(address) {
            Some((start, block)) => {
                let detail =
                    format!("{} bytes into a block with tag {}", address - start, tag_text(block.tag));
                Broken(POOL_BAD_FREE, detail)
            }
            None => Broken(POOL_BAD_FREE, "the address is not in the pool".into()),
        }
    }

    fn find(&self, address: usize) -> Option<(usize, &Block)> {
        let (&start, block) = self.live.range(..=address).next_back()?;
        (address < start + block.size.max(1)).then_some((start, block))
    }

    /// Whether the bytes lie in one live block of nonpaged pool.
    pub fn contains(&self, address: usize, length: usize) -> bool {
        self.find(address)
            .is_some_and(|(start, block)| !block.paged && address + length <= start + block.size)
    }

    /// Whether the address lies in a live block of paged pool.
    pub fn is_paged(&self, address: usize) -> bool {
        self.find(address).is_some_and(|(_, block)| block.paged)
    }

    pub fn outstanding(&self) -> Vec<Leak> {
        let mut leaks: Vec<_> = self
            .live
            .values()
            .filter(|block| block.owner == Owner::Driver)
            .map(|block| Leak {
                kind: "pool",
                tag: format!("{} ({} bytes)", tag_text(block.tag), block.size),
                sequence: block.sequence,
                stack: block.site.as_ref().map(Site::frames).unwrap_or_default(),
            })
            .collect();
        leaks.sort_by_key(|leak| leak.sequence);
        leaks
    }

    /// Checks every live tail and every freed block.
    fn check_all(&self) -> Result<(), Broken> {
        for (&address, block) in &self.live {
            let end = slot_end(address, block.place);
            // SAFETY: as in `free`.
            let tail = unsafe {
                std::slice::from_raw_parts((address + block.size) as *const u8, end - address - block.size)
            };
            if let Some(offset) = tail.iter().position(|byte| *byte != TAIL) {
                let detail = format!("tag {}: byte {offset} past its end was written", tag_text(block.tag));
                return Err(Broken(POOL_OVERRUN, detail));
            }
        }
        for freed in &self.quarantine {
            if let Place::Slot(slot) = freed.place {
                check_freed(freed, slot)?;
            }
        }
        Ok(())
    }

    /// For a faulting address: the freed block or guard page it lies in.
    pub fn explain_fault(&self, address: usize) -> Option<(Rule, String)> {
        let within = |place: Place| matches!(place, Place::Pages { start, length } if (start..start + length).contains(&address));
        if let Some(freed) = self.quarantine.iter().find(|freed| within(freed.place)) {
            let detail =
                format!("the block of {} bytes with tag {} is free", freed.size, tag_text(freed.tag));
            return Some((POOL_USE_AFTER_FREE, detail));
        }
        let (start, block) =
            self.live.range(..=address).next_back().filter(|(_, block)| within(block.place))?;
        let detail = format!(
            "{} bytes past the end of a block of {} bytes with tag {}",
            address - (start + block.size),
            block.size,
            tag_text(block.tag)
        );
        Some((POOL_OVERRUN, detail))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (start, length) in self.chunks.drain(..) {
            unmap(start, length);
        }
        let places = self
            .live
            .values()
            .map(|block| block.place)
            .chain(self.quarantine.iter().map(|freed| freed.place));
        for place in places {
            if let Place::Pages { start, length } = place {
                unmap(start, length);
            }
        }
    }
}

fn check_freed(freed: &Freed, slot: usize) -> Result<(), Broken> {
    // SAFETY: the slot is free and stays mapped.
    let bytes = unsafe { std::slice::from_raw_parts(freed.address as *const u8, slot) };
    match bytes.iter().position(|byte| *byte != FREED) {
        None => Ok(()),
        Some(offset) => {
            let detail = format!(
                "byte {offset} of a freed block of {} bytes with tag {} was written",
                freed.size,
                tag_text(freed.tag)
            );
            Err(Broken(POOL_USE_AFTER_FREE, detail))
        }
    }
}

/// The end of the bytes that belong to a block and its checked tail.
fn slot_end(address: usize, place: Place) -> usize {
    match place {
        Place::Slot(slot) => address + slot,
        Place::Pages { start, length } => start + length - PAGE_SIZE,
    }
}

fn map(length: usize) -> usize {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: an anonymous mapping at an address of the system's choice.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
    assert!(
        address != libc::MAP_FAILED,
        "mmap of {length} bytes failed: {}",
        std::io::Error::last_os_error()
    );
    address as usize
}

fn unmap(start: usize, length: usize) {
    // SAFETY: a mapping of this pool that no block uses any more.
    unsafe { libc::munmap(start as *mut _, length) };
}

/// A pool tag as text: its four characters in memory order.
pub fn tag_text(tag: u32) -> String {
    tag.to_le_bytes()
        .iter()
        .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
        .collect()
}

impl Machine {
    /// Allocates zeroed nonpaged pool for the lab's own use: it never fails and is no driver's leak.
    pub fn allocate_system(&self, size: usize, tag: [u8; 4]) -> *mut u8 {
        self.allocate(size.max(1), u32::from_le_bytes(tag), PoolKind::SYSTEM, Owner::System)
    }

    /// Frees what [`Machine::allocate_system`] gave.
    pub fn free_system(&self, address: *mut u8, tag: [u8; 4]) {
        self.free(address, u32::from_le_bytes(tag), Owner::System, "free_system");
    }

    /// Whether the bytes lie in one live block of nonpaged pool.
    pub fn in_pool<T>(&self, address: *const T, length: usize) -> bool {
        self.0.pool.lock().contains(address as usize, length)
    }

    /// Checks that a kernel object at `address` does not lie in paged pool.
    pub(super) fn check_resident(&self, address: usize, what: &str, call: &str) {
        // Hardly any driver has paged pool: those that have none do not pay for the search.
        let paged = self.0.has_paged_pool.load(Ordering::Relaxed) && self.0.pool.lock().is_paged(address);
        if paged {
            violation(OBJECT_IN_PAGED_POOL, call, format!("{what} lies in paged pool"));
        }
    }

    /// Figures of the pool.
    pub fn pool_stats(&self) -> PoolStats {
        self.0.pool.lock().stats
    }

    /// Checks the whole pool for overruns and late writes, without waiting for a free to find them.
    pub fn check_pool(&self) {
        let result = self.0.pool.lock().check_all();
        if let Err(Broken(rule, detail)) = result {
            violation(rule, "pool check", detail);
        }
    }

    pub(super) fn allocate(&self, size: usize, tag: u32, kind: PoolKind, owner: Owner) -> *mut u8 {
        let site = (owner == Owner::Driver && self.config().record_stacks).then(Site::here);
        if kind.paged {
            self.0.has_paged_pool.store(true, Ordering::Relaxed);
        }
        self.0.pool.lock().allocate(size, tag, kind, owner, site) as *mut u8
    }

    pub(super) fn free(&self, address: *mut u8, tag: u32, owner: Owner, call: &str) {
        if let Some(memory) = self.block_at(address as usize) {
            if self.held_lock_in(&memory) {
                violation(
                    LOCK_FREED_WHILE_HELD,
                    call,
                    format!("a spin lock in the block is held (tag {})", tag_text(tag)),
                );
            }
            if owner == Owner::Driver
                && let Some((rule, detail)) = self.broken_by_free(&memory)
            {
                violation(rule, call, detail);
            }
            if self.forget_events(&memory) {
                violation(
                    OBJECT_FREED_WHILE_WAITED,
                    call,
                    format!("an event in the block is waited for (tag {})", tag_text(tag)),
                );
            }
        }
        let result = self.0.pool.lock().free(address as usize, tag, owner);
        match result {
            Ok((memory, gone)) => {
                self.0.lock_order.lock().forget(memory);
                for pages in gone {
                    self.0.phys.lock().unmap(pages);
                }
            }
            Err(Broken(rule, detail)) => violation(rule, call, detail),
        }
    }

    fn block_at(&self, address: usize) -> Option<Range<usize>> {
        let pool = self.0.pool.lock();
        pool.live.get(&address).map(|block| address..address + block.size)
    }
}

/// The machine's explanation of a faulting address, for the report of a crash.
pub(super) fn explain_fault(address: usize) -> Option<(Rule, String)> {
    sim::assert_none_held();
    Machine::try_current()?.0.pool.lock().explain_fault(address)
}
