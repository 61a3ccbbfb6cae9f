//! What NDIS does on its own while an adapter lives: the check for hang and the reset it may lead to
//! (network/miniport-adapter-check-for-hang-and-reset-operations), and the verifier's time limits.

use std::sync::Arc;

use windows_kernel_sys::{
    BOOLEAN, NDIS_HANDLE, NDIS_STATUS, NDIS_STATUS_FAILURE, NDIS_STATUS_HARD_ERRORS,
    NDIS_STATUS_NOT_RESETTABLE, NDIS_STATUS_PENDING, NDIS_STATUS_RESET_END, NDIS_STATUS_RESET_IN_PROGRESS,
    NDIS_STATUS_RESET_START, NDIS_STATUS_SOFT_ERRORS, NDIS_STATUS_SUCCESS,
};

use super::adapter::{Adapter, Core};
use super::call::{UP_TO_DISPATCH, entered};
use super::handle;
use super::rules::{self, broken};
use super::send;
use super::signal::{Signal, Turn, TurnGuard};
use crate::export;
use crate::kernel::irql::{DISPATCH_LEVEL, PASSIVE_LEVEL};
use crate::sim::{Lock, Nanos, SECOND};
use crate::verifier::call_driver;

#[derive(Default)]
struct State {
    running: bool,
    stopping: bool,
    /// NdisMResetMiniport was called.
    reset_wanted: bool,
    /// Handlers of the data path that are under way.
    calls: usize,
}

/// The watchdog of an adapter.
#[derive(Default)]
pub(super) struct Watchdog {
    state: Lock<State>,
    /// Something changed that the watchdog acts on before its next check.
    wake: Signal,
    stopped: Signal,
    quiet: Signal,
    /// Resets happen one at a time.
    reset: Turn,
}

/// What the last hang check saw.
#[derive(Default)]
struct Seen {
    /// The OID request that was pending, and at how many checks.
    request: Option<(usize, u32)>,
}

/// NDIS 6.30, since which a miniport completes what is pending before a reset is complete.
const COMPLETES_BEFORE_RESET: (u8, u8) = (6, 30);

impl Watchdog {
    /// Starts watching an adapter that was initialised.
    pub fn start(core: &Arc<Core>) {
        *core.watchdog.state.lock() = State { running: true, ..State::default() };
        let core = Arc::clone(core);
        core.machine.clone().spawn_thread(format!("NDIS watchdog of {}", core.name), move || {
            core.watch();
            core.watchdog.state.lock().running = false;
            core.watchdog.stopped.set();
        });
    }

    /// Stops watching and waits until a check, or the reset it led to, has ended.
    pub fn stop(&self) {
        let running = {
            let mut state = self.state.lock();
            state.stopping = true;
            state.running
        };
        if running {
            self.wake.set();
            while self.state.lock().running {
                self.stopped.wait("the NDIS watchdog to end", false);
            }
        }
    }

    /// Waits until no reset is in progress, and keeps others from beginning.
    pub fn reset_turn(&self) -> TurnGuard<'_> {
        self.reset.take("a reset to end")
    }

    /// A reset is wanted, as soon as the watchdog gets to it.
    fn want_reset(&self) {
        self.state.lock().reset_wanted = true;
        self.wake.set();
    }

    /// A handler of the data path is called.
    pub fn call_began(&self) {
        self.state.lock().calls += 1;
    }

    /// A handler of the data path has returned.
    pub fn call_ended(&self) {
        let quiet = {
            let mut state = self.state.lock();
            state.calls -= 1;
            state.calls == 0
        };
        if quiet {
            self.quiet.set();
        }
    }

    /// Waits until no handler of the data path is under way.
    pub fn wait_for_calls(&self) {
        while self.state.lock().calls > 0 {
            self.quiet.wait("calls of the miniport to return", false);
        }
    }
}

impl Core {
    /// The interval of the hang check: a multiple of two seconds
    /// (ndis/ns-ndis-_ndis_miniport_adapter_registration_attributes: CheckForHangTimeInSeconds).
    fn hang_interval(&self) -> Nanos {
        let seconds =
            self.life.lock().registration.map_or(0, |registration| registration.check_for_hang_seconds);
        Nanos::from(seconds / 2 * 2).max(2) * SECOND
    }

    /// The watchdog's life: a check at each interval, and what is asked of it in between.
    fn watch(self: &Arc<Self>) {
        let interval = self.hang_interval();
        let mut seen = Seen::default();
        let mut next = self.machine.sim().now() + interval;
        loop {
            let woken = self.watchdog.wake.wait_until("the next hang check", next);
            let (stopping, reset) = {
                let mut state = self.watchdog.state.lock();
                (state.stopping, std::mem::take(&mut state.reset_wanted))
            };
            if stopping {
                return;
            }
            if reset {
                // A driver that asks for a reset it cannot make is told by the event log at most.
                let _ = self.reset();
            }
            if !woken {
                self.tick(&mut seen);
                next = self.machine.sim().now() + interval;
            }
        }
    }

    fn tick(self: &Arc<Self>, seen: &mut Seen) {
        let now = self.machine.sim().now();
        if self.sends.oldest().is_some_and(|since| now >= since + send::TIME_LIMIT) {
            let detail = format!("a send is pending for {} s", send::TIME_LIMIT / SECOND);
            broken(&rules::NDIS_SEND_NEVER_COMPLETED, "MiniportSendNetBufferLists", detail);
        }
        let handlers = self.driver.handlers();
        let mut hung = false;
        if let Some(check) = handlers.CheckForHangHandlerEx {
            self.count(|counters| counters.hang_checks += 1);
            let context = self.context();
            hung = call_driver("MiniportCheckForHangEx", PASSIVE_LEVEL, || {
                // SAFETY: the handler of the initialised miniport, with its own context.
                unsafe { check(context) != 0 }
            });
            hung |= self.is_slow(seen) && self.options.reset_on_slow_oid;
        }
        if hung {
            let _ = self.reset();
        }
    }

    /// Whether an OID request was pending at this check and the one before.
    fn is_slow(&self, seen: &mut Seen) -> bool {
        let Some((id, ..)) = self.requests.pending() else {
            seen.request = None;
            return false;
        };
        let checks = match seen.request {
            Some((before, checks)) if before == id => checks + 1,
            _ => 1,
        };
        seen.request = Some((id, checks));
        checks == 2
    }

    /// Calls MiniportResetEx and waits for its end.
    fn reset(self: &Arc<Self>) -> Result<(), NDIS_STATUS> {
        let Some(handler) = self.driver.handlers().ResetHandlerEx else {
            return Err(NDIS_STATUS_NOT_RESETTABLE);
        };
        let _turn = self.watchdog.reset_turn();
        if !self.phase().is_initialized() {
            return Err(NDIS_STATUS_NOT_RESETTABLE);
        }
        self.count(|counters| counters.resets += 1);
        self.life.lock().resetting = true;
        self.sends.mark_reset();
        self.requests.mark_reset();
        self.tell_status(NDIS_STATUS_RESET_START);
        self.resetting.ask();
        let context = self.context();
        let mut addressing: BOOLEAN = 0;
        let status = call_driver("MiniportResetEx", DISPATCH_LEVEL, || {
            // SAFETY: the handler of the initialised miniport, with its own context and a valid pointer.
            unsafe { handler(context, &raw mut addressing) }
        });
        if status != NDIS_STATUS_PENDING {
            self.check_reset("MiniportResetEx");
        }
        let (status, addressing) = self.settle_reset(status, addressing);
        let known = [
            NDIS_STATUS_SUCCESS,
            NDIS_STATUS_RESET_IN_PROGRESS,
            NDIS_STATUS_SOFT_ERRORS,
            NDIS_STATUS_HARD_ERRORS,
            NDIS_STATUS_NOT_RESETTABLE,
            NDIS_STATUS_FAILURE,
        ];
        if !known.contains(&status) {
            broken(
                &rules::NDIS_RETURN_STATUS,
                "MiniportResetEx",
                format!("the reset ended with {status:#010x}"),
            );
        }
        self.life.lock().resetting = false;
        self.trace("ndis reset", u64::from(status as u32));
        if addressing != 0 {
            // network/hardware-reset: NDIS restores the filter and the multicast list.
            let _ = Adapter(Arc::clone(self)).reapply_filter();
        }
        self.tell_status(NDIS_STATUS_RESET_END);
        if status == NDIS_STATUS_SUCCESS { Ok(()) } else { Err(status) }
    }

    /// What was pending when a reset began has been completed when it ends.
    fn check_reset(&self, call: &str) {
        if self.driver.version() < COMPLETES_BEFORE_RESET {
            return;
        }
        let sends = self.sends.before_reset();
        if sends > 0 {
            broken(
                &rules::NDIS_RESET_WITH_SENDS,
                call,
                format!("{sends} send(s) from before the reset are pending"),
            );
        }
        if self.requests.before_reset() {
            broken(&rules::NDIS_RESET_WITH_OID, call, "an OID request from before the reset is pending");
        }
    }
}

impl Adapter {
    /// Resets the adapter, as a hang would (or NdisMResetMiniport), and waits for the end of the reset.
    pub fn reset(&self) -> Result<(), NDIS_STATUS> {
        self.0.reset()
    }
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismresetcomplete).
    pub unsafe fn NdisMResetComplete(
        MiniportAdapterHandle: NDIS_HANDLE, Status: NDIS_STATUS, AddressingReset: BOOLEAN,
    ) {
        const CALL: &str = "NdisMResetComplete";
        entered(CALL, UP_TO_DISPATCH);
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        if !core.resetting.is_open() {
            broken(&rules::NDIS_DOUBLE_COMPLETE, CALL, "no reset is pending");
        }
        if Status == NDIS_STATUS_PENDING {
            broken(&rules::NDIS_RETURN_STATUS, CALL, "completed with NDIS_STATUS_PENDING");
        }
        core.check_reset(CALL);
        core.resetting.give((Status, AddressingReset));
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismresetminiport): NDIS resets the adapter from another context.
    pub unsafe fn NdisMResetMiniport(MiniportAdapterHandle: NDIS_HANDLE) {
        const CALL: &str = "NdisMResetMiniport";
        entered(CALL, UP_TO_DISPATCH);
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        core.watchdog.want_reset();
    }
}
