//! The resources of `ipoib.sys`: a version, and the texts of the events that it writes to the event log.
//!
//! Compiled by the message and resource compilers of whoever builds: `mc` and `rc` of the Windows SDK, or `windmc` and
//! `windres` of binutils for MinGW.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MESSAGES: &str = "include/events.mc";

/// The two compilers.
struct Tools {
    message_compiler: PathBuf,
    resource_compiler: PathBuf,
}

/// Compiles the resources and has the linker take them.
///
/// # Errors
/// What is missing or went wrong, in a sentence.
pub(crate) fn link() -> Result<(), String> {
    println!("cargo:rerun-if-changed={MESSAGES}");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let tools = if cfg!(windows) { Tools::of_windows_sdk() } else { Tools::of_binutils() }?;

    // MSG00409.bin, as the message file names it; the C header and the script that come with it serve nobody here.
    let mut messages = Command::new(&tools.message_compiler);
    messages.arg("-h").arg(&out).arg("-r").arg(&out).arg(MESSAGES);
    run(&mut messages)?;

    let version = version_script()?;
    let script = format!("LANGUAGE 0x9, 0x1\n1 MESSAGETABLE \"MSG00409.bin\"\n{version}");
    fs::write(out.join("ipoib.rc"), script).map_err(|error| error.to_string())?;
    let compiled = out.join("ipoib.res");
    let mut resources = Command::new(&tools.resource_compiler);
    if cfg!(windows) {
        resources.args(["/nologo", "/fo", "ipoib.res", "ipoib.rc"]);
    } else {
        // There is nothing to preprocess, and MinGW's C preprocessor may be absent.
        resources.args(["--preprocessor", "cat", "-O", "res", "-o", "ipoib.res", "ipoib.rc"]);
    }
    run(resources.current_dir(&out))?;
    println!("cargo:rustc-cdylib-link-arg={}", compiled.display());
    Ok(())
}

/// A VERSIONINFO statement (menurc, "VERSIONINFO resource") out of the package's own description.
fn version_script() -> Result<String, String> {
    let [major, minor, patch] =
        ["MAJOR", "MINOR", "PATCH"].map(|part| variable(&format!("CARGO_PKG_VERSION_{part}")));
    let (major, minor, patch) = (major?, minor?, patch?);
    let version = variable("CARGO_PKG_VERSION")?;
    let description = variable("CARGO_PKG_DESCRIPTION")?.replace('"', "\"\"");
    let license = variable("CARGO_PKG_LICENSE")?;
    // VOS_NT_WINDOWS32, VFT_DRV, VFT2_DRV_NETWORK; US English in Unicode.
    Ok(format!(
        r#"
1 VERSIONINFO
FILEVERSION {major},{minor},{patch},0
PRODUCTVERSION {major},{minor},{patch},0
FILEFLAGSMASK 0x3F
FILEFLAGS 0
FILEOS 0x00040004
FILETYPE 3
FILESUBTYPE 6
BEGIN
  BLOCK "StringFileInfo"
  BEGIN
    BLOCK "040904B0"
    BEGIN
      VALUE "CompanyName", "The IPoIB for Windows contributors"
      VALUE "FileDescription", "{description}"
      VALUE "FileVersion", "{version}"
      VALUE "InternalName", "ipoib.sys"
      VALUE "LegalCopyright", "{license}"
      VALUE "OriginalFilename", "ipoib.sys"
      VALUE "ProductName", "IPoIB for Windows"
      VALUE "ProductVersion", "{version}"
    END
  END
  BLOCK "VarFileInfo"
  BEGIN
    VALUE "Translation", 0x0409, 1200
  END
END
"#
    ))
}

impl Tools {
    fn of_binutils() -> Result<Self, String> {
        let find = |name: &str| {
            on_path(&format!("x86_64-w64-mingw32-{name}")).or_else(|| on_path(name)).ok_or_else(|| {
                format!("no {name} to compile the image's resources with: apt-get install binutils-mingw-w64-x86-64")
            })
        };
        Ok(Self { message_compiler: find("windmc")?, resource_compiler: find("windres")? })
    }

    /// On the PATH of a developer prompt, else in the newest SDK.
    fn of_windows_sdk() -> Result<Self, String> {
        let find = |name: &str| {
            let file = format!("{name}.exe");
            on_path(&file).or_else(|| in_newest_sdk(&file)).ok_or_else(|| {
                format!(
                    "no {file} to compile the image's resources with: install the Windows SDK, or the WDK"
                )
            })
        };
        Ok(Self { message_compiler: find("mc")?, resource_compiler: find("rc")? })
    }
}

fn on_path(file: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(file)).find(|candidate| candidate.is_file())
}

fn in_newest_sdk(file: &str) -> Option<PathBuf> {
    let kits = PathBuf::from(env::var_os("ProgramFiles(x86)")?).join(r"Windows Kits\10\bin");
    let tool = |version: &Path| version.join("x64").join(file);
    let versions = kits.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    versions.filter(|version| tool(version).is_file()).max().map(|version| tool(&version))
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&said)))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}
