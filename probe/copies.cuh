// Copies by copy engines that go on while something else is timed.
#pragma once

#include <vector>

#include "context.h"

namespace probe {

// Buffers of one copy.
struct CopyEnds {
    Buffer<char> from, to;
    CopyEnds(const Flow& copy, size_t bytes)
        : from(copy.from < 0 ? copy.to : copy.from, copy.from < 0 ? Home::host : Home::device, bytes),
          to(copy.to < 0 ? copy.from : copy.to, copy.to < 0 ? Home::host : Home::device, bytes) {}
};

// Equal copies of one flow, one after another on a stream of their own, an event after each.
class CopyFlow {
  public:
    CopyFlow(const Flow& flow, size_t bytes, int count)
        : bytes_(bytes), ends_(flow, bytes), stream_(flow.engine()), events_(size_t(count)) {
        stream_.use();
        for (cudaEvent_t& event : events_) PROBE_CHECK(cudaEventCreate(&event));
    }
    CopyFlow(CopyFlow&&) = default;
    ~CopyFlow() {
        for (cudaEvent_t event : events_) cudaEventDestroy(event);
    }
    void start() {
        const cudaStream_t on = stream_.use();
        for (cudaEvent_t event : events_) {
            PROBE_CHECK(cudaMemcpyAsync(ends_.to.get(), ends_.from.get(), bytes_, cudaMemcpyDefault, on));
            PROBE_CHECK(cudaEventRecord(event, on));
        }
    }
    // Copies that have ended.
    size_t done() const {
        stream_.use();
        size_t count = 0;
        while (count < events_.size() && cudaEventQuery(events_[count]) == cudaSuccess) ++count;
        cudaGetLastError();   // "Not ready" is no error.
        return count;
    }
    bool over() const { return done() == events_.size(); }
    // Rate between the ends of two copies by their numbers of `done`, GB/s; zero where they are one.
    double rate(size_t from, size_t to) const {
        if (from == 0 || to <= from) return 0;
        float ms = 0;
        PROBE_CHECK(cudaEventElapsedTime(&ms, events_[from - 1], events_[to - 1]));
        return double(to - from) * double(bytes_) / double(ms) / 1e6;
    }
    void wait() const { stream_.wait(); }

  private:
    size_t bytes_;
    CopyEnds ends_;
    Stream stream_;
    std::vector<cudaEvent_t> events_;
};

// Copies of up to 64 KB to and from the host; rows say `condition`.
void small_copies(Context& context, const std::string& condition);

}  // namespace probe
