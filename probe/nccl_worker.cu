// A worker process of nccl.cu: times NCCL's collectives from CUDA graphs, or traces the calls of a
// step between stamps of the GPUs' timers.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "collectives.cuh"
#include "device.cuh"
#include "nccl_worker.h"
#include "statistics.h"

namespace probe {
namespace {

// Small whole numbers are exact in bfloat16: the upper half of the same float.
uint16_t bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return uint16_t(bits >> 16);
}

struct Collective {
    const char* name;
    // Elements that one rank gives and gets of a buffer of so many.
    size_t (*given)(size_t all, size_t ranks);
    size_t (*got)(size_t all, size_t ranks);
};

size_t whole(size_t all, size_t) { return all; }
size_t share(size_t all, size_t ranks) { return all / ranks; }

const Collective collectives[] = {{"all_reduce", whole, whole},
                                  {"all_gather", share, whole},
                                  {"reduce_scatter", whole, share},
                                  {"all_to_all", whole, whole}};

void call(const Worker& worker, const Collective& what, const uint16_t* from, uint16_t* to,
          size_t all, NcclComm comm, cudaStream_t on) {
    const Nccl& nccl = worker.nccl;
    const std::string name = what.name;
    const size_t part = all / size_t(worker.ranks);
    if (name == "all_reduce") {
        nccl.check(nccl.all_reduce(from, to, all, nccl_bfloat16, nccl_sum, comm, on), what.name);
    } else if (name == "all_gather") {
        nccl.check(nccl.all_gather(from, to, part, nccl_bfloat16, comm, on), what.name);
    } else if (name == "reduce_scatter") {
        nccl.check(nccl.reduce_scatter(from, to, part, nccl_bfloat16, nccl_sum, comm, on), what.name);
    } else {
        nccl.check(nccl.group_start(), "ncclGroupStart");
        for (int peer = 0; peer < worker.ranks; ++peer) {
            const size_t at = size_t(peer) * part;
            nccl.check(nccl.send(from + at, part, nccl_bfloat16, peer, comm, on), "ncclSend");
            nccl.check(nccl.recv(to + at, part, nccl_bfloat16, peer, comm, on), "ncclRecv");
        }
        nccl.check(nccl.group_end(), "ncclGroupEnd");
    }
}

// Whether every element is what the ranks' numbers make of it.
void verify(const Worker& worker, const Collective& what, const uint16_t* to, size_t all) {
    const size_t got = what.got(all, size_t(worker.ranks)), part = all / size_t(worker.ranks);
    std::vector<uint16_t> back(got);
    to_gpu(back.data(), to, got);
    const float sum = float(worker.ranks * (worker.ranks + 1) / 2);
    const bool reduces = std::strstr(what.name, "reduce") != nullptr;
    for (size_t at = 0; at < got; ++at) {
        if (back[at] != bf16(reduces ? sum : float(at / part + 1))) {
            throw std::runtime_error(std::string(what.name) + ": the result is wrong");
        }
    }
}

std::string line_of(const Worker& worker, const Collective& what, size_t bytes, int calls,
                    const std::vector<double>& times) {
    Row row;
    row.experiment = what.name;
    row.implementation = "nccl";
    row.algorithm = worker.setting.algorithm;
    row.protocol = worker.setting.protocol;
    row.ranks = worker.ranks;
    row.size_bytes = bytes;
    row.dtype = "bfloat16";
    row.placement = "out_of_place";
    row.condition = "NCCL " + worker.nccl.version() + "; " + nccl_variables(worker.setting) + "; " +
                    std::to_string(calls) + " calls in a graph; a process a GPU";
    row.metric = "time";
    row.value = median(times);
    row.unit = "us";
    row.note = "from " + figure(percentile(times, 0)) + " to " + figure(percentile(times, 1));
    return line(row);
}

std::vector<size_t> sizes(const Worker& worker) {
    if (worker.tiny()) return {14336};
    if (worker.quick()) return {512, 14336, 43008, 1u << 20};
    if (worker.setting.more[0] != '\0') {
        return {512, 14336, 43008, 114688, 458752, 1u << 20, 4u << 20, 16u << 20, 64u << 20};
    }
    return {512, 2048, 7168, 14336, 28672, 43008, 57344, 114688, 262144, 458752,
            1u << 20, 4u << 20, 16u << 20, 64u << 20};
}

// Calls of one size in a graph on a stream of their own, the graph replayed five times in a row.
std::string time_one(const Worker& worker, const Collective& what, size_t bytes, NcclComm comm,
                     const Stream& stream, const uint16_t* from, uint16_t* to) {
    const size_t all = bytes / 2;
    const int calls = worker.tiny() ? 4 : bytes > (1u << 20) ? 20 : step_calls;
    call(worker, what, from, to, all, comm, stream.use());
    stream.wait();
    verify(worker, what, to, all);
    CallGraph graph(stream, [&](cudaStream_t on) {
        for (int number = 0; number < calls; ++number) call(worker, what, from, to, all, comm, on);
    });
    const int replays = bytes > (16u << 20) ? 1 : 5;
    std::vector<double> times;
    for (int round = -2; round < (worker.quick() ? 3 : 9); ++round) {
        Timer timer(stream);
        // The first replay lets the ranks meet.
        graph.launch();
        timer.start();
        for (int replay = 0; replay < replays; ++replay) graph.launch();
        timer.stop();
        const double us = timer.us();
        if (round >= 0) times.push_back(us / replays / calls);
    }
    return line_of(worker, what, bytes, calls, times);
}

void time_all(const Worker& worker) {
    PROBE_CHECK(cudaSetDevice(worker.rank));
    const std::vector<size_t> every = sizes(worker);
    const size_t most = every.back() / 2;
    Stream stream(worker.rank);
    Buffer<uint16_t> from(worker.rank, Home::device, most), to(worker.rank, Home::device, most);
    const std::vector<uint16_t> values(most, bf16(float(worker.rank + 1)));
    to_gpu(from.get(), values.data(), most);
    NcclComm comm = join(worker);
    std::string lines;
    // Of NCCL 2.28.9 such sends of 4 MB did not end in a minute.
    const bool by_engines = std::strstr(worker.setting.more, "USE_CUDA_MEMCPY") != nullptr;
    for (const Collective& what : collectives) {
        // Forced trees exist for sums of all only; a setting of a protocol holds for the others too.
        const bool forced = worker.setting.algorithm[0] != '\0';
        const bool tree = std::strcmp(worker.setting.algorithm, "Tree") == 0;
        const std::string name = what.name;
        if (tree && name != "all_reduce") continue;
        if (forced && name == "all_to_all") continue;
        if (worker.setting.calls == NcclCalls::sends && name != "all_to_all") continue;
        for (size_t bytes : every) {
            if (bytes % (2 * size_t(worker.ranks)) != 0) continue;
            if (by_engines && name == "all_to_all" && bytes > (1u << 20)) continue;
            lines += time_one(worker, what, bytes, comm, stream, from.get(), to.get());
            if (worker.rank == 0) write_file(worker.file(), lines);
        }
    }
    worker.nccl.check(worker.nccl.comm_destroy(comm), "ncclCommDestroy");
}

// Between two calls: stamps the end of the one before, waits, stamps that the rank is ready.
__global__ void between(Stamp* stamps, int call, int calls, uint32_t pause) {
    const uint64_t entered = now();
    if (call > 0) stamps[call - 1].end = entered;
    if (call == calls) return;
    wait_until(entered + pause);
    stamps[call].ready = now();
}

void trace_one(Context& context, const Worker& worker, std::vector<NcclComm>& comms, size_t bytes,
               bool late) {
    const int calls = worker.tiny() ? 4 : step_calls;
    std::vector<Stream> streams;
    std::vector<Buffer<uint16_t>> from, to;
    std::vector<Buffer<Stamp>> stamps;
    for (int rank = 0; rank < worker.ranks; ++rank) {
        streams.emplace_back(rank);
        from.emplace_back(rank, Home::device, bytes / 2);
        to.emplace_back(rank, Home::device, bytes / 2);
        stamps.emplace_back(rank, Home::device, size_t(calls));
    }
    for (const Stream& stream : streams) {
        PROBE_CHECK(cudaStreamBeginCapture(stream.use(), cudaStreamCaptureModeThreadLocal));
    }
    for (int number = 0; number <= calls; ++number) {
        for (size_t rank = 0; rank < streams.size(); ++rank) {
            const uint32_t pause = 8000 + (late ? scatter(uint32_t(rank), uint32_t(number), 12000) : 0);
            between<<<1, 1, 0, streams[rank].use()>>>(stamps[rank].get(), number, calls, pause);
            PROBE_LAUNCHED("between");
        }
        if (number == calls) break;
        worker.nccl.check(worker.nccl.group_start(), "ncclGroupStart");
        for (size_t rank = 0; rank < streams.size(); ++rank) {
            call(worker, collectives[0], from[rank].get(), to[rank].get(), bytes / 2, comms[rank],
                 streams[rank].use());
        }
        worker.nccl.check(worker.nccl.group_end(), "ncclGroupEnd");
    }
    // No graph is made runnable before the last capture has ended: the calls of all hang together.
    std::vector<cudaGraph_t> graphs(streams.size());
    std::vector<cudaGraphExec_t> runnable(streams.size());
    for (size_t rank = 0; rank < streams.size(); ++rank) {
        PROBE_CHECK(cudaStreamEndCapture(streams[rank].use(), &graphs[rank]));
    }
    for (size_t rank = 0; rank < streams.size(); ++rank) {
        streams[rank].use();
        PROBE_CHECK(cudaGraphInstantiate(&runnable[rank], graphs[rank], 0));
        PROBE_CHECK(cudaGraphDestroy(graphs[rank]));
    }
    const Clocks before = align_clocks(context);
    for (int round = 0; round < 3; ++round) {
        for (size_t rank = 0; rank < streams.size(); ++rank) {
            PROBE_CHECK(cudaGraphLaunch(runnable[rank], streams[rank].use()));
        }
        for (const Stream& stream : streams) stream.wait();
    }
    const Clocks after = align_clocks(context);
    const char* carrier = worker.setting.peer_to_peer ? "peer" : "host";
    const char* skew = late ? "late" : "even";
    uint64_t zero = 0;
    for (size_t rank = 0; rank < streams.size(); ++rank) {
        std::vector<Stamp> own(static_cast<size_t>(calls));
        to_gpu(own.data(), stamps[rank].get(), own.size());
        if (rank == 0) zero = own[0].ready;
        const double offset = (before.offset[rank] + after.offset[rank]) / 2;
        for (size_t at = 0; at < own.size(); ++at) {
            char text[256];
            std::snprintf(text, sizeof text, "nccl,%s,%zu,%s,%zu,%zu,%zu,%.0f,%.0f\n", carrier, bytes,
                          skew, at, rank, rank,
                          double(int64_t(own[at].ready - zero)) - offset,
                          double(int64_t(own[at].end - zero)) - offset);
            context.traces += text;
        }
        cudaGraphExecDestroy(runnable[rank]);
    }
}

// All GPUs from one process, so that their clocks can be aligned by flags.
void trace_all(const Worker& worker) {
    Context context;
    context.options.gpus = worker.ranks;
    find_machine(context);
    NcclId id = {};
    worker.nccl.check(worker.nccl.get_unique_id(&id), "ncclGetUniqueId");
    std::vector<NcclComm> comms(static_cast<size_t>(worker.ranks));
    worker.nccl.check(worker.nccl.group_start(), "ncclGroupStart");
    for (int rank = 0; rank < worker.ranks; ++rank) {
        PROBE_CHECK(cudaSetDevice(rank));
        worker.nccl.check(
            worker.nccl.comm_init_rank(&comms[size_t(rank)], worker.ranks, id, rank),
            "ncclCommInitRank");
    }
    worker.nccl.check(worker.nccl.group_end(), "ncclGroupEnd");
    for (size_t bytes : {size_t(14336), size_t(43008)}) {
        for (bool late : {false, true}) {
            trace_one(context, worker, comms, bytes, late);
            if (worker.tiny()) break;
        }
        if (worker.quick()) break;
    }
    write_file(worker.file(), context.traces);
    for (NcclComm comm : comms) worker.nccl.comm_destroy(comm);
}

}  // namespace

static NcclId share_id(const Worker& worker) {
    NcclId id = {};
    const std::string path = worker.base + ".id";
    if (worker.rank == 0) {
        worker.nccl.check(worker.nccl.get_unique_id(&id), "ncclGetUniqueId");
        write_file(path, std::string(id.bytes, sizeof id.bytes));
        return id;
    }
    for (int looks = 0; looks < 30000; ++looks) {
        std::ifstream file(path, std::ios::binary);
        if (file.read(id.bytes, sizeof id.bytes)) return id;
        usleep(1000);
    }
    throw std::runtime_error("rank 0 never wrote the communicator's id");
}

NcclComm join(const Worker& worker) {
    NcclComm comm = nullptr;
    worker.nccl.check(worker.nccl.comm_init_rank(&comm, worker.ranks, share_id(worker), worker.rank),
                      "ncclCommInitRank");
    return comm;
}

int nccl_worker(const std::vector<std::string>& arguments) {
    if (arguments.size() != 7) return 2;
    try {
        const std::string mode = arguments[1];
        Worker worker = {open_nccl(), find_setting(arguments[2]), std::atoi(arguments[3].c_str()),
                         std::atoi(arguments[4].c_str()), arguments[5], arguments[6]};
        mode == "trace" ? trace_all(worker) : mode == "beside" ? beside_all(worker) : time_all(worker);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "probe: NCCL worker: %s\n", error.what());
        return 1;
    }
}

}  // namespace probe
