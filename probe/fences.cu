// What a fence costs, by scope and by the stores to another memory that it has to wait for.

#include "context.h"
#include "device.cuh"
#include "statistics.h"

namespace probe {
namespace {

constexpr int fences = 32;   // In one kernel: the first meets a cold instruction cache.

// A block stores `words` words of 4 bytes; then its first thread fences. `out` gets the cycles of
// each fence, and those of the whole kernel with its ns.
template <bool System>
__global__ void fence(uint32_t* to, int words, uint64_t* out) {
    const uint64_t from = now();
    const long long begun = clock64();
    for (int round = 0; round < fences; ++round) {
        for (int at = int(threadIdx.x); at < words; at += int(blockDim.x)) {
            store4(to + at, uint32_t(at + round));
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            const long long first = clock64();
            if (System) {
                __threadfence_system();
            } else {
                __threadfence();
            }
            out[round] = uint64_t(clock64() - first);
        }
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    out[fences] = uint64_t(clock64() - begun);
    out[fences + 1] = now() - from;
}

void one(Context& context, int gpu, int memory, bool system, int words) {
    const Home home = memory < 0 ? Home::host : Home::device;
    Buffer<uint32_t> to(memory < 0 ? gpu : memory, home, 16384);
    Buffer<uint64_t> out(gpu, Home::device, fences + 2);
    Stream stream(gpu);
    for (int run = 0; run < context.repeats(); ++run) {
        std::vector<double> times;
        for (int round = 0; round < (context.options.tiny ? 1 : 10); ++round) {
            const int threads = words <= 32 ? 32 : 512;
            if (system) {
                fence<true><<<1, threads, 0, stream.use()>>>(to.get(), words, out.get());
            } else {
                fence<false><<<1, threads, 0, stream.use()>>>(to.get(), words, out.get());
            }
            PROBE_LAUNCHED("fence");
            stream.wait();
            uint64_t clocks[fences + 2];
            to_gpu(clocks, out.get(), fences + 2);
            const double ns = double(clocks[fences + 1]) / double(clocks[fences]);
            for (int at = 2; at < fences; ++at) times.push_back(double(clocks[at]) * ns);
        }
        Row row;
        row.experiment = "fence";
        row.flows = std::to_string(gpu) + ">" + memory_name(memory);
        row.size_bytes = uint64_t(words) * 4;
        row.condition = system ? "scope=system" : "scope=device";
        row.run = run;
        row.metric = "time";
        row.value = median(times);
        row.unit = "ns";
        row.note = "size: bytes stored just before, in words of 4";
        context.add(row);
    }
}

}  // namespace

void ask_fences(Context& context) {
    for (int words : {0, 32, 512, 4096}) {
        one(context, 0, -1, false, words);
        one(context, 0, -1, true, words);
    }
    for (auto [a, b] : context.machine.peer_pairs()) {
        for (int words : {0, 32, 512, 4096, 16384}) one(context, a, b, true, words);
    }
}

}  // namespace probe
