// Times of our own all-reduces: between virtual ranks of one GPU, by its own memory or the host's,
// and between real GPUs, each with one or several ranks.

#include "collectives.cuh"
#include "statistics.h"

namespace probe {
namespace {

// Start to start of each call, us, of rank 0.
void collect(const CallTimes& times, std::vector<double>& out) {
    const std::vector<Stamp>& first = times.stamps[0];
    for (size_t call = 0; call + 1 < first.size(); ++call) {
        out.push_back(double(first[call + 1].ready - first[call].ready) / 1e3);
    }
}

void one(Context& context, CallSpec spec) {
    if (context.options.tiny) spec.calls = 4;
    run_calls(context, spec);   // Verified, and warm.
    const int gpus = spec.gpus.back() + 1;
    std::vector<double> times, medians;
    for (int run = 0; run < context.repeats(); ++run) {
        std::vector<double> own;
        for (int round = 0; round < context.rounds(2); ++round) {
            collect(run_calls(context, spec), own);
        }
        medians.push_back(percentile(own, .5));
        times.insert(times.end(), own.begin(), own.end());
    }
    const std::pair<const char*, double> figures[] = {{"time_mean", mean(times)},
                                                      {"time_p5", percentile(times, .05)},
                                                      {"time_p50", percentile(times, .5)},
                                                      {"time_p95", percentile(times, .95)},
                                                      {"time_p99", percentile(times, .99)}};
    for (auto [name, value] : figures) {
        Row row;
        row.experiment = "all_reduce";
        row.algorithm = kind_name(spec.kind);
        row.ranks = int(spec.gpus.size());
        row.channels = std::to_string(spec.blocks);
        row.size_bytes = spec.bytes;
        row.dtype = "float";
        row.condition = std::string("memory=") + (spec.by_host ? "host" : "gpu") +
                        "; ranks_a_gpu=" + std::to_string(spec.gpus.size() / size_t(gpus));
        row.metric = name;
        row.value = value;
        row.unit = "us";
        // Once a group of rows is enough.
        if (row.metric == "time_p50") {
            row.note = std::to_string(spec.calls) + " in a row in one kernel, start to start; p50 by run " +
                       figure(percentile(medians, 0)) + " to " + figure(percentile(medians, 1));
        }
        context.add(row);
    }
}

struct Plan {
    std::vector<size_t> sizes;
    std::vector<int> blocks;
};

Plan plan_of(const Context& context, Kind kind, bool several_gpus) {
    Plan plan;
    plan.sizes = {512, 2048, 14336, 43008, 114688, 458752};
    if (several_gpus) plan.sizes = {512, 2048, 7168, 14336, 28672, 43008, 57344, 114688, 458752};
    if (context.options.quick) plan.sizes = {14336, 43008};
    if (context.options.tiny) plan.sizes = {512};
    if (kind == Kind::one_stage_push_ll && plan.sizes.size() > 2) plan.sizes.pop_back();
    const bool pulls = kind == Kind::one_stage_pull || kind == Kind::two_stage_pull;
    plan.blocks = {1};
    if (pulls && !context.options.quick) plan.blocks = {1, 4};
    return plan;
}

void all(Context& context, const std::vector<int>& gpus, bool by_host, bool several) {
    for (Kind kind : all_kinds) {
        const Plan plan = plan_of(context, kind, several);
        for (int blocks : plan.blocks) {
            for (size_t bytes : plan.sizes) {
                CallSpec spec{kind, gpus, by_host, blocks, bytes};
                if (bytes % (16 * gpus.size()) != 0) continue;
                one(context, spec);
            }
        }
    }
}

}  // namespace

void ask_virtual_ranks(Context& context) {
    for (bool by_host : {false, true}) {
        for (int ranks : {2, 4, 8}) {
            if (context.options.tiny && ranks != 4) continue;
            all(context, std::vector<int>(size_t(ranks), 0), by_host, false);
        }
    }
}

void ask_ranks(Context& context) {
    const int gpus = context.machine.count();
    for (bool by_host : {false, true}) {
        if (!by_host && !context.machine.all_peers()) continue;
        for (int used = 2; used <= gpus; used *= 2) {
            for (int per_gpu : {1, 2, 4}) {
                if (used * per_gpu > 16 || (used > 2 && per_gpu > 1)) continue;
                if (context.options.quick && per_gpu == 2) continue;
                std::vector<int> of_rank;
                for (int rank = 0; rank < used * per_gpu; ++rank) of_rank.push_back(rank / per_gpu);
                all(context, of_rank, by_host, true);
            }
        }
    }
}

}  // namespace probe
