// Lays out the ranks' memory, launches the kernels of collective_kernels.cuh on every GPU, checks the
// sums, and aligns the GPUs' clocks.

#include <algorithm>
#include <map>
#include <memory>

#include "collective_kernels.cuh"
#include "statistics.h"

namespace probe {
namespace {

using Kernel = void (*)(CallPlan);

// Groups of loads as the tables of `h200-one-link` (virtual ranks of one GPU) and of the two-GPU
// folders had them, so that figures compare: the compiler chose them there, they are fixed here.
template <Kind K>
Kernel pull_kernel(int ranks, bool one_gpu) {
    if (one_gpu && ranks == 8) return calls_kernel<K, 2, 4>;
    if (one_gpu && ranks % 4 == 0) return calls_kernel<K, 4, 0>;
    if (ranks % 8 == 0) return calls_kernel<K, 2, 0>;
    return calls_kernel<K, 1, 0>;
}

Kernel kernel_of(Kind kind, int ranks, bool one_gpu) {
    switch (kind) {
        case Kind::ring_ll: return calls_kernel<Kind::ring_ll, 1, 0>;
        case Kind::ring_simple: return calls_kernel<Kind::ring_simple, 1, 0>;
        case Kind::one_stage_pull: return pull_kernel<Kind::one_stage_pull>(ranks, one_gpu);
        case Kind::two_stage_pull: return pull_kernel<Kind::two_stage_pull>(ranks, one_gpu);
        case Kind::one_stage_push_ll: return calls_kernel<Kind::one_stage_push_ll, 1, 0>;
    }
    return nullptr;
}

size_t inbox_units(const CallSpec& spec) {
    const size_t units = spec.bytes / 16, ranks = spec.gpus.size();
    const size_t steps = 2 * (ranks - 1);
    switch (spec.kind) {
        case Kind::ring_ll: return steps * (units * 2 / ranks);
        case Kind::ring_simple: return steps * (units / ranks);
        case Kind::one_stage_push_ll: return ranks * units * 2;
        default: return 0;
    }
}

// Pieces of one allocation, each on a page of its own.
class Arena {
  public:
    template <typename T>
    size_t piece(size_t count) {
        const size_t at = size_;
        size_ += (count * sizeof(T) + 4095) / 4096 * 4096;
        return at;
    }
    void allocate(int gpu, Home home) { data_ = Buffer<char>(gpu, home, std::max<size_t>(size_, 1)); }
    template <typename T>
    T* get(size_t at) const {
        return reinterpret_cast<T*>(data_.get() + at);
    }

  private:
    size_t size_ = 0;
    Buffer<char> data_;
};

float value_of(size_t rank, size_t element) { return float(rank + 1 + element % 13); }

// All memory of the ranks, and their addresses in each GPU.
class Ranks {
  public:
    Ranks(const CallSpec& spec) : spec_(spec), shared_(spec.gpus.size()), local_(spec.gpus.size()) {
        const size_t units = spec.bytes / 16;
        for (size_t rank = 0; rank < spec.gpus.size(); ++rank) add(rank, units);
    }

    const std::vector<RankMemory>& memory() const { return memory_; }

    std::vector<std::vector<Stamp>> stamps() const {
        std::vector<std::vector<Stamp>> out;
        for (const RankMemory& rank : memory_) {
            out.emplace_back(size_t(spec_.calls));
            to_gpu(out.back().data(), rank.stamps, out.back().size());
        }
        return out;
    }

    // Of every rank, each element: the sum over all ranks, exact in 32 bits.
    void verify() const {
        const size_t ranks = memory_.size(), elements = spec_.bytes / 4;
        std::vector<float> sum(elements);
        for (const RankMemory& rank : memory_) {
            to_gpu(sum.data(), reinterpret_cast<const float*>(rank.output), elements);
            for (size_t at = 0; at < elements; ++at) {
                const float right = float(ranks * (ranks + 1) / 2 + ranks * (at % 13));
                if (sum[at] != right) {
                    throw std::runtime_error(std::string(kind_name(spec_.kind)) +
                                             ": the sum is wrong at element " + std::to_string(at));
                }
            }
        }
    }

  private:
    void add(size_t rank, size_t units) {
        const int gpu = spec_.gpus[rank];
        Arena& shared = shared_[rank];
        const size_t input = shared.piece<uint4>(units), part = shared.piece<uint4>(units);
        const size_t inbox = shared.piece<uint4>(2 * inbox_units(spec_));
        const size_t flags = shared.piece<uint32_t>(size_t(spec_.blocks) * flags_a_part);
        shared.allocate(gpu, spec_.by_host ? Home::host : Home::device);
        Arena& local = local_[rank];
        const size_t copy = local.piece<uint4>(units), output = local.piece<uint4>(units);
        const size_t work = local.piece<uint4>(spec_.work_bytes / 16);
        const size_t stamps = local.piece<Stamp>(size_t(spec_.calls));
        const size_t pauses = local.piece<uint32_t>(size_t(spec_.calls));
        local.allocate(gpu, Home::device);
        std::vector<float> values(units * 4);
        for (size_t at = 0; at < values.size(); ++at) values[at] = value_of(rank, at);
        to_gpu(shared.get<float>(input), values.data(), values.size());
        to_gpu(local.get<float>(copy), values.data(), values.size());
        RankMemory memory = {shared.get<uint4>(input), shared.get<uint4>(part),
                             shared.get<uint4>(inbox), shared.get<uint32_t>(flags),
                             local.get<uint4>(copy), local.get<uint4>(output),
                             local.get<uint4>(work), local.get<Stamp>(stamps), nullptr};
        if (!spec_.pauses.empty()) {
            const uint32_t* own = spec_.pauses.data() + rank * size_t(spec_.calls);
            to_gpu(local.get<uint32_t>(pauses), own, size_t(spec_.calls));
            memory.pauses = local.get<uint32_t>(pauses);
        }
        memory_.push_back(memory);
    }

    const CallSpec& spec_;
    std::vector<Arena> shared_, local_;
    std::vector<RankMemory> memory_;
};

}  // namespace

CallTimes run_calls(Context& context, const CallSpec& spec) {
    context.check();
    const int count = int(spec.gpus.size());
    if (spec.bytes % (16 * size_t(count)) != 0) throw NotHere("the buffer does not part evenly");
    std::map<int, std::pair<int, int>> of_gpu;   // First rank and count.
    for (int rank = 0; rank < count; ++rank) {
        auto& [first, ranks] = of_gpu.try_emplace(spec.gpus[size_t(rank)], rank, 0).first->second;
        ++ranks;
    }
    const Ranks ranks(spec);
    const Kernel kernel = kernel_of(spec.kind, count, of_gpu.size() == 1);
    std::vector<Buffer<RankMemory>> tables;
    std::vector<Buffer<uint32_t>> failed;
    std::vector<Stream> streams;
    std::vector<CallPlan> plans;
    for (auto [gpu, part] : of_gpu) {
        const int sms = context.machine.gpus[size_t(gpu)].properties.multiProcessorCount;
        // A block waits for others: all must run at once, one an SM.
        if (part.second * spec.blocks > sms) throw NotHere("the GPU has too few SMs for the ranks");
        tables.emplace_back(gpu, Home::device, size_t(count));
        to_gpu(tables.back().get(), ranks.memory().data(), size_t(count));
        failed.emplace_back(gpu, Home::device, 1);
        streams.emplace_back(gpu);
        plans.push_back({tables.back().get(), count, part.first, spec.blocks, spec.bytes / 16,
                         spec.calls, spec.work_bytes / 16, spec.stamp_ends, inbox_units(spec),
                         failed.back().get()});
    }
    size_t at = 0;
    for (auto [gpu, part] : of_gpu) {
        kernel<<<part.second * spec.blocks, call_threads, 0, streams[at].use()>>>(plans[at]);
        PROBE_LAUNCHED("calls_kernel");
        ++at;
    }
    for (const Stream& stream : streams) stream.wait();
    for (const auto& flag : failed) {
        uint32_t gave_up = 0;
        to_gpu(&gave_up, flag.get(), 1);
        if (gave_up) throw std::runtime_error(std::string(kind_name(spec.kind)) + ": a rank never came");
    }
    ranks.verify();
    return {ranks.stamps()};
}

namespace {

constexpr int clock_rounds = 1000;

// Side 0 stamps when it sends and when the answer is there, side 1 when it has seen the flag.
__global__ void clock_game(int side, uint32_t* mine, uint32_t* theirs, uint64_t* stamps) {
    for (uint32_t round = 1; round <= clock_rounds; ++round) {
        if (side == 0) {
            stamps[2 * (round - 1)] = now();
            store_flag(theirs, round);
            if (!poll<false>(mine, round)) return;
            stamps[2 * (round - 1) + 1] = now();
        } else {
            if (!poll<false>(mine, round)) return;
            stamps[round - 1] = now();
            store_flag(theirs, round);
        }
    }
}

}  // namespace

Clocks align_clocks(Context& context) {
    Clocks clocks;
    clocks.offset.push_back(0);
    clocks.error.push_back(0);
    for (int gpu = 1; gpu < context.machine.count(); ++gpu) {
        const bool peer = context.machine.peer[0][size_t(gpu)] && context.machine.peer[size_t(gpu)][0];
        const Home home = peer ? Home::device : Home::host;
        Buffer<uint32_t> flag0(0, home, 1024), flag1(gpu, home, 1024);
        Buffer<uint64_t> first(0, Home::device, 2 * clock_rounds);
        Buffer<uint64_t> second(gpu, Home::device, clock_rounds);
        Stream stream0(0), stream1(gpu);
        clock_game<<<1, 1, 0, stream1.use()>>>(1, flag1.get(), flag0.get(), second.get());
        PROBE_LAUNCHED("clock_game");
        clock_game<<<1, 1, 0, stream0.use()>>>(0, flag0.get(), flag1.get(), first.get());
        PROBE_LAUNCHED("clock_game");
        stream0.wait();
        stream1.wait();
        std::vector<uint64_t> trips(2 * clock_rounds), seen(clock_rounds);
        to_gpu(trips.data(), first.get(), trips.size());
        to_gpu(seen.data(), second.get(), seen.size());
        // Relative to the first stamp, so that doubles are exact.
        const uint64_t zero = trips[0];
        std::vector<Round> rounds;
        double shortest = 1e18;
        for (size_t at = 1; at < clock_rounds; ++at) {
            rounds.push_back({double(trips[2 * at] - zero), double(int64_t(seen[at] - zero)),
                              double(trips[2 * at + 1] - zero)});
            shortest = std::min(shortest, rounds.back().back - rounds.back().sent);
        }
        clocks.offset.push_back(clock_offset(rounds));
        clocks.error.push_back(shortest / 2);
    }
    return clocks;
}

}  // namespace probe
