// Copies by the copy engines, by size: to and from the host, to a peer, both ways at once.

#include <vector>

#include "context.h"
#include "copies.cuh"
#include "statistics.h"

namespace probe {
namespace {

// Sends other bytes than the buffer held and reads them back.
void verify(CopyEnds& ends) {
    std::vector<char> sent(4096), back(4096);
    for (size_t at = 0; at < sent.size(); ++at) sent[at] = char(at * 7 + 1);
    to_gpu(ends.from.get(), sent.data(), sent.size());
    to_gpu(ends.to.get(), ends.from.get(), sent.size());
    to_gpu(back.data(), ends.to.get(), back.size());
    if (sent != back) throw std::runtime_error("a copy did not arrive as it was sent");
}

// All copies at once, started together behind one event; the time until the last has ended, us.
// What the host takes to queue a copy is not in these times: behind a stream that is held until all is
// queued, a copy takes 3 to 4 us longer, not less, since its engine then waits for a kernel.
double together_us(std::vector<CopyEnds>& ends, const std::vector<Stream>& streams, size_t bytes) {
    Timer timer(streams[0]);
    const cudaStream_t first = streams[0].use();
    std::vector<cudaEvent_t> ended(streams.size());
    cudaEvent_t started = nullptr;
    timer.start();
    if (streams.size() > 1) {
        PROBE_CHECK(cudaEventCreateWithFlags(&started, cudaEventDisableTiming));
        PROBE_CHECK(cudaEventRecord(started, first));
    }
    PROBE_CHECK(cudaMemcpyAsync(ends[0].to.get(), ends[0].from.get(), bytes, cudaMemcpyDefault, first));
    for (size_t at = 1; at < streams.size(); ++at) {
        const cudaStream_t on = streams[at].use();
        PROBE_CHECK(cudaStreamWaitEvent(on, started, 0));
        PROBE_CHECK(cudaMemcpyAsync(ends[at].to.get(), ends[at].from.get(), bytes,
                                    cudaMemcpyDefault, on));
        PROBE_CHECK(cudaEventCreateWithFlags(&ended[at], cudaEventDisableTiming));
        PROBE_CHECK(cudaEventRecord(ended[at], on));
    }
    for (size_t at = 1; at < streams.size(); ++at) {
        PROBE_CHECK(cudaStreamWaitEvent(streams[0].use(), ended[at], 0));
    }
    timer.stop();
    const double us = timer.us();
    for (size_t at = 1; at < streams.size(); ++at) cudaEventDestroy(ended[at]);
    if (started) cudaEventDestroy(started);
    return us;
}

void report(Context& context, const std::vector<Flow>& copies, size_t size,
            const std::string& condition, int run, double us) {
    Row row;
    row.experiment = "copy";
    row.implementation = "copy_engine";
    row.flows = flow_text(copies);
    row.size_bytes = size;
    row.condition = condition;
    row.run = run;
    row.metric = "time";
    row.value = us;
    row.unit = "us";
    context.add(row);
}

void one(Context& context, const std::vector<Flow>& copies, const std::vector<size_t>& sizes,
         const std::string& condition = "") {
    const size_t largest = context.bytes(sizes.back());
    std::vector<CopyEnds> ends;
    std::vector<Stream> streams;
    for (const Flow& copy : copies) {
        ends.emplace_back(copy, largest);
        streams.emplace_back(copy.engine());
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
            report(context, copies, size, condition, run, median(times));
        }
    }
}

}  // namespace

void small_copies(Context& context, const std::string& condition) {
    std::vector<size_t> sizes = {4, 1024, 16384, 65536};
    if (context.options.quick) sizes = {4, 65536};
    one(context, {{-1, 0}}, sizes, condition);
    one(context, {{0, -1}}, sizes, condition);
}

void ask_copies(Context& context) {
    std::vector<size_t> sizes = {4, 1024, 16384, 65536, 262144};
    for (size_t size = 1u << 20; size <= (256u << 20); size *= 4) sizes.push_back(size);
    const size_t large = context.options.quick ? 64u << 20 : 256u << 20;
    if (context.options.quick) sizes = {4, 65536, 1u << 20, 16u << 20, large};
    if (context.options.tiny) sizes = {4, 65536};
    const std::vector<size_t> last = {context.bytes(large)};
    // Single copies first, while few streams have been made: `ask_crowded` in launches.cu.
    one(context, {{-1, 0}}, sizes);
    one(context, {{0, -1}}, sizes);
    const auto pairs = context.machine.peer_pairs();
    for (auto [a, b] : pairs) one(context, {{a, b}}, sizes);
    one(context, {{-1, 0}, {0, -1}}, last);
    for (auto [a, b] : pairs) one(context, {{a, b}, {b, a}}, last);
    // All GPUs' links to the host at once, one way and against each other.
    const int gpus = context.machine.count();
    for (int used = 2; used <= gpus; used *= 2) {
        std::vector<Flow> down, up, mixed;
        for (int gpu = 0; gpu < used; ++gpu) {
            down.push_back({-1, gpu});
            up.push_back({gpu, -1});
            mixed.push_back(gpu % 2 == 0 ? Flow{-1, gpu} : Flow{gpu, -1});
        }
        const std::vector<size_t> size = {context.bytes(used > 4 ? 64u << 20 : large)};
        one(context, down, size);
        one(context, up, size);
        one(context, mixed, size);
    }
}

}  // namespace probe
