//! Queries: from the driver's request to a datagram (`al_query.c`).

use ibal_sys::*;

use super::transactions::{Mad, set_header};
use crate::fabric::wire::mad::{
    Attribute, MAD_LEN, MadHeader, Method, SA_DATA_LEN, SA_DATA_OFFSET, SaHeader, class,
};

/// A request to the subnet administrator, before it has a transaction id.
pub struct SaRequest<'a> {
    /// Method.
    pub method: u8,
    /// Attribute.
    pub attribute: u16,
    /// Which components count.
    pub components: u64,
    /// The attribute.
    pub data: &'a [u8],
}

impl SaRequest<'_> {
    /// The datagram. `None`: the attribute does not fit in one.
    pub fn mad(&self) -> Option<Mad> {
        if self.data.len() > SA_DATA_LEN {
            return None;
        }
        let mut mad = [0; MAD_LEN];
        set_header(
            &mut mad,
            &MadHeader {
                base_version: 1,
                class: class::SUBN_ADM,
                class_version: class::SUBN_ADM_VERSION,
                method: Method(self.method),
                attribute: Attribute(self.attribute),
                ..MadHeader::default()
            },
        );
        let header = SaHeader {
            attribute_offset: (self.data.len().div_ceil(8)) as u16,
            component_mask: self.components,
            ..SaHeader::default()
        };
        mad[SA_DATA_OFFSET - SaHeader::LEN..SA_DATA_OFFSET].copy_from_slice(&header.to_bytes());
        // Without a component mask an attribute says nothing, unless it is set (`al_sa_req.c`).
        if self.components != 0 || self.method == IB_MAD_METHOD_SET {
            mad[SA_DATA_OFFSET..SA_DATA_OFFSET + self.data.len()].copy_from_slice(self.data);
        }
        Some(mad)
    }
}

/// The bytes of a wire structure.
pub fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the types used here are packed structures of bytes and network-order integers, without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The datagram of a query.
///
/// # Safety
/// `p_query_input` must lead to what `query_type` says, and a user query's `p_attr` to `attr_size` bytes.
///
/// # Errors
/// The status that `ib_query` returns.
pub unsafe fn build(request: &ib_query_req_t) -> Result<Mad, ib_api_status_t> {
    let input = request.p_query_input;
    if input.is_null() && !matches!(request.query_type, IB_QUERY_ALL_SVC_RECS | IB_QUERY_CLASS_PORT_INFO) {
        return Err(IB_INVALID_PARAMETER);
    }
    let table = |attribute: ib_net16_t, components: u64, data: &[u8]| {
        SaRequest { method: IB_MAD_METHOD_GETTABLE, attribute: attribute.get(), components, data }.mad()
    };
    let paths = IB_PR_COMPMASK_DGID.get() | IB_PR_COMPMASK_SGID.get() | IB_PR_COMPMASK_NUMBPATH.get();
    let mad = match request.query_type {
        IB_QUERY_USER_DEFINED => {
            // SAFETY: the caller's contract for this type; the driver may keep it anywhere.
            let user = unsafe { input.cast::<ib_user_query_t>().read_unaligned() };
            if user.method == 0 {
                return Err(IB_INVALID_SETTING);
            }
            let size = user.attr_size as usize;
            if size > SA_DATA_LEN || (user.p_attr.is_null() && size > 0) {
                return Err(IB_INVALID_PARAMETER);
            }
            let mut data = [0; SA_DATA_LEN];
            if size > 0 {
                // SAFETY: the caller's contract: `attr_size` bytes, no more than fit.
                unsafe {
                    std::ptr::copy_nonoverlapping(user.p_attr.cast(), data.as_mut_ptr(), size);
                }
            }
            SaRequest {
                method: user.method,
                attribute: user.attr_id.get(),
                components: user.comp_mask.get(),
                data: &data[..size],
            }
            .mad()
        }
        IB_QUERY_ALL_SVC_RECS => table(IB_MAD_ATTR_SERVICE_RECORD, 0, &[0; size_of::<ib_service_record_t>()]),
        IB_QUERY_SVC_REC_BY_NAME => {
            const NAME: usize = std::mem::offset_of!(ib_service_record_t, service_name);
            let mut record = [0; size_of::<ib_service_record_t>()];
            // SAFETY: the caller's contract: a service name of 64 bytes.
            unsafe { std::ptr::copy_nonoverlapping(input.cast(), record[NAME..].as_mut_ptr(), 64) };
            table(IB_MAD_ATTR_SERVICE_RECORD, IB_SR_COMPMASK_SNAME.get(), &record)
        }
        IB_QUERY_SVC_REC_BY_ID => {
            let mut record = [0; size_of::<ib_service_record_t>()];
            // SAFETY: the caller's contract: a service id.
            unsafe { std::ptr::copy_nonoverlapping(input.cast(), record.as_mut_ptr(), 8) };
            table(IB_MAD_ATTR_SERVICE_RECORD, IB_SR_COMPMASK_SID.get(), &record)
        }
        IB_QUERY_CLASS_PORT_INFO => SaRequest {
            method: IB_MAD_METHOD_GET,
            attribute: IB_MAD_ATTR_CLASS_PORT_INFO.get(),
            components: 0,
            data: &[0; size_of::<ib_class_port_info_t>()],
        }
        .mad(),
        IB_QUERY_NODE_REC_BY_NODE_GUID => {
            // NodeRecord: LID, reserved, then NodeInfo, in which the node GUID is the third field (§14.2.5.3).
            const NODE_GUID: usize = 4 + 12;
            const NODE_GUID_COMPONENT: u64 = 1 << 7;
            let mut record = [0; 108];
            // SAFETY: the caller's contract: a node GUID.
            unsafe { std::ptr::copy_nonoverlapping(input.cast(), record[NODE_GUID..].as_mut_ptr(), 8) };
            table(IB_MAD_ATTR_NODE_RECORD, NODE_GUID_COMPONENT, &record)
        }
        IB_QUERY_PORT_REC_BY_LID => {
            // SAFETY: the caller's contract: a LID.
            let lid = unsafe { input.cast::<ib_net16_t>().read_unaligned() };
            let mut record = ib_portinfo_record_t::default();
            record.port_info.base_lid = lid;
            table(IB_MAD_ATTR_PORTINFO_RECORD, IB_PIR_COMPMASK_BASELID.get(), bytes_of(&record))
        }
        IB_QUERY_PATH_REC_BY_PORT_GUIDS => {
            // SAFETY: the caller's contract for this type.
            let pair = unsafe { input.cast::<ib_guid_pair_t>().read_unaligned() };
            let record = ib_path_rec_t {
                dgid: ib_gid_t::unicast(IB_DEFAULT_SUBNET_PREFIX, pair.dest_guid),
                sgid: ib_gid_t::unicast(IB_DEFAULT_SUBNET_PREFIX, pair.src_guid),
                num_path: 1,
                ..ib_path_rec_t::default()
            };
            table(IB_MAD_ATTR_PATH_RECORD, paths, bytes_of(&record))
        }
        IB_QUERY_PATH_REC_BY_GIDS => {
            // SAFETY: the caller's contract for this type.
            let pair = unsafe { input.cast::<ib_gid_pair_t>().read_unaligned() };
            let record =
                ib_path_rec_t { dgid: pair.dest_gid, sgid: pair.src_gid, num_path: 1, ..Default::default() };
            table(IB_MAD_ATTR_PATH_RECORD, paths, bytes_of(&record))
        }
        IB_QUERY_PATH_REC_BY_LIDS => {
            // SAFETY: the caller's contract for this type.
            let pair = unsafe { input.cast::<ib_lid_pair_t>().read_unaligned() };
            let record = ib_path_rec_t {
                dlid: pair.dest_lid,
                slid: pair.src_lid,
                num_path: 1,
                ..ib_path_rec_t::default()
            };
            let components = IB_PR_COMPMASK_DLID.get() | IB_PR_COMPMASK_SLID.get();
            let attribute = IB_MAD_ATTR_PATH_RECORD.get();
            SaRequest { method: IB_MAD_METHOD_GET, attribute, components, data: bytes_of(&record) }.mad()
        }
        _ => return Err(IB_ERROR),
    };
    mad.ok_or(IB_INVALID_PARAMETER)
}

/// How many records an answer holds. A Get has one; a table has as many as fit its attribute offset.
pub fn record_count(answer: &[u8]) -> u32 {
    let method = answer.get(3).copied().unwrap_or(0);
    if method != IB_MAD_METHOD_GETTABLE_RESP {
        return 1;
    }
    let header = SaHeader::parse_slice(answer.get(SA_DATA_OFFSET - SaHeader::LEN..).unwrap_or_default())
        .unwrap_or_default();
    let size = usize::from(header.attribute_offset) * 8;
    let data = answer.len().saturating_sub(SA_DATA_OFFSET);
    data.checked_div(size).unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::super::transactions::header;
    use super::*;

    fn request(query_type: ib_query_type_t, input: *const std::ffi::c_void) -> ib_query_req_t {
        ib_query_req_t {
            query_type,
            p_query_input: input,
            port_guid: ib_net64_t::new(1),
            timeout_ms: 1,
            retry_cnt: 0,
            flags: 0,
            query_context: std::ptr::null(),
            pfn_query_cb: None,
        }
    }

    fn built(query_type: ib_query_type_t, input: *const std::ffi::c_void) -> (MadHeader, SaHeader, Vec<u8>) {
        // SAFETY: each test hands in what its type says.
        let mad = unsafe { build(&request(query_type, input)) }.unwrap();
        let sa = SaHeader::parse_slice(&mad[SA_DATA_OFFSET - SaHeader::LEN..]).unwrap();
        (header(&mad), sa, mad[SA_DATA_OFFSET..].to_vec())
    }

    /// `query_sa`: a path by GIDs is a GetTable of PathRecord with DGID, SGID and one path.
    #[test]
    fn path_by_gids() {
        let pair = ib_gid_pair_t { src_gid: ib_gid_t { raw: [1; 16] }, dest_gid: ib_gid_t { raw: [2; 16] } };
        let (mad, sa, data) = built(IB_QUERY_PATH_REC_BY_GIDS, (&raw const pair).cast());
        assert_eq!((mad.method, mad.attribute), (Method::GET_TABLE, Attribute::PATH_RECORD));
        assert_eq!(sa.component_mask, (1 << 2) | (1 << 3) | (1 << 12));
        assert_eq!(sa.attribute_offset, 8);
        assert_eq!(data[8..24], [2; 16]);
        assert_eq!(data[24..40], [1; 16]);
    }

    /// A user-defined query is sent as it is; without a method it is refused.
    #[test]
    fn user_defined() {
        let mut record = ib_member_rec_t { mgid: ib_gid_t { raw: [0xff; 16] }, ..Default::default() };
        let mut user = ib_user_query_t {
            method: IB_MAD_METHOD_GET,
            attr_id: IB_MAD_ATTR_MCMEMBER_RECORD,
            attr_size: size_of::<ib_member_rec_t>() as u32,
            comp_mask: IB_MCR_COMPMASK_MGID,
            p_attr: (&raw mut record).cast(),
        };
        let (mad, sa, data) = built(IB_QUERY_USER_DEFINED, (&raw const user).cast());
        assert_eq!((mad.method, mad.attribute), (Method::GET, Attribute::MC_MEMBER_RECORD));
        assert_eq!((sa.component_mask, &data[..16]), (1, &[0xff; 16][..]));
        user.method = 0;
        // SAFETY: as above.
        let refused = unsafe { build(&request(IB_QUERY_USER_DEFINED, (&raw const user).cast())) };
        assert_eq!(refused.map(|_| ()), Err(IB_INVALID_SETTING));
        user.method = IB_MAD_METHOD_GET;
        user.attr_size = 201;
        // SAFETY: as above; the size is refused before anything is read.
        let refused = unsafe { build(&request(IB_QUERY_USER_DEFINED, (&raw const user).cast())) };
        assert_eq!(refused.map(|_| ()), Err(IB_INVALID_PARAMETER));
    }

    /// Records of a table are counted by the attribute offset; a Get has one.
    #[test]
    fn counts() {
        let mut answer = vec![0; SA_DATA_OFFSET + 128];
        answer[3] = IB_MAD_METHOD_GETTABLE_RESP;
        answer[SA_DATA_OFFSET - SaHeader::LEN..SA_DATA_OFFSET]
            .copy_from_slice(&SaHeader { attribute_offset: 8, ..SaHeader::default() }.to_bytes());
        assert_eq!(record_count(&answer), 2);
        answer.truncate(SA_DATA_OFFSET);
        assert_eq!(record_count(&answer), 0);
        answer[3] = IB_MAD_METHOD_GET_RESP;
        assert_eq!(record_count(&answer), 1);
    }
}
