// All-reduces of our own between ranks, real ones on GPUs of their own or virtual ones that share a
// GPU: many calls in a row inside one kernel, every call stamped by every rank.
#pragma once

#include <string>
#include <vector>

#include "context.h"

namespace probe {

enum class Kind { ring_ll, ring_simple, one_stage_pull, two_stage_pull, one_stage_push_ll };

constexpr Kind all_kinds[] = {Kind::ring_ll, Kind::ring_simple, Kind::one_stage_pull,
                              Kind::two_stage_pull, Kind::one_stage_push_ll};

// As the kernels are called in tables.
inline const char* kind_name(Kind kind) {
    switch (kind) {
        case Kind::ring_ll: return "ring_ll";
        case Kind::ring_simple: return "ring_simple";
        case Kind::one_stage_pull: return "one_stage_pull";
        case Kind::two_stage_pull: return "two_stage_pull";
        case Kind::one_stage_push_ll: return "one_stage_push_ll";
    }
    return "";
}

struct CallSpec {
    Kind kind;
    std::vector<int> gpus;    // Of each rank; equal ones stand together.
    bool by_host = false;     // Inboxes, buffers and flags in host memory, not in that of the rank.
    int blocks = 1;           // Of a rank.
    size_t bytes = 0;         // Of the buffer that is summed.
    int calls = 122;
    // Of each rank and call, rank after rank: ns that the rank stays away after its call before.
    // Empty: none.
    std::vector<uint32_t> pauses = {};
    // Bytes of its own memory that a rank reads before each call: the work between two calls.
    size_t work_bytes = 0;
    // The end of each call before the next is stamped by all ranks (traces); otherwise starts only.
    bool stamp_ends = false;
};

// Times of one call of one rank by its GPU's clock, ns.
struct Stamp {
    uint64_t ready, end;
};

// [rank][call], and whether the result was right.
struct CallTimes {
    std::vector<std::vector<Stamp>> stamps;
};

// Runs the calls once.
// Throws NotHere where the ranks do not fit, std::runtime_error for a wrong sum.
CallTimes run_calls(Context& context, const CallSpec& spec);

// Offset of each GPU's clock from GPU 0's and how far it may be off, ns.
struct Clocks {
    std::vector<double> offset, error;
};
Clocks align_clocks(Context& context);

}  // namespace probe
