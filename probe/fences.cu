// What a fence costs, by scope and by the stores to another memory that it has to wait for.

#include "fences.cuh"

#include "device.cuh"
#include "statistics.h"

namespace probe {
namespace {

constexpr int fences = 32;   // In one kernel: the first meets a cold instruction cache.
constexpr int figures = fences + 2;   // Of one kernel.
constexpr int most_kernels = 10;

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
    FenceRun run_of(gpu, memory, system, words);
    for (int run = 0; run < context.repeats(); ++run) {
        Row row;
        row.experiment = "fence";
        row.flows = std::to_string(gpu) + ">" + memory_name(memory);
        row.size_bytes = uint64_t(words) * 4;
        row.condition = system ? "scope=system" : "scope=device";
        row.run = run;
        row.metric = "time";
        run_of.run(context.options.tiny ? 1 : most_kernels);
        row.value = run_of.ns();
        row.unit = "ns";
        row.note = "size: bytes stored just before, in words of 4";
        context.add(row);
    }
}

}  // namespace

FenceRun::FenceRun(int gpu, int memory, bool system, int words)
    : system(system), words(words), to(memory < 0 ? gpu : memory, memory < 0 ? Home::host : Home::device, 16384),
      out(gpu, Home::device, figures * most_kernels), stream(gpu) {}

void FenceRun::run(int count) {
    kernels = count;
    const int threads = words <= 32 ? 32 : 512;
    for (int kernel = 0; kernel < kernels; ++kernel) {
        uint64_t* const clocks = out.get() + kernel * figures;
        if (system) {
            fence<true><<<1, threads, 0, stream.use()>>>(to.get(), words, clocks);
        } else {
            fence<false><<<1, threads, 0, stream.use()>>>(to.get(), words, clocks);
        }
        PROBE_LAUNCHED("fence");
    }
    stream.wait();
}

double FenceRun::ns() {
    std::vector<uint64_t> clocks(size_t(figures) * kernels);
    to_gpu(clocks.data(), out.get(), clocks.size());
    std::vector<double> times;
    for (int kernel = 0; kernel < kernels; ++kernel) {
        const uint64_t* const of = clocks.data() + kernel * figures;
        const double ns = double(of[fences + 1]) / double(of[fences]);
        for (int at = 2; at < fences; ++at) times.push_back(double(of[at]) * ns);
    }
    return median(times);
}

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
