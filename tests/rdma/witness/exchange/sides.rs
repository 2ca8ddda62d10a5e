//! The two sides: what each makes of the device, and a queue pair of either, connected.

use crate::device::{
    Channel, CompletionQueue, Depth, Device, QueuePair, ReceiveRequest, Registration, Remote,
    VerbsOptions, WorkCompletion, WorkOperation, WorkRequest,
};
use faro_pool::{Lease, Pool, Purpose};
use ibverbs::{ibv_qp_type, ibv_wc, Gid, MemoryRegion, QueuePairEndpoint};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Of each side's memory: one frame of Faro's.
pub const BYTES: usize = 256 << 10;
/// Requests of a queue.
const DEPTH: u32 = 64;
/// The first packet that Faro sends; the crate's is always 0.
const OUR_PSN: u32 = 0x00ab_cdef;
/// A lost packet is sent again after 4.096 µs x 2^18, a second: a busy machine loses none to that.
const TIMEOUT: u8 = 18;

/// The device that Faro chooses and the same one as the crate finds it.
pub struct Bench<'c> {
    their_domain: ibverbs::ProtectionDomain<'c>,
    their_queue: ibverbs::CompletionQueue<'c>,
    gid_index: u32,
    our_queue: Arc<CompletionQueue>,
    region: Registration,
    pool: Arc<Pool>,
    device: Arc<Device>,
}

/// Opens the device with the crate.
pub fn their_context() -> ibverbs::Context {
    let devices = ibverbs::devices().expect("ibverbs lists devices");
    let device = devices.get(0).expect("ibverbs finds a device");
    device.open().expect("ibverbs opens the device")
}

impl<'c> Bench<'c> {
    pub fn new(context: &'c ibverbs::Context) -> Self {
        let near = IpAddr::from(Ipv4Addr::LOCALHOST);
        let device = Device::open(&VerbsOptions::default(), near).expect("Faro opens the device");
        let pool = Pool::new(32 << 20).expect("a pool");
        // The pool maps its first slab with its first lease.
        drop(
            pool.try_lease(BYTES, Purpose::Serve)
                .expect("memory of the pool"),
        );
        let slab = pool.slab(0).expect("the first slab");
        let region = Registration::of_slab(&device, slab).expect("Faro registers the slab");
        let channel = Channel::new(&device).expect("Faro's channel");
        let our_queue = CompletionQueue::new(&device, &channel, 1024).expect("Faro's queue");
        let (ours, roce) = (device.address().gid, ibverbs_sys::IBV_GID_TYPE_ROCE_V2);
        let same = |entry: &&ibverbs::GidEntry| bytes(entry.gid) == ours && entry.gid_type == roce;
        let table = context.gid_table();
        let entry = table
            .iter()
            .find(same)
            .expect("ibverbs finds the GID that Faro chose");
        Self {
            their_domain: context.alloc_pd().expect("ibverbs' protection domain"),
            their_queue: context
                .create_cq(1024, 0)
                .expect("ibverbs' completion queue"),
            gid_index: entry.gid_index,
            our_queue,
            region,
            pool,
            device,
        }
    }

    /// Two queue pairs, connected to each other.
    pub fn pair(&self) -> Pair<'_> {
        let (queue, rc) = (&self.their_queue, ibv_qp_type::IBV_QPT_RC);
        let prepared = self
            .their_domain
            .create_qp(queue, queue, rc)
            .set_gid_index(self.gid_index)
            .set_rq_psn(OUR_PSN)
            .set_timeout(TIMEOUT)
            .set_max_send_wr(DEPTH)
            .set_max_recv_wr(DEPTH)
            .build()
            .expect("ibverbs makes a queue pair");
        let depth = Depth {
            send: DEPTH,
            receive: DEPTH,
            reads: 1,
        };
        let mut ours =
            QueuePair::new(&self.device, &self.our_queue, depth).expect("Faro makes a queue pair");
        let (endpoint, address) = (prepared.endpoint(), self.device.address());
        let remote = Remote {
            gid: bytes(endpoint.gid.expect("the builder was given an index")),
            lid: endpoint.lid,
            qp: endpoint.num,
            psn: 0,
            mtu: address.mtu,
            reads: 1,
        };
        let options = VerbsOptions {
            timeout: TIMEOUT,
            ..VerbsOptions::default()
        };
        ours.connect(OUR_PSN, &remote, &options)
            .expect("Faro connects");
        let us = QueuePairEndpoint {
            num: ours.number(),
            lid: address.lid,
            gid: Some(Gid::from(ibverbs_sys::ibv_gid { raw: address.gid })),
        };
        let their_memory = self
            .their_domain
            .allocate(BYTES)
            .expect("ibverbs registers memory");
        let our_memory = self
            .pool
            .try_lease(BYTES, Purpose::Serve)
            .expect("memory of the pool");
        assert_eq!(our_memory.slab(), 0, "the slab that is registered");
        Pair {
            theirs: prepared.handshake(us).expect("ibverbs connects"),
            ours,
            their_memory,
            our_memory,
            bench: self,
        }
    }

    /// Waits for that many completions of each side. There are no more of them.
    pub fn completions(&self, ours: usize, theirs: usize) -> (Vec<WorkCompletion>, Vec<ibv_wc>) {
        let (mut our_list, mut their_list) = (Vec::new(), Vec::new());
        let mut entries = [ibv_wc::default(); 32];
        // No deadline: the guest has one, and a busy machine needs none.
        while our_list.len() < ours || their_list.len() < theirs {
            self.our_queue.poll(&mut our_list).expect("Faro polls");
            let got = self.their_queue.poll(&mut entries).expect("ibverbs polls");
            their_list.extend_from_slice(got);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((our_list.len(), their_list.len()), (ours, theirs));
        (our_list, their_list)
    }
}

fn bytes(gid: Gid) -> [u8; 16] {
    let halves = [gid.subnet_prefix(), gid.interface_id()].map(u64::to_be_bytes);
    std::array::from_fn(|at| halves[at / 8][at % 8])
}

/// Two connected queue pairs and their memory, which outlives them: fields drop in order.
pub struct Pair<'b> {
    theirs: ibverbs::QueuePair<'b>,
    ours: QueuePair,
    their_memory: MemoryRegion<u8>,
    our_memory: Lease,
    bench: &'b Bench<'b>,
}

impl Pair<'_> {
    pub fn our_memory(&mut self) -> &mut [u8] {
        &mut self.our_memory.bytes_mut()[..BYTES]
    }

    pub fn their_memory(&mut self) -> &mut [u8] {
        &mut self.their_memory
    }

    /// Bytes that Faro may send inline.
    pub fn inline_bytes(&self) -> usize {
        self.ours.inline_bytes() as usize
    }

    fn our_address(&self, from: usize) -> u64 {
        self.bench.region.address_of(self.our_memory.offset()) + from as u64
    }

    pub fn we_send(&mut self, range: Range<usize>, id: u64, inline: bool) {
        let request = WorkRequest {
            id,
            operation: WorkOperation::Send,
            address: self.our_address(range.start),
            length: range.len() as u32,
            lkey: self.bench.region.lkey(),
            signaled: true,
            inline,
        };
        self.ours.post_send(&[request]).expect("Faro sends");
    }

    pub fn we_receive(&mut self, range: Range<usize>, id: u64) {
        let request = ReceiveRequest {
            id,
            address: self.our_address(range.start),
            length: range.len() as u32,
            lkey: self.bench.region.lkey(),
        };
        self.ours
            .post_receive(&[request])
            .expect("Faro takes memory to receive into");
    }

    pub fn they_send(&mut self, range: Range<usize>, id: u64) {
        // SAFETY: the memory lives longer than the queue pair, which is the field before it, and no
        // case writes to the range before the completion of this request is taken.
        unsafe { self.theirs.post_send(&mut self.their_memory, range, id) }.expect("ibverbs sends");
    }

    pub fn they_receive(&mut self, range: Range<usize>, id: u64) {
        // SAFETY: as above; no case reads the range before then either.
        unsafe { self.theirs.post_receive(&mut self.their_memory, range, id) }
            .expect("ibverbs takes memory to receive into");
    }
}
