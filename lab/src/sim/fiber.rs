//! A coroutine and the pool its stacks come from.

use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::current::{self, Context, StackUse};
use super::sync::Lock;

/// Why a coroutine gave its CPU back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Suspend {
    /// A preemption point.
    Preempt,
    /// Blocked until unparked. `idle` waits may last for ever without that being a deadlock.
    Park { what: &'static str, idle: bool },
    /// Spins on the lock named by the key.
    Spin(usize),
    /// Broke a rule and never runs again.
    ForEver,
}

pub(super) type FiberYielder = Yielder<(), Suspend>;
pub(super) type Body = Box<dyn FnOnce() + Send>;

/// A coroutine that has begun.
pub(super) struct Fiber {
    coroutine: Option<Coroutine<(), Suspend, ()>>,
    yielder: *const FiberYielder,
    stack: StackUse,
}

// SAFETY: a fiber moves between OS threads only while suspended and only when the simulation as a whole does
// (deterministic mode: wherever `run_until` is called) or before it first runs (threaded mode binds it to one
// CPU's thread). What lives on its stack is the `Send` body, the lab's own frames, which keep no thread-bound
// value over a yield point (`sync::assert_none_held`), and driver frames, which have no thread-locals.
unsafe impl Send for Fiber {}

impl Fiber {
    pub fn new(stacks: &StackPool, body: Body) -> Self {
        let stack = stacks.take();
        let stack_use = StackUse { limit: stack.limit().get(), ..StackUse::default() };
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            current::set_yielder(yielder);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
                current::record_panic(&*payload);
            }
        });
        Self { coroutine: Some(coroutine), yielder: std::ptr::null(), stack: stack_use }
    }

    /// Runs up to the next yield point, in `context`; `None` when the body has returned.
    pub fn resume(&mut self, context: &Context<'_>) -> Option<Suspend> {
        let coroutine = self.coroutine.as_mut().expect("a finished fiber is not resumed");
        context.enter_fiber(self.yielder, self.stack);
        let result = current::with_context(context, || coroutine.resume(()));
        self.yielder = context.yielder();
        self.stack = context.stack();
        match result {
            CoroutineResult::Yield(suspend) => Some(suspend),
            CoroutineResult::Return(()) => None,
        }
    }

    /// Gives the stack of a finished fiber back.
    pub fn recycle(mut self, stacks: &StackPool) {
        if let Some(coroutine) = self.coroutine.take() {
            stacks.put(coroutine.into_stack());
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if let Some(coroutine) = &mut self.coroutine
            && coroutine.started()
            && !coroutine.done()
        {
            // SAFETY: the frames on the stack are abandoned: nothing runs them again, and what they own is leaked.
            // They cannot be unwound, since driver frames among them do not unwind. Nobody holds a pointer into
            // them that is used later: a fiber is dropped unfinished only when its simulation ends.
            unsafe { coroutine.force_reset() };
        }
    }
}

/// Stacks that finished coroutines leave to new ones: mapping one costs more than a whole DPC.
pub(super) struct StackPool {
    size: usize,
    free: Lock<Vec<DefaultStack>>,
}

impl StackPool {
    pub fn new(size: usize) -> Self {
        Self { size, free: Lock::new(Vec::new()) }
    }

    fn take(&self) -> DefaultStack {
        let pooled = self.free.lock().pop();
        pooled.unwrap_or_else(|| DefaultStack::new(self.size).expect("no memory for a coroutine's stack"))
    }

    fn put(&self, stack: DefaultStack) {
        self.free.lock().push(stack);
    }
}
