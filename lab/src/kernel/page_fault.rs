//! Accesses to memory that is not there, turned from a dead process into a broken rule.
//!
//! The pool makes freed pages and the page behind a block inaccessible, the image loader what it unloaded. When code in a
//! coroutine touches one, the signal handler sends it on in a function that reports the violation and never returns.
//! Every other fault goes to whoever handled the signal before.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::{Machine, pool};
use crate::image::{self, Fault};
use crate::sim;
use crate::verifier::rules::{IMAGE_PROTECTION, IMAGE_UNLOADED, PAGE_FAULT};
use crate::verifier::violation;

/// The handler before ours. Process-wide, as signal handlers are.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once in a process.
pub(super) fn install() {
    PREVIOUS.get_or_init(|| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: both are plain structures for which zero is valid; the handler has the signature that SA_SIGINFO
        // asks for and does nothing that is not safe in a signal handler.
        unsafe {
            let action = action.assume_init_mut();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGSEGV, action, previous.as_mut_ptr());
            previous.assume_init()
        }
    });
}

unsafe extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system gives a handler with SA_SIGINFO valid pointers.
    let address = unsafe { (*info).si_addr() as usize };
    // SAFETY: as above: the third argument is the interrupted context.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let stack = registers[libc::REG_RSP as usize] as usize;
    if sim::on_fiber_stack(stack) && !sim::on_fiber_stack(address) {
        // The interrupted code never goes on, so the landing may use its stack below the red zone, aligned as at
        // the entry of a function.
        registers[libc::REG_RSP as usize] = ((stack - 256) & !15) as i64 - 8;
        registers[libc::REG_RDI as usize] = address as i64;
        registers[libc::REG_RSI as usize] = registers[libc::REG_RIP as usize];
        registers[libc::REG_RIP as usize] = landing as *const () as i64;
        return;
    }
    pass_on(signal, info, context);
}

/// Gives the fault to the handler before, or lets it kill the process.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.get();
    match previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction) {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores the default; the access is made again on return and ends the process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        function => {
            // SAFETY: an installed handler; with SA_SIGINFO, as Rust's own has, it takes these three arguments, and
            // one without ignores the last two.
            unsafe {
                let function: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(function);
                function(signal, info, context);
            }
        }
    }
}

/// Where the code that made a bad access continues.
extern "C" fn landing(address: usize, instruction: usize) -> ! {
    let call =
        Machine::try_current().and_then(|machine| machine.driver_callback()).unwrap_or("a memory access");
    let by = image::describe(instruction).join(" in ");
    let by = if by.is_empty() { by } else { format!(", by {by}") };
    let (rule, detail) = match pool::explain_fault(address) {
        Some(explained) => explained,
        None => match image::explain_fault(address) {
            Some(Fault::Unloaded(detail)) => (IMAGE_UNLOADED, detail),
            Some(Fault::Protected(detail)) => (IMAGE_PROTECTION, detail),
            None => (PAGE_FAULT, format!("access to {address:#x}")),
        },
    };
    violation(rule, call, format!("{detail}{by}"))
}
