// The kernel of LoadRun.

#include "load.cuh"

namespace probe {
namespace {

constexpr int accesses_a_check = 8;          // Between two looks at the stop flag.
constexpr uint64_t settle_ns = 60000;        // Queues fill before the chain starts.

struct Plan {
    uint4* area;
    uint32_t* stop;       // In the GPU's own memory.
    uint32_t* running;    // In host memory: the kernel has begun.
    uint64_t* out;        // Block 0: chain ns. Each other block: accesses a thread, ns.
    int readers, writers; // Blocks; those of both groups of readers in a row.
    size_t block_units;   // Of the area, 16 bytes each: a block's own part, a power of two.
    int hops;
    uint64_t run_ns;
};

// Block 0: the chain of reads, or the timer; ends the others.
__device__ void lead(const Plan& plan) {
    if (threadIdx.x != 0) return;
    store_flag(plan.running, 1);
    const uint64_t begun = now();
    wait_until(begun + settle_ns);
    if (plan.hops > 0) {
        const uint32_t* words = reinterpret_cast<const uint32_t*>(plan.area);
        uint32_t at = 0;
        const uint64_t from = now();
#pragma unroll 1
        for (int hop = 0; hop < plan.hops; ++hop) {
            // Each line holds a zero: the next address depends on it all the same.
            at = (uint32_t(hop) * 167 % 512) * 32 + load4(words + at);
        }
        plan.out[0] = now() - from + (at == 0xffffffffu);
    } else {
        wait_until(begun + plan.run_ns);
    }
    store_flag(plan.stop, 1);
}

__global__ void load_kernel(Plan plan) {
    if (blockIdx.x == 0) {
        lead(plan);
        return;
    }
    uint4* own = plan.area + chain_units + (blockIdx.x - 1) * plan.block_units;
    const bool write = int(blockIdx.x) > plan.readers;
    const size_t mask = plan.block_units - 1;
    size_t at = threadIdx.x & mask;
    uint64_t accesses = 0;
    uint32_t sum = 0;
    const uint64_t from = now();
#pragma unroll 1
    do {
        if (write) {
#pragma unroll 1
            for (int access = 0; access < accesses_a_check; ++access) {
                store16(own + at, make_uint4(sum, uint32_t(at), 3, 4));
                at = (at + blockDim.x) & mask;
            }
        } else {
#pragma unroll 1
            for (int access = 0; access < accesses_a_check; ++access) {
                const uint4 value = load16(own + at);
                sum += value.x ^ value.y ^ value.z ^ value.w;
                at = (at + blockDim.x) & mask;
            }
        }
        accesses += accesses_a_check;
    } while (load_flag(plan.stop) == 0 && accesses < (1ull << 28));
    const uint64_t to = now();
    if (sum == 0x9e3779b9u) store16(own, make_uint4(sum, 0, 0, 0));
    if (threadIdx.x == 0) {
        plan.out[2 * blockIdx.x] = accesses;
        plan.out[2 * blockIdx.x + 1] = to - from;
    }
}

}  // namespace

LoadRun::LoadRun(Context& context, LoadAreas& areas, int gpu, int memory,
                 std::vector<LoadGroup> groups, int threads, int hops, double us)
    : groups_(std::move(groups)),
      threads_(threads),
      hops_(hops),
      us_(us),
      stream_(gpu),
      area_(areas.of(gpu, memory)) {
    for (const LoadGroup& group : groups_) blocks_ += group.blocks;
    const int sms = context.machine.gpus[size_t(gpu)].properties.multiProcessorCount;
    if (blocks_ + 1 > sms) throw NotHere("the GPU has too few SMs for so many blocks at once");
    stop_ = Buffer<uint32_t>(gpu, Home::device, 1);
    running_ = Buffer<uint32_t>(gpu, Home::host, 1);
    out_ = Buffer<uint64_t>(gpu, Home::device, 2 * (size_t(blocks_) + 1));
}

void LoadRun::start() {
    size_t block_units = 1;
    while (blocks_ > 0 && 2 * block_units * size_t(blocks_) + chain_units <= area_.count()) {
        block_units *= 2;
    }
    Plan plan = {area_.get(), stop_.get(), running_.get(), out_.get(), 0, 0, block_units, hops_,
                 uint64_t(us_ * 1e3)};
    for (const LoadGroup& group : groups_) (group.write ? plan.writers : plan.readers) += group.blocks;
    PROBE_CHECK(cudaMemsetAsync(stop_.get(), 0, sizeof(uint32_t), stream_.use()));
    *static_cast<volatile uint32_t*>(running_.get()) = 0;
    load_kernel<<<blocks_ + 1, threads_, 0, stream_.use()>>>(plan);
    PROBE_LAUNCHED("load_kernel");
}

bool LoadRun::running() const {
    return *static_cast<volatile uint32_t*>(running_.get()) != 0;
}

LoadResult LoadRun::collect() {
    stream_.wait();
    std::vector<uint64_t> out(out_.count());
    to_gpu(out.data(), out_.get(), out.size());
    LoadResult result;
    if (hops_ > 0) result.chase_ns = double(out[0]) / hops_;
    // Readers come first in the kernel, whatever the order of the groups.
    size_t reader = 1, writer = 1;
    for (const LoadGroup& group : groups_) writer += group.write ? 0 : size_t(group.blocks);
    for (const LoadGroup& group : groups_) {
        size_t& block = group.write ? writer : reader;
        double rate = 0;
        for (int i = 0; i < group.blocks; ++i, ++block) {
            const double bytes = double(out[2 * block]) * threads_ * 16;
            rate += bytes / double(out[2 * block + 1]);
        }
        result.rates.push_back(rate);
    }
    return result;
}

}  // namespace probe
