//! Stopping a timer, a work item or DMA waits for what is under way.

use ipoib::kernel::irql::Dispatch;
use ipoib::kernel::sg::SgDma;
use ipoib::kernel::timer::Timer;
use ipoib::kernel::work_item::WorkItem;

fn on_send(timer: &Timer<u32>, work_item: &WorkItem<u32>, dma: &SgDma<u32>, at: Dispatch<'_>) {
    timer.stop(at);
    work_item.stop(at);
    dma.stop(at);
}

fn main() {}
