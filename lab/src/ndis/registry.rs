//! The registry key of an adapter or a driver: typed values under names whose case does not matter, and subkeys.

use std::collections::BTreeMap;

/// A registry value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryValue {
    /// `REG_DWORD`.
    Dword(u32),
    /// `REG_SZ`.
    String(String),
    /// `REG_MULTI_SZ`.
    MultiString(Vec<String>),
    /// `REG_BINARY`.
    Binary(Vec<u8>),
}

impl From<u32> for RegistryValue {
    fn from(value: u32) -> Self {
        Self::Dword(value)
    }
}

impl From<&str> for RegistryValue {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<Vec<u8>> for RegistryValue {
    fn from(value: Vec<u8>) -> Self {
        Self::Binary(value)
    }
}

/// A value as `NdisReadConfiguration` returns it: with the type that it turned out to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationValue {
    /// `NdisParameterInteger` or `NdisParameterHexInteger`, as asked.
    Integer(u32),
    /// `NdisParameterString`.
    String(String),
    /// `NdisParameterMultiString`.
    MultiString(Vec<String>),
    /// `NdisParameterBinary`.
    Binary(Vec<u8>),
}

/// What the caller of `NdisReadConfiguration` said it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `NdisParameterInteger`.
    Integer,
    /// `NdisParameterHexInteger`.
    HexInteger,
    /// Anything else.
    Other,
}

/// A registry key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryKey {
    values: BTreeMap<String, RegistryValue>,
    subkeys: BTreeMap<String, RegistryKey>,
}

impl RegistryKey {
    /// A key without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key with one more value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<RegistryValue>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a value.
    pub fn set(&mut self, name: &str, value: impl Into<RegistryValue>) {
        self.values.insert(name.to_lowercase(), value.into());
    }

    /// Deletes a value; false if there is none.
    pub fn delete(&mut self, name: &str) -> bool {
        self.values.remove(&name.to_lowercase()).is_some()
    }

    /// A value as stored.
    pub fn get(&self, name: &str) -> Option<&RegistryValue> {
        self.values.get(&name.to_lowercase())
    }

    /// A subkey, made if it does not exist.
    pub fn subkey(&mut self, name: &str) -> &mut RegistryKey {
        self.subkeys.entry(name.to_lowercase()).or_default()
    }

    /// A subkey by name.
    pub fn find_subkey(&self, name: &str) -> Option<&RegistryKey> {
        self.subkeys.get(&name.to_lowercase())
    }

    /// The subkey at a position, in the order of names, with its name.
    pub fn subkey_at(&self, index: usize) -> Option<(&str, &RegistryKey)> {
        self.subkeys.iter().nth(index).map(|(name, key)| (name.as_str(), key))
    }

    /// What `NdisReadConfiguration` returns. The stored type decides, as the page of `NdisReadConfiguration` says of
    /// its `ParameterType`; only a string of digits is turned into the integer that was asked for, since an INF
    /// stores the standard keywords of an adapter as strings ("Specifying Configuration Parameters for the Advanced
    /// Properties Page": values under `Ndi\params` are strings whatever their `type`). Other strings come back as
    /// strings: the caller must look at the type it got.
    pub fn read(&self, name: &str, wanted: Wanted) -> Option<ConfigurationValue> {
        Some(match self.get(name)? {
            RegistryValue::Dword(value) => ConfigurationValue::Integer(*value),
            RegistryValue::String(text) => match parse_integer(text, wanted) {
                Some(value) => ConfigurationValue::Integer(value),
                None => ConfigurationValue::String(text.clone()),
            },
            RegistryValue::MultiString(list) => ConfigurationValue::MultiString(list.clone()),
            RegistryValue::Binary(bytes) => ConfigurationValue::Binary(bytes.clone()),
        })
    }

    /// What `NdisReadNetworkAddress` returns: the string `NetworkAddress` as bytes, hyphens discarded. `None` if it
    /// is absent or no string. NDIS does not validate it, so the bytes may be of any number; conversion stops at the
    /// first character that is no hexadecimal digit, and an odd last digit is a byte of its own.
    pub fn network_address(&self) -> Option<Vec<u8>> {
        let Some(RegistryValue::String(text)) = self.get("NetworkAddress") else { return None };
        let digits: Vec<u8> = text
            .chars()
            .filter(|c| *c != '-')
            .map_while(|c| c.to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        Some(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
    }
}

fn parse_integer(text: &str, wanted: Wanted) -> Option<u32> {
    let text = text.trim();
    match wanted {
        Wanted::Integer => text.parse().ok(),
        Wanted::HexInteger => u32::from_str_radix(text.trim_start_matches("0x"), 16).ok(),
        Wanted::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ignore_case() {
        let key = RegistryKey::new().with("*JumboPacket", 1514);
        assert_eq!(key.get("*jumbopacket"), Some(&RegistryValue::Dword(1514)));
        assert_eq!(key.read("*JUMBOPACKET", Wanted::Integer), Some(ConfigurationValue::Integer(1514)));
    }

    #[test]
    fn a_string_of_digits_becomes_the_integer_asked_for() {
        let key = RegistryKey::new().with("size", "10");
        assert_eq!(key.read("size", Wanted::Integer), Some(ConfigurationValue::Integer(10)));
        assert_eq!(key.read("size", Wanted::HexInteger), Some(ConfigurationValue::Integer(16)));
        assert_eq!(key.read("size", Wanted::Other), Some(ConfigurationValue::String("10".into())));
    }

    #[test]
    fn the_stored_type_wins_over_the_one_asked_for() {
        let key = RegistryKey::new().with("word", "many").with("bytes", vec![1, 2]).with("number", 7);
        assert_eq!(key.read("word", Wanted::Integer), Some(ConfigurationValue::String("many".into())));
        assert_eq!(key.read("bytes", Wanted::Integer), Some(ConfigurationValue::Binary(vec![1, 2])));
        assert_eq!(key.read("number", Wanted::Other), Some(ConfigurationValue::Integer(7)));
        assert_eq!(key.read("absent", Wanted::Integer), None);
    }

    #[test]
    fn network_address_takes_both_forms_and_validates_nothing() {
        let read = |text: &str| RegistryKey::new().with("NetworkAddress", text).network_address();
        let mac = Some(vec![0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);
        assert_eq!(read("021122334455"), mac);
        assert_eq!(read("02-11-22-33-44-55"), mac);
        assert_eq!(read("0211"), Some(vec![0x02, 0x11]));
        assert_eq!(read("02xy"), Some(vec![0x02]));
        assert_eq!(RegistryKey::new().with("NetworkAddress", 5).network_address(), None);
    }
}
