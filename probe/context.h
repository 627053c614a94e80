// What every question gets: the machine, the options, the table, the time that is left.
#pragma once

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda.cuh"
#include "observations.h"
#include "options.h"
#include "topology.h"

namespace probe {

// Ctrl-C, or a signal to end: the question under way stops at its next figure.
struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("interrupted") {}
};

extern volatile std::sig_atomic_t interrupted;

struct Gpu {
    int index = 0;
    cudaDeviceProp properties = {};
    std::string bus;        // As sysfs names it: 0000:17:00.0
    Express link;           // While a copy ran.
    double tick_ns = 0;     // Step of its timer.
    double clock_ghz = 0;   // Of the SMs, while a kernel ran.
};

struct Machine {
    std::vector<Gpu> gpus;
    std::vector<std::vector<bool>> peer;                 // [a][b]: a addresses b's memory.
    std::vector<std::vector<std::string>> matrix;        // Of `nvidia-smi topo -m`; may be empty.
    std::string topology_text;                           // The matrix as it was printed.
    std::vector<std::string> remarks;                    // What is not as it should be.

    int count() const { return int(gpus.size()); }
    bool all_peers() const {
        for (int a = 0; a < count(); ++a) {
            for (int b = 0; b < count(); ++b) {
                if (a != b && !peer[size_t(a)][size_t(b)]) return false;
            }
        }
        return true;
    }
    // One pair of each kind of path whose GPUs address each other.
    std::vector<std::pair<int, int>> peer_pairs() const {
        std::vector<std::pair<int, int>> pairs;
        for (auto [a, b] : pair_classes(matrix, count())) {
            if (peer[size_t(a)][size_t(b)] && peer[size_t(b)][size_t(a)]) pairs.emplace_back(a, b);
        }
        return pairs;
    }
};

// A question that ended early, with the reason, where that is no fault of the program.
struct NotHere : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What the machine does not have: its question is left out, and that is no fault either.
struct Absent : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Context;
// Once a second: whether others use the GPUs by now, a remark on every row (system.cu).
void find_newcomers(Context&);

struct Context {
    Options options;
    Machine machine;
    Table table;
    std::string traces;   // Lines of traces.csv.
    double looked = 0;    // When others were last looked for.
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    }
    // Between two figures: ends the question when the user or the clock says so.
    void check() const {
        if (interrupted) throw Interrupted();
        // A question may run over the end a little, never without bound.
        if (seconds() > options.seconds * 1.25 + 5) throw NotHere("stopped: the time is up");
    }
    void add(Row row) {
        check();
        table.add(std::move(row));
        find_newcomers(*this);   // Between two figures nothing is timed.
    }
    int repeats() const { return options.repeats; }
    // `full` of a normal run, fewer of a quick or tiny one.
    int rounds(int full) const {
        if (options.tiny) return full > 8 ? 8 : full;
        return options.quick ? (full + 1) / 2 : full;
    }
    size_t bytes(size_t full) const { return options.tiny && full > (64u << 10) ? 64u << 10 : full; }
};

// One group of figures, one file each.
struct Question {
    const char* name;
    const char* about;
    int gpus;              // Fewest that it needs.
    bool peers;            // It needs GPUs that address each other.
    void (*ask)(Context&);
};

void ask_latency(Context&);
void ask_flags(Context&);
void ask_streams(Context&);
void ask_copies(Context&);
void ask_load(Context&);
void ask_shares(Context&);
void ask_host_streams(Context&);
void ask_lines(Context&);
void ask_launches(Context&);
void ask_crowded(Context&);
void ask_fences(Context&);
void ask_patterns(Context&);
void ask_virtual_ranks(Context&);
void ask_ranks(Context&);
void ask_traces(Context&);
void ask_nccl(Context&);
void ask_nccl_hops(Context&);
void ask_beside(Context&);

// system.cu
// The GPUs, and which of them address each other. Throws CudaError where there is none.
void find_machine(Context&);
// What nvidia-smi and sysfs tell besides: wiring, links under load, whether others use the GPUs.
void describe_machine(Context&);
// `questions` is a JSON object: what became of each.
std::string system_json(const Context&, const std::string& questions, bool complete);
// The worker that times NCCL in one process a GPU; returns the program's exit code.
int nccl_worker(const std::vector<std::string>& arguments);

}  // namespace probe
