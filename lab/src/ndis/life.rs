//! An adapter's life: what NDIS calls from MiniportInitializeEx to MiniportHaltEx, one thing at a time.

use windows_kernel_sys::{
    BOOLEAN, NDIS_DEVICE_PNP_EVENT, NDIS_HALT_ACTION, NDIS_HANDLE, NDIS_MINIPORT_ATTRIBUTES,
    NDIS_MINIPORT_INIT_PARAMETERS, NDIS_MINIPORT_INIT_PARAMETERS_REVISION_1, NDIS_MINIPORT_PAUSE_PARAMETERS,
    NDIS_MINIPORT_PAUSE_PARAMETERS_REVISION_1, NDIS_MINIPORT_RESTART_PARAMETERS,
    NDIS_MINIPORT_RESTART_PARAMETERS_REVISION_1, NDIS_OBJECT_HEADER, NDIS_OBJECT_TYPE_DEFAULT,
    NDIS_OBJECT_TYPE_MINIPORT_INIT_PARAMETERS, NDIS_PAUSE_LOW_POWER, NDIS_PAUSE_MINIPORT_DEVICE_REMOVE,
    NDIS_PAUSE_NDIS_INTERNAL, NDIS_SHUTDOWN_ACTION, NDIS_SIZEOF_MINIPORT_INIT_PARAMETERS_REVISION_1,
    NDIS_SIZEOF_MINIPORT_PAUSE_PARAMETERS_REVISION_1, NDIS_SIZEOF_MINIPORT_RESTART_PARAMETERS_REVISION_1,
    NDIS_SIZEOF_NET_DEVICE_PNP_EVENT_REVISION_1, NDIS_STATUS, NDIS_STATUS_PENDING, NDIS_STATUS_SUCCESS,
    NET_DEVICE_PNP_EVENT, NET_DEVICE_PNP_EVENT_REVISION_1, NdisDevicePnPEventPowerProfileChanged,
    NdisDevicePnPEventSurpriseRemoved, NdisDeviceStateD0, NdisDeviceStateD3, NdisHaltDeviceDisabled,
    NdisHaltDevicePoweredDown, NdisHaltDeviceSurpriseRemoved, NdisPowerProfileAcOnLine, NdisShutdownPowerOff,
    OID_PNP_SET_POWER, Zeroable,
};

use super::adapter::{Adapter, Core, Life};
use super::call::{UP_TO_DISPATCH, entered};
use super::filter::Filter;
use super::handle;
use super::rules::{self, broken};
use super::signal::Completion;
use super::state::Phase;
use super::watchdog::Watchdog;
use crate::export;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::sim::{Nanos, SECOND};
use crate::verifier::call_driver;

/// Time in which a pending pause, restart or reset has to be completed.
const TRANSITION_LIMIT: Nanos = 60 * SECOND;

impl Core {
    /// Awaits what a handler that returned NDIS_STATUS_PENDING promised.
    fn await_completion<T>(&self, completion: &Completion<T>, call: &'static str) -> T {
        let deadline = self.machine.sim().now() + TRANSITION_LIMIT;
        match completion.wait(call, deadline) {
            Some(value) => value,
            None => broken(
                &rules::NDIS_NEVER_COMPLETED,
                call,
                format!("pending for {} s", TRANSITION_LIMIT / SECOND),
            ),
        }
    }

    /// What a handler returned, or what completed it later. `given` turns the returned status into the value.
    fn settle<T>(&self, completion: &Completion<T>, call: &'static str, status: NDIS_STATUS, given: T) -> T {
        if status == NDIS_STATUS_PENDING {
            return self.await_completion(completion, call);
        }
        if completion.withdraw().is_some() {
            broken(
                &rules::NDIS_DOUBLE_COMPLETE,
                call,
                format!("completed, and returned {status:#010x} as well"),
            );
        }
        given
    }

    /// Settles a reset, which the watchdog drives.
    pub fn settle_reset(&self, status: NDIS_STATUS, addressing: BOOLEAN) -> (NDIS_STATUS, BOOLEAN) {
        self.settle(&self.resetting, "MiniportResetEx", status, (status, addressing))
    }

    fn initialize(&self) -> Result<(), NDIS_STATUS> {
        let handlers = self.driver.handlers();
        {
            let mut life = self.life.lock();
            *life = Life { phase: Phase::Initializing, ..Life::default() };
        }
        let mut parameters = NDIS_MINIPORT_INIT_PARAMETERS::zeroed();
        parameters.Header = NDIS_OBJECT_HEADER::new(
            NDIS_OBJECT_TYPE_MINIPORT_INIT_PARAMETERS,
            NDIS_MINIPORT_INIT_PARAMETERS_REVISION_1,
            NDIS_SIZEOF_MINIPORT_INIT_PARAMETERS_REVISION_1,
        );
        parameters.IfIndex = self.machine.id() + 1;
        // ifdef.h: the interface type is the top 16 bits, the index the 24 below.
        parameters.NetLuid.Value = 6 << 48 | u64::from(parameters.IfIndex) << 24;
        let Some(initialize) = handlers.InitializeHandlerEx else { unreachable!("checked at registration") };
        let status = call_driver("MiniportInitializeEx", PASSIVE_LEVEL, || {
            // SAFETY: the handler of the registered miniport, with a live handle and structure.
            unsafe { initialize(self.handle.raw(), self.driver.context(), &raw mut parameters) }
        });
        self.trace("MiniportInitializeEx", u64::from(status as u32));
        if status != NDIS_STATUS_SUCCESS {
            if status == NDIS_STATUS_PENDING {
                broken(&rules::NDIS_RETURN_STATUS, "MiniportInitializeEx", "returned NDIS_STATUS_PENDING");
            }
            self.set_phase(Phase::Halted);
            self.check_nothing_left("MiniportInitializeEx");
            return Err(status);
        }
        let missing = {
            let life = self.life.lock();
            match (&life.registration, &life.general) {
                (None, _) => Some("registration"),
                (_, None) => Some("general"),
                _ => None,
            }
        };
        if let Some(missing) = missing {
            let detail = format!("succeeded without {missing} attributes");
            broken(&rules::NDIS_ATTRIBUTES_MISSING, "MiniportInitializeEx", detail);
        }
        self.set_phase(Phase::Paused);
        *self.applied.lock() = Filter::default();
        Ok(())
    }

    /// After halt, or a failed initialisation, everything that belongs to the adapter has been given back.
    fn check_nothing_left(&self, call: &'static str) {
        let left = handle::owned_by(self.handle);
        if !left.is_empty() {
            broken(&rules::NDIS_LEAK, call, format!("left behind: {}", left.join(", ")));
        }
        let shared = self.dma.shared_blocks();
        if shared > 0 {
            broken(&rules::NDIS_LEAK, call, format!("left behind: {shared} block(s) of shared memory"));
        }
        let (sends, receives) = (self.sends.outstanding(), self.receives.outstanding());
        if sends > 0 {
            broken(&rules::NDIS_SEND_NEVER_COMPLETED, call, format!("{sends} send(s) not completed"));
        }
        if receives > 0 {
            broken(&rules::NDIS_PAUSED_WITH_RECEIVES, call, format!("{receives} receive(s) not returned"));
        }
    }

    fn pause(&self, reason: u32) {
        if self.phase() != Phase::Running {
            return;
        }
        self.set_phase(Phase::Pausing);
        self.tell_bindings_running(false);
        // What is being handed down now gets there before the miniport is asked to pause.
        self.watchdog.wait_for_calls();
        let mut parameters = NDIS_MINIPORT_PAUSE_PARAMETERS::zeroed();
        parameters.Header = NDIS_OBJECT_HEADER::new(
            NDIS_OBJECT_TYPE_DEFAULT,
            NDIS_MINIPORT_PAUSE_PARAMETERS_REVISION_1,
            NDIS_SIZEOF_MINIPORT_PAUSE_PARAMETERS_REVISION_1,
        );
        parameters.PauseReason = reason;
        let Some(pause) = self.driver.handlers().PauseHandler else {
            unreachable!("checked at registration")
        };
        self.pausing.ask();
        let context = self.context();
        let status = call_driver("MiniportPause", PASSIVE_LEVEL, || {
            // SAFETY: the handler of the initialised miniport, with its own context and a live structure.
            unsafe { pause(context, &raw mut parameters) }
        });
        if status != NDIS_STATUS_SUCCESS && status != NDIS_STATUS_PENDING {
            // devtest/ndis-miniportpause-return: a miniport cannot fail a pause.
            broken(&rules::NDIS_RETURN_STATUS, "MiniportPause", format!("returned {status:#010x}"));
        }
        if status == NDIS_STATUS_SUCCESS {
            self.check_paused("MiniportPause");
        } else {
            self.life.lock().pause_pending = true;
        }
        self.settle(&self.pausing, "MiniportPause", status, ());
        {
            let mut life = self.life.lock();
            life.phase = Phase::Paused;
            life.pause_pending = false;
        }
        self.trace("ndis phase", Phase::Paused as u64);
        // A send that was refused while pausing, or the return that ended the pause, may still be on its way out.
        self.watchdog.wait_for_calls();
        self.check_paused("MiniportPause");
    }

    /// A pause is complete when the miniport has nothing of the data path any more.
    fn check_paused(&self, call: &str) {
        let (sends, receives) = (self.sends.outstanding(), self.receives.outstanding());
        if sends > 0 {
            broken(&rules::NDIS_PAUSED_WITH_SENDS, call, format!("{sends} send(s) not completed"));
        }
        if receives > 0 {
            broken(
                &rules::NDIS_PAUSED_WITH_RECEIVES,
                call,
                format!("{receives} receive(s) not returned yet"),
            );
        }
    }

    fn restart(&self) -> Result<(), NDIS_STATUS> {
        if self.phase() != Phase::Paused {
            return Ok(());
        }
        self.set_phase(Phase::Restarting);
        let mut parameters = NDIS_MINIPORT_RESTART_PARAMETERS::zeroed();
        parameters.Header = NDIS_OBJECT_HEADER::new(
            NDIS_OBJECT_TYPE_DEFAULT,
            NDIS_MINIPORT_RESTART_PARAMETERS_REVISION_1,
            NDIS_SIZEOF_MINIPORT_RESTART_PARAMETERS_REVISION_1,
        );
        let Some(restart) = self.driver.handlers().RestartHandler else {
            unreachable!("checked at registration")
        };
        self.restarting.ask();
        let context = self.context();
        let status = call_driver("MiniportRestart", PASSIVE_LEVEL, || {
            // SAFETY: the handler of the initialised miniport, with its own context and a live structure.
            unsafe { restart(context, &raw mut parameters) }
        });
        let status = self.settle(&self.restarting, "MiniportRestart", status, status);
        if status != NDIS_STATUS_SUCCESS {
            self.set_phase(Phase::Paused);
            return Err(status);
        }
        self.set_phase(Phase::Running);
        self.tell_bindings_running(true);
        Ok(())
    }

    fn halt(&self, action: NDIS_HALT_ACTION) {
        self.set_phase(Phase::Halting);
        let Some(halt) = self.driver.handlers().HaltHandlerEx else {
            unreachable!("checked at registration")
        };
        let context = self.context();
        // SAFETY: the handler of the initialised and paused miniport, with its own context.
        call_driver("MiniportHaltEx", PASSIVE_LEVEL, || unsafe { halt(context, action) });
        self.set_phase(Phase::Halted);
        self.check_nothing_left("MiniportHaltEx");
    }

    fn pnp_event(&self, event: NDIS_DEVICE_PNP_EVENT, information: Option<u32>) {
        let mut information = information;
        let mut notice = NET_DEVICE_PNP_EVENT::zeroed();
        notice.Header = NDIS_OBJECT_HEADER::new(
            NDIS_OBJECT_TYPE_DEFAULT,
            NET_DEVICE_PNP_EVENT_REVISION_1,
            NDIS_SIZEOF_NET_DEVICE_PNP_EVENT_REVISION_1,
        );
        notice.DevicePnPEvent = event;
        if let Some(value) = &mut information {
            notice.InformationBuffer = (&raw mut *value).cast();
            notice.InformationBufferLength = size_of::<u32>() as u32;
        }
        let Some(notify) = self.driver.handlers().DevicePnPEventNotifyHandler else {
            unreachable!("checked at registration")
        };
        let context = self.context();
        // SAFETY: the handler of the initialised miniport, with its own context and a live structure.
        call_driver("MiniportDevicePnPEventNotify", PASSIVE_LEVEL, || unsafe {
            notify(context, &raw mut notice);
        });
    }

    fn tell_bindings_running(&self, running: bool) {
        let bindings = self.bindings.lock().clone();
        for binding in bindings {
            binding.protocol.running(running);
        }
    }

    fn has_attribute(&self, flag: NDIS_MINIPORT_ATTRIBUTES) -> bool {
        let flags = self.life.lock().registration.map_or(0, |registration| registration.flags);
        NDIS_MINIPORT_ATTRIBUTES::from_bits_retain(flags).contains(flag)
    }
}

impl Adapter {
    /// Calls MiniportInitializeEx. The adapter is paused afterwards; or halted, with the status it failed with.
    pub fn initialize(&self) -> Result<(), NDIS_STATUS> {
        let _turn = self.0.transition.take("adapter transition");
        self.0.initialize()?;
        self.0.pnp_event(NdisDevicePnPEventPowerProfileChanged, Some(NdisPowerProfileAcOnLine));
        Watchdog::start(&self.0);
        Ok(())
    }

    /// Calls MiniportRestart. The adapter runs afterwards; or is paused, with the status it failed with.
    pub fn restart(&self) -> Result<(), NDIS_STATUS> {
        let _turn = self.0.transition.take("adapter transition");
        self.0.restart()
    }

    /// Calls MiniportPause, and waits until the miniport has paused.
    pub fn pause(&self) {
        let _turn = self.0.transition.take("adapter transition");
        self.0.pause(NDIS_PAUSE_NDIS_INTERNAL);
    }

    /// Removes the device: closes the bindings, pauses and halts.
    pub fn halt(&self) {
        self.remove(NdisHaltDeviceDisabled);
    }

    /// Removes the device as its bus driver does when the hardware is gone: MiniportDevicePnPEventNotify, pause, halt
    /// (ndis/nc-ndis-miniport_device_pnp_event_notify, remarks).
    pub fn surprise_remove(&self) {
        {
            let _turn = self.0.transition.take("adapter transition");
            self.0.life.lock().removed = true;
            self.0.pnp_event(NdisDevicePnPEventSurpriseRemoved, None);
        }
        self.remove(NdisHaltDeviceSurpriseRemoved);
    }

    fn remove(&self, action: NDIS_HALT_ACTION) {
        // Before the turn of the OIDs is taken: a reset in progress may still need it.
        self.0.watchdog.stop();
        {
            let _turn = self.0.transition.take("adapter transition");
            self.0.pause(NDIS_PAUSE_MINIPORT_DEVICE_REMOVE);
        }
        // So does a reset that somebody else began.
        let _reset = self.0.watchdog.reset_turn();
        // Requests in progress end before halt (ndis/nc-ndis-miniport_halt, remarks): with the turn of the OIDs taken
        // nobody has one, and nobody gets one through after the phase has changed.
        let _requests = self.0.requests.turn.take("OID requests to end");
        let _turn = self.0.transition.take("adapter transition");
        if self.0.phase() == Phase::Paused {
            self.0.halt(action);
        }
        self.0.bindings.lock().clear();
    }

    /// Calls MiniportShutdownEx for a system that powers off. No handler is called after it.
    pub fn shutdown(&self) {
        self.shut_down(NdisShutdownPowerOff);
    }

    fn shut_down(&self, action: NDIS_SHUTDOWN_ACTION) {
        let _turn = self.0.transition.take("adapter transition");
        if !self.0.phase().is_initialized() {
            return;
        }
        self.0.watchdog.stop();
        let Some(shutdown) = self.0.driver.handlers().ShutdownHandlerEx else {
            unreachable!("checked at registration")
        };
        let context = self.0.context();
        // SAFETY: the handler of the initialised miniport, with its own context.
        call_driver("MiniportShutdownEx", PASSIVE_LEVEL, || unsafe { shutdown(context, action) });
        self.0.set_phase(Phase::Shutdown);
    }

    /// Suspends to a sleeping state and resumes from it in two calls: pause, then OID_PNP_SET_POWER to D3 for a
    /// miniport that manages power, or halt for one that does not (network/avoiding-ndis-power-management-problems;
    /// ndis/ns-ndis-_ndis_miniport_adapter_registration_attributes: NO_HALT_ON_SUSPEND).
    pub fn suspend(&self) -> Result<(), NDIS_STATUS> {
        let keeps_state = self.0.general().power_managed
            || self.0.has_attribute(NDIS_MINIPORT_ATTRIBUTES::NO_HALT_ON_SUSPEND);
        {
            let _turn = self.0.transition.take("adapter transition");
            if !self.0.has_attribute(NDIS_MINIPORT_ATTRIBUTES::NO_PAUSE_ON_SUSPEND) {
                self.0.pause(NDIS_PAUSE_LOW_POWER);
            }
        }
        if keeps_state {
            let state = NdisDeviceStateD3;
            self.set(OID_PNP_SET_POWER, &state.to_ne_bytes())?;
            self.0.life.lock().low_power = true;
            return Ok(());
        }
        self.0.watchdog.stop();
        let _requests = self.0.requests.turn.take("OID requests to end");
        let _turn = self.0.transition.take("adapter transition");
        self.0.halt(NdisHaltDevicePoweredDown);
        Ok(())
    }

    /// Resumes from [`Adapter::suspend`].
    pub fn resume(&self) -> Result<(), NDIS_STATUS> {
        if self.0.phase() == Phase::Halted {
            self.initialize()?;
        } else {
            let state = NdisDeviceStateD0;
            self.set(OID_PNP_SET_POWER, &state.to_ne_bytes())?;
            let _turn = self.0.transition.take("adapter transition");
            self.0.life.lock().low_power = false;
            self.0.pnp_event(NdisDevicePnPEventPowerProfileChanged, Some(NdisPowerProfileAcOnLine));
        }
        self.restart()?;
        self.reapply_filter()
    }
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismpausecomplete).
    pub unsafe fn NdisMPauseComplete(MiniportAdapterHandle: NDIS_HANDLE) {
        const CALL: &str = "NdisMPauseComplete";
        entered(CALL, UP_TO_DISPATCH);
        let core = handle::get::<Core>(MiniportAdapterHandle, CALL);
        if !core.pausing.is_open() {
            broken(&rules::NDIS_DOUBLE_COMPLETE, CALL, "no pause is pending");
        }
        core.check_paused(CALL);
        core.pausing.give(());
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismrestartcomplete).
    pub unsafe fn NdisMRestartComplete(MiniportAdapterHandle: NDIS_HANDLE, Status: NDIS_STATUS) {
        const CALL: &str = "NdisMRestartComplete";
        entered(CALL, UP_TO_DISPATCH);
        let core = handle::get::<Core>(MiniportAdapterHandle, CALL);
        if Status == NDIS_STATUS_PENDING {
            broken(&rules::NDIS_RETURN_STATUS, CALL, "completed with NDIS_STATUS_PENDING");
        }
        if !core.restarting.give(Status) {
            broken(&rules::NDIS_DOUBLE_COMPLETE, CALL, "no restart is pending");
        }
    }
}
