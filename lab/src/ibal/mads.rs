//! Result MADs that clients hold until they put them back (`al_handoff_mad`, `ib_put_mad`).

use std::collections::BTreeMap;

use ibal_sys::{
    FALSE, IB_QP1, IB_QP1_WELL_KNOWN_Q_KEY, IB_WCS_SUCCESS, ib_mad_element_t, ib_net16_t, ib_recv_opt_t,
    ib_send_opt_t,
};

use crate::fabric::wire::mad::MAD_LEN;
use crate::hca::Handle;
use crate::sim::Lock;

/// Kind of a result MAD in the machine's ledger.
pub const LEDGER: &str = "IBAL result MAD";

/// What a buffer holds after it was put back: no status, method or record that anyone could mistake for one.
const POISON: u64 = 0xdddd_dddd_dddd_dddd;

/// Elements put back that are kept, poisoned, so that a late reader reads poison and nobody else's memory.
const KEPT: usize = 64;

struct Element {
    element: Box<ib_mad_element_t>,
    buffer: Vec<u64>,
    owner: Handle,
}

// SAFETY: the pointers in an element lead to its own buffer; the driver follows them in its own contexts, as it does
// with memory of a kernel's pool.
unsafe impl Send for Element {}

#[derive(Default)]
struct State {
    out: BTreeMap<usize, Element>,
    kept: std::collections::VecDeque<Element>,
}

/// Result MADs of one access layer.
#[derive(Default)]
pub struct ResultMads(Lock<State>);

impl ResultMads {
    /// Makes an element of an answer (header and records) for an instance of the access layer.
    pub fn hand_out(&self, owner: Handle, answer: &[u8], from: (u16, u8)) -> *mut ib_mad_element_t {
        let size = answer.len().max(MAD_LEN);
        let mut buffer = vec![0u64; size.div_ceil(8)];
        for (word, bytes) in buffer.iter_mut().zip(answer.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(padded);
        }
        let mut element = Box::new(ib_mad_element_t {
            p_next: std::ptr::null_mut(),
            context1: std::ptr::null(),
            context2: std::ptr::null(),
            p_mad_buf: buffer.as_mut_ptr().cast(),
            size: answer.len() as u32,
            immediate_data: 0,
            remote_qp: IB_QP1,
            h_av: std::ptr::null_mut(),
            send_opt: ib_send_opt_t::empty(),
            remote_qkey: IB_QP1_WELL_KNOWN_Q_KEY,
            resp_expected: FALSE,
            timeout_ms: 0,
            retry_cnt: 0,
            rmpp_version: 0,
            status: IB_WCS_SUCCESS,
            grh_valid: FALSE,
            p_grh: std::ptr::null_mut(),
            recv_opt: ib_recv_opt_t::empty(),
            remote_lid: ib_net16_t::new(from.0),
            remote_sl: from.1,
            pkey_index: 0,
            path_bits: 0,
            send_context1: std::ptr::null_mut(),
            send_context2: std::ptr::null_mut(),
        });
        let address = &raw mut *element;
        self.0.lock().out.insert(address as usize, Element { element, buffer, owner });
        address
    }

    /// Takes one element back. `None`: it is not out. Otherwise the element that it was linked to.
    pub fn put_back(&self, address: usize) -> Option<usize> {
        let mut state = self.0.lock();
        let mut element = state.out.remove(&address)?;
        let next = element.element.p_next as usize;
        element.buffer.fill(POISON);
        element.element.p_mad_buf = std::ptr::without_provenance_mut(POISON as usize);
        state.kept.push_back(element);
        if state.kept.len() > KEPT {
            state.kept.pop_front();
        }
        Some(next)
    }

    /// Elements that an instance has not put back.
    pub fn held_by(&self, owner: Handle) -> usize {
        self.0.lock().out.values().filter(|element| element.owner == owner).count()
    }
}
