//! Raw IBAL ABI: the InfiniBand access layer of OpenFabrics for Windows.
#![no_std]
