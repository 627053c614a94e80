// Rates of loads and stores by SMs, by blocks, threads, loads in flight and width of an access: the
// curve that shows how many accesses a path holds in flight, and where it is full.

#include <algorithm>
#include <vector>

#include "context.h"
#include "device.cuh"
#include "statistics.h"

namespace probe {
namespace {

constexpr size_t host_bytes = 64u << 20;
constexpr size_t peer_bytes = 256u << 20;

// Loads of 16 bytes a thread, `InFlight` issued before the first is used.
template <int InFlight>
__global__ void read16(const uint4* from, size_t count, uint4* sink) {
    const size_t stride = size_t(gridDim.x) * blockDim.x;
    size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    uint32_t sum = 0;
#pragma unroll 1
    for (; at + (InFlight - 1) * stride < count; at += InFlight * stride) {
        uint4 value[InFlight];
#pragma unroll
        for (int i = 0; i < InFlight; ++i) value[i] = load16(from + at + i * stride);
#pragma unroll
        for (int i = 0; i < InFlight; ++i) {
            sum += value[i].x ^ value[i].y ^ value[i].z ^ value[i].w;
        }
    }
    if (sum == 0x9e3779b9u) sink[0].x = sum;
}

__global__ void write16(uint4* to, size_t count, uint32_t value) {
    const size_t stride = size_t(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += stride) {
        store16(to + at, make_uint4(value, uint32_t(at), value, value));
    }
}

__global__ void write8(uint2* to, size_t count, uint32_t value) {
    const size_t stride = size_t(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += stride) {
        store8(to + at, make_uint2(value, uint32_t(at)));
    }
}

// Pieces of 32 bytes by two threads each, `apart` 16-byte units from one to the next.
__global__ void write_pieces(uint4* to, size_t pieces, size_t apart, uint32_t value) {
    const size_t stride = size_t(gridDim.x) * blockDim.x / 2;
    const size_t half = threadIdx.x & 1;
#pragma unroll 1
    for (size_t piece = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) / 2; piece < pieces;
         piece += stride) {
        store16(to + piece * apart + half, make_uint4(value, uint32_t(piece), value, value));
    }
}

struct Shape {
    int blocks, threads;
};

struct Target {
    int gpu, memory;
    const Stream& stream;
    Buffer<uint4>& buffer;
    Buffer<uint4>& sink;
};

// Median of three timed launches after one that warms up, us.
template <typename Launch>
double timed_us(const Stream& stream, int rounds, Launch launch) {
    std::vector<double> times;
    for (int round = 0; round <= rounds; ++round) {
        Timer timer(stream);
        timer.start();
        launch(stream.use());
        PROBE_LAUNCHED("a stream kernel");
        timer.stop();
        const double us = timer.us();
        if (round > 0) times.push_back(us);
    }
    return median(times);
}

void report(Context& context, const Target& target, const std::string& what, Shape shape,
            size_t bytes, double us, int run) {
    Row row;
    row.experiment = "stream_rate";
    row.flows = std::to_string(target.gpu) + ">" + memory_name(target.memory);
    row.size_bytes = bytes;
    row.condition = what + "; blocks=" + std::to_string(shape.blocks) +
                    "; threads=" + std::to_string(shape.threads);
    row.run = run;
    row.metric = "bandwidth";
    row.value = double(bytes) / us / 1e3;
    row.unit = "GB/s";
    context.add(row);
}

// Bytes that keep a shape busy for some milliseconds without filling the clock: about a thousand
// trips of every thread, within the buffer.
size_t bytes_for(const Target& target, Shape shape, bool write) {
    const size_t trip = size_t(shape.blocks) * size_t(shape.threads) * 16;
    const size_t least = write ? 16u << 20 : 1u << 20;
    const size_t wanted = std::max(trip * 1024, least);
    return std::min(wanted, target.buffer.bytes()) / trip * trip;
}

void shapes(Context& context, const Target& target, const std::vector<Shape>& all) {
    const int rounds = context.rounds(3);
    for (int run = 0; run < context.repeats(); ++run) {
        for (Shape shape : all) {
            const size_t reads = bytes_for(target, shape, false) / 16;
            const size_t writes = bytes_for(target, shape, true) / 16;
            const uint4* from = target.buffer.get();
            double us = timed_us(target.stream, rounds, [&](cudaStream_t on) {
                read16<1><<<shape.blocks, shape.threads, 0, on>>>(from, reads, target.sink.get());
            });
            report(context, target, "op=read; width=16; in_flight=1", shape, reads * 16, us, run);
            us = timed_us(target.stream, rounds, [&](cudaStream_t on) {
                read16<4><<<shape.blocks, shape.threads, 0, on>>>(from, reads, target.sink.get());
            });
            report(context, target, "op=read; width=16; in_flight=4", shape, reads * 16, us, run);
            us = timed_us(target.stream, rounds, [&](cudaStream_t on) {
                write16<<<shape.blocks, shape.threads, 0, on>>>(target.buffer.get(), writes, 7);
            });
            report(context, target, "op=write; width=16", shape, writes * 16, us, run);
            if (shape.blocks > 1 && shape.blocks != 16) continue;
            us = timed_us(target.stream, rounds, [&](cudaStream_t on) {
                write8<<<shape.blocks, shape.threads, 0, on>>>(
                    reinterpret_cast<uint2*>(target.buffer.get()), writes * 2, 7);
            });
            report(context, target, "op=write; width=8", shape, writes * 16, us, run);
        }
    }
}

void pieces(Context& context, const Target& target) {
    const Shape shape{context.machine.gpus[size_t(target.gpu)].properties.multiProcessorCount, 512};
    const int rounds = context.rounds(3);
    for (int run = 0; run < context.repeats(); ++run) {
        for (size_t stride : {32, 64, 128, 256}) {
            const size_t count = target.buffer.bytes() / 256;
            const double us = timed_us(target.stream, rounds, [&](cudaStream_t on) {
                write_pieces<<<shape.blocks, shape.threads, 0, on>>>(target.buffer.get(), count,
                                                                     stride / 16, 7);
            });
            const std::string what = "op=write; width=32; stride=" + std::to_string(stride);
            report(context, target, what, shape, count * 32, us, run);
        }
    }
}

// What write16 left behind, read back by the CPU.
void verify(const Target& target, size_t count) {
    std::vector<uint4> back(count);
    write16<<<4, 512, 0, target.stream.use()>>>(target.buffer.get(), count, 11);
    PROBE_LAUNCHED("write16");
    target.stream.wait();
    to_gpu(back.data(), target.buffer.get(), count);
    for (size_t at = 0; at < count; ++at) {
        if (back[at].x != 11 || back[at].y != uint32_t(at)) {
            throw std::runtime_error("stores did not arrive as they were sent");
        }
    }
}

void one(Context& context, int gpu, int memory) {
    const bool host = memory < 0;
    const size_t bytes = context.bytes(host ? host_bytes : peer_bytes);
    Buffer<uint4> buffer(host ? gpu : memory, host ? Home::host : Home::device, bytes / 16);
    Buffer<uint4> sink(gpu, Home::device, 1);
    Stream stream(gpu);
    const Target target{gpu, memory, stream, buffer, sink};
    verify(target, std::min<size_t>(buffer.count(), 4096));
    const int sms = context.machine.gpus[size_t(gpu)].properties.multiProcessorCount;
    std::vector<Shape> all;
    if (context.options.tiny) {
        all = {{1, 32}, {2, 512}};
    } else if (context.options.quick) {
        all = {{1, 32}, {1, 512}, {4, 512}, {16, 512}, {sms, 512}};
    } else {
        for (int threads : {32, 64, 128, 256, 512, 1024}) all.push_back({1, threads});
        for (int blocks : {2, 4, 8, 16, 32, 64, sms}) all.push_back({blocks, 512});
        if (!host) all.push_back({sms, 1024});
        all.push_back({2 * sms, host ? 512 : 1024});
    }
    shapes(context, target, all);
    pieces(context, target);
}

}  // namespace

void ask_streams(Context& context) {
    // All links of one kind are alike until `host_streams` shows otherwise: GPU 0 stands for all.
    one(context, 0, -1);
    for (auto [a, b] : context.machine.peer_pairs()) one(context, a, b);
}

}  // namespace probe
