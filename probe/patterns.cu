// Several flows between GPUs at once, by SMs that read and by copy engines: permutations, one to
// many, many to one, all to all in three orders, and two sources of one switch to two destinations.

#include <algorithm>
#include <memory>

#include "context.h"
#include "device.cuh"
#include "statistics.h"

namespace probe {
namespace {

constexpr int threads = 512;

// Blocks wait for the gate, which opens for all GPUs at once, and read 16 bytes a thread, four
// loads in flight.
__global__ void pull(const uint4* from, size_t count, const uint32_t* gate, uint32_t* sink) {
    if (threadIdx.x == 0) poll<false>(gate, 1);
    __syncthreads();
    const size_t stride = size_t(gridDim.x) * blockDim.x;
    uint32_t sum = 0;
    size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (; at + 3 * stride < count; at += 4 * stride) {
        uint4 value[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) value[i] = load16(from + at + i * stride);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += value[i].x ^ value[i].w;
    }
    if (sum == 0x9e3779b9u) *sink = sum;
}

__global__ void hold(const uint32_t* gate) { poll<false>(gate, 1); }

struct Pattern {
    std::string name;
    std::vector<Flow> flows;
    // Flows of one reader run one after another, in the order of the list; otherwise at once.
    bool in_turn = false;
};

// The order in which reader `to` visits the others.
std::vector<int> order(const std::string& kind, int gpus, int to) {
    std::vector<int> sources;
    for (int step = 1; step < gpus; ++step) {
        sources.push_back((to + step) % gpus);
    }
    if (kind == "from_zero") std::sort(sources.begin(), sources.end());
    if (kind == "random") {
        for (size_t at = sources.size(); at > 1; --at) {
            std::swap(sources[at - 1], sources[scatter(uint32_t(to), uint32_t(at), uint32_t(at))]);
        }
    }
    return sources;
}

// A pair of GPUs below one switch, and two more below two others, by nvidia-smi's words.
std::vector<Flow> two_roots(const Machine& machine) {
    const auto& word = machine.matrix;
    if (word.empty()) return {};
    const int gpus = machine.count();
    auto near = [&](int a, int b) { return word[size_t(a)][size_t(b)] == "PIX"; };
    for (int a = 0; a < gpus; ++a) {
        for (int b = a + 1; b < gpus; ++b) {
            if (!near(a, b)) continue;
            for (int c = 0; c < gpus; ++c) {
                for (int d = c + 1; d < gpus; ++d) {
                    const bool apart = !near(c, d) && !near(a, c) && !near(a, d) && c != a &&
                                       c != b && d != a && d != b;
                    if (apart) return {{a, c}, {b, d}};
                }
            }
        }
    }
    return {};
}

std::vector<Pattern> patterns(const Machine& machine) {
    const int gpus = machine.count();
    std::vector<Pattern> all;
    for (int distance = 1; distance < gpus; ++distance) {
        all.push_back({"staggered distance " + std::to_string(distance), staggered(gpus, distance)});
    }
    for (int k = 2; k < gpus; k *= 2) {
        std::vector<Flow> in, out;
        for (int other = 1; other <= k; ++other) {
            in.push_back({other, 0});
            out.push_back({0, other});
        }
        all.push_back({std::to_string(k) + " to 1", in});
        all.push_back({"1 to " + std::to_string(k), out});
    }
    for (int a = 0; a + 1 < gpus && a < 4; a += 2) {
        all.push_back({"one flow", {{a, a + 1}}});
    }
    std::vector<Flow> every;
    for (int to = 0; to < gpus; ++to) {
        for (int from : order("staggered", gpus, to)) every.push_back({from, to});
    }
    all.push_back({"all to all at once", every});
    for (const char* kind : {"staggered", "random", "from_zero"}) {
        if (gpus < 3) break;
        std::vector<Flow> flows;
        for (int to = 0; to < gpus; ++to) {
            for (int from : order(kind, gpus, to)) flows.push_back({from, to});
        }
        all.push_back({std::string("all to all in turn, ") + kind, flows, true});
    }
    const std::vector<Flow> collapse = two_roots(machine);
    if (!collapse.empty()) all.push_back({"two of one switch to two roots", collapse});
    return all;
}

// What all flows of all GPUs share: a source buffer each GPU, and a buffer a flow for copies.
struct Bench {
    Context& context;
    size_t bytes;
    std::vector<Buffer<uint4>> source;
    std::vector<Buffer<uint32_t>> sink;
    Buffer<uint32_t> gate;

    Bench(Context& context, size_t bytes)
        : context(context), bytes(bytes), gate(0, Home::host, 1) {
        for (int gpu = 0; gpu < context.machine.count(); ++gpu) {
            source.emplace_back(gpu, Home::device, bytes / 16);
            sink.emplace_back(gpu, Home::device, 1);
        }
    }
};

// Rate of each flow by its own clock, GB/s; the last figure is that of all until the last has ended.
std::vector<double> run(Bench& bench, const Pattern& pattern, bool by_sm) {
    std::vector<int> per_gpu(bench.source.size(), 0);
    for (const Flow& flow : pattern.flows) ++per_gpu[size_t(flow.to)];
    // Allocations wait for the GPU, so that none may come once its streams are held.
    std::vector<Buffer<uint4>> targets;
    for (const Flow& flow : pattern.flows) {
        if (!by_sm) targets.emplace_back(flow.to, Home::device, bench.bytes / 16);
    }
    volatile uint32_t* gate = bench.gate.get();
    *gate = 0;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Timer>> timers;
    std::vector<size_t> stream_of;
    for (size_t at = 0; at < pattern.flows.size(); ++at) {
        const Flow flow = pattern.flows[at];
        // A flow in turn follows the one before it of the same reader on the same stream.
        const bool follows = pattern.in_turn && at > 0 && pattern.flows[at - 1].to == flow.to;
        if (!follows) {
            streams.push_back(std::make_unique<Stream>(flow.to));
            timers.push_back(std::make_unique<Timer>(*streams.back()));
            hold<<<1, 1, 0, streams.back()->use()>>>(bench.gate.get());
            PROBE_LAUNCHED("hold");
            timers.back()->start();
        }
        stream_of.push_back(streams.size() - 1);
        const cudaStream_t on = streams.back()->use();
        const uint4* from = bench.source[size_t(flow.from)].get();
        if (by_sm) {
            const int sms =
                bench.context.machine.gpus[size_t(flow.to)].properties.multiProcessorCount;
            const int at_once = pattern.in_turn ? 1 : per_gpu[size_t(flow.to)];
            const int blocks = std::max(1, std::min(64, sms / at_once / 2));
            pull<<<blocks, threads, 0, on>>>(from, bench.bytes / 16, bench.gate.get(),
                                             bench.sink[size_t(flow.to)].get());
            PROBE_LAUNCHED("pull");
        } else {
            PROBE_CHECK(cudaMemcpyAsync(targets[at].get(), from, bench.bytes, cudaMemcpyDefault, on));
        }
        timers.back()->stop();
    }
    *gate = 1;
    std::vector<double> rates;
    double last = 0;
    for (auto& timer : timers) last = std::max(last, timer->us());
    for (size_t at = 0; at < pattern.flows.size(); ++at) {
        // Flows in turn share one clock.
        const double count = double(std::count(stream_of.begin(), stream_of.end(), stream_of[at]));
        rates.push_back(count * double(bench.bytes) / timers[stream_of[at]]->us() / 1e3);
    }
    rates.push_back(double(bench.bytes) * double(pattern.flows.size()) / last / 1e3);
    return rates;
}

}  // namespace

void ask_patterns(Context& context) {
    const size_t full = context.machine.count() > 4 ? 64u << 20 : 256u << 20;
    Bench bench(context, context.bytes(full));
    for (const Pattern& pattern : patterns(context.machine)) {
        for (bool by_sm : {true, false}) {
            for (int number = -1; number < context.repeats(); ++number) {
                const std::vector<double> rates = run(bench, pattern, by_sm);
                if (number < 0) continue;
                Row row;
                row.experiment = "pattern";
                row.implementation = by_sm ? "probe" : "copy_engine";
                row.ranks = context.machine.count();
                row.flows = flow_text(pattern.flows);
                row.size_bytes = bench.bytes;
                row.condition = pattern.name;
                row.run = number;
                row.metric = "bandwidth";
                row.value = rates.back();
                row.unit = "GB/s";
                std::vector<double> each(rates.begin(), rates.end() - 1);
                row.note = "of all flows, bytes over the time until the last has ended; slowest flow " +
                           figure(percentile(each, 0)) + ", fastest " + figure(percentile(each, 1));
                context.add(row);
            }
        }
    }
}

}  // namespace probe
