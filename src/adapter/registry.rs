//! The registry as the source of the configuration.

use super::config::{Config, Reading, Rejected, Source};
use super::event_code::EventCode;
use crate::kernel::adapter::AdapterHandle;
use crate::kernel::config::{Configuration, Value};
use crate::kernel::irql::Passive;

/// The open key of an adapter.
struct Registry<'p>(Configuration<'p>);

impl Source for Registry<'_> {
    fn read(&mut self, name: &str) -> Reading<u32> {
        match self.0.read(name) {
            None => Reading::Absent,
            Some(Value::Integer(value)) => Reading::Value(value),
            Some(Value::String(text)) => parse(text).map_or(Reading::WrongType, Reading::Value),
            Some(Value::MultiString(_) | Value::Binary(_)) => Reading::WrongType,
        }
    }

    fn network_address(&mut self) -> Reading<[u8; 6]> {
        match self.0.network_address() {
            None => Reading::Absent,
            Some(bytes) => bytes.try_into().map_or(Reading::WrongType, Reading::Value),
        }
    }
}

/// A number in decimal, or in hexadecimal after `0x`: how an INF writes a keyword of the property page.
fn parse(text: &[u16]) -> Option<u32> {
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    let (digits, radix) = match text {
        [zero, x, rest @ ..] if *zero == u16::from(b'0') && (*x | 0x20) == u16::from(b'x') => (rest, 16),
        _ => (text, 10),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u32, |value, &unit| {
        let digit = char::from_u32(u32::from(unit))?.to_digit(radix)?;
        value.checked_mul(radix)?.checked_add(digit)
    })
}

/// Reads the configuration. Each rejected keyword is an event-log entry: the index of the keyword in the table of
/// keywords (from 1; 0 for `NetworkAddress`) and the value used instead.
///
/// An adapter whose key cannot be opened runs with the defaults.
pub(super) fn load(adapter: AdapterHandle, at: &Passive<'_>) -> Config {
    let report = |rejected: Rejected| {
        let index = super::config::keyword::ALL.iter().position(|keyword| keyword.name == rejected.name);
        let number = index.map_or(0, |index| index as u32 + 1);
        let code = if number == 0 { EventCode::NetworkAddressRejected } else { EventCode::KeywordRejected };
        adapter.log_event(code, [number, rejected.used]);
    };
    match Configuration::open(adapter, at) {
        Ok(key) => Config::load(&mut Registry(key), report),
        Err(error) => {
            adapter.log_event(EventCode::ConfigurationUnreadable, [error.nt() as u32, 0]);
            Config::load(&mut Defaults, report)
        }
    }
}

/// A registry without values.
struct Defaults;

impl Source for Defaults {
    fn read(&mut self, _name: &str) -> Reading<u32> {
        Reading::Absent
    }

    fn network_address(&mut self) -> Reading<[u8; 6]> {
        Reading::Absent
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn parsed(text: &str) -> Option<u32> {
        parse(&text.encode_utf16().collect::<Vec<_>>())
    }

    #[test]
    fn a_keyword_is_decimal_or_hexadecimal_text() {
        assert_eq!(parsed("512"), Some(512));
        assert_eq!(parsed("0x1F"), Some(0x1f));
        assert_eq!(parsed("0X1f\0"), Some(0x1f));
        assert_eq!(parsed("4294967295"), Some(u32::MAX));
    }

    #[test]
    fn what_is_no_number_is_of_the_wrong_type() {
        for text in ["", "0x", "12a", "-1", "4294967296", " 5", "\u{661}"] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
    }
}
