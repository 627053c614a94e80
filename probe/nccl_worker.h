// What the workers that call NCCL share: who they are, how they meet, calls in a graph.
#pragma once

#include <functional>
#include <string>

#include "context.h"
#include "nccl.h"

namespace probe {

constexpr int step_calls = 122;

struct Worker {
    Nccl nccl;
    NcclSetting setting;
    int rank, ranks;
    std::string base, depth;
    bool tiny() const { return depth == "tiny"; }
    bool quick() const { return depth != "full"; }
    // What this worker writes its lines to.
    std::string file() const { return base + "." + std::to_string(rank) + ".csv"; }
};

// A communicator of all ranks, one process each.
NcclComm join(const Worker& worker);

// Calls in a graph on a stream.
class CallGraph {
  public:
    CallGraph(const Stream& stream, const std::function<void(cudaStream_t)>& queue) : stream_(stream) {
        PROBE_CHECK(cudaStreamBeginCapture(stream.use(), cudaStreamCaptureModeThreadLocal));
        queue(stream.use());
        PROBE_CHECK(cudaStreamEndCapture(stream.use(), &graph_));
        PROBE_CHECK(cudaGraphInstantiate(&runnable_, graph_, 0));
    }
    CallGraph(const CallGraph&) = delete;
    ~CallGraph() {
        cudaGraphExecDestroy(runnable_);
        cudaGraphDestroy(graph_);
    }
    void launch() const { PROBE_CHECK(cudaGraphLaunch(runnable_, stream_.use())); }

  private:
    const Stream& stream_;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t runnable_ = nullptr;
};

// Times of all-reduces beside copies, and the rates of the copies: a worker's part, and its rows.
void beside_all(const Worker& worker);
void nccl_beside_copies(Context& context);

}  // namespace probe
