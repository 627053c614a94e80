// Groups of blocks that load or store one memory at full tilt, beside a chain of dependent reads or
// against a timer; what `load.cu` asks with.
#pragma once

#include <map>
#include <vector>

#include "context.h"
#include "device.cuh"

namespace probe {

constexpr size_t chain_units = 4096;   // The chain's own 64 KB, at the beginning of an area.

// A group of equal blocks of one GPU.
struct LoadGroup {
    bool write;
    int blocks;
};

struct LoadResult {
    double chase_ns = 0;               // Of the chain, if there was one.
    std::vector<double> rates;         // Of each group, GB/s.
};

// The memories that are loaded: large, so that neither a peer's L2 cache nor the host's last level
// cache holds them, and made once.
class LoadAreas {
  public:
    explicit LoadAreas(Context& context)
        : units_(chain_units +
                 context.bytes(context.machine.count() > 4 ? 128u << 20 : 256u << 20) / 16) {}
    // `gpu`'s part of the host's memory (-1), or memory of another GPU.
    Buffer<uint4>& of(int gpu, int memory) {
        const int key = memory < 0 ? -1 - gpu : memory;
        auto found = areas_.find(key);
        if (found == areas_.end()) {
            Buffer<uint4> area(memory < 0 ? gpu : memory, memory < 0 ? Home::host : Home::device,
                               units_);
            found = areas_.emplace(key, std::move(area)).first;
        }
        return found->second;
    }

  private:
    size_t units_;
    std::map<int, Buffer<uint4>> areas_;
};

// One GPU's part: started, then collected, so that several GPUs can run at once.
class LoadRun {
  public:
    // The groups on `gpu` against `memory` (-1: the host), `threads` a block; `hops` reads of a
    // chain in the same memory, or, if zero, until `us` have passed.
    LoadRun(Context& context, LoadAreas& areas, int gpu, int memory, std::vector<LoadGroup> groups, int threads,
            int hops, double us);
    void start();
    // Whether its kernel runs.
    bool running() const;
    // Until the kernel has ended: `collect` copies its figures and waits for copies before its own.
    void wait() const { stream_.wait(); }
    LoadResult collect();

  private:
    std::vector<LoadGroup> groups_;
    int threads_, hops_;
    double us_;
    int blocks_ = 0;
    Stream stream_;
    Buffer<uint4>& area_;
    Buffer<uint32_t> stop_;
    Buffer<uint32_t> running_;
    Buffer<uint64_t> out_;
};

}  // namespace probe
