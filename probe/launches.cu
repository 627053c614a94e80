// What starting a kernel costs: launched and waited for, launched in a row, as a node of a graph
// after another node, and as a node that may start before the one before it has ended. Once a process
// has made more streams than the GPU has connections for it, a node of a graph takes a third longer: this
// is the first question, and asks again with many streams.

#include <chrono>

#include "context.h"
#include "copies.cuh"
#include "device.cuh"
#include "statistics.h"

namespace probe {
namespace {

__global__ void nothing(uint32_t* at) {
    if (threadIdx.x == 1024) *at = 1;   // No block is so large; the argument is used.
}

// Starts early and waits for the one before it, where the GPU can.
__global__ void dependent(uint32_t* at) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    if (threadIdx.x == 1024) *at = 1;
}

void report(Context& context, int gpu, const std::string& what, int nodes, double us, int run) {
    Row row;
    row.experiment = "launch";
    row.flows = std::to_string(gpu);
    row.condition = what + "; kernels=" + std::to_string(nodes);
    row.run = run;
    row.metric = "time";
    row.value = us;
    row.unit = "us";
    row.note = "of one kernel that does nothing";
    context.add(row);
}

// How large a kernel that does nothing is.
struct Shape {
    int blocks, threads;
};
constexpr Shape smallest = {1, 32};
constexpr int streams_many = 16;   // Seen with 8: none the slower; with 16: all.

void launch_one(uint32_t* at, cudaStream_t on, bool early, Shape shape = smallest) {
    if (!early) {
        nothing<<<shape.blocks, shape.threads, 0, on>>>(at);
        PROBE_LAUNCHED("nothing");
        return;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    config.stream = on;
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    PROBE_CHECK(cudaLaunchKernelEx(&config, dependent, at));
}

// A graph of `nodes` kernels in a row, us a kernel.
double graph_us(const Stream& stream, uint32_t* at, int nodes, bool early, int rounds,
                Shape shape = smallest) {
    const cudaStream_t on = stream.use();
    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    PROBE_CHECK(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal));
    for (int node = 0; node < nodes; ++node) launch_one(at, on, early, shape);
    PROBE_CHECK(cudaStreamEndCapture(on, &graph));
    PROBE_CHECK(cudaGraphInstantiate(&runnable, graph, 0));
    std::vector<double> times;
    for (int round = -2; round < rounds; ++round) {
        Timer timer(stream);
        timer.start();
        PROBE_CHECK(cudaGraphLaunch(runnable, on));
        timer.stop();
        const double us = timer.us();
        if (round >= 0) times.push_back(us / nodes);
    }
    cudaGraphExecDestroy(runnable);
    cudaGraphDestroy(graph);
    return median(times);
}

}  // namespace

void ask_launches(Context& context) {
    const int gpu = 0;
    Stream stream(gpu);
    Buffer<uint32_t> at(gpu, Home::device, 1);
    const int many = context.options.tiny ? 10 : 1000;
    for (int run = 0; run < context.repeats(); ++run) {
        std::vector<double> times;
        for (int round = 0; round < (context.options.tiny ? 4 : 200); ++round) {
            const auto from = std::chrono::steady_clock::now();
            launch_one(at.get(), stream.use(), false);
            stream.wait();
            const auto to = std::chrono::steady_clock::now();
            times.push_back(std::chrono::duration<double, std::micro>(to - from).count());
        }
        report(context, gpu, "launch=wait", 1, median(times), run);
        Timer timer(stream);
        timer.start();
        for (int kernel = 0; kernel < many; ++kernel) launch_one(at.get(), stream.use(), false);
        timer.stop();
        report(context, gpu, "launch=stream", many, timer.us() / many, run);
        for (int nodes : {1, 10, 122, many}) {
            const double us = graph_us(stream, at.get(), nodes, false, context.rounds(5));
            report(context, gpu, "launch=graph", nodes, us, run);
        }
        // As large as those of a library's all-reduce.
        for (Shape shape : {Shape{1, 512}, Shape{36, 512}}) {
            const double us = graph_us(stream, at.get(), many, false, context.rounds(5), shape);
            report(context, gpu, "launch=graph; blocks=" + std::to_string(shape.blocks) + "; threads=" +
                   std::to_string(shape.threads), many, us, run);
        }
        if (context.machine.gpus[gpu].properties.major >= 9) {
            const double us = graph_us(stream, at.get(), 122, true, context.rounds(5));
            report(context, gpu, "launch=graph_dependent", 122, us, run);
        }
    }
}

// The same once a process has made many streams.
void ask_crowded(Context& context) {
    const int gpu = 0;
    Stream stream(gpu);
    Buffer<uint32_t> at(gpu, Home::device, 1);
    for (int made = 0; made < streams_many; ++made) {
        Stream other(gpu);
        launch_one(at.get(), other.use(), false);
        other.wait();
    }
    const std::string many = "streams made before=" + std::to_string(streams_many);
    const int nodes = context.options.tiny ? 10 : 1000;
    for (int run = 0; run < context.repeats(); ++run) {
        const double us = graph_us(stream, at.get(), nodes, false, context.rounds(5));
        report(context, gpu, "launch=graph; " + many, nodes, us, run);
    }
    small_copies(context, many);
}

}  // namespace probe
