//! Captures: whole packets, LRH to VCRC, in a pcap file.
//!
//! There are two ways to put InfiniBand into one. LINKTYPE_INFINIBAND (247) is the plain one, but Wireshark
//! and tshark, up to 4.0 at least, do not know it. LINKTYPE_ERF (197) puts a 16-byte header of Endace's
//! Extensible Record Format before each packet, with record type 21, InfiniBand; every Wireshark since 1.0
//! opens that and dissects LRH, GRH, BTH, DETH, MADs and IPoIB. So that is the default
//! ([`CaptureFormat::Erf`]).
//!
//! Timestamps are virtual time, in nanoseconds, counted from the epoch of the format. Nothing is buffered
//! here: every packet goes to the writer at once, so wrap a file in a `BufWriter`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use super::ids::Nanos;
use super::wire::Packet;

/// Longest record that is written whole.
const SNAP_LEN: u32 = 65_535;

/// Bytes of an ERF header.
const ERF_HEADER_LEN: usize = 16;
/// ERF record type: InfiniBand (Endace, ERF Types Reference Guide, TYPE_INFINIBAND).
const ERF_TYPE_INFINIBAND: u8 = 21;
/// ERF flag: records are as long as their packets.
const ERF_FLAG_VARYING_LENGTH: u8 = 1 << 2;

/// How packets are put into the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureFormat {
    /// LINKTYPE_ERF (197), records of type 21: what Wireshark opens.
    #[default]
    Erf,
    /// LINKTYPE_INFINIBAND (247): the packet alone.
    Infiniband,
}

/// Writes packets to a capture.
pub struct CaptureWriter<W: Write> {
    writer: PcapWriter<W>,
    format: CaptureFormat,
    record: Vec<u8>,
    packets: u64,
}

impl<W: Write> std::fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureWriter").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a capture in the default format: writes the header of the file.
    ///
    /// # Errors
    /// Those of `writer`.
    pub fn new(writer: W) -> io::Result<Self> {
        Self::with_format(writer, CaptureFormat::default())
    }

    /// Starts a capture in a given format.
    ///
    /// # Errors
    /// Those of `writer`.
    pub fn with_format(writer: W, format: CaptureFormat) -> io::Result<Self> {
        let header = PcapHeader {
            snaplen: SNAP_LEN,
            datalink: match format {
                CaptureFormat::Erf => DataLink::ERF,
                CaptureFormat::Infiniband => DataLink::INFINIBAND,
            },
            ts_resolution: TsResolution::NanoSecond,
            // Not that of this machine: equal runs give equal files.
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(writer, header).map_err(into_io)?;
        Ok(Self { writer, format, record: Vec::new(), packets: 0 })
    }

    /// Writes a packet that was on the wire at `at`, with CRCs as they are there.
    ///
    /// # Errors
    /// Those of the writer; also a time of more than 2^32 seconds.
    pub fn write(&mut self, at: Nanos, packet: &Packet) -> io::Result<()> {
        let bytes = packet.sealed();
        self.record.clear();
        if self.format == CaptureFormat::Erf {
            let len = bytes.len().min(SNAP_LEN as usize - ERF_HEADER_LEN);
            self.record.extend(erf_header(at, len as u16));
        }
        let space = SNAP_LEN as usize - self.record.len();
        let orig_len = (self.record.len() + bytes.len()) as u32;
        self.record.extend(&bytes[..bytes.len().min(space)]);
        let record =
            PcapPacket { timestamp: Duration::from_nanos(at), orig_len, data: Cow::Borrowed(&self.record) };
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

/// The header of an ERF record: seconds and binary fraction as a little-endian 32.32 number, type, flags,
/// length with this header, loss counter, length on the wire; the latter big-endian.
fn erf_header(at: Nanos, len: u16) -> [u8; ERF_HEADER_LEN] {
    const SECOND: Nanos = 1_000_000_000;
    let stamp = ((at / SECOND) << 32) | (((at % SECOND) << 32) / SECOND);
    let mut header = [0; ERF_HEADER_LEN];
    header[..8].copy_from_slice(&stamp.to_le_bytes());
    header[8] = ERF_TYPE_INFINIBAND;
    header[9] = ERF_FLAG_VARYING_LENGTH;
    header[10..12].copy_from_slice(&(len + ERF_HEADER_LEN as u16).to_be_bytes());
    header[14..].copy_from_slice(&len.to_be_bytes());
    header
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

    fn packets() -> Vec<Packet> {
        let headers = Headers {
            lrh: Lrh { dlid: Lid(2), slid: Lid(1), ..Lrh::default() },
            bth: Bth { opcode: OpCode::UD_SEND_ONLY, pkey: PKey::DEFAULT, ..Bth::default() },
            deth: Some(Deth::default()),
            ..Headers::default()
        };
        (0..3).map(|len| Packet::build(&headers, len, |space| space.fill(0xA5))).collect()
    }

    /// What is written is read back: link type, virtual time, every byte, right CRCs.
    #[test]
    fn read_back() {
        let sent = packets();
        let times = [0, 1, 1_500_000_000];
        for (format, datalink, header_len) in [
            (CaptureFormat::Infiniband, DataLink::INFINIBAND, 0),
            (CaptureFormat::Erf, DataLink::ERF, ERF_HEADER_LEN),
        ] {
            let mut capture = CaptureWriter::with_format(Vec::new(), format).unwrap();
            for (packet, at) in sent.iter().zip(times) {
                capture.write(at, packet).unwrap();
            }
            assert_eq!(capture.packets(), 3);
            let file = capture.finish().unwrap();
            let mut reader = PcapReader::new(&file[..]).unwrap();
            assert_eq!(reader.header().datalink, datalink);
            for (packet, at) in sent.iter().zip(times) {
                let read = reader.next_packet().unwrap().unwrap();
                assert_eq!(read.timestamp, Duration::from_nanos(at));
                assert_eq!(read.data[header_len..], packet.sealed()[..]);
                let wire = Packet::from_bytes(read.data[header_len..].to_vec());
                assert!(wire.icrc_ok() && wire.vcrc_ok());
            }
            assert!(reader.next_packet().is_none());
        }
    }

    /// ERF: 1.5 s is 1 and a half in binary; type 21; lengths with and without the header.
    #[test]
    fn erf_record() {
        assert_eq!(erf_header(1_500_000_000, 30), [0, 0, 0, 0x80, 1, 0, 0, 0, 21, 4, 0, 46, 0, 0, 0, 30]);
    }

    /// A packet longer than a record is cut, and the file says how long it was.
    #[test]
    fn oversize() {
        let mut capture = CaptureWriter::new(Vec::new()).unwrap();
        capture.write(0, &Packet::from_bytes(vec![1; 70_000])).unwrap();
        let file = capture.finish().unwrap();
        let mut reader = PcapReader::new(&file[..]).unwrap();
        let read = reader.next_raw_packet().unwrap().unwrap();
        assert_eq!((read.incl_len, read.orig_len), (65_535, 70_016));
    }

    /// An unwritable sink is an error, not a panic.
    #[test]
    fn full_disk() {
        let mut space = [0; 40];
        let mut capture = CaptureWriter::new(&mut space[..]).unwrap();
        assert!(capture.write(0, &Packet::from_bytes(vec![0; 8])).is_err());
    }
}
