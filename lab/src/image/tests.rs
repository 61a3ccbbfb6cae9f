//! What the loader does to images made by hand.

use std::sync::Mutex;

use super::testing::{BASE, DATA, INIT, Image, NT_HEADERS, PDATA, RDATA, RELOC, TEXT};
use super::{ImageError, ImageFile, Mapping};
use crate::fault::Site;
use crate::kernel::{Machine, MachineConfig};
use crate::sim::{Outcome, SECOND, Sim, SimConfig};

type Entry = unsafe extern "win64" fn() -> u64;

fn file(image: Image) -> ImageFile {
    ImageFile::from_bytes("test.sys", image.build()).expect("a good image")
}

fn load(image: Image) -> Mapping {
    Mapping::new(&file(image), resolve).expect("the imports are there")
}

fn call(mapping: &Mapping) -> u64 {
    // SAFETY: the code of a test image: a function without arguments that returns a number.
    unsafe {
        let entry: Entry = std::mem::transmute(mapping.entry());
        entry()
    }
}

fn resolve(module: &str, name: &str) -> Option<*const ()> {
    match (module, name) {
        ("ntoskrnl.exe", "Answer") => Some(answer as *const ()),
        ("ndis.sys", "Walk") => Some(walk as *const ()),
        _ => None,
    }
}

unsafe extern "win64" fn answer() -> u64 {
    42
}

/// The lines that the last call of `walk` saw.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "win64" fn walk() {
    *SEEN.lock().unwrap() = Site::here().frames();
}

/// `mov rax, [rip + to address]; ret`, at `at`.
fn load_and_return(at: u32, address: u32) -> Vec<u8> {
    let mut code = vec![0x48, 0x8B, 0x05];
    code.extend(address.wrapping_sub(at + 7).to_le_bytes());
    code.push(0xC3);
    code
}

/// `call [rip + to address]`, at `at`.
fn call_through(at: u32, address: u32) -> Vec<u8> {
    let mut code = vec![0xFF, 0x15];
    code.extend(address.wrapping_sub(at + 6).to_le_bytes());
    code
}

/// `call address`, at `at`.
fn call_to(at: u32, address: u32) -> Vec<u8> {
    let mut code = vec![0xE8];
    code.extend(address.wrapping_sub(at + 5).to_le_bytes());
    code
}

/// `mov eax, 7; ret`.
const RETURNS_7: [u8; 6] = [0xB8, 7, 0, 0, 0, 0xC3];

#[test]
fn the_entry_point_runs() {
    assert_eq!(call(&load(Image::new(&RETURNS_7))), 7);
}

#[test]
fn addresses_in_the_image_move_with_it() {
    let pointer = (BASE + u64::from(DATA)).to_le_bytes();
    let image = || Image::new(&load_and_return(TEXT, DATA + 8)).data(DATA + 8, &pointer).relocation(DATA + 8);
    let mapping = load(image());
    assert_ne!(mapping.base() as u64, BASE);
    assert_eq!(call(&mapping), mapping.base() as u64 + u64::from(DATA));
}

#[test]
fn imports_are_bound_by_module_and_name() {
    // sub rsp, 28h; call Answer; add rsp, 28h; ret
    let mut code = vec![0x48, 0x83, 0xEC, 0x28];
    code.extend(call_through(TEXT + 4, RDATA + 16));
    code.extend([0x48, 0x83, 0xC4, 0x28, 0xC3]);
    let image = Image::new(&code).import("ndis.sys", &["Walk"]).import("ntoskrnl.exe", &["Answer"]);
    assert_eq!(call(&load(image)), 42);
}

#[test]
fn all_missing_imports_are_named() {
    let image = Image::new(&RETURNS_7)
        .import("ndis.sys", &["NdisNever", "Walk"])
        .import("HAL.dll", &["HalNever"])
        .import("ntoskrnl.exe", &["Answer", "MmNever"]);
    let Err(ImageError::MissingImports(missing)) = Mapping::new(&file(image), resolve) else {
        panic!("loaded without its imports");
    };
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ndis.sys!NdisNever", "HAL.dll!HalNever", "ntoskrnl.exe!MmNever"]);
}

#[test]
fn each_mapping_has_its_own_variables() {
    // inc qword [rip + to DATA]; mov rax, [rip + to DATA]; ret
    let mut code = vec![0x48, 0xFF, 0x05];
    code.extend(DATA.wrapping_sub(TEXT + 7).to_le_bytes());
    code.extend(load_and_return(TEXT + 7, DATA));
    let file = file(Image::new(&code));
    let [first, second] = [(), ()].map(|()| Mapping::new(&file, resolve).unwrap());
    assert_eq!((call(&first), call(&first), call(&second)), (1, 2, 1));
}

#[test]
fn sections_have_the_permissions_they_ask_for() {
    let mapping = load(Image::new(&RETURNS_7));
    let permissions = |offset: u32| permissions(mapping.base() + offset as usize);
    assert_eq!([TEXT, RDATA, DATA, PDATA, INIT].map(permissions), ["r-x", "r--", "rw-", "r--", "r-x"]);
    mapping.discard_init();
    assert_eq!(
        [TEXT, RDATA, DATA, PDATA, INIT, RELOC].map(permissions),
        ["r-x", "r--", "rw-", "r--", "---", "---"]
    );
}

#[test]
fn an_unloaded_image_leaves_its_range_reserved() {
    let mapping = load(Image::new(&RETURNS_7));
    let base = mapping.base();
    drop(mapping);
    assert!((0..7).all(|page| permissions(base + page * 0x1000) == "---"));
}

/// The permissions of the page at `address`, as the host lists them.
fn permissions(address: usize) -> &'static str {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        (number(start)..number(end)).contains(&address)
    });
    let flags = line.map_or("not mapped", |line| &line.split_once(' ').unwrap().1[..3]);
    ["r-x", "r--", "rw-", "---"].into_iter().find(|known| *known == flags).unwrap_or("other")
}

#[test]
fn a_default_security_cookie_is_replaced_and_another_kept() {
    let cookie = |value: u64| {
        let image = Image::new(&load_and_return(TEXT, DATA)).data(DATA, &value.to_le_bytes()).cookie(DATA);
        call(&load(image))
    };
    let set = cookie(0x0000_2B99_2DDF_A232);
    assert!(set != 0 && set != 0x0000_2B99_2DDF_A232 && set >> 48 == 0, "{set:#x}");
    assert_eq!(cookie(77), 77);
}

#[test]
fn what_windows_would_not_load_is_refused() {
    // Offsets of fields from the PE signature ("PE Format", COFF File Header and Optional Header).
    let cases: [(&str, usize, &[u8]); 9] = [
        ("machine", 4, &[0x4C, 0x01]),
        ("relocations are stripped", 4 + 18, &[0x23]),
        ("no entry point", 24 + 16, &[0; 4]),
        ("not in an executable section", 24 + 16, &DATA.to_le_bytes()),
        ("section alignment", 24 + 32, &[0, 2, 0, 0]),
        ("bytes of memory", 24 + 56, &[0xFF; 4]),
        ("does not fit", 24 + 56, &[0, 0x40, 0, 0]),
        ("subsystem", 24 + 68, &[3, 0]),
        ("thread-local storage", 24 + 112 + 8 * 9, &[0, 0x30, 0, 0, 40, 0, 0, 0]),
    ];
    for (what, offset, bytes) in cases {
        let mut image = Image::new(&RETURNS_7).build();
        image[NT_HEADERS + offset..][..bytes.len()].copy_from_slice(bytes);
        match ImageFile::from_bytes("test.sys", image) {
            Err(ImageError::Format(why)) => assert!(why.contains(what), "{what}: {why}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let image = Image::new(&RETURNS_7).import("ntoskrnl.exe", &["Answer"]).build();
    for length in (0..image.len()).step_by(97) {
        assert!(ImageFile::from_bytes("test.sys", image[..length].to_vec()).is_err(), "{length} bytes");
    }
}

#[test]
fn the_stack_is_walked_through_every_kind_of_frame() {
    // Three functions, each calling the next; the last one calls Walk.
    let (saves, pushes, moves) = (TEXT, TEXT + 0x40, TEXT + 0x80);
    // mov [rsp+8], rbx; sub rsp, 28h; call pushes; add rsp, 28h; ret
    let mut code = vec![0x48, 0x89, 0x5C, 0x24, 0x08, 0x48, 0x83, 0xEC, 0x28];
    code.extend(call_to(saves + 9, pushes));
    code.extend([0x48, 0x83, 0xC4, 0x28, 0xC3]);
    code.resize(0x40, 0xCC);
    // push rbx; sub rsp, 20h; call moves; add rsp, 20h; pop rbx; ret
    code.extend([0x53, 0x48, 0x83, 0xEC, 0x20]);
    code.extend(call_to(pushes + 5, moves));
    code.extend([0x48, 0x83, 0xC4, 0x20, 0x5B, 0xC3]);
    code.resize(0x80, 0xCC);
    // push rbp; sub rsp, 40h; lea rbp, [rsp+20h]; sub rsp, 1230h; call Walk; lea rsp, [rbp+20h]; pop rbp; ret
    code.extend([
        0x55, 0x48, 0x83, 0xEC, 0x40, 0x48, 0x8D, 0x6C, 0x24, 0x20, 0x48, 0x81, 0xEC, 0x30, 0x12, 0, 0,
    ]);
    code.extend(call_through(moves + 17, RDATA));
    code.extend([0x48, 0x8D, 0x65, 0x20, 0x5D, 0xC3]);

    // UNWIND_INFO: version, size of prologue, number of slots, frame register; slots, last operation first.
    let image = Image::new(&code)
        // UWOP_ALLOC_SMALL 28h after 9 bytes, UWOP_SAVE_NONVOL rbx at 30h after 5.
        .function(saves, saves + 0x40, &[1, 9, 3, 0, 9, 0x42, 5, 0x34, 6, 0])
        // UWOP_ALLOC_SMALL 20h after 5, UWOP_PUSH_NONVOL rbx after 1.
        .function(pushes, pushes + 0x40, &[1, 5, 2, 0, 5, 0x32, 1, 0x30])
        // UWOP_SET_FPREG rbp = rsp + 20h after 10, UWOP_ALLOC_SMALL 40h after 5, UWOP_PUSH_NONVOL rbp after 1.
        .function(moves, moves + 0x40, &[1, 10, 3, 0x25, 10, 3, 5, 0x72, 1, 0x50])
        .import("ndis.sys", &["Walk"]);
    call(&load(image));
    let seen = SEEN.lock().unwrap().clone();
    let own: Vec<_> = seen.iter().filter(|line| line.starts_with("test.sys+")).collect();
    // The byte before each return address.
    assert_eq!(own, ["test.sys+0x1096", "test.sys+0x1049", "test.sys+0x100d"], "{seen:#?}");
}

/// Runs `body` in a thread of a machine, for the rule it breaks.
fn broken_rule(body: impl FnOnce() + Send + 'static) -> Outcome {
    let sim = Sim::owned(SimConfig::default());
    let machine = Machine::new(&sim, MachineConfig::default());
    machine.run("test", SECOND, body).expect_err("the body breaks a rule")
}

#[test]
fn code_of_an_unloaded_image_does_not_run() {
    let outcome = broken_rule(|| {
        let mapping = load(Image::new(&RETURNS_7));
        let entry = mapping.entry() as usize;
        drop(mapping);
        // SAFETY: not safe: what is tested is that it is caught.
        unsafe {
            let entry: Entry = std::mem::transmute(entry);
            entry();
        }
    });
    assert_eq!(outcome.rule(), Some("IMAGE_UNLOADED"), "{outcome}");
    assert!(outcome.to_string().contains("test.sys+0x1000"), "{outcome}");
}

#[test]
fn code_is_not_written_and_data_does_not_run() {
    // mov byte [rip + to itself], 0; ret
    let mut writes_code = vec![0xC6, 0x05];
    writes_code.extend(0u32.wrapping_sub(7).to_le_bytes());
    writes_code.extend([0, 0xC3]);
    // jmp [.data] to a RET in .data
    let mut runs_data = vec![0xE9];
    runs_data.extend(DATA.wrapping_sub(TEXT + 5).to_le_bytes());
    for code in [writes_code, runs_data] {
        let outcome = broken_rule(move || {
            call(&load(Image::new(&code).data(DATA, &[0xC3])));
        });
        assert_eq!(outcome.rule(), Some("IMAGE_PROTECTION"), "{outcome}");
    }
}
