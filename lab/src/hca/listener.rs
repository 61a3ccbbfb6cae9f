//! What an HCA tells the access layer above.

use super::handle::Handle;
use crate::fabric::event::PortEvent;
use crate::fabric::wire::mad::MAD_LEN;

/// An asynchronous event of an object (IBA vol. 1 §11.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AsyncEvent {
    /// A completion queue was overrun.
    CqError,
    /// The send queue has drained, as SQD asked to be told.
    SqDrained,
    /// An error that no completion could report.
    QpFatal,
    /// A connected queue pair in RTR got its first packet.
    CommunicationEstablished,
}

/// The access layer, as the HCA sees it. Called in hardware context or under a driver's call, with no lock held;
/// it calls the driver later, from a DPC or a thread of its own.
pub trait Listener: Send + Sync {
    /// A datagram arrived at QP1 of a port.
    fn mad(&self, port: u8, mad: Box<[u8; MAD_LEN]>);

    /// Something happened to a port.
    fn port_event(&self, port: u8, event: PortEvent);

    /// Something happened to a queue.
    fn async_event(&self, object: Handle, event: AsyncEvent);

    /// A closed completion queue calls its consumer no longer.
    fn cq_idle(&self, cq: Handle);
}
