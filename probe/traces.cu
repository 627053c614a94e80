// Traces of a step: every call of every rank with its start and end on one clock, as the ranks come
// by themselves after some work of their own, and with delays that are put in on purpose.

#include "collectives.cuh"
#include "statistics.h"

namespace probe {
namespace {

constexpr int step_calls = 122;
constexpr size_t work = 256u << 10;      // Bytes that a rank reads before each call.
constexpr uint32_t pause_ns = 8000;      // Before each call, of every rank.
constexpr uint32_t late_ns = 12000;      // Most that a rank is late on purpose.

// Delays by rank and call: the same in every run.
std::vector<uint32_t> pauses(size_t ranks, int calls, bool late) {
    std::vector<uint32_t> out;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
        for (uint32_t call = 0; call < uint32_t(calls); ++call) {
            out.push_back(pause_ns + (late ? scatter(rank, call, late_ns) : 0));
        }
    }
    return out;
}

void one(Context& context, CallSpec spec, const std::string& skew) {
    spec.calls = context.options.tiny ? 4 : step_calls;
    spec.pauses = pauses(spec.gpus.size(), spec.calls, skew == "late");
    spec.work_bytes = skew == "work" ? work : 0;
    spec.stamp_ends = true;
    run_calls(context, spec);   // Warm.
    const Clocks before = align_clocks(context);
    const CallTimes times = run_calls(context, spec);
    const Clocks after = align_clocks(context);
    const std::string name = std::string(kind_name(spec.kind)) + (spec.by_host ? " host " : " peer ") +
                             std::to_string(spec.bytes) + " " + skew;
    // The clock of each GPU, half way between the two alignments.
    auto aligned = [&](int gpu, uint64_t time) {
        const size_t at = size_t(gpu);
        return double(int64_t(time - times.stamps[0][0].ready)) -
               (before.offset[at] + after.offset[at]) / 2;
    };
    for (size_t rank = 0; rank < spec.gpus.size(); ++rank) {
        const int gpu = spec.gpus[rank];
        for (size_t call = 0; call < times.stamps[rank].size(); ++call) {
            const Stamp& stamp = times.stamps[rank][call];
            char text[256];
            std::snprintf(text, sizeof text, "%s,%s,%zu,%s,%zu,%zu,%d,%.0f,%.0f\n",
                          kind_name(spec.kind), spec.by_host ? "host" : "peer", spec.bytes,
                          skew.c_str(), call, rank, gpu,
                          aligned(gpu, stamp.ready), aligned(gpu, stamp.end));
            context.traces += text;
        }
    }
    const int last = spec.gpus.back();
    Row row;
    row.experiment = "clock_alignment";
    row.flows = "0<>" + std::to_string(last);
    row.condition = name;
    row.metric = "drift";
    row.value = std::abs(after.offset[size_t(last)] - before.offset[size_t(last)]);
    row.unit = "ns";
    row.note = "offset after less that before; each is within " +
               figure(after.error[size_t(last)]) + " ns (half of the shortest round trip)";
    context.add(row);
}

}  // namespace

void ask_traces(Context& context) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < context.machine.count(); ++gpu) gpus.push_back(gpu);
    const Kind kinds[] = {Kind::ring_ll, Kind::one_stage_pull, Kind::two_stage_pull};
    for (bool by_host : {false, true}) {
        if (!by_host && !context.machine.all_peers()) continue;
        for (Kind kind : kinds) {
            if (context.options.quick && kind == Kind::two_stage_pull) continue;
            for (size_t bytes : {size_t(14336), size_t(43008)}) {
                if (bytes % (16 * gpus.size()) != 0) continue;
                if (context.options.quick && bytes != 14336) continue;
                for (const char* skew : {"even", "work", "late"}) {
                    one(context, CallSpec{kind, gpus, by_host, 1, bytes}, skew);
                }
            }
        }
    }
}

}  // namespace probe
