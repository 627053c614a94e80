// Copies by the copy engines, by size: to and from the host, to a peer, both ways at once.

#include <vector>

#include "context.h"
#include "statistics.h"

namespace probe {
namespace {

struct Copy {
    int from, to;   // GPU, or -1 for the host.
};

std::string flows(const std::vector<Copy>& copies) {
    std::string out;
    for (const Copy& copy : copies) {
        if (!out.empty()) out += '+';
        out += memory_name(copy.from) + ">" + memory_name(copy.to);
    }
    return out;
}

// The engine that does it: the sender's, or that of the GPU where the host sends.
int engine(const Copy& copy) { return copy.from < 0 ? copy.to : copy.from; }

// Buffers of one copy, as large as the largest.
struct Ends {
    Buffer<char> from, to;
    Ends(const Copy& copy, size_t bytes)
        : from(copy.from < 0 ? copy.to : copy.from, copy.from < 0 ? Home::host : Home::device,
               bytes),
          to(copy.to < 0 ? copy.from : copy.to, copy.to < 0 ? Home::host : Home::device, bytes) {}
};

// Sends other bytes than the buffer held and reads them back.
void verify(Ends& ends) {
    std::vector<char> sent(4096), back(4096);
    for (size_t at = 0; at < sent.size(); ++at) sent[at] = char(at * 7 + 1);
    to_gpu(ends.from.get(), sent.data(), sent.size());
    to_gpu(ends.to.get(), ends.from.get(), sent.size());
    to_gpu(back.data(), ends.to.get(), back.size());
    if (sent != back) throw std::runtime_error("a copy did not arrive as it was sent");
}

// All copies at once, started together behind one event; the time until the last has ended, us.
double together_us(std::vector<Ends>& ends, const std::vector<Stream>& streams, size_t bytes) {
    Timer timer(streams[0]);
    if (streams.size() == 1) {
        timer.start();
        PROBE_CHECK(cudaMemcpyAsync(ends[0].to.get(), ends[0].from.get(), bytes, cudaMemcpyDefault,
                                    streams[0].use()));
        timer.stop();
        return timer.us();
    }
    cudaEvent_t gate;
    PROBE_CHECK(cudaEventCreateWithFlags(&gate, cudaEventDisableTiming));
    timer.start();
    PROBE_CHECK(cudaEventRecord(gate, streams[0].use()));
    std::vector<cudaEvent_t> ended(streams.size());
    for (size_t at = 0; at < streams.size(); ++at) {
        const cudaStream_t on = streams[at].use();
        if (at > 0) PROBE_CHECK(cudaStreamWaitEvent(on, gate, 0));
        PROBE_CHECK(cudaMemcpyAsync(ends[at].to.get(), ends[at].from.get(), bytes,
                                    cudaMemcpyDefault, on));
        if (at > 0) {
            PROBE_CHECK(cudaEventCreateWithFlags(&ended[at], cudaEventDisableTiming));
            PROBE_CHECK(cudaEventRecord(ended[at], on));
        }
    }
    for (size_t at = 1; at < streams.size(); ++at) {
        PROBE_CHECK(cudaStreamWaitEvent(streams[0].use(), ended[at], 0));
    }
    timer.stop();
    const double us = timer.us();
    for (size_t at = 1; at < streams.size(); ++at) cudaEventDestroy(ended[at]);
    cudaEventDestroy(gate);
    return us;
}

void one(Context& context, const std::vector<Copy>& copies, const std::vector<size_t>& sizes) {
    const size_t largest = context.bytes(sizes.back());
    std::vector<Ends> ends;
    std::vector<Stream> streams;
    for (const Copy& copy : copies) {
        ends.emplace_back(copy, largest);
        streams.emplace_back(engine(copy));
        verify(ends.back());
    }
    for (size_t size : sizes) {
        if (size > largest) continue;
        for (int run = 0; run < context.repeats(); ++run) {
            std::vector<double> times;
            const int rounds = context.rounds(size >= (64u << 20) ? 3 : 7);
            for (int round = 0; round <= rounds; ++round) {
                const double us = together_us(ends, streams, size);
                if (round > 0) times.push_back(us);
            }
            Row row;
            row.experiment = "copy";
            row.implementation = "copy_engine";
            row.flows = flows(copies);
            row.size_bytes = size;
            row.run = run;
            row.metric = "time";
            row.value = median(times);
            row.unit = "us";
            context.add(row);
        }
    }
}

}  // namespace

void ask_copies(Context& context) {
    std::vector<size_t> sizes = {4, 1024, 16384, 65536, 262144};
    for (size_t size = 1u << 20; size <= (256u << 20); size *= 4) sizes.push_back(size);
    const size_t large = context.options.quick ? 64u << 20 : 256u << 20;
    if (context.options.quick) sizes = {4, 65536, 1u << 20, 16u << 20, large};
    if (context.options.tiny) sizes = {4, 65536};
    const std::vector<size_t> last = {context.bytes(large)};
    one(context, {{-1, 0}}, sizes);
    one(context, {{0, -1}}, sizes);
    one(context, {{-1, 0}, {0, -1}}, last);
    for (auto [a, b] : context.machine.peer_pairs()) {
        one(context, {{a, b}}, sizes);
        one(context, {{a, b}, {b, a}}, last);
    }
    // All GPUs' links to the host at once, one way and against each other.
    const int gpus = context.machine.count();
    for (int used = 2; used <= gpus; used *= 2) {
        std::vector<Copy> down, up, mixed;
        for (int gpu = 0; gpu < used; ++gpu) {
            down.push_back({-1, gpu});
            up.push_back({gpu, -1});
            mixed.push_back(gpu % 2 == 0 ? Copy{-1, gpu} : Copy{gpu, -1});
        }
        const std::vector<size_t> size = {context.bytes(used > 4 ? 64u << 20 : large)};
        one(context, down, size);
        one(context, up, size);
        one(context, mixed, size);
    }
}

}  // namespace probe
