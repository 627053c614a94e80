// What copies by copy engines do to what else crosses the same links, and it to them: a chain of
// reads of host memory, fences, and NCCL's all-reduces by host memory and between peers.

#include <unistd.h>

#include <algorithm>

#include "copies.cuh"
#include "fences.cuh"
#include "load.cuh"
#include "nccl_worker.h"
#include "statistics.h"

namespace probe {

namespace {

constexpr size_t copy_bytes = 64u << 20;

// Copies to GPUs, from GPUs, both; of GPU 0 or of all.
struct Beside {
    bool down, up, all;
};
constexpr Beside kinds[] = {{false, false, false}, {true, false, false}, {false, true, false},
                            {true, true, false},   {true, false, true},  {false, true, true},
                            {true, true, true}};

std::vector<Flow> flows_of(const Beside& kind, int gpus) {
    std::vector<Flow> flows;
    for (int gpu = 0; gpu < (kind.all ? gpus : 1); ++gpu) {
        if (kind.down) flows.push_back({-1, gpu});
        if (kind.up) flows.push_back({gpu, -1});
    }
    return flows;
}

std::string copies_text(const std::vector<Flow>& flows) {
    return "copies=" + (flows.empty() ? std::string("none") : flow_text(flows));
}

// Row of one copy's rate beside something.
Row rate_row(const Flow& flow, const std::string& condition, double rate) {
    Row row;
    row.experiment = "beside";
    row.implementation = "copy_engine";
    row.flows = flow_text({flow});
    row.size_bytes = copy_bytes;
    row.condition = condition;
    row.metric = "bandwidth";
    row.value = rate;
    row.unit = "GB/s";
    return row;
}

// Starts copies and, once all of them are under way, does some work of GPU 0 with host memory; adds
// what each copy got meanwhile, and the time in ns that is read when the work is done.
template <typename Work, typename Read>
void beside_copies(Context& context, const std::vector<Flow>& flows, int number, Row row, Work work,
                   Read ns) {
    std::vector<CopyFlow> copies;
    for (const Flow& flow : flows) {
        copies.emplace_back(flow, context.bytes(copy_bytes), context.options.tiny ? 4 : 60);
    }
    for (CopyFlow& copy : copies) copy.start();
    for (const CopyFlow& copy : copies) {
        while (copy.done() == 0) context.check();
    }
    std::vector<size_t> before;
    for (const CopyFlow& copy : copies) before.push_back(copy.done());
    work();
    std::vector<size_t> after;
    bool covered = true;
    for (const CopyFlow& copy : copies) {
        after.push_back(copy.done());
        covered = covered && !copy.over();
    }
    row.value = ns();
    row.experiment = "beside";
    row.flows = "0>host";
    row.condition = copies_text(flows) + row.condition;
    row.run = number;
    row.unit = "ns";
    if (!covered) row.note = "copies ended first: not wholly beside them";
    for (size_t at = 0; at < copies.size(); ++at) {
        Row rate = rate_row(flows[at], row.condition, copies[at].rate(before[at], after[at]));
        rate.run = number;
        if (rate.value > 0) context.add(rate);
    }
    context.add(row);
    for (const CopyFlow& copy : copies) copy.wait();
}

// GPU 0 reads host memory, one read after another, beside copies.
void chain(Context& context, LoadAreas& areas, const Beside& kind) {
    const std::vector<Flow> flows = flows_of(kind, context.machine.count());
    const int hops = context.options.tiny ? 16 : 4096;
    LoadRun run(context, areas, 0, -1, {}, 32, hops, 0);
    run.start();
    run.collect();   // The first is cold.
    Row row;
    row.size_bytes = 4;
    row.condition = "; beside=reads one after another";
    row.metric = "latency";
    for (int number = 0; number < context.repeats(); ++number) {
        auto work = [&] {
            run.start();
            run.wait();
        };
        beside_copies(context, flows, number, row, work, [&] { return run.collect().chase_ns; });
    }
}

// GPU 0 fences, with nothing stored and behind a slice of NCCL's, beside copies.
void fences(Context& context, const Beside& kind) {
    const std::vector<Flow> flows = flows_of(kind, context.machine.count());
    for (int words : {0, 4096}) {
        FenceRun run(0, -1, true, words);
        run.run(1);   // The first is cold.
        Row row;
        row.size_bytes = uint64_t(words) * 4;
        row.condition = "; beside=fences behind stores";
        row.metric = "time";
        for (int number = 0; number < context.repeats(); ++number) {
            beside_copies(context, flows, number, row,
                          [&] { run.run(context.options.tiny ? 1 : 10); }, [&] { return run.ns(); });
        }
    }
}

// All-reduces of one size in a graph beside copies of one kind; lines of this rank.
std::string all_reduces(const Worker& worker, const CallGraph& graph, const Stream& stream, size_t bytes,
                        const Beside& kind) {
    const std::vector<Flow> every = flows_of(kind, worker.ranks);
    std::vector<Flow> flows;
    for (const Flow& flow : every) {
        if (flow.engine() == worker.rank) flows.push_back(flow);
    }
    // Longest: 15 graphs of 122 calls of 0.13 ms, a quarter of a second.
    std::vector<CopyFlow> copies;
    for (const Flow& flow : flows) copies.emplace_back(flow, copy_bytes, worker.tiny() ? 4 : bytes > 262144 ? 220 : 100);
    for (CopyFlow& copy : copies) copy.start();
    for (const CopyFlow& copy : copies) {
        while (copy.done() == 0) usleep(100);
    }
    // Ranks wait for each other in each call, so that all copy once a graph has passed.
    for (int warm = 0; warm < 2; ++warm) graph.launch();
    stream.wait();
    std::vector<size_t> before;
    for (const CopyFlow& copy : copies) before.push_back(copy.done());
    std::vector<double> times;
    for (int round = 0; round < (worker.quick() ? 3 : 9); ++round) {
        Timer timer(stream);
        timer.start();
        graph.launch();
        timer.stop();
        times.push_back(timer.us() / (worker.tiny() ? 4 : step_calls));
    }
    bool covered = true;
    std::string lines;
    const std::string condition = "NCCL " + worker.nccl.version() + "; " + nccl_variables(worker.setting) +
                                  "; " + copies_text(every) + "; beside=all_reduce of " +
                                  std::to_string(bytes) + " B";
    for (size_t at = 0; at < copies.size(); ++at) {
        const size_t after = copies[at].done();
        covered = covered && !copies[at].over();
        Row rate = rate_row(flows[at], condition, copies[at].rate(before[at], after));
        rate.ranks = worker.ranks;
        rate.note = "of copies that ended while the calls ran";
        if (rate.value > 0) lines += line(rate);
    }
    Row row;
    row.experiment = "beside";
    row.implementation = "nccl";
    row.ranks = worker.ranks;
    row.size_bytes = bytes;
    row.dtype = "bfloat16";
    row.placement = "out_of_place";
    row.condition = condition + "; " + std::to_string(step_calls) + " calls in a graph; a process a GPU";
    row.metric = "time";
    row.value = median(times);
    row.unit = "us";
    row.note = "from " + figure(percentile(times, 0)) + " to " + figure(percentile(times, 1));
    if (!covered) row.note += "; copies ended first: not wholly beside them";
    if (worker.rank == 0) lines += line(row);
    for (const CopyFlow& copy : copies) copy.wait();
    return lines;
}

}  // namespace

void beside_all(const Worker& worker) {
    PROBE_CHECK(cudaSetDevice(worker.rank));
    Stream stream(worker.rank);
    NcclComm comm = join(worker);
    std::string lines;
    std::vector<size_t> sizes = {14336, 43008, 458752};
    if (worker.quick()) sizes = {14336};
    for (size_t bytes : sizes) {
        Buffer<uint16_t> from(worker.rank, Home::device, bytes / 2), to(worker.rank, Home::device, bytes / 2);
        auto call = [&](cudaStream_t on) {
            worker.nccl.check(worker.nccl.all_reduce(from.get(), to.get(), bytes / 2, nccl_bfloat16,
                                                     nccl_sum, comm, on),
                              "all_reduce");
        };
        call(stream.use());
        stream.wait();
        CallGraph graph(stream, [&](cudaStream_t on) {
            for (int number = 0; number < (worker.tiny() ? 4 : step_calls); ++number) call(on);
        });
        for (const Beside& kind : kinds) {
            // Between peers a few kinds are enough: the links are others.
            if (worker.setting.peer_to_peer && kind.down != kind.up) continue;
            lines += all_reduces(worker, graph, stream, bytes, kind);
            write_file(worker.file(), lines);
        }
    }
    worker.nccl.check(worker.nccl.comm_destroy(comm), "ncclCommDestroy");
}

void ask_beside(Context& context) {
    LoadAreas areas(context);
    for (const Beside& kind : kinds) {
        if (kind.all && context.machine.count() < 2) continue;
        chain(context, areas, kind);
        fences(context, kind);
    }
    if (context.machine.count() < 2 || !context.options.nccl || !nccl_present()) return;
    nccl_beside_copies(context);
}

}  // namespace probe
