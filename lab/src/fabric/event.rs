//! What happens to a port, as an HCA reports it to the software above.

use super::ids::Lid;

/// An event of one port. They come from [`super::Fabric::poll`] in the order in which they happened; the
/// port's attributes are already what they are after the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortEvent {
    /// The link went down; the port has lost its data traffic but keeps its LID until told otherwise.
    Down,
    /// The link is up; the subnet manager has yet to configure the port.
    Init,
    /// The subnet manager has configured the port.
    Armed,
    /// Data passes.
    Active,
    /// The base LID or the LMC changed.
    LidChange {
        /// Base LID before.
        from: Lid,
        /// Base LID now.
        to: Lid,
    },
    /// Another LID or service level leads to the master subnet manager.
    SmChange,
    /// The P_Key table changed.
    PkeyChange,
    /// The GID table or the subnet prefix changed.
    GidChange,
    /// The subnet manager asks for every join, subscription and service record to be made again (IBA
    /// 14.4.11).
    ClientReregister,
    /// The subnet timeout changed.
    SubnetTimeout,
}
