// Order statistics. No CUDA here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace probe {

// Value below which a share of the values lies, nearest rank; zero of none.
inline double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double rank = std::ceil(share * double(values.size()));
    const size_t index = rank < 1 ? 0 : size_t(rank) - 1;
    return values[std::min(index, values.size() - 1)];
}

// Middle value, or the mean of the two middle ones; zero of none.
inline double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline double mean(const std::vector<double>& values) {
    double sum = 0;
    for (double value : values) sum += value;
    return values.empty() ? 0 : sum / double(values.size());
}

// How far one GPU's clock is ahead of another's, from rounds of a flag there and back: the first
// stamps `sent`, the second `seen`, the first `back`. Of each round the offset is seen minus the
// middle of sent and back; the rounds with the shortest trips know it best, and the median over
// the best twentieth (at least one) is returned. It is off by at most half the trip's asymmetry.
struct Round {
    double sent, seen, back;
};

inline double clock_offset(std::vector<Round> rounds) {
    std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) {
        return a.back - a.sent < b.back - b.sent;
    });
    const size_t best = std::max<size_t>(1, rounds.size() / 20);
    std::vector<double> offsets;
    for (size_t at = 0; at < best && at < rounds.size(); ++at) {
        offsets.push_back(rounds[at].seen - (rounds[at].sent + rounds[at].back) / 2);
    }
    return median(offsets);
}

// The same number for the same arguments on every machine, spread evenly over 0 .. limit - 1: delays
// put in on purpose and shuffled orders are the same in every run.
inline uint32_t scatter(uint32_t a, uint32_t b, uint32_t limit) {
    uint64_t x = (uint64_t(a) << 32 | b) + 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    return limit == 0 ? 0 : uint32_t(x % limit);
}

}  // namespace probe
