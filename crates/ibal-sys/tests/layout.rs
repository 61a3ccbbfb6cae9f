//! Rule: every structure that the layout table of the public headers has, has the same members here, at the
//! same offsets and of the same sizes.
//!
//! `data/ibal-layout.txt` is what a compiler for x64 Windows makes of the headers. Its lines are `offset size
//! name`; a member of a union has `.` for its offset, which is the union's; nesting is indentation; an
//! aggregate's line ends in `{`. A pointer that the header widens is a union of the pointer and
//! `<name>_padding`.

use std::collections::BTreeMap;

use ibal_sys::layout::{LAYOUTS, Layout};

/// Column at which a name of the outermost level starts.
const NAME_COLUMN: usize = 15;

/// (offset, size) by path.
type Members = BTreeMap<String, (usize, usize)>;

fn parse(table: &str) -> BTreeMap<String, (usize, Members)> {
    let mut structures: BTreeMap<String, (usize, Members)> = BTreeMap::new();
    let mut current = String::new();
    let mut open: Vec<(String, usize)> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        if let Some((name, size)) = line.split_once(" size ") {
            name.clone_into(&mut current);
            structures.insert(current.clone(), (size.parse().unwrap(), Members::new()));
            open.clear();
            continue;
        }
        let mut words = line.split_whitespace();
        let (offset, size, name) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let opens = line.trim_end().ends_with('{');
        // The name starts two columns further right for each level.
        let column = line.rfind(name).unwrap();
        open.truncate((column - NAME_COLUMN) / 2);
        let offset = match offset {
            "." => open.last().expect("a union around a member without offset").1,
            number => number.parse().unwrap(),
        };
        if name != "(anonymous)" && !name.ends_with("_padding") {
            let mut path: Vec<&str> =
                open.iter().map(|(name, _)| name.as_str()).filter(|name| *name != "(anonymous)").collect();
            path.push(name);
            structures.get_mut(&current).unwrap().1.insert(path.join("."), (offset, size.parse().unwrap()));
        }
        if opens {
            open.push((name.to_owned(), offset));
        }
    }
    structures
}

fn ours(layout: &Layout) -> Members {
    layout
        .fields
        .iter()
        .filter_map(|field| {
            let path = match (layout.name, field.path) {
                ("ib_send_wr_t", "op" | "data") => return None,
                ("ib_send_wr_t", path) => {
                    path.strip_prefix("op.").or(path.strip_prefix("data.")).unwrap_or(path)
                }
                (_, path) => path,
            };
            Some((path.to_owned(), (field.offset, field.size)))
        })
        .collect()
}

#[test]
fn every_structure_of_the_table_is_laid_out_as_the_table_says() {
    let table = parse(include_str!("data/ibal-layout.txt"));
    assert!(table.len() >= 27, "the table was not understood: {} structures", table.len());
    for (name, (size, members)) in &table {
        let layout = LAYOUTS.iter().find(|layout| layout.name == name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(layout.size, *size, "size of {name}");
        assert_eq!(&ours(layout), members, "members of {name}");
    }
}

#[test]
fn every_slot_of_the_interface_is_one_pointer_behind_the_last() {
    let interface = LAYOUTS.iter().find(|layout| layout.name == "ib_al_ifc_t").unwrap();
    for (i, slot) in interface.fields.iter().skip(1).enumerate() {
        assert_eq!((slot.offset, slot.size), (32 + 8 * i, 8), "{}", slot.path);
    }
    assert_eq!(interface.fields.len(), 117, "the head, 115 functions and markers, and the CA's GUID");
}
