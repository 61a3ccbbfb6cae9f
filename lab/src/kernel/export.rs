//! How the functions a driver imports are written.

/// A function that a driver can import.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// The module it is imported from, e.g. `"ntoskrnl.exe"`.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its code.
    pub address: *const (),
}

// SAFETY: the address of a function is the same for every thread, and nothing is written through it.
unsafe impl Sync for Export {}
// SAFETY: as above.
unsafe impl Send for Export {}

/// Defines functions that a driver imports: with the C name and the Windows calling convention, for native
/// linking, and listed in a table `EXPORTS`, for the image loader.
///
/// The body runs inside [`sim::contain`](crate::sim::contain): a panic of the lab must not unwind into the driver.
///
/// ```text
/// export! {
///     "ntoskrnl.exe";
///     /// IRQL <= DISPATCH_LEVEL (wdm/nf-wdm-kesetevent).
///     pub unsafe fn KeSetEvent(event: *mut KEVENT, increment: i32, wait: u8) -> i32 { .. }
/// }
/// ```
#[macro_export]
macro_rules! export {
    (
        $module:literal;
        $(
            $(#[$attr:meta])*
            pub unsafe fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block
        )*
    ) => {
        $(
            $(#[$attr])*
            ///
            /// # Safety
            /// Pointers must be what the function's documentation says.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            pub unsafe extern "win64" fn $name($($arg: $ty),*) $(-> $ret)? {
                $crate::sim::contain(move || $body)
            }
        )*

        /// The functions of this file, for the image loader.
        pub const EXPORTS: &[$crate::kernel::Export] = &[
            $($crate::kernel::Export { module: $module, name: stringify!($name), address: $name as *const () }),*
        ];
    };
}
