//! What is known of the ends of a path: GPUs and host memories, as times and sizes.

use super::calibration::{Calibration, DeviceClass};
use crate::error::Result;
use crate::topology::Settings;
use crate::units::{Bandwidth, Time};

/// A GPU's own costs. Each field is a constant of `calibration/gpus.json`, where unit and source
/// stand.
#[derive(Clone, Debug)]
pub struct GpuModel {
    /// Store instruction to the egress queue.
    pub store_pipeline: Time,
    /// Load instruction to the egress queue.
    pub load_request: Time,
    /// Completion at the GPU to the warp going on.
    pub load_return: Time,
    /// Read request at the GPU to its first completion.
    pub completer: Time,
    /// Write at the GPU to its being seen by a local load.
    pub write_visible: Time,
    /// A visible change to a polling warp going on: mean phase plus load.
    pub poll_detect: Time,
    /// What an acquire poll with its invalidation adds.
    pub poll_acquire_extra: Time,
    /// A local poll that finds its line at once.
    pub poll_found: Time,
    /// From a remote poll's return to its being sent again.
    pub poll_loop: Time,
    /// Dependent load of own memory.
    pub local_load: Time,
    /// Store to own memory to its being visible.
    pub local_store_visible: Time,
    /// One SM's time for a warp's store of 512 bytes to another memory.
    pub sm_store_interval: Time,
    /// The same to its GPU's own memory.
    pub sm_local_store_interval: Time,
    /// One warp's time between stores.
    pub warp_store_interval: Time,
    /// One lane's flag among a warp's flags to several peers.
    pub flag_lane: Time,
    /// One SM's time for a warp's load.
    pub sm_load_interval: Time,
    /// System fence with nothing outstanding.
    pub fence: Time,
    /// System fence inside a block whose own stores are outstanding.
    pub fence_block: Time,
    /// What a fence needs after the last store left.
    pub fence_drain: Time,
    /// System fence with stores to NVLink peers outstanding.
    pub fence_nvlink: Time,
    /// What an atomic on own memory takes beyond a load of it.
    pub atomic: Time,
    /// Block barrier.
    pub block_barrier: Time,
    /// A loop's own instructions, a trip.
    pub loop_overhead: Time,
    /// A probe's check of its stop flag.
    pub stop_check: Time,
    /// Posted bytes queued before stores stall, on PCIe.
    pub egress_posted_pcie: u32,
    /// Posted bytes queued before stores stall, on NVLink.
    pub egress_posted_nvlink: u32,
    /// Payload of a write made by an SM.
    pub sm_tlp: u32,
    /// Bytes that one read request of an SM asks for.
    pub sm_read: u32,
    /// Payload of a packet made by a copy engine.
    pub copy_engine_tlp: u32,
    /// Start of a copy.
    pub copy_engine_start: Time,
    /// Copy engine's own limit over PCIe.
    pub copy_engine_pcie: Bandwidth,
    /// Copy engine's own limit over NVLink.
    pub copy_engine_nvlink: Bandwidth,
    /// Bytes of reads that a copy engine keeps in flight over NVLink.
    pub copy_engine_read_window: u32,
    /// The same over PCIe.
    pub copy_engine_read_window_pcie: u32,
    /// Bytes that a bulk copy kernel issues at a time.
    pub copy_kernel_burst: u32,
    /// Bytes of reads that a bulk copy kernel keeps in flight.
    pub copy_kernel_window: u32,
    /// Loads of one thread that overlap when they go to host memory.
    pub loads_overlap_host: u32,
    /// Graph node to graph node.
    pub graph_node: Time,
    /// Stream launch to stream launch.
    pub stream_launch: Time,
    /// Streaming multiprocessors.
    pub sms: u32,
}

impl GpuModel {
    /// What a poll by acquire loads adds to one by plain loads.
    pub fn poll_extra(&self, acquire: bool) -> Time {
        if acquire { self.poll_acquire_extra } else { Time::ZERO }
    }

    /// The GPU in a machine that limits the size of packets and read requests: its engines make what
    /// they make, or less.
    #[must_use]
    pub fn within(self, settings: &Settings) -> GpuModel {
        let payload = settings.max_payload.map_or(u32::MAX, u32::from);
        let request = settings.max_read_request.map_or(u32::MAX, u32::from);
        GpuModel {
            sm_tlp: self.sm_tlp.min(payload),
            sm_read: self.sm_read.min(request),
            copy_engine_tlp: self.copy_engine_tlp.min(payload),
            ..self
        }
    }

    /// Reads a GPU's constants.
    ///
    /// # Errors
    /// When the model or one of its constants is unknown.
    pub fn of(calibration: &Calibration, model: &str) -> Result<GpuModel> {
        let value = |name: &str| calibration.value(DeviceClass::Gpu, model, name);
        let time = |name: &str| Ok::<_, crate::error::Error>(Time::from_ns(value(name)?));
        // An SM's unit takes so many clocks for an access, whatever the GPU.
        let clocked = |name: &str| calibration.clocked(model, name).map(Time::from_ns);
        let rate =
            |name: &str| Ok::<_, crate::error::Error>(Bandwidth::from_gb_per_s(value(name)?));
        let count = |name: &str| Ok::<_, crate::error::Error>(value(name)?.round() as u32);
        Ok(GpuModel {
            store_pipeline: time("store_pipeline")?,
            load_request: time("load_request")?,
            load_return: time("load_return")?,
            completer: time("completer")?,
            write_visible: time("write_visible")?,
            poll_detect: time("poll_detect")?,
            poll_acquire_extra: time("poll_acquire_extra")?,
            poll_found: time("poll_found")?,
            poll_loop: time("poll_loop")?,
            local_load: time("local_load")?,
            local_store_visible: time("local_store_visible")?,
            sm_store_interval: clocked("sm_store_interval")?,
            sm_local_store_interval: clocked("sm_local_store_interval")?,
            warp_store_interval: time("warp_store_interval")?,
            flag_lane: time("flag_lane")?,
            sm_load_interval: clocked("sm_load_interval")?,
            fence: time("fence")?,
            fence_block: time("fence_block")?,
            fence_drain: time("fence_drain")?,
            fence_nvlink: time("fence_nvlink")?,
            atomic: time("atomic")?,
            block_barrier: time("block_barrier")?,
            loop_overhead: time("loop_overhead")?,
            stop_check: time("stop_check")?,
            egress_posted_pcie: count("egress_posted_pcie")?,
            egress_posted_nvlink: count("egress_posted_nvlink")?,
            sm_tlp: count("sm_tlp")?,
            sm_read: count("sm_read")?,
            copy_engine_tlp: count("copy_engine_tlp")?,
            copy_engine_start: time("copy_engine_start")?,
            copy_engine_pcie: rate("copy_engine_pcie")?,
            copy_engine_nvlink: rate("copy_engine_nvlink")?,
            copy_engine_read_window: count("copy_engine_read_window")?,
            copy_engine_read_window_pcie: count("copy_engine_read_window_pcie")?,
            copy_kernel_burst: count("copy_kernel_burst")?,
            copy_kernel_window: count("copy_kernel_window")?,
            loads_overlap_host: count("loads_overlap_host")?,
            graph_node: time("graph_node")?,
            stream_launch: time("stream_launch")?,
            sms: count("sms")?,
        })
    }
}

/// A network adapter: it writes and reads memories as a GPU's copy engine does.
#[derive(Clone, Debug)]
pub struct NicModel {
    /// Its name in the topology.
    pub name: String,
    /// Its model.
    pub model: String,
    /// As a device of the machine: its copy engine's rate, packets and reads under way are the
    /// adapter's own, all else is never asked for. `None` for a model that the calibration does not
    /// know: it is there, and carries no traffic.
    pub engine: Option<GpuModel>,
}

impl NicModel {
    /// Reads an adapter's constants; `other` stands for what an adapter has no part in.
    ///
    /// # Errors
    /// When a constant of a known model is missing.
    pub fn of(
        calibration: &Calibration,
        name: &str,
        model: &str,
        other: &GpuModel,
    ) -> Result<NicModel> {
        let value = |constant: &str| calibration.value(DeviceClass::Nic, model, constant);
        let (name, known) = (name.to_owned(), calibration.names(DeviceClass::Nic).contains(&model));
        let engine = if known {
            Some(GpuModel {
                copy_engine_pcie: Bandwidth::from_gb_per_s(value("rate")?),
                copy_engine_tlp: value("payload")?.round() as u32,
                copy_engine_read_window_pcie: value("read_window")?.round() as u32,
                ..other.clone()
            })
        } else {
            None
        };
        Ok(NicModel { name, model: model.to_owned(), engine })
    }
}

/// A socket's memory as a target of reads and writes.
#[derive(Clone, Debug)]
pub struct MemoryModel {
    /// Request at the memory to its first completion.
    pub read: Time,
    /// What a port at full read rate adds to each read.
    pub read_loaded: Time,
    /// What a line not in the cache adds.
    pub cold: Time,
    /// Write at the memory to its being seen by a read.
    pub write_visible: Time,
    /// Reads of one root port served at a time.
    pub reads_outstanding: u32,
    /// How long one of them occupies its place.
    pub read_service: Time,
    /// How long a write of 128 bytes occupies one of as many places.
    pub write_service: Time,
    /// What full-rate writes of other ports add to a read's service.
    pub read_slowed_by_writes: Time,
    /// What full-rate reads of other ports add to a read's service.
    pub read_slowed_by_reads: Time,
    /// What full-rate writes of other ports add to a write's service.
    pub write_slowed_by_writes: Time,
    /// What it moves in all, reads and writes of all ports; writes go first.
    pub total: Bandwidth,
}

impl MemoryModel {
    /// Reads a socket's memory constants.
    ///
    /// # Errors
    /// When the model or one of its constants is unknown.
    pub fn of(calibration: &Calibration, socket: &str) -> Result<MemoryModel> {
        let value = |name: &str| calibration.value(DeviceClass::Socket, socket, name);
        let time = |name: &str| Ok::<_, crate::error::Error>(Time::from_ns(value(name)?));
        Ok(MemoryModel {
            read: time("memory_read")?,
            read_loaded: time("memory_read_loaded")?,
            cold: time("memory_cold")?,
            write_visible: time("memory_write_visible")?,
            reads_outstanding: value("memory_reads_outstanding")?.round().max(1.0) as u32,
            read_service: time("memory_read_service")?,
            write_service: time("memory_write_service")?,
            read_slowed_by_writes: time("memory_read_slowed_by_writes")?,
            read_slowed_by_reads: time("memory_read_slowed_by_reads")?,
            write_slowed_by_writes: time("memory_write_slowed_by_writes")?,
            total: Bandwidth::from_gb_per_s(value("memory_total")?),
        })
    }
}
