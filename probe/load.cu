// What a path does under load: latency of one chain of reads beside readers and writers, shares of
// two groups, several GPUs on one host memory, one GPU beside another's load.

#include <memory>

#include "load.cuh"
#include "statistics.h"

namespace probe {
namespace {

constexpr double run_us = 3000;   // Of a run without a chain.

std::string groups_text(const std::vector<LoadGroup>& groups, int threads) {
    std::string out;
    for (const LoadGroup& group : groups) {
        out += std::string(group.write ? "write" : "read") + "=" + std::to_string(group.blocks) +
               "; ";
    }
    return out + "threads=" + std::to_string(threads);
}

struct Load {
    int readers, writers, threads;
};

void under_load(Context& context, LoadAreas& areas, int gpu, int memory, const Load& load, int hops) {
    std::vector<LoadGroup> groups;
    if (load.readers > 0) groups.push_back({false, load.readers});
    if (load.writers > 0) groups.push_back({true, load.writers});
    LoadRun run(context, areas, gpu, memory, groups, load.threads, hops, 0);
    run.start();
    run.collect();   // The first is cold.
    for (int number = 0; number < context.repeats(); ++number) {
        run.start();
        const LoadResult result = run.collect();
        Row row;
        row.experiment = "latency_under_load";
        row.flows = std::to_string(gpu) + ">" + memory_name(memory);
        row.condition = groups_text(groups, load.threads);
        row.run = number;
        row.metric = "latency";
        row.value = result.chase_ns;
        row.unit = "ns";
        context.add(row);
        for (size_t at = 0; at < groups.size(); ++at) {
            row.metric = groups[at].write ? "write_bandwidth" : "read_bandwidth";
            row.value = result.rates[at];
            row.unit = "GB/s";
            context.add(row);
        }
    }
}

// Two groups of one GPU; the rates of both.
void share(Context& context, LoadAreas& areas, int gpu, LoadGroup a, LoadGroup b) {
    for (int number = 0; number < context.repeats(); ++number) {
        LoadRun run(context, areas, gpu, -1, {a, b}, 512, 0, context.options.tiny ? 100 : run_us);
        run.start();
        const LoadResult result = run.collect();
        for (size_t at = 0; at < 2; ++at) {
            Row row;
            row.experiment = "share";
            row.flows = std::to_string(gpu) + ">host";
            row.condition = groups_text({a, b}, 512) + "; group=" + (at == 0 ? "a" : "b");
            row.run = number;
            row.metric = "bandwidth";
            row.value = result.rates[at];
            row.unit = "GB/s";
            context.add(row);
        }
    }
}

}  // namespace

void ask_load(Context& context) {
    LoadAreas areas(context);
    std::vector<Load> loads = {{0, 0, 32}};
    const bool quick = context.options.quick;
    if (context.options.tiny) {
        loads = {{0, 0, 32}, {1, 1, 64}};
    } else if (quick) {
        for (int readers : {1, 8, 16, 32}) loads.push_back({readers, 0, 512});
        for (int writers : {1, 4}) loads.push_back({0, writers, 512});
        loads.push_back({8, 1, 512});
    } else {
        for (int threads : {32, 128}) loads.push_back({1, 0, threads});
        for (int readers : {1, 2, 3, 4, 6, 8, 16, 32, 64}) loads.push_back({readers, 0, 512});
        for (int threads : {32, 64, 128}) loads.push_back({0, 1, threads});
        for (int writers : {1, 4, 16}) loads.push_back({0, writers, 512});
        for (int readers : {1, 2, 4, 8}) loads.push_back({readers, 1, 512});
        loads.push_back({8, 4, 512});
        loads.push_back({16, 16, 512});
    }
    const int hops = context.options.tiny ? 16 : 1024;
    for (const Load& load : loads) under_load(context, areas, 0, -1, load, hops);
    if (!context.options.tiny) {
        loads = {{0, 0, 32}};
        for (int blocks : {1, 4, 8, 16, 32, 64}) loads.push_back({blocks, 0, 512});
        for (int blocks : {1, 4, 8, 16, 32, 64}) loads.push_back({0, blocks, 512});
        for (int blocks : {8, 16, 32}) loads.push_back({blocks, blocks, 512});
        if (!quick) loads.push_back({96, 0, 1024});
    }
    for (auto [a, b] : context.machine.peer_pairs()) {
        for (const Load& load : loads) under_load(context, areas, a, b, load, hops);
    }
}

void ask_shares(Context& context) {
    LoadAreas areas(context);
    const std::pair<int, int> blocks[] = {{1, 1}, {1, 2}, {1, 4}, {2, 8},  {4, 4},
                                          {4, 16}, {8, 8}, {8, 32}, {16, 64}};
    for (bool write : {false, true}) {
        for (auto [a, b] : blocks) {
            if (context.options.quick && a != b) continue;
            share(context, areas, 0, {false, a}, {write, b});
            if (context.options.tiny) break;
        }
    }
}

// What each GPU reads and writes of host memory while others do the same.
void ask_host_streams(Context& context) {
    LoadAreas areas(context);
    const int gpus = context.machine.count();
    const int blocks = 32, threads = 512;
    struct Does {
        bool read, write;
    };
    const Does kinds[] = {{true, false}, {false, true}, {true, true}};
    auto groups_of = [&](Does does) {
        std::vector<LoadGroup> groups;
        if (does.read) groups.push_back({false, blocks});
        if (does.write) groups.push_back({true, blocks});
        return groups;
    };
    auto text = [](Does does) {
        return std::string(does.read ? "read" : "") + (does.read && does.write ? "+" : "") +
               (does.write ? "write" : "");
    };
    auto all = [&](const std::vector<Does>& does, int run) {
        std::vector<std::unique_ptr<LoadRun>> runs;
        std::string condition;
        for (size_t gpu = 0; gpu < does.size(); ++gpu) {
            runs.push_back(std::make_unique<LoadRun>(context, areas, int(gpu), -1, groups_of(does[gpu]),
                                                     threads, 0,
                                                     context.options.tiny ? 100 : run_us));
            condition += "gpu" + std::to_string(gpu) + "=" + text(does[gpu]) + "; ";
        }
        for (auto& one : runs) one->start();
        for (size_t gpu = 0; gpu < runs.size(); ++gpu) {
            const LoadResult result = runs[gpu]->collect();
            size_t at = 0;
            for (bool write : {false, true}) {
                if (!(write ? does[gpu].write : does[gpu].read)) continue;
                Row row;
                row.experiment = "host_streams";
                row.flows = std::to_string(gpu) + ">host";
                row.condition = condition + "blocks=" + std::to_string(blocks) +
                                "; threads=" + std::to_string(threads);
                row.run = run;
                row.metric = write ? "write_bandwidth" : "read_bandwidth";
                row.value = result.rates[at++];
                row.unit = "GB/s";
                context.add(row);
            }
        }
    };
    for (int run = 0; run < context.repeats(); ++run) {
        for (Does first : kinds) {
            all({first}, run);
            if (gpus < 2) continue;
            // Two GPUs in every mix, then all alike by powers of two.
            for (Does second : kinds) all({first, second}, run);
            for (int used = 4; used <= gpus; used *= 2) {
                all(std::vector<Does>(size_t(used), first), run);
            }
        }
    }
    if (gpus < 2) return;
    // The last GPU loads the host; GPU 0 reads it one by one.
    const int other = gpus - 1;
    for (int run = 0; run < context.repeats(); ++run) {
        for (Does does : kinds) {
            for (int count : {4, 16, 64}) {
                std::vector<LoadGroup> groups;
                if (does.read) groups.push_back({false, count});
                if (does.write) groups.push_back({true, count});
                LoadRun load(context, areas, other, -1, groups, threads, 0,
                             context.options.tiny ? 1000 : 5000);
                LoadRun chain(context, areas, 0, -1, {}, 32, context.options.tiny ? 16 : 1024, 0);
                load.start();
                for (int looks = 0; looks < 1000000000 && !load.running(); ++looks) {
                }
                chain.start();
                Row row;
                row.experiment = "latency_beside_other_gpu";
                row.flows = "0>host";
                row.condition = "gpu" + std::to_string(other) + "=" + text(does) +
                                "; blocks=" + std::to_string(count) + "; threads=512";
                row.run = run;
                row.metric = "latency";
                row.value = chain.collect().chase_ns;
                row.unit = "ns";
                load.collect();
                context.add(row);
            }
        }
    }
}

}  // namespace probe
