// A kernel of fences behind stores, to be run by itself or beside something.

#pragma once

#include "context.h"

namespace probe {

class FenceRun {
  public:
    // A block of `gpu` stores `words` words of 4 bytes into a memory (below 0: the host's), then its
    // first thread fences, again and again, for the whole system or for its device.
    FenceRun(int gpu, int memory, bool system, int words);
    // Runs some kernels of fences, at most ten.
    void run(int kernels);
    // Median of the fences of the last run, ns.
    double ns();

  private:
    int kernels = 0;
    bool system;
    int words;
    Buffer<uint32_t> to;
    Buffer<uint64_t> out;
    Stream stream;
};

}  // namespace probe
