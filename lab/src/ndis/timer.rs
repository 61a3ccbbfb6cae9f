//! NDIS timer objects (ndis/nf-ndis-ndisallocatetimerobject and its neighbours).

use std::ptr;
use std::sync::Arc;

use windows_kernel_sys::{
    BOOLEAN, NDIS_HANDLE, NDIS_OBJECT_TYPE_TIMER_CHARACTERISTICS,
    NDIS_SIZEOF_TIMER_CHARACTERISTICS_REVISION_1, NDIS_STATUS, NDIS_STATUS_BAD_CHARACTERISTICS,
    NDIS_STATUS_RESOURCES, NDIS_STATUS_SUCCESS, NDIS_TIMER_CHARACTERISTICS,
    NDIS_TIMER_CHARACTERISTICS_REVISION_1, PVOID,
};

use super::attributes::header;
use super::call::{UP_TO_DISPATCH, entered, entered_or_fails};
use super::handle::{self, Handle, Object, Owner};
use super::rules::{self, broken};
use super::signal::Signal;
use crate::export;
use crate::kernel::irql::{DISPATCH_LEVEL, PASSIVE_LEVEL};
use crate::kernel::{Machine, time};
use crate::sim::{self, EventId, Lock, MILLISECOND, Nanos, Sim};
use crate::verifier::call_driver;

type Function = unsafe extern "win64" fn(PVOID, PVOID, PVOID, PVOID);

/// A timer object.
pub(super) struct Timer {
    handle: Handle,
    machine: Machine,
    function: Function,
    default_context: usize,
    state: Lock<State>,
    idle: Signal,
}

#[derive(Default)]
struct State {
    /// The expiry the timer is in the queue for.
    event: Option<EventId>,
    period: Nanos,
    context: usize,
    /// The DPC waits for a processor.
    queued: bool,
    /// Calls of the function under way.
    running: usize,
}

impl Timer {
    fn set(self: &Arc<Self>, when: Nanos, period: Nanos, context: usize) -> bool {
        let before = {
            let mut state = self.state.lock();
            state.period = period;
            state.context = if context == 0 { self.default_context } else { context };
            state.event.take()
        };
        let was_set = before.is_some_and(|event| self.machine.sim().cancel(event));
        self.enqueue(when);
        was_set
    }

    fn enqueue(self: &Arc<Self>, when: Nanos) {
        let timer = Arc::clone(self);
        // The event cannot fire before it is noted: events fire between steps, or this lock is waited for.
        let mut state = self.state.lock();
        state.event = Some(self.machine.sim().at(when, "NDIS timer", move |sim| timer.expired(sim, when)));
    }

    /// The timer leaves the queue, a periodic one enters it again; its DPC is queued unless it is queued already.
    fn expired(self: &Arc<Self>, sim: &Sim, when: Nanos) {
        let (queue, period) = {
            let mut state = self.state.lock();
            state.event = None;
            (!std::mem::replace(&mut state.queued, true), state.period)
        };
        if period > 0 {
            self.enqueue((when + period).max(sim.now()));
        }
        if queue {
            let timer = Arc::clone(self);
            self.machine.queue_dpc("NDIS timer", move || timer.run());
        }
    }

    fn run(&self) {
        let context = {
            let mut state = self.state.lock();
            state.queued = false;
            state.running += 1;
            state.context
        };
        call_driver("NetTimerCallback", DISPATCH_LEVEL, || {
            // SAFETY: the function the driver gave for this timer, with its context.
            unsafe { (self.function)(ptr::null_mut(), context as PVOID, ptr::null_mut(), ptr::null_mut()) };
        });
        self.state.lock().running -= 1;
        self.idle.set();
    }

    fn is_busy(&self) -> bool {
        let state = self.state.lock();
        state.queued || state.running > 0
    }

    /// Takes the timer out of the queue; for a periodic one also waits until its function is not running
    /// (ndis/nf-ndis-ndiscanceltimerobject, remarks).
    fn cancel(&self, call: &str) -> bool {
        let (event, periodic) = {
            let mut state = self.state.lock();
            (state.event.take(), std::mem::take(&mut state.period) > 0)
        };
        if periodic && sim::level() != PASSIVE_LEVEL {
            broken(&rules::NDIS_TIMER, call, "a periodic timer is cancelled above PASSIVE_LEVEL");
        }
        let was_set = event.is_some_and(|event| self.machine.sim().cancel(event));
        while periodic && self.is_busy() {
            self.idle.wait("a timer's function to return", false);
        }
        was_set
    }
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisallocatetimerobject).
    pub unsafe fn NdisAllocateTimerObject(
        NdisHandle: NDIS_HANDLE, TimerCharacteristics: *mut NDIS_TIMER_CHARACTERISTICS,
        pTimerObject: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS {
        const CALL: &str = "NdisAllocateTimerObject";
        if entered_or_fails(CALL, UP_TO_DISPATCH) {
            return NDIS_STATUS_RESOURCES;
        }
        let owner = Owner::of(NdisHandle, CALL);
        // SAFETY: the driver's structure, valid for the call.
        let characteristics = unsafe { &*TimerCharacteristics };
        let sizes = [(NDIS_TIMER_CHARACTERISTICS_REVISION_1, NDIS_SIZEOF_TIMER_CHARACTERISTICS_REVISION_1)];
        if header(characteristics.Header, NDIS_OBJECT_TYPE_TIMER_CHARACTERISTICS, &sizes).is_err() {
            return NDIS_STATUS_BAD_CHARACTERISTICS;
        }
        let Some(function) = characteristics.TimerFunction else { return NDIS_STATUS_BAD_CHARACTERISTICS };
        let number = handle::reserve();
        let timer = Timer {
            handle: number,
            machine: Machine::current(),
            function,
            default_context: characteristics.FunctionContext as usize,
            state: Lock::default(),
            idle: Signal::default(),
        };
        handle::bind(number, Some(owner.handle()), Object::Timer(Arc::new(timer)));
        // SAFETY: the driver's variable.
        unsafe { *pTimerObject = number.raw() };
        NDIS_STATUS_SUCCESS
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndissettimerobject).
    pub unsafe fn NdisSetTimerObject(
        TimerObject: NDIS_HANDLE, DueTime: i64, MillisecondsPeriod: u32, FunctionContext: PVOID,
    ) -> BOOLEAN {
        const CALL: &str = "NdisSetTimerObject";
        entered(CALL, UP_TO_DISPATCH);
        if MillisecondsPeriod > i32::MAX as u32 {
            broken(&rules::NDIS_TIMER, CALL, format!("a period of {MillisecondsPeriod} ms exceeds MAXLONG"));
        }
        let timer: Arc<Timer> = handle::get(TimerObject, CALL);
        let when = time::deadline(timer.machine.sim().now(), DueTime);
        let period = Nanos::from(MillisecondsPeriod) * MILLISECOND;
        BOOLEAN::from(timer.set(when, period, FunctionContext as usize))
    }

    /// IRQL <= DISPATCH_LEVEL, PASSIVE_LEVEL for a periodic timer (ndis/nf-ndis-ndiscanceltimerobject).
    pub unsafe fn NdisCancelTimerObject(TimerObject: NDIS_HANDLE) -> BOOLEAN {
        const CALL: &str = "NdisCancelTimerObject";
        entered(CALL, UP_TO_DISPATCH);
        let timer: Arc<Timer> = handle::get(TimerObject, CALL);
        BOOLEAN::from(timer.cancel(CALL))
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisfreetimerobject).
    pub unsafe fn NdisFreeTimerObject(TimerObject: NDIS_HANDLE) {
        const CALL: &str = "NdisFreeTimerObject";
        entered(CALL, UP_TO_DISPATCH);
        let timer: Arc<Timer> = handle::get(TimerObject, CALL);
        let (set, queued) = {
            let state = timer.state.lock();
            (state.event.is_some(), state.queued)
        };
        if set || queued {
            let detail = if set { "the timer is set" } else { "the timer's function is about to run" };
            broken(&rules::NDIS_TIMER, CALL, detail);
        }
        handle::close(timer.handle);
    }
}
