//! Port events, CA attributes, and the interface behind the device.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use ibal_sys::*;
use windows_kernel_sys::{
    Executive, IO_STATUS_BLOCK, IRP_MJ_PNP, IRP_MN_QUERY_INTERFACE, IoGetNextIrpStackLocation, KEVENT,
    KernelMode, STATUS_BUFFER_TOO_SMALL, STATUS_NOT_SUPPORTED, STATUS_SUCCESS, SynchronizationEvent,
};

use super::bench::*;
use crate::fabric::manager::Restart;
use crate::ibal::{ChildConfig, DEFAULT_PARTITION};
use crate::kernel::exports::{io, ke};
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::kernel::{DeviceProperties, Machine};
use crate::sim::{self, Lock, MILLISECOND, sleep};

/// What a PnP client heard.
#[derive(Default)]
struct Heard {
    events: Vec<(u32, u8, u16)>,
    refuse: u32,
    left: u32,
}

unsafe extern "win64" fn on_pnp(record: *mut ib_pnp_rec_t) -> ib_api_status_t {
    // SAFETY: the record lives for the call and is a port's for a port's event; the context is a test's.
    unsafe {
        let heard = &*(*record).pnp_context.cast::<Lock<Heard>>();
        let event = (*record).pnp_event;
        let mut port = (0, 0);
        if event & IB_PNP_PORT != 0 && event != IB_PNP_PORT_REMOVE {
            let attributes = &*(*record.cast::<ib_pnp_port_rec_t>()).p_port_attr;
            port = (attributes.link_state, attributes.lid.get());
        }
        assert_eq!(sim::level(), PASSIVE_LEVEL);
        let mut heard = heard.lock();
        heard.events.push((event, port.0, port.1));
        if event == heard.refuse { IB_NOT_DONE } else { IB_SUCCESS }
    }
}

unsafe extern "win64" fn on_deregistered(context: *mut c_void) {
    // SAFETY: the context is a test's.
    unsafe { (*context.cast::<Lock<Heard>>()).lock().left += 1 };
}

/// Registers for port events, and returns once the present state was told.
fn register(host: &Host, heard: &Arc<Lock<Heard>>) -> (ib_al_ifc_t, ib_al_handle_t, ib_pnp_handle_t) {
    let ifc = host.table();
    let request = ib_pnp_req_t {
        pnp_class: IB_PNP_PORT | IB_PNP_FLAG_REG_SYNC | IB_PNP_FLAG_REG_COMPLETE,
        pnp_context: Arc::as_ptr(heard).cast(),
        pfn_pnp_cb: Some(on_pnp),
    };
    let (mut al, mut pnp) = (null_mut(), null_mut());
    // SAFETY: a live request and locals.
    unsafe {
        ok(ifc.open_al.unwrap()(&raw mut al));
        ok(ifc.reg_pnp.unwrap()(al, &raw const request, &raw mut pnp));
    }
    (ifc, al, pnp)
}

/// Handles of a registration, to be carried from one thread to another.
#[derive(Clone, Copy)]
struct Registered(ib_al_ifc_t, ib_al_handle_t, ib_pnp_handle_t);
// SAFETY: numbers and code addresses.
unsafe impl Send for Registered {}

fn names(heard: &Arc<Lock<Heard>>) -> Vec<u32> {
    std::mem::take(&mut heard.lock().events).into_iter().map(|(event, ..)| event).collect()
}

/// `al_pnp.c`: a registrant hears each state up to the present one, then that this was all; then what changes, with
/// the attributes of that moment; and nothing after it deregistered.
#[test]
fn port_events_in_order() {
    let bench = bench(1);
    let heard: Arc<Lock<Heard>> = Arc::default();
    let context = Arc::clone(&heard);
    let registered = bench.drive(0, move |host| {
        let (ifc, al, pnp) = register(host, &context);
        Registered(ifc, al, pnp)
    });
    let active = heard.lock().events[3];
    assert_eq!((active.1, active.2), (IB_LINK_ACTIVE, bench.hosts[0].lid()));
    let add = [IB_PNP_PORT_ADD, IB_PNP_PORT_INIT, IB_PNP_PORT_ARMED, IB_PNP_PORT_ACTIVE];
    let mut expected = add.to_vec();
    expected.push(IB_PNP_REG_COMPLETE);
    assert_eq!(names(&heard), expected);

    let port = bench.hosts[0].port;
    bench.net.with(|fabric, now| fabric.set_link(now, port, false));
    bench.drive(0, |_| sleep(50 * MILLISECOND));
    assert_eq!(names(&heard), [IB_PNP_PORT_DOWN]);
    bench.net.with(|fabric, now| fabric.set_link(now, port, true));
    bench.run_until(sim::SECOND, Bench::all_active);
    bench.drive(0, |_| sleep(50 * MILLISECOND));
    // ARMED and ACTIVE came before the PnP thread looked again: only what the link is now is reported.
    assert_eq!(names(&heard)[..2], [IB_PNP_PORT_INIT, IB_PNP_PORT_ACTIVE]);

    bench.net.with(|fabric, now| fabric.restart_manager(now, Restart::ForgetGroups, 10 * MILLISECOND));
    bench.drive(0, |_| sleep(500 * MILLISECOND));
    assert!(names(&heard).contains(&IB_PNP_LID_CHANGE), "a reregistration is reported so");

    bench.drive(0, move |_| {
        let registered = registered;
        let Registered(ifc, al, pnp) = registered;
        // SAFETY: handles.
        unsafe {
            ok(ifc.dereg_pnp.unwrap()(pnp, ib_pfn_destroy_cb_t::from_fn(on_deregistered)));
            ok(ifc.close_al.unwrap()(al));
        }
    });
    assert_eq!(heard.lock().left, 1);
    bench.net.with(|fabric, now| fabric.set_link(now, port, false));
    bench.drive(0, |_| sleep(50 * MILLISECOND));
    assert_eq!(names(&heard), []);
    assert!(bench.hosts[0].machine.outstanding().is_empty());
}

/// `al_pnp.c`: a client whose callback fails hears no more of that port; removal of the CA ends with PORT_REMOVE.
#[test]
fn a_client_that_refuses_and_one_that_sees_the_end() {
    let bench = bench(1);
    let (refusing, staying): (Arc<Lock<Heard>>, Arc<Lock<Heard>>) = Default::default();
    refusing.lock().refuse = IB_PNP_PORT_ADD;
    let (one, other) = (Arc::clone(&refusing), Arc::clone(&staying));
    bench.drive(0, move |host| {
        register(host, &one);
        register(host, &other);
    });
    assert_eq!(names(&refusing), [IB_PNP_PORT_ADD, IB_PNP_REG_COMPLETE]);
    names(&staying);
    bench.hosts[0].ibal.remove_ca();
    bench.drive(0, |_| sleep(MILLISECOND));
    assert_eq!(names(&refusing), []);
    assert_eq!(names(&staying), [IB_PNP_PORT_DOWN, IB_PNP_PORT_REMOVE]);
}

/// Attributes: the size first, then all of it, with tables that the pointers lead to.
#[test]
fn ca_attributes() {
    let bench = bench(1);
    let (lid, gid) = (bench.hosts[0].lid(), bench.hosts[0].gid());
    bench.drive(0, move |host| {
        let port = Port::open(host);
        let mut size = 0;
        // SAFETY: the size of no buffer, then a buffer of that size.
        unsafe {
            let query = port.ifc.query_ca.unwrap();
            assert_eq!(query(port.ca, null_mut(), &raw mut size), IB_INSUFFICIENT_MEMORY);
            let buffer = Buffer::new(size as usize);
            let attributes = buffer.at.cast::<ib_ca_attr_t>();
            ok(query(port.ca, attributes, &raw mut size));
            let attributes = &*attributes;
            assert_eq!((attributes.size, attributes.num_ports), (size, 1));
            let first = &*attributes.p_port_attr;
            assert_eq!((first.link_state, first.lid.get()), (IB_LINK_ACTIVE, lid));
            assert_eq!((*first.p_gid_table).raw, gid.0);
            assert_eq!((*first.p_pkey_table).get(), 0xffff);
            let end = first.p_pkey_table.add(first.num_pkeys as usize) as usize;
            assert!(end <= buffer.at as usize + buffer.length);
            buffer.free();
        }
        port.close();
    });
}

/// The device of a child answers the interface query: the table by version and size, the port's data with it.
#[test]
fn the_interface_is_found_through_the_device() {
    let bench = bench(1);
    let guid = bench.hosts[0].port_guid();
    bench.drive(0, move |host| {
        let config =
            ChildConfig { port: 1, pkey: DEFAULT_PARTITION, properties: DeviceProperties::default() };
        let device = host.ibal.create_child(config);
        let query = |version: u16, size: u16, data: *mut ib_al_ifc_data_t, table: *mut ib_al_ifc_t| {
            // SAFETY: an IRP for a device, as a driver sends it, and kernel objects on this stack that outlive it.
            unsafe {
                let mut event = std::mem::zeroed::<KEVENT>();
                ke::KeInitializeEvent(&raw mut event, SynchronizationEvent, 0);
                let mut status = std::mem::zeroed::<IO_STATUS_BLOCK>();
                let irp = io::IoBuildSynchronousFsdRequest(
                    IRP_MJ_PNP.into(),
                    device,
                    null_mut(),
                    0,
                    null_mut(),
                    &raw mut event,
                    &raw mut status,
                );
                (*irp).IoStatus = IO_STATUS_BLOCK::new(STATUS_NOT_SUPPORTED, 0);
                let location = &mut *IoGetNextIrpStackLocation(irp);
                location.MinorFunction = IRP_MN_QUERY_INTERFACE;
                let parameters = &mut location.Parameters.QueryInterface;
                parameters.InterfaceType = &GUID_IB_AL_INTERFACE;
                parameters.Version = version;
                parameters.Size = size;
                parameters.Interface = table.cast();
                parameters.InterfaceSpecificData = data.cast();
                let sent = io::IofCallDriver(device, irp);
                ke::KeWaitForSingleObject((&raw mut event).cast(), Executive, KernelMode, 0, null_mut());
                sent
            }
        };
        let size = size_of::<ib_al_ifc_t>() as u16;
        let mut table = host.table();
        // SAFETY: plain numbers and null pointers.
        let mut port = unsafe { std::mem::zeroed::<ipoib_ifc_data_t>() };
        let mut data = ib_al_ifc_data_t {
            r#type: &GUID_IPOIB_INTERFACE_DATA,
            size: size_of::<ipoib_ifc_data_t>() as u16,
            version: IPOIB_INTERFACE_DATA_VERSION,
            p_data: (&raw mut port).cast(),
        };
        assert_eq!(query(18, size, &raw mut data, &raw mut table), STATUS_NOT_SUPPORTED);
        assert_eq!(query(19, size - 1, &raw mut data, &raw mut table), STATUS_BUFFER_TOO_SMALL);
        assert_eq!(host.ibal.interface_references(), 0);
        assert_eq!(query(19, size, &raw mut data, &raw mut table), STATUS_SUCCESS);
        assert_eq!(host.ibal.interface_references(), 1);
        assert_eq!((port.port_num, port.port_guid.guid), (1, guid));
        assert_eq!((table.wdm.Size, table.wdm.Version), (size, 19));
        assert_eq!(Machine::current().outstanding().len(), 1, "the reference is the driver's to drop");
        // SAFETY: the interface's own function and context.
        unsafe { table.wdm.InterfaceDereference.unwrap()(table.wdm.Context) };
        assert!(Machine::current().outstanding().is_empty());
    });
}
