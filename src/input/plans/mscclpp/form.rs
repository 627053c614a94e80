//! The form of an execution plan of MSCCL++, as far as it is replayed.

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default)]
    pub(super) name: String,
    pub(super) collective: String,
    #[serde(default)]
    pub(super) protocol: String,
    #[serde(default)]
    pub(super) inplace: bool,
    pub(super) num_threads_per_block: Option<u32>,
    pub(super) gpus: Vec<Gpu>,
}

#[derive(Deserialize)]
pub(super) struct Gpu {
    pub(super) id: u32,
    pub(super) input_chunks: u32,
    pub(super) output_chunks: u32,
    #[serde(default)]
    pub(super) scratch_chunks: u32,
    #[serde(default)]
    pub(super) channels: Vec<Channels>,
    #[serde(default)]
    pub(super) remote_buffers: Vec<RemoteBuffer>,
    #[serde(default)]
    pub(super) semaphores: Vec<Semaphore>,
    pub(super) threadblocks: Vec<Block>,
}

#[derive(Deserialize)]
pub(super) struct Channels {
    pub(super) channel_type: String,
    #[serde(default)]
    pub(super) connected_to: Vec<u32>,
}

#[derive(Deserialize)]
pub(super) struct RemoteBuffer {
    pub(super) rank: u32,
    #[serde(rename = "type")]
    pub(super) space: String,
}

#[derive(Deserialize)]
pub(super) struct Semaphore {
    #[serde(default)]
    pub(super) init_value: u32,
}

#[derive(Deserialize)]
pub(super) struct Block {
    #[serde(default)]
    pub(super) channels: Vec<BlockChannels>,
    #[serde(default)]
    pub(super) remote_buffer_refs: Vec<BlockBuffers>,
    #[serde(default)]
    pub(super) ops: Vec<Operation>,
}

#[derive(Deserialize)]
pub(super) struct BlockChannels {
    pub(super) channel_type: String,
    pub(super) channel_ids: Vec<u32>,
}

#[derive(Deserialize)]
pub(super) struct BlockBuffers {
    pub(super) access_channel_type: String,
    pub(super) remote_buffer_ids: Vec<u32>,
}

#[derive(Deserialize)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) channel_type: Option<String>,
    #[serde(default)]
    pub(super) channel_ids: Vec<u32>,
    #[serde(default)]
    pub(super) src_buff: Vec<Range>,
    #[serde(default)]
    pub(super) dst_buff: Vec<Range>,
    pub(super) tbg_info: Option<Group>,
    pub(super) barrier_id: Option<u32>,
    pub(super) num_threadblocks: Option<u32>,
    #[serde(default)]
    pub(super) semaphore_ids: Vec<u32>,
}

#[derive(Deserialize)]
pub(super) struct Range {
    #[serde(rename = "type")]
    pub(super) space: Option<String>,
    pub(super) buffer_id: Option<u32>,
    pub(super) index: u32,
    pub(super) size: u32,
}

#[derive(Deserialize)]
pub(super) struct Group {
    pub(super) tb_id: u32,
    pub(super) tbg_size: u32,
}
