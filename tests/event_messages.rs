//! The driver's event codes and the message file that is compiled into the image agree.

use std::collections::BTreeMap;

use ipoib::adapter::event_code::EventCode;
use windows_kernel_sys::NDIS_ERROR_CODE;

const MESSAGES: &str = include_str!("../include/events.mc");

/// Symbolic name and text of each message, by its code as mc computes it: severity, facility, number.
fn messages() -> BTreeMap<NDIS_ERROR_CODE, (&'static str, &'static str)> {
    let mut messages = BTreeMap::new();
    for block in MESSAGES.split("MessageId ").skip(1) {
        let field = |name: &str| {
            let line = block.lines().find(|line| line.starts_with(name) || name.is_empty()).unwrap();
            line.split_once("= ").unwrap_or_else(|| panic!("no {name} in {block}")).1.trim()
        };
        let number = u32::from_str_radix(field("").trim_start_matches("0x"), 16).unwrap();
        let severity = match field("Severity") {
            "Warning" => 2,
            "Error" => 3,
            other => panic!("severity {other}"),
        };
        assert_eq!(field("Facility"), "IPoIB");
        let text = block.split_once("Language     = English\n").unwrap().1.split_once("\n.\n").unwrap().0;
        let before = messages.insert(severity << 30 | 7 << 16 | number, (field("SymbolicName"), text));
        assert_eq!(before, None, "message {number} is there twice");
    }
    messages
}

#[test]
fn every_event_has_a_message_and_every_message_an_event() {
    let codes: Vec<NDIS_ERROR_CODE> = EventCode::ALL.into_iter().map(Into::into).collect();
    assert_eq!(codes, sorted(&codes), "in the order of their numbers");
    let messages = messages();
    assert_eq!(sorted(&codes), sorted(&messages.keys().copied().collect::<Vec<_>>()));
}

fn sorted(codes: &[NDIS_ERROR_CODE]) -> Vec<NDIS_ERROR_CODE> {
    let mut codes = codes.to_vec();
    codes.sort_by_key(|code| code & 0xFFFF);
    codes
}

#[test]
fn each_message_is_named_for_its_event() {
    let messages = messages();
    for event in EventCode::ALL {
        let mut name = String::from("IPOIB_EVENT");
        for letter in format!("{event:?}").chars() {
            if letter.is_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        assert_eq!(messages[&event.into()].0, name);
    }
}

#[test]
fn each_message_names_the_adapter() {
    for (name, text) in messages().into_values() {
        assert!(text.starts_with("%2 : ") && text.ends_with('.') && !text.contains('\n'), "{name}: {text}");
    }
}
