// Measures what the simulator's calibration needs on this machine: `docs/probe.md`.
//
//   nvcc -O3 -std=c++17 -arch=native -o collsim-probe probe/*.cu

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "context.h"
#include "json.h"
#include "statistics.h"

namespace probe {

volatile std::sig_atomic_t interrupted = 0;

namespace {

void on_signal(int) { interrupted = 1; }

// In the order in which they are asked: what few streams may have been made for, then what everything
// else rests on.
const Question questions[] = {
    {"launches", "kernels launched, in graphs, dependent", 1, false, ask_launches},
    {"copies", "copy engines by size and direction", 1, false, ask_copies},
    {"crowded", "graphs and small copies once many streams were made", 1, false, ask_crowded},
    {"latency", "dependent reads of own, host and peer memory", 1, false, ask_latency},
    {"flags", "a flag there and back", 1, false, ask_flags},
    {"fences", "fences with stores under way", 1, false, ask_fences},
    {"lines", "spread of single reads, polls, reads of one line by several SMs", 1, false, ask_lines},
    {"load", "latency under reads and writes", 1, false, ask_load},
    {"shares", "two groups on one link", 1, false, ask_shares},
    {"streams", "loads and stores by threads, blocks and width", 1, false, ask_streams},
    {"host_streams", "GPUs beside each other on the host's memory", 1, false, ask_host_streams},
    {"patterns", "several flows between GPUs", 2, true, ask_patterns},
    {"virtual_ranks", "our all-reduces between ranks of one GPU", 1, false, ask_virtual_ranks},
    {"ranks", "our all-reduces between GPUs", 2, false, ask_ranks},
    {"traces", "calls of a step with arrivals, rank by rank", 2, false, ask_traces},
    {"beside", "reads and NCCL's calls beside copies", 1, false, ask_beside},
    {"nccl", "NCCL by collective, size, algorithm and protocol", 2, false, ask_nccl},
    {"nccl_hops", "NCCL by copy engines; sends by protocol and channels", 2, false, ask_nccl_hops},
};

bool chosen(const Options& options, const Question& question) {
    const std::string name = question.name;
    if (name.rfind("nccl", 0) == 0 && !options.nccl) return false;
    if (options.only.empty()) return true;
    for (const std::string& part : options.only) {
        if (name.find(part) != std::string::npos) return true;
    }
    return false;
}

// Every part of --only names a question: a slip would measure nothing and say "complete".
void check_names(const Options& options) {
    for (const std::string& part : options.only) {
        bool known = false;
        std::string names;
        for (const Question& question : questions) {
            known = known || std::string(question.name).find(part) != std::string::npos;
            names += std::string(names.empty() ? "" : ", ") + question.name;
        }
        if (!known) throw UsageError("no question is named `" + part + "`; there are " + names);
    }
}

// What became of one question, and whether the next can be asked.
struct Answer {
    std::string state;
    bool go_on = true;
};

Answer ask(Context& context, const Question& question) {
    const Machine& machine = context.machine;
    if (machine.count() < question.gpus) {
        return {"not here: needs " + std::to_string(question.gpus) + " GPUs"};
    }
    if (question.peers && !machine.all_peers()) {
        return {"not here: GPUs do not address each other (no P2P)"};
    }
    if (context.seconds() > context.options.seconds) return {"not reached: the time is up"};
    try {
        question.ask(context);
        return {"done"};
    } catch (const Interrupted&) {
        return {"partial: interrupted", false};
    } catch (const Absent& what) {
        return {std::string("not here: ") + what.what()};
    } catch (const NotHere& reason) {
        return {std::string("partial: ") + reason.what()};
    } catch (const CudaError& error) {
        return {std::string("failed: ") + error.what(), !error.fatal()};
    } catch (const std::exception& error) {
        return {std::string("failed: ") + error.what()};
    }
}

const char* trace_header =
    "algorithm,carrier,size_bytes,skew,call,rank,gpu,ready_ns,end_ns\n";

// Everything so far, so that nothing is lost whatever comes next.
void keep(const Context& context, const std::string& states, bool complete) {
    const std::string& out = context.options.out;
    write_file(out + "/observations.csv", context.table.text());
    if (!context.traces.empty()) write_file(out + "/traces.csv", trace_header + context.traces);
    write_file(out + "/system.json", system_json(context, states, complete));
}

// The figures that a person looks for first.
void summary(const Context& context) {
    const char* wanted[][3] = {
        {"read_latency", "latency", "dependent read"}, {"flag", "latency", "flag, one way"},
        {"poll_period", "time", "a look of a poll"},   {"host_streams", "read_bandwidth", "host read"},
        {"host_streams", "write_bandwidth", "host write"}, {"pattern", "bandwidth", "flows"},
    };
    std::printf("\n%-18s %-10s %-40s %10s\n", "figure", "path", "how", "median");
    for (auto& one : wanted) {
        std::vector<std::string> seen;
        for (const Row& row : context.table.rows()) {
            const std::string key = row.flows + row.condition + std::to_string(row.size_bytes);
            if (row.experiment != one[0] || row.metric != one[1] || row.flows.size() > 9) continue;
            if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
            seen.push_back(key);
            std::vector<double> values;
            for (const Row& other : context.table.rows()) {
                if (other.experiment == row.experiment && other.metric == row.metric &&
                    other.flows + other.condition + std::to_string(other.size_bytes) == key) {
                    values.push_back(other.value);
                }
            }
            const std::string how = row.condition.empty() ? std::to_string(row.size_bytes) + " B" : row.condition;
            std::printf("%-18s %-10s %-40.40s %10.1f %s\n", one[2], row.flows.c_str(), how.c_str(),
                        median(values), row.unit.c_str());
        }
    }
}

int run(const Options& options) {
    Context context;
    context.options = options;
    find_machine(context);
    if (mkdir(options.out.c_str(), 0777) != 0 && errno != EEXIST) {
        throw std::runtime_error("cannot make the folder " + options.out + ": " + std::strerror(errno));
    }
    for (const char* name : {"/observations.csv", "/traces.csv", "/system.json"}) {
        if (access((options.out + name).c_str(), F_OK) == 0) {
            throw UsageError(options.out + name + " is there, of an earlier run: name another --out");
        }
    }
    describe_machine(context);
    keep(context, Json('{').close(), false);   // A place that cannot be written is told now.
    for (const Gpu& gpu : context.machine.gpus) {
        std::printf("GPU %d: %s, link Gen%d x%d\n", gpu.index, gpu.properties.name,
                    gpu.link.generation, gpu.link.width);
    }
    for (const std::string& remark : context.machine.remarks) std::printf("note: %s\n", remark.c_str());
    Json states('{');
    bool complete = true, go_on = true;
    for (const Question& question : questions) {
        if (!chosen(options, question)) continue;
        const double before = context.seconds();
        Answer answer = {"not reached: " + std::string(interrupted ? "interrupted" : "the GPU was lost")};
        if (go_on) answer = ask(context, question);
        go_on = go_on && answer.go_on;
        const bool done = answer.state == "done" || answer.state.rfind("not here", 0) == 0;
        complete = complete && done;
        find_newcomers(context);
        states.text(question.name, answer.state);
        std::printf("%-14s %6.1f s  %s\n", question.name, context.seconds() - before,
                    answer.state.c_str());
        std::fflush(stdout);
        Json so_far = states;
        keep(context, so_far.close(), false);
    }
    keep(context, states.close(), complete);
    summary(context);
    std::printf("\n%zu figures in %s, %.0f s%s\n", context.table.size(), options.out.c_str(),
                context.seconds(), complete ? "" : "; NOT complete, system.json says what is missing");
    return interrupted ? 130 : complete ? 0 : 1;
}

}  // namespace
}  // namespace probe

int main(int count, char** values) {
    using namespace probe;
    const std::vector<std::string> arguments(values + 1, values + count);
    // The numbers of `nvidia-smi` and of CUDA are the same in this order only.
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
    if (!arguments.empty() && arguments[0] == "--nccl-worker") return nccl_worker(arguments);
    try {
        const Options options = parse_options(arguments);
        if (options.help) return std::fputs(usage(), stdout) < 0;
        check_names(options);
        if (options.list) {
            for (const Question& question : questions) {
                std::printf("%-14s %s\n", question.name, question.about);
            }
            return 0;
        }
        std::signal(SIGINT, on_signal);
        std::signal(SIGTERM, on_signal);
        return run(options);
    } catch (const UsageError& error) {
        std::fprintf(stderr, "probe: %s\n%s", error.what(), usage());
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "probe: %s\n", error.what());
        return 3;
    }
}
