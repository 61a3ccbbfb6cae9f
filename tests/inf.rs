//! The INF and the driver agree: every keyword with its default and bounds, the identities, the service.

use std::collections::{BTreeMap, BTreeSet};

use ipoib::adapter::config::keyword;

const INF: &str = include_str!("../ipoib.inf");

/// Lines of a section, comments and blanks removed.
fn section(name: &str) -> Vec<&'static str> {
    let header = format!("[{name}]");
    let lines: Vec<_> = INF
        .lines()
        .skip_while(|line| !line.trim().eq_ignore_ascii_case(&header))
        .skip(1)
        .take_while(|line| !line.trim_start().starts_with('['))
        .map(|line| line.split(';').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect();
    assert!(!lines.is_empty(), "section [{name}] is absent or empty");
    lines
}

/// `HKR, Ndi\Params\<keyword>, <value>, 0, "<data>"` as keyword -> value -> data.
fn parameters() -> BTreeMap<&'static str, BTreeMap<&'static str, &'static str>> {
    let mut all = BTreeMap::<_, BTreeMap<_, _>>::new();
    for line in section("IPoIB.AddReg") {
        let fields: Vec<_> = line.splitn(5, ',').map(str::trim).collect();
        let [_, key, value, _, data] = fields[..] else { panic!("not an AddReg line: {line}") };
        if let Some(keyword) = key.strip_prefix(r"Ndi\Params\")
            && !keyword.contains('\\')
        {
            all.entry(keyword).or_default().insert(value, data.trim_matches('"'));
        }
    }
    all
}

#[test]
fn every_keyword_of_the_driver_is_in_the_inf_with_its_default_and_bounds() {
    let parameters = parameters();
    for expected in keyword::ALL {
        let found =
            parameters.get(expected.name).unwrap_or_else(|| panic!("{} is not in the INF", expected.name));
        let number =
            |value| found.get(value).unwrap_or_else(|| panic!("{} has no {value}", expected.name)).parse();
        assert_eq!(number("Default"), Ok(expected.default), "{} Default", expected.name);
        if found["Type"] == "enum" {
            let values: BTreeSet<u32> = section("IPoIB.AddReg")
                .iter()
                .filter_map(|line| line.strip_prefix(&format!(r"HKR, Ndi\Params\{}\enum,", expected.name)))
                .map(|rest| rest.split('"').nth(1).unwrap().parse().unwrap())
                .collect();
            assert_eq!(values, (expected.min..=expected.max).collect(), "{} choices", expected.name);
        } else {
            assert_eq!(number("Min"), Ok(expected.min), "{} Min", expected.name);
            assert_eq!(number("Max"), Ok(expected.max), "{} Max", expected.name);
        }
    }
}

#[test]
fn the_inf_offers_no_keyword_that_the_driver_does_not_read() {
    let known: BTreeSet<_> =
        keyword::ALL.iter().map(|keyword| keyword.name).chain(["NetworkAddress"]).collect();
    let offered: BTreeSet<_> = parameters().into_keys().collect();
    assert_eq!(offered.difference(&known).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn both_children_of_the_bus_driver_install_the_same_service() {
    let models = section("IPoIB.NTamd64.10.0...19041");
    for hardware_id in [r"IBA\IPoIB", r"IBA\IPoIBP"] {
        assert!(models.iter().any(|line| line.ends_with(hardware_id)), "{hardware_id} is not listed");
    }
    assert!(section("IPoIB.Install.Services").iter().any(|line| line.starts_with("AddService = ipoib, 2,")));
    assert!(section("IPoIB.Service").iter().any(|line| line.ends_with(r"%13%\ipoib.sys")));
}

#[test]
fn every_string_that_the_inf_uses_is_defined() {
    let defined: BTreeSet<_> =
        section("Strings").iter().map(|line| line.split('=').next().unwrap().trim()).collect();
    for line in INF.lines().map(|line| line.split(';').next().unwrap_or_default()) {
        for name in line.replace("%%", "").split('%').skip(1).step_by(2).filter(|name| *name != "13") {
            assert!(defined.contains(name), "%{name}% is not defined: {line}");
        }
    }
}
