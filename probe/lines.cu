// Single reads and single lines: how much one read differs from the next, how long a look of a
// polling loop takes, and whether reads of one line by several SMs wait for each other.

#include <algorithm>

#include "context.h"
#include "device.cuh"
#include "statistics.h"

namespace probe {
namespace {

constexpr int reads = 4096;

// Cycles of each of `reads` dependent reads over 512 lines, by the SM's own clock.
__global__ void spread(const uint32_t* words, uint32_t* cycles, uint64_t* clocks) {
    uint32_t at = 0;
    const uint64_t from = now();
    const long long first = clock64();
#pragma unroll 1
    for (int read = 0; read < reads; ++read) {
        const long long before = clock64();
        const uint32_t value = load4(words + at);
        // The lines hold zeros; the address waits for the value and so does the clock.
        at = (uint32_t(read) * 167 % 512) * 32 + value;
        const long long after = clock64() + (at == 0xffffffffu);
        cycles[read] = uint32_t(after - before);
    }
    clocks[0] = uint64_t(clock64() - first);
    clocks[1] = now() - from;
}

template <bool Acquire>
__global__ void look(const uint32_t* flag, int looks, uint64_t* out) {
    const uint64_t from = now();
    int seen = 0;
#pragma unroll 1
    for (int at = 0; at < looks; ++at) {
        const uint32_t value = Acquire ? load_acquire(flag) : load_flag(flag);
        if (value != 0) seen = at;
    }
    out[0] = now() - from;
    out[1] = uint64_t(seen);
}

// Each block reads 8 buffers, `InFlight` loads a thread before the first is used; the same buffers
// as the others or its own, from the first on or each block from another.
struct Readers {
    const uint4* area;
    size_t units;       // Of a buffer.
    bool own, rotated;
    uint32_t* arrived;
    uint64_t* out;
};

template <int InFlight>
__global__ void read_lines(Readers plan) {
    __shared__ uint64_t from;
    if (threadIdx.x == 0) {
        // All blocks begin together.
        atomicAdd(plan.arrived, 1);
        poll<false>(plan.arrived, gridDim.x);
        from = now();
    }
    __syncthreads();
    const uint4* mine = plan.area + (plan.own ? blockIdx.x * 8 * plan.units : 0);
    uint32_t sum = 0;
    for (size_t at = threadIdx.x; at < plan.units; at += blockDim.x) {
#pragma unroll 1
        for (int first = 0; first < 8; first += InFlight) {
            uint4 value[InFlight];
#pragma unroll
            for (int i = 0; i < InFlight; ++i) {
                const uint32_t buffer = (first + i + (plan.rotated ? blockIdx.x : 0)) & 7;
                value[i] = load16(mine + buffer * plan.units + at);
            }
#pragma unroll
            for (int i = 0; i < InFlight; ++i) sum += value[i].x ^ value[i].w;
        }
    }
    const int any = __syncthreads_or(sum == 0x9e3779b9u);
    if (threadIdx.x == 0) plan.out[blockIdx.x] = now() - from + uint64_t(any);
}

void spread_of(Context& context, int gpu, int memory) {
    const Home home = memory < 0 ? Home::host : Home::device;
    Buffer<uint32_t> words(memory < 0 ? gpu : memory, home, 512 * 32);
    Buffer<uint32_t> cycles(gpu, Home::device, reads);
    Buffer<uint64_t> clocks(gpu, Home::device, 2);
    Stream stream(gpu);
    for (int run = -1; run < context.repeats(); ++run) {
        spread<<<1, 1, 0, stream.use()>>>(words.get(), cycles.get(), clocks.get());
        PROBE_LAUNCHED("spread");
        stream.wait();
        std::vector<uint32_t> each(reads);
        uint64_t both[2];
        to_gpu(each.data(), cycles.get(), each.size());
        to_gpu(both, clocks.get(), 2);
        if (run < 0) continue;   // Cold.
        const double ns = double(both[1]) / double(both[0]);
        std::vector<double> times;
        for (uint32_t one : each) times.push_back(one * ns);
        const std::pair<const char*, double> shares[] = {{"p1", .01},  {"p5", .05},  {"p25", .25},
                                                         {"p50", .5},  {"p75", .75}, {"p95", .95},
                                                         {"p99", .99}, {"p999", .999}};
        for (auto [name, share] : shares) {
            Row row;
            row.experiment = "read_spread";
            row.flows = std::to_string(gpu) + ">" + memory_name(memory);
            row.size_bytes = 4;
            row.run = run;
            row.metric = std::string("latency_") + name;
            row.value = percentile(times, share);
            row.unit = "ns";
            context.add(row);
        }
    }
}

void poll_of(Context& context, int gpu, int memory) {
    const Home home = memory < 0 ? Home::host : Home::device;
    Buffer<uint32_t> flag(memory < 0 ? gpu : memory, home, 1);
    Buffer<uint64_t> out(gpu, Home::device, 2);
    Stream stream(gpu);
    const int looks = context.options.tiny ? 64 : 4096;
    for (bool acquire : {false, true}) {
        for (int run = -1; run < context.repeats(); ++run) {
            if (acquire) {
                look<true><<<1, 1, 0, stream.use()>>>(flag.get(), looks, out.get());
            } else {
                look<false><<<1, 1, 0, stream.use()>>>(flag.get(), looks, out.get());
            }
            PROBE_LAUNCHED("look");
            stream.wait();
            uint64_t ns = 0;
            to_gpu(&ns, out.get(), 1);
            if (run < 0) continue;
            Row row;
            row.experiment = "poll_period";
            row.flows = std::to_string(gpu) + ">" + memory_name(memory);
            row.size_bytes = 4;
            row.condition = acquire ? "order=acquire" : "order=volatile";
            row.run = run;
            row.metric = "time";
            row.value = double(ns) / looks;
            row.unit = "ns";
            context.add(row);
        }
    }
}

void readers_of(Context& context, int gpu, int memory) {
    const size_t largest = 43008;
    const Home home = memory < 0 ? Home::host : Home::device;
    const int most = context.options.tiny ? 2 : 16;
    Buffer<uint4> area(memory < 0 ? gpu : memory, home, size_t(most) * 8 * largest / 16);
    Buffer<uint32_t> arrived(gpu, Home::device, 1);
    Buffer<uint64_t> out(gpu, Home::device, size_t(most));
    Stream stream(gpu);
    for (size_t bytes : {size_t(2048), size_t(14336), largest}) {
        for (int blocks = 1; blocks <= most; blocks *= (context.options.quick ? 8 : 2)) {
            for (int kind = 0; kind < 3; ++kind) {
                const Readers plan = {area.get(), bytes / 16, kind == 1, kind == 2, arrived.get(),
                                      out.get()};
                std::vector<double> slowest;
                for (int round = -1; round < context.rounds(5); ++round) {
                    PROBE_CHECK(cudaMemsetAsync(arrived.get(), 0, 4, stream.use()));
                    read_lines<2><<<blocks, 512, 0, stream.use()>>>(plan);
                    PROBE_LAUNCHED("read_lines");
                    stream.wait();
                    std::vector<uint64_t> ns(static_cast<size_t>(blocks));
                    to_gpu(ns.data(), out.get(), ns.size());
                    if (round >= 0) {
                        slowest.push_back(double(*std::max_element(ns.begin(), ns.end())));
                    }
                }
                const char* names[] = {"same", "own", "rotated"};
                Row row;
                row.experiment = "line_readers";
                row.flows = std::to_string(gpu) + ">" + memory_name(memory);
                row.size_bytes = bytes;
                row.condition = std::string("buffers=8; lines=") + names[kind] +
                                "; in_flight=2; blocks=" + std::to_string(blocks) +
                                "; threads=512";
                row.metric = "time";
                row.value = median(slowest) / 1e3;
                row.unit = "us";
                row.note = "until the slowest block has read all";
                context.add(row);
            }
        }
    }
}

}  // namespace

void ask_lines(Context& context) {
    std::vector<std::pair<int, int>> paths = {{0, 0}, {0, -1}};
    for (auto [a, b] : context.machine.peer_pairs()) paths.emplace_back(a, b);
    for (auto [gpu, memory] : paths) {
        spread_of(context, gpu, memory);
        poll_of(context, gpu, memory);
        readers_of(context, gpu, memory);
    }
}

}  // namespace probe
