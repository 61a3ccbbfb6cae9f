//! Raw NT and NDIS 6 ABI: what wdk-sys lacks or cannot give off Windows.
#![no_std]
