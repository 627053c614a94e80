// The kernels of the collectives. One template a kind; a block is (rank, part), and block `part` of
// a rank works with block `part` of the others only.
//
// What each does, so that it can be replayed instruction by instruction:
// - ring_ll: 2(R-1) steps; every thread stores its lines of 8 bytes of data and 8 of flags into the
//   next rank's slot, polls its own lines one at a time, adds or copies; a block barrier a step.
// - ring_simple: the same steps with plain stores of 16 bytes, a block barrier, a fence and one flag.
// - one_stage_pull: barrier; all R buffers are read with 16 bytes a thread, in groups; barrier.
// - two_stage_pull: barrier; own part read from all and added; barrier; all parts read one by one.
// - one_stage_push_ll: R-1 lines stored an element; then for each element R-1 polls, one at a time.
// - Barrier: threads 0 to R-1 each fence at system scope, store one flag at the peer and poll their
//   own by acquire loads; a block barrier before and after.
#pragma once

#include "collectives.cuh"
#include "device.cuh"

namespace probe {

constexpr int call_threads = 512;
constexpr int flags_a_part = 32;   // Places for flags, a line of 128 bytes.

// What peers address of a rank.
struct RankMemory {
    uint4* input;      // The buffer that is summed: in host memory if ranks meet there.
    uint4* part;       // Sums of the first stage.
    uint4* inbox;      // Lines or slots, two sets: calls of odd number use the second.
    uint32_t* flags;   // [part][rank], counted up; a line a part, so that blocks do not share one.
    // The rank's own, always in its GPU.
    uint4* local;      // The input again, for kernels whose own data are at home.
    uint4* output;
    uint4* work;
    Stamp* stamps;
    const uint32_t* pauses;
};

struct CallPlan {
    const RankMemory* ranks;   // In the memory of the GPU that runs: pointers are loaded, and cached.
    int count, first;          // Ranks in all; the first of this GPU.
    int blocks;                // Of a rank.
    size_t units;              // 16-byte units of the buffer.
    int calls;
    size_t work_units;
    bool stamp_ends;
    size_t inbox_units;        // Of one set.
    uint32_t* failed;          // Set when a poll gave up.
};

__device__ inline uint4 add(uint4 a, uint4 b) {
    return make_uint4(__float_as_uint(__uint_as_float(a.x) + __uint_as_float(b.x)),
                      __float_as_uint(__uint_as_float(a.y) + __uint_as_float(b.y)),
                      __float_as_uint(__uint_as_float(a.z) + __uint_as_float(b.z)),
                      __float_as_uint(__uint_as_float(a.w) + __uint_as_float(b.w)));
}

__device__ inline uint2 add(uint2 a, uint2 b) {
    return make_uint2(__float_as_uint(__uint_as_float(a.x) + __uint_as_float(b.x)),
                      __float_as_uint(__uint_as_float(a.y) + __uint_as_float(b.y)));
}

// One block's view of a call.
struct Place {
    int rank, part;
    uint32_t call;   // From 1: also the flag of the call's lines.
};

__device__ inline void store_line(uint4* at, uint2 data, uint32_t flag) {
    store16(at, make_uint4(data.x, flag, data.y, flag));
}

__device__ inline uint2 poll_line(const uint4* at, uint32_t flag, uint32_t* failed) {
#pragma unroll 1
    for (uint32_t polls = 0; polls < polls_max; ++polls) {
        const uint4 line = load16(at);
        if (line.y == flag && line.w == flag) return make_uint2(line.x, line.z);
    }
    store_flag(failed, 1);
    return make_uint2(0, 0);
}

// Waits until `count` flags have come; `number` counts the barriers of a block.
__device__ inline void rank_barrier(const CallPlan& plan, const Place& at, uint32_t number) {
    __syncthreads();
    const int peer = int(threadIdx.x);
    if (peer < plan.count) {
        __threadfence_system();
        store_flag(plan.ranks[peer].flags + at.part * flags_a_part + at.rank, number);
        const uint32_t* own = plan.ranks[at.rank].flags + at.part * flags_a_part + peer;
        if (!poll<true>(own, number)) store_flag(plan.failed, 1);
    }
    __syncthreads();
}

__device__ inline uint2* half(uint4* at) { return reinterpret_cast<uint2*>(at); }

// The chunk that a rank sends and the one that it gets at a step; from step R-1 on sums travel.
__device__ inline int sent_chunk(int rank, int step, int count) {
    return ((rank - step) % count + count) % count;
}

__device__ inline void ring_ll(const CallPlan& plan, const Place& at) {
    const int count = plan.count, steps = 2 * (count - 1);
    const int lines = int(plan.units * 2 / size_t(count));
    const RankMemory& own = plan.ranks[at.rank];
    uint4* next = plan.ranks[(at.rank + 1) % count].inbox + (at.call & 1) * plan.inbox_units;
    uint4* inbox = own.inbox + (at.call & 1) * plan.inbox_units;
    uint2* input = half(own.local);
    uint2* output = half(own.output);
    for (int step = 0; step < steps; ++step) {
        const size_t out = size_t(sent_chunk(at.rank, step, count)) * lines;
        const size_t in = size_t(sent_chunk(at.rank, step + 1, count)) * lines;
        const bool reduces = step < count - 1;
        for (int line = int(threadIdx.x); line < lines; line += int(blockDim.x)) {
            const uint2 data = step == 0 ? input[out + line] : output[out + line];
            store_line(next + size_t(step) * lines + line, data, at.call);
        }
        for (int line = int(threadIdx.x); line < lines; line += int(blockDim.x)) {
            const uint2 data = poll_line(inbox + size_t(step) * lines + line, at.call, plan.failed);
            output[in + line] = reduces ? add(data, input[in + line]) : data;
        }
        __syncthreads();
    }
}

__device__ inline void ring_simple(const CallPlan& plan, const Place& at) {
    const int count = plan.count, steps = 2 * (count - 1);
    const int units = int(plan.units / size_t(count));
    const RankMemory& own = plan.ranks[at.rank];
    const RankMemory& next = plan.ranks[(at.rank + 1) % count];
    uint4* to = next.inbox + (at.call & 1) * plan.inbox_units;
    uint4* inbox = own.inbox + (at.call & 1) * plan.inbox_units;
    for (int step = 0; step < steps; ++step) {
        const uint32_t number = (at.call - 1) * uint32_t(steps) + uint32_t(step) + 1;
        const size_t out = size_t(sent_chunk(at.rank, step, count)) * units;
        const size_t in = size_t(sent_chunk(at.rank, step + 1, count)) * units;
        for (int unit = int(threadIdx.x); unit < units; unit += int(blockDim.x)) {
            const uint4 data = step == 0 ? own.local[out + unit] : own.output[out + unit];
            store16(to + size_t(step) * units + unit, data);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            store_flag(next.flags, number);
            if (!poll<true>(own.flags, number)) store_flag(plan.failed, 1);
        }
        __syncthreads();
        for (int unit = int(threadIdx.x); unit < units; unit += int(blockDim.x)) {
            const uint4 data = load16(inbox + size_t(step) * units + unit);
            own.output[in + unit] = step < count - 1 ? add(data, own.local[in + unit]) : data;
        }
        __syncthreads();
    }
}

// Adds `Group` buffers from rank `first` on: that many loads are issued before the first is used.
template <int Group>
__device__ inline uint4 add_group(const CallPlan& plan, int first, size_t unit, uint4 sum) {
    uint4 value[Group];
#pragma unroll
    for (int i = 0; i < Group; ++i) value[i] = load16(plan.ranks[first + i].input + unit);
    // All additions wait for the last load, so that none is put off until after an addition.
    uint4 group = value[Group - 1];
#pragma unroll
    for (int i = 0; i + 1 < Group; ++i) group = add(group, value[i]);
    return add(sum, group);
}

// Groups of `Group` ranks and, if it is not zero, one last group of `Last`.
template <int Group, int Last>
__device__ inline uint4 add_all(const CallPlan& plan, size_t unit) {
    uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 1
    for (int first = 0; first + Group <= plan.count - Last; first += Group) {
        sum = add_group<Group>(plan, first, unit, sum);
    }
    if constexpr (Last > 0) sum = add_group<Last>(plan, plan.count - Last, unit, sum);
    return sum;
}

template <int Group, int Last>
__device__ inline void one_stage_pull(const CallPlan& plan, const Place& at) {
    rank_barrier(plan, at, 2 * at.call - 1);
    const size_t stride = size_t(plan.blocks) * blockDim.x;
    uint4* output = plan.ranks[at.rank].output;
    for (size_t unit = size_t(at.part) * blockDim.x + threadIdx.x; unit < plan.units; unit += stride) {
        output[unit] = add_all<Group, Last>(plan, unit);
    }
    rank_barrier(plan, at, 2 * at.call);
}

template <int Group, int Last>
__device__ inline void two_stage_pull(const CallPlan& plan, const Place& at) {
    rank_barrier(plan, at, 2 * at.call - 1);
    const size_t own = plan.units / size_t(plan.count);
    const size_t stride = size_t(plan.blocks) * blockDim.x;
    const size_t first = size_t(at.part) * blockDim.x + threadIdx.x;
    for (size_t unit = first; unit < own; unit += stride) {
        const uint4 sum = add_all<Group, Last>(plan, size_t(at.rank) * own + unit);
        store16(plan.ranks[at.rank].part + unit, sum);
    }
    rank_barrier(plan, at, 2 * at.call);
    uint4* output = plan.ranks[at.rank].output;
    for (size_t unit = first; unit < own; unit += stride) {
#pragma unroll 1
        for (int rank = 0; rank < plan.count; ++rank) {
            output[size_t(rank) * own + unit] = load16(plan.ranks[rank].part + unit);
        }
    }
}

__device__ inline void one_stage_push_ll(const CallPlan& plan, const Place& at) {
    const int count = plan.count;
    const size_t elements = plan.units * 2, set = (at.call & 1) * plan.inbox_units;
    const RankMemory& own = plan.ranks[at.rank];
    for (size_t element = threadIdx.x; element < elements; element += blockDim.x) {
        const uint2 data = half(own.local)[element];
        for (int step = 1; step < count; ++step) {
            uint4* inbox = plan.ranks[(at.rank + step) % count].inbox + set;
            store_line(inbox + size_t(at.rank) * elements + element, data, at.call);
        }
    }
    for (size_t element = threadIdx.x; element < elements; element += blockDim.x) {
        uint2 sum = half(own.local)[element];
        for (int step = 1; step < count; ++step) {
            const int peer = (at.rank + step) % count;
            const uint4* line = own.inbox + set + size_t(peer) * elements + element;
            sum = add(sum, poll_line(line, at.call, plan.failed));
        }
        half(own.output)[element] = sum;
    }
    __syncthreads();
}

// Work between two calls: reads of the rank's own memory, then the pause that is put in.
__device__ inline void stay_away(const CallPlan& plan, const Place& at, uint64_t ended) {
    const RankMemory& own = plan.ranks[at.rank];
    uint32_t sum = 0;
    for (size_t unit = threadIdx.x; unit < plan.work_units; unit += blockDim.x) {
        sum += load16(own.work + unit).x;
    }
    if (sum == 0x9e3779b9u) own.work[0].x = sum;
    if (own.pauses != nullptr && threadIdx.x == 0) wait_until(ended + own.pauses[at.call - 1]);
    __syncthreads();
}

template <Kind K, int Group, int Last>
__global__ void __launch_bounds__(call_threads) calls_kernel(CallPlan plan) {
    Place at = {plan.first + int(blockIdx.x) / plan.blocks, int(blockIdx.x) % plan.blocks, 0};
    const bool stamps = at.part == 0 && threadIdx.x == 0;
    const bool stays_away = plan.work_units > 0 || plan.ranks[at.rank].pauses != nullptr;
    uint64_t ended = now();
    for (int call = 0; call < plan.calls; ++call) {
        at.call = uint32_t(call) + 1;
        if (stays_away) stay_away(plan, at, ended);
        if (stamps) plan.ranks[at.rank].stamps[call].ready = now();
        if constexpr (K == Kind::ring_ll) ring_ll(plan, at);
        if constexpr (K == Kind::ring_simple) ring_simple(plan, at);
        if constexpr (K == Kind::one_stage_pull) one_stage_pull<Group, Last>(plan, at);
        if constexpr (K == Kind::two_stage_pull) two_stage_pull<Group, Last>(plan, at);
        if constexpr (K == Kind::one_stage_push_ll) one_stage_push_ll(plan, at);
        if (plan.stamp_ends || stays_away) {
            __syncthreads();
            ended = now();
            if (stamps) plan.ranks[at.rank].stamps[call].end = ended;
        }
    }
    if (stamps) plan.ranks[at.rank].stamps[plan.calls - 1].end = now();
}

}  // namespace probe
