// A flag there and back: two blocks of one GPU, two GPUs, a GPU and the CPU; flags in the memory of
// whoever polls, or in the host's.

#include <atomic>

#include "context.h"
#include "device.cuh"
#include "statistics.h"

namespace probe {
namespace {

// Words between two flags. Where a flag lies decides which part of an L2 cache or of a host holds it
// and changes the time by a tenth or more: each figure is the median over several places.
constexpr size_t apart = 4096 + 96;
constexpr size_t places = 8;
constexpr uint32_t warm_up = 16;      // Rounds before the clock starts.

// Side 0 sends first and keeps the time; side 1 answers. `out` gets ns, or zero when a poll gave up.
template <bool Fenced>
__device__ void play(int side, uint32_t* mine, uint32_t* theirs, uint32_t rounds, uint64_t* out) {
    uint64_t from = 0;
    bool seen = true;
    for (uint32_t round = 1; round <= warm_up + rounds && seen; ++round) {
        if (side == 0) {
            if (round == warm_up + 1) from = now();
            Fenced ? store_release(theirs, round) : store_flag(theirs, round);
            seen = poll<Fenced>(mine, round);
        } else {
            seen = poll<Fenced>(mine, round);
            Fenced ? store_release(theirs, round) : store_flag(theirs, round);
        }
    }
    if (side == 0) *out = seen ? now() - from : 0;
}

template <bool Fenced>
__global__ void ping_pong(int first_side, uint32_t* flag0, uint32_t* flag1, uint32_t rounds,
                          uint64_t* out) {
    if (threadIdx.x != 0) return;
    const int side = first_side + int(blockIdx.x);
    play<Fenced>(side, side == 0 ? flag0 : flag1, side == 0 ? flag1 : flag0, rounds, out);
}

// Round trip, ns. `flag0` is what side 0 on GPU `a` polls.
double round_trip(int a, int b, uint32_t* flag0, uint32_t* flag1, bool fenced, uint32_t rounds) {
    Buffer<uint64_t> out(a, Home::device, 1);
    Stream first(a), second(b);
    auto launch = [&](const Stream& stream, int side, int blocks) {
        const cudaStream_t on = stream.use();
        if (fenced) {
            ping_pong<true><<<blocks, 32, 0, on>>>(side, flag0, flag1, rounds, out.get());
        } else {
            ping_pong<false><<<blocks, 32, 0, on>>>(side, flag0, flag1, rounds, out.get());
        }
        PROBE_LAUNCHED("ping_pong");
    };
    if (a == b) {
        launch(first, 0, 2);
    } else {
        launch(second, 1, 1);
        launch(first, 0, 1);
    }
    first.wait();
    second.wait();
    uint64_t ns = 0;
    to_gpu(&ns, out.get(), 1);
    if (ns == 0) throw std::runtime_error("a flag never arrived");
    return double(ns) / rounds;
}

void pair(Context& context, int a, int b, bool by_host, uint32_t rounds) {
    const Home home = by_host ? Home::host : Home::device;
    for (bool fenced : {false, true}) {
        for (int run = 0; run < context.repeats(); ++run) {
            Buffer<uint32_t> mine(a, home, 2 * places * apart), theirs(b, home, 2 * places * apart);
            std::vector<double> times;
            for (size_t place = 0; place < places; ++place) {
                uint32_t* flag0 = mine.get() + 2 * place * apart;
                // Of host memory one allocation: both flags near each other.
                uint32_t* flag1 = by_host || a == b ? flag0 + apart : theirs.get() + place * apart;
                times.push_back(round_trip(a, b, flag0, flag1, fenced, rounds));
            }
            const double ns = median(times);
            Row row;
            row.experiment = "flag";
            row.flows = std::to_string(a) + "<>" + std::to_string(b);
            row.size_bytes = 4;
            row.condition = std::string("memory=") + (by_host ? "host" : "poller") +
                            "; order=" + (fenced ? "release_acquire" : "volatile");
            row.run = run;
            row.metric = "latency";
            row.value = ns / 2;
            row.unit = "ns";
            row.note = "one way: half of the round trip; by place " +
                       figure(percentile(times, 0) / 2) + " to " + figure(percentile(times, 1) / 2);
            context.add(row);
        }
    }
}

// The CPU answers from another core; both flags in host memory.
void cpu(Context& context, int gpu, uint32_t rounds) {
    for (int run = 0; run < context.repeats(); ++run) {
        Buffer<uint32_t> flags(gpu, Home::host, 2 * apart);
        Buffer<uint64_t> out(gpu, Home::device, 1);
        Stream stream(gpu);
        volatile uint32_t* asked = flags.get() + apart;
        volatile uint32_t* answer = flags.get();
        ping_pong<false><<<1, 32, 0, stream.use()>>>(0, flags.get(), flags.get() + apart, rounds,
                                                     out.get());
        PROBE_LAUNCHED("ping_pong");
        for (uint32_t round = 1; round <= warm_up + rounds; ++round) {
            uint64_t looks = 0;
            while (*asked != round && ++looks < (1ull << 32) && !interrupted) {
            }
            std::atomic_thread_fence(std::memory_order_seq_cst);
            *answer = round;
        }
        stream.wait();
        uint64_t ns = 0;
        to_gpu(&ns, out.get(), 1);
        if (ns == 0) throw std::runtime_error("the CPU's flag never arrived");
        Row row;
        row.experiment = "flag";
        row.flows = std::to_string(gpu) + "<>cpu";
        row.size_bytes = 4;
        row.condition = "memory=host; order=volatile";
        row.run = run;
        row.metric = "latency";
        row.value = double(ns) / rounds / 2;
        row.unit = "ns";
        row.note = "one way: half of the round trip";
        context.add(row);
    }
}

}  // namespace

void ask_flags(Context& context) {
    const uint32_t rounds = context.options.tiny ? 8 : 500;
    pair(context, 0, 0, false, rounds);
    pair(context, 0, 0, true, rounds);
    cpu(context, 0, rounds);
    for (auto [a, b] : context.machine.peer_pairs()) pair(context, a, b, false, rounds);
    for (auto [a, b] : pair_classes(context.machine.matrix, context.machine.count())) {
        pair(context, a, b, true, rounds);
    }
}

}  // namespace probe
