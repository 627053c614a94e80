// Latency of dependent reads, one after another: the unloaded round trip to each memory.

#include <vector>

#include "context.h"
#include "device.cuh"

namespace probe {
namespace {

constexpr uint32_t line_words = 32;   // 128 bytes.
constexpr uint32_t lines = 512;       // 64 KB: larger than what one look-ahead would fetch.

// Every word of a line holds where the next line begins, so that a thread or a warp can follow.
std::vector<uint32_t> cycle() {
    std::vector<uint32_t> words(lines * line_words);
    // 167 is prime to 512: all lines are visited, none beside the one before.
    for (uint32_t line = 0; line < lines; ++line) {
        for (uint32_t word = 0; word < line_words; ++word) {
            words[line * line_words + word] = (line + 167) % lines * line_words;
        }
    }
    return words;
}

// One thread reads 4 bytes at a time, or a warp 128.
__global__ void chase(const uint32_t* words, int hops, uint64_t* out) {
    uint32_t at = 0;
    const uint64_t from = now();
#pragma unroll 1
    for (int hop = 0; hop < hops; ++hop) {
        at = load4(words + at + threadIdx.x);
    }
    const uint64_t to = now();
    if (threadIdx.x == 0) {
        out[0] = to - from;
        out[1] = at;
    }
}

double chase_ns(const Stream& stream, const uint32_t* words, int threads, int hops) {
    Buffer<uint64_t> out(stream.gpu(), Home::device, 2);
    chase<<<1, threads, 0, stream.use()>>>(words, hops, out.get());
    PROBE_LAUNCHED("chase");
    stream.wait();
    uint64_t result[2];
    to_gpu(result, out.get(), 2);
    if (result[1] != uint64_t(hops) * 167 % lines * line_words) {
        throw std::runtime_error("a chain of reads ended at the wrong place");
    }
    return double(result[0]) / hops;
}

// Lines of host memory that the CPU wrote last lie in its caches, and a read of them takes another
// way than one of lines that a GPU wrote, as all lines of GPUs that meet in host memory are.
void one(Context& context, int reader, int memory, int hops, bool by_cpu) {
    const std::vector<uint32_t> words = cycle();
    const bool host = memory < 0;
    Buffer<uint32_t> buffer(host ? reader : memory, host ? Home::host : Home::device, words.size());
    Buffer<uint32_t> staged(reader, Home::device, words.size());
    to_gpu(staged.get(), words.data(), words.size());
    to_gpu(buffer.get(), by_cpu ? words.data() : staged.get(), words.size());
    Stream stream(reader);
    for (int threads : {1, 32}) {
        chase_ns(stream, buffer.get(), threads, int(lines));   // Warms up: pages, clocks.
        for (int run = 0; run < context.repeats(); ++run) {
            Row row;
            row.experiment = "read_latency";
            row.flows = std::to_string(reader) + ">" + memory_name(memory);
            row.size_bytes = uint64_t(threads) * 4;
            if (host) row.condition = by_cpu ? "lines=written_by_cpu" : "lines=written_by_gpu";
            row.run = run;
            row.metric = "latency";
            row.value = chase_ns(stream, buffer.get(), threads, hops);
            row.unit = "ns";
            context.add(row);
        }
    }
}

}  // namespace

void ask_latency(Context& context) {
    const int hops = context.options.tiny ? 64 : 4096;
    for (int gpu = 0; gpu < context.machine.count(); ++gpu) {
        one(context, gpu, gpu, hops, false);
        one(context, gpu, -1, hops, false);
        one(context, gpu, -1, hops, true);
    }
    for (auto [a, b] : context.machine.peer_pairs()) {
        one(context, a, b, hops, false);
        one(context, b, a, hops, false);
    }
}

}  // namespace probe
