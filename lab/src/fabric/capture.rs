//! Captures: whole packets, LRH to VCRC, in a pcap file of link type LINKTYPE_INFINIBAND (247), which Wireshark and
//! tshark dissect.
//!
//! Timestamps are virtual time, in nanoseconds, counted from the epoch of the format. Nothing is buffered here:
//! every packet goes to the writer at once, so wrap a file in a `BufWriter`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use super::ids::Nanos;
use super::wire::Packet;

/// Longest packet that is written whole.
const SNAP_LEN: u32 = 65_535;

/// Writes packets to a capture.
pub struct CaptureWriter<W: Write> {
    writer: PcapWriter<W>,
    packets: u64,
}

impl<W: Write> std::fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureWriter").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a capture: writes the header of the file.
    ///
    /// # Errors
    /// Those of `writer`.
    pub fn new(writer: W) -> io::Result<Self> {
        let header = PcapHeader {
            snaplen: SNAP_LEN,
            datalink: DataLink::INFINIBAND,
            ts_resolution: TsResolution::NanoSecond,
            // Not that of this machine: equal runs give equal files.
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(writer, header).map_err(into_io)?;
        Ok(Self { writer, packets: 0 })
    }

    /// Writes a packet that was on the wire at `at`, with CRCs as they are there.
    ///
    /// # Errors
    /// Those of the writer; also a time of more than 2^32 seconds.
    pub fn write(&mut self, at: Nanos, packet: &Packet) -> io::Result<()> {
        let bytes = packet.sealed();
        let data = &bytes[..bytes.len().min(SNAP_LEN as usize)];
        let record = PcapPacket {
            timestamp: Duration::from_nanos(at),
            orig_len: bytes.len() as u32,
            data: Cow::Borrowed(data),
        };
        self.writer.write_packet(&record).map_err(into_io)?;
        self.packets += 1;
        Ok(())
    }

    /// Packets written.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Ends the capture and gives the writer back, flushed.
    ///
    /// # Errors
    /// Those of flushing.
    pub fn finish(self) -> io::Result<W> {
        let mut writer = self.writer.into_writer();
        writer.flush()?;
        Ok(writer)
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::ids::{Lid, PKey};
    use crate::fabric::wire::{Bth, Deth, Headers, Lrh, OpCode};
    use pcap_file::pcap::PcapReader;

    /// What is written is read back: link type 247, virtual time, every byte, right CRCs.
    #[test]
    fn read_back() {
        let headers = Headers {
            lrh: Lrh { dlid: Lid(2), slid: Lid(1), ..Lrh::default() },
            bth: Bth { opcode: OpCode::UD_SEND_ONLY, pkey: PKey::DEFAULT, ..Bth::default() },
            deth: Some(Deth::default()),
            ..Headers::default()
        };
        let sent: Vec<Packet> =
            (0..3).map(|len| Packet::build(&headers, len, |space| space.fill(0xA5))).collect();
        let mut capture = CaptureWriter::new(Vec::new()).unwrap();
        for (packet, at) in sent.iter().zip([0, 1, 1_000_000_007]) {
            capture.write(at, packet).unwrap();
        }
        assert_eq!(capture.packets(), 3);
        let file = capture.finish().unwrap();
        let mut reader = PcapReader::new(&file[..]).unwrap();
        assert_eq!(reader.header().datalink, DataLink::INFINIBAND);
        for (packet, at) in sent.iter().zip([0, 1, 1_000_000_007]) {
            let read = reader.next_packet().unwrap().unwrap();
            assert_eq!(read.timestamp, Duration::from_nanos(at));
            assert_eq!(read.data[..], packet.sealed()[..]);
            let wire = Packet::from_bytes(read.data.to_vec());
            assert!(wire.icrc_ok() && wire.vcrc_ok());
        }
        assert!(reader.next_packet().is_none());
    }

    /// An unwritable sink is an error, not a panic.
    #[test]
    fn full_disk() {
        let mut space = [0; 30];
        let mut capture = CaptureWriter::new(&mut space[..]).unwrap();
        assert!(capture.write(0, &Packet::from_bytes(vec![0; 8])).is_err());
    }
}
