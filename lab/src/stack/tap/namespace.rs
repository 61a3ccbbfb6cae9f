//! Named network namespaces, as `ip netns` keeps them: a file in `/run/netns` over which the namespace is mounted.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// Where `ip netns` keeps them.
const DIRECTORY: &str = "/run/netns";
/// Namespaces of the lab begin with this.
pub const PREFIX: &str = "ipoib-";

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// The right to keep the lab's namespaces, of which a system has one set: held by one process at a time, and by none
/// after it was killed.
pub struct Exclusive(#[allow(dead_code, reason = "held, not read")] Flock<File>);

impl Exclusive {
    /// Takes the right and removes what a process that was killed left behind.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it; whatever the file system says, above all without root's rights.
    pub fn take() -> io::Result<Self> {
        fs::create_dir_all(DIRECTORY)?;
        let lock =
            OpenOptions::new().create(true).append(true).open(Path::new("/run").join("ipoib-lab.lock"))?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, error)| io::Error::from(error))?;
        for entry in fs::read_dir(DIRECTORY)? {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) {
                remove(name)?;
            }
        }
        Ok(Self(lock))
    }
}

/// A named network namespace; removed when dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Moves the calling OS thread into a new namespace and gives it a name that begins with [`PREFIX`].
    pub fn enter_new(name: &str) -> io::Result<Self> {
        debug_assert!(name.starts_with(PREFIX), "{name} would not be cleaned up");
        let file = path(name);
        File::create(&file)?;
        let namespace = Self { name: name.to_owned() };
        unshare(CloneFlags::CLONE_NEWNET)?;
        mount(Some("/proc/thread-self/ns/net"), &file, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        Ok(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = remove(&self.name);
    }
}

fn remove(name: &str) -> io::Result<()> {
    let file = path(name);
    // Not mounted if its process died between making the file and the mount.
    let _ = umount2(&file, MntFlags::MNT_DETACH);
    fs::remove_file(file)
}
