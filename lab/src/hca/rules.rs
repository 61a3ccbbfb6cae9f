//! The rules of verbs that this room and the access layer watch.

crate::rules! {
    /// Every rule of verbs and of the access layer.
    pub VERB_RULES;

    VERB_IRQL:
        "Verbs are called at PASSIVE_LEVEL, but post_send, post_recv, poll_cq, rearm_cq, cancel_query, put_mad and the string functions, which are called at DISPATCH_LEVEL or below.",
        "docs/architecture.md, The driver; iba/ib_al.h (verbs that a provider may block in)";
    VERB_BAD_HANDLE:
        "A verb is given a live handle of the right kind that this machine's access layer issued.",
        "IBA vol. 1 §11.2, invalid handle errors; iba/ib_al.h";
    VERB_DOUBLE_DESTROY: "An object is destroyed once.",
        "IBA vol. 1 §11.2; iba/ib_al.h, ib_pfn_destroy_cb_t";
    VERB_DESTROY_WITH_CHILDREN: "An object is destroyed after all that depend on it: QP, MR and AV before PD, QP before CQ, all before CA.",
        "IBA vol. 1 §11.2.1.5 (deallocate PD: in use), §11.2.8.4 (destroy CQ: QPs attached)";
    VERB_AL_LEAK: "close_al comes after everything opened on the instance was closed, and every MAD put back.",
        "iba/ib_al.h, ib_close_al";
    VERB_WAITS_FOR_ITSELF: "A callback of the access layer does not wait for the thread that it runs on.",
        "core/al/kernel/al_mgr.c (asynchronous processing managers with one thread each)";
    VERB_UNUSED_SLOT: "A driver of this kind calls only the verbs that it has business with.",
        "docs/architecture.md, The driver";
    VERB_RESOURCE_LIFETIME:
        "Protection domain, completion queues, queue pair and memory region are made in MiniportInitializeEx and destroyed in MiniportHaltEx or in the unwinding of a failed initialize, nowhere else.",
        "docs/architecture.md, QP";
    QP_STATE: "A queue pair is used and moved as its state allows.",
        "IBA vol. 1 §10.3.1 and §11.2.5.2, table 91";
    QP_TOO_MANY_ELEMENTS: "A work request has no more elements, and no longer inline data, than the queue pair was created for.",
        "IBA vol. 1 §11.4.1.1";
    QP_MEMORY_NOT_REGISTERED: "A work request names only memory that a region of its protection domain covers, with the access that the request needs.",
        "IBA vol. 1 §10.6.3 and §11.4.1";
    QP_MEMORY_FREED: "Memory stays allocated from the post of a work request that names it to the completion.",
        "IBA vol. 1 §10.8.2.1; kernel, Using Direct Memory Access";
    AV_IN_USE: "An address vector outlives every posted send that uses it.",
        "IBA vol. 1 §11.2.2.4";
    IFC_REFERENCE: "An interface that was queried is dereferenced once, by the one who queried it.",
        "kernel, Using Driver-Defined Interfaces; wdm/ns-wdm-_interface";
    MAD_PUT_TWICE: "A result MAD is put back once, by the client that was given it.",
        "iba/ib_al.h, ib_put_mad";
}
