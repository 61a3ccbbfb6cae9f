//! Faults of the wire, as rules stacked on a fabric: each rule that matches a packet turns it into none, one
//! or several. A rule lives as long as its guard.
//!
//! Rules are asked twice about a packet: where it leaves its sender ([`Transit::to`] is `None`), and where it
//! would arrive, once for each receiver of a multicast packet. [`on_send`] and [`on_receive`] narrow a rule
//! to one of the two. Answers of the subnet administrator are packets too, so losing, delaying and forging
//! them needs nothing of its own: see [`sa_response`] and [`rewrite`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ids::{Nanos, Qpn};
use super::topology::PortId;
use super::wire::Packet;
use super::wire::mad::{Attribute, MadHeader, class};

/// A packet under way, as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Transit<'a> {
    /// When it leaves its sender, or when it would arrive.
    pub at: Nanos,
    /// The sender.
    pub from: PortId,
    /// The receiver; `None` where the packet leaves its sender.
    pub to: Option<PortId>,
    /// The packet.
    pub packet: &'a Packet,
}

/// Which packets a rule is about.
pub type Matcher = Box<dyn FnMut(&Transit<'_>) -> bool + Send>;

/// What a forging rule makes of a packet.
pub type Forger = Box<dyn FnMut(&Transit<'_>) -> Vec<Packet> + Send>;

/// What happens to a packet that a rule matches.
pub enum Effect {
    /// It is lost.
    Drop,
    /// It arrives so much later. What is sent after it is not held up, so this reorders.
    Delay(Nanos),
    /// It arrives twice, the second time so much later.
    Duplicate(Nanos),
    /// Only its first bytes arrive. The length in its LRH stays, and so do the CRCs only if none were cut
    /// off.
    Truncate(usize),
    /// One bit, counted from the first of the LRH and modulo the packet's length, arrives wrong. CRCs stay as
    /// they were, so a port sees it.
    FlipBit(usize),
    /// One bit of the payload arrives wrong, with right CRCs: what only an end-to-end check can see.
    CorruptPayload(usize),
    /// Others arrive in its place: forged, or added to it.
    Forge(Forger),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => f.write_str("Drop"),
            Self::Delay(by) => write!(f, "Delay({by})"),
            Self::Duplicate(after) => write!(f, "Duplicate({after})"),
            Self::Truncate(len) => write!(f, "Truncate({len})"),
            Self::FlipBit(bit) => write!(f, "FlipBit({bit})"),
            Self::CorruptPayload(bit) => write!(f, "CorruptPayload({bit})"),
            Self::Forge(_) => f.write_str("Forge"),
        }
    }
}

/// Keeps a rule in place; dropping it removes the rule.
#[derive(Debug)]
#[must_use = "the rule goes with its guard"]
pub struct FaultGuard(Arc<AtomicBool>);

impl FaultGuard {
    /// Leaves the rule in place for as long as the fabric lives.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

struct Rule {
    alive: Arc<AtomicBool>,
    matcher: Matcher,
    effect: Effect,
}

/// The rules in place, in the order in which they were added. Each is applied to what those before it left.
#[derive(Default)]
pub struct Faults {
    rules: Vec<Rule>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.effect)).finish()
    }
}

impl Faults {
    /// Adds a rule after those there are.
    pub fn add(
        &mut self,
        matcher: impl FnMut(&Transit<'_>) -> bool + Send + 'static,
        effect: Effect,
    ) -> FaultGuard {
        let alive = Arc::new(AtomicBool::new(true));
        self.rules.push(Rule { alive: alive.clone(), matcher: Box::new(matcher), effect });
        FaultGuard(alive)
    }

    /// Whether no rule is in place. Removes those whose guard is gone.
    pub fn is_empty(&mut self) -> bool {
        self.rules.retain(|rule| rule.alive.load(Ordering::Relaxed));
        self.rules.is_empty()
    }

    /// What becomes of a packet: each that remains, with how much later it arrives.
    pub(super) fn apply(&mut self, transit: &Transit<'_>) -> Vec<(Nanos, Packet)> {
        let mut packets = vec![(0, transit.packet.clone())];
        for rule in &mut self.rules {
            let mut next = Vec::with_capacity(packets.len());
            for (delay, packet) in packets {
                let transit = Transit { packet: &packet, at: transit.at + delay, ..*transit };
                if !(rule.matcher)(&transit) {
                    next.push((delay, packet));
                    continue;
                }
                match &mut rule.effect {
                    Effect::Drop => (),
                    Effect::Delay(by) => next.push((delay + *by, packet)),
                    Effect::Duplicate(after) => {
                        next.push((delay, packet.clone()));
                        next.push((delay + *after, packet));
                    }
                    Effect::Truncate(len) => {
                        let bytes = packet.sealed();
                        next.push((delay, Packet::from_bytes(&bytes[..bytes.len().min(*len)])));
                    }
                    Effect::FlipBit(bit) => {
                        let mut bytes = packet.sealed().to_vec();
                        flip(&mut bytes, *bit);
                        next.push((delay, Packet::from_bytes(bytes)));
                    }
                    Effect::CorruptPayload(bit) => {
                        next.push((delay, rewrite(&packet, |payload| flip(payload, *bit))));
                    }
                    Effect::Forge(forge) => {
                        next.extend(forge(&transit).into_iter().map(|forged| (delay, forged)));
                    }
                }
            }
            packets = next;
        }
        packets
    }
}

fn flip(bytes: &mut [u8], bit: usize) {
    if !bytes.is_empty() {
        let bit = bit % (bytes.len() * 8);
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
    }
}

/// The packet with its payload changed by `change` and CRCs that are right again. What cannot be parsed stays
/// as it is.
pub fn rewrite(packet: &Packet, change: impl FnOnce(&mut [u8])) -> Packet {
    match packet.parse() {
        Ok((headers, payload)) => Packet::build(&headers, payload.len(), |space| {
            space.copy_from_slice(payload);
            change(space);
        }),
        Err(_) => packet.clone(),
    }
}

/// Matches where a packet leaves its sender.
pub fn on_send(transit: &Transit<'_>) -> bool {
    transit.to.is_none()
}

/// Matches where a packet would arrive.
pub fn on_receive(transit: &Transit<'_>) -> bool {
    transit.to.is_some()
}

/// Matches with `probability`, drawing from `random`, which gives uniform 64-bit numbers. It draws once for
/// each packet asked about where it leaves its sender, and never elsewhere, so that a seed decides all.
pub fn with_probability(
    probability: f64,
    mut random: impl FnMut() -> u64 + Send,
) -> impl FnMut(&Transit<'_>) -> bool + Send {
    // Of the numbers below 2^53 (the factor), so many match: exact, since a double holds them all.
    let limit = (probability.clamp(0.0, 1.0) * 9_007_199_254_740_992.0) as u64;
    move |transit| on_send(transit) && (random() >> 11) < limit
}

/// Matches what `of` matches, but only the `n`-th time (from 1).
pub fn nth(
    n: u64,
    mut of: impl FnMut(&Transit<'_>) -> bool + Send,
) -> impl FnMut(&Transit<'_>) -> bool + Send {
    let mut count = 0;
    move |transit| {
        count += u64::from(of(transit));
        count == n && {
            count += 1;
            true
        }
    }
}

/// Matches a response of the subnet administrator about `attribute` where it leaves the manager.
pub fn sa_response(attribute: Attribute) -> impl FnMut(&Transit<'_>) -> bool + Send {
    move |transit| {
        on_send(transit)
            && sa_header(transit.packet)
                .is_some_and(|header| header.method.is_response() && header.attribute == attribute)
    }
}

/// The MAD header of a packet that carries a subnet administration MAD from or to QP1.
pub fn sa_header(packet: &Packet) -> Option<MadHeader> {
    let (headers, payload) = packet.parse().ok()?;
    if headers.bth.dest_qp != Qpn::GSI && headers.deth?.src_qp != Qpn::GSI {
        return None;
    }
    MadHeader::parse_slice(payload).ok().filter(|header| header.class == class::SUBN_ADM)
}
