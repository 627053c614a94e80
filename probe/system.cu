// What the machine is: GPUs, who addresses whom, links under load, what nvidia-smi and sysfs tell.
// Serial numbers, host names and unique ids are never read.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "context.h"
#include "device.cuh"
#include "json.h"
#include "nccl.h"

namespace probe {
namespace {

// Output of a program; empty where there is none.
std::string output_of(const std::string& command) {
    std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
    if (!pipe) return "";
    std::string text;
    char part[4096];
    for (size_t got; (got = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, got);
    return pclose(pipe) == 0 ? text : "";
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::string bus_of(const cudaDeviceProp& properties) {
    char text[32];
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", unsigned(properties.pciDomainID),
                  unsigned(properties.pciBusID), unsigned(properties.pciDeviceID));
    return text;
}

std::vector<uint8_t> config_space(const std::string& bus) {
    std::ifstream file("/sys/bus/pci/devices/" + bus + "/config", std::ios::binary);
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

// Step of the GPU's timer, the smallest difference between two readings; cycles and ns of it all.
__global__ void ticks(uint64_t* out) {
    uint64_t least = ~0ull, before = now();
    const uint64_t from = before;
    const long long first = clock64();
    while (before - from < 2000000) {
        const uint64_t time = now();
        if (time != before && time - before < least) least = time - before;
        before = time;
    }
    out[0] = least;
    out[1] = uint64_t(clock64() - first);
    out[2] = before - from;
}

void read_clocks(Gpu& gpu) {
    Buffer<uint64_t> out(gpu.index, Home::device, 3);
    Stream stream(gpu.index);
    for (int round = 0; round < 2; ++round) {   // The first lets the clock rise.
        ticks<<<1, 1, 0, stream.use()>>>(out.get());
        PROBE_LAUNCHED("ticks");
        stream.wait();
    }
    uint64_t read[3];
    to_gpu(read, out.get(), 3);
    gpu.tick_ns = double(read[0]);
    gpu.clock_ghz = double(read[1]) / double(read[2]);
}

// The link while copies keep it from saving power.
Express busy_link(const Gpu& gpu) {
    const size_t bytes = 32u << 20;
    Buffer<char> host(gpu.index, Home::host, bytes), device(gpu.index, Home::device, bytes);
    Stream stream(gpu.index);
    for (int copy = 0; copy < 20; ++copy) {
        PROBE_CHECK(cudaMemcpyAsync(device.get(), host.get(), bytes, cudaMemcpyDefault, stream.use()));
    }
    const Express link = express(config_space(gpu.bus));
    stream.wait();
    return link;
}

// Processes besides this one that use a GPU.
std::set<std::string> other_processes() {
    const std::vector<std::string> apps =
        lines_of(output_of("nvidia-smi --query-compute-apps=pid --format=csv,noheader"));
    // This process may be listed once a GPU by now.
    std::set<std::string> others(apps.begin(), apps.end());
    others.erase(std::to_string(getpid()));
    return others;
}

constexpr const char* not_idle = "GPUs were not idle";

// Another process on a GPU, or work on it: a remark on every row.
void find_others(Context& context) {
    const std::string text =
        output_of("nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits");
    int busy = 0;
    for (const std::string& line : lines_of(text)) busy = std::max(busy, std::atoi(line.c_str()));
    const std::set<std::string> others = other_processes();
    if (busy > 5 || !others.empty()) {
        context.table.remark = not_idle;
        context.machine.remarks.push_back(
            "GPUs were not idle at the start: busiest " + std::to_string(busy) + " %, " +
            "other processes: " + std::to_string(others.size()) +
            "; all rows say so and are for spread only");
    }
}

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(':');
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return "";
}

bool virtual_machine() {
    std::ifstream file("/proc/cpuinfo");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return text.find(" hypervisor") != std::string::npos;
}

// NUMA nodes that have CPUs.
int numa_nodes() {
    int nodes = 0;
    for (int node = 0; node < 64; ++node) {
        std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
        std::string cpus;
        if (file && std::getline(file, cpus) && !cpus.empty()) ++nodes;
    }
    return nodes;
}

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string nccl_version() {
    try {
        return open_nccl().version();
    } catch (const std::exception&) {
        return "";
    }
}

}  // namespace

void find_machine(Context& context) {
    Machine& machine = context.machine;
    int count = 0;
    PROBE_CHECK(cudaGetDeviceCount(&count));
    for (int index = 0; index < std::min(count, context.options.gpus); ++index) {
        Gpu gpu;
        gpu.index = index;
        PROBE_CHECK(cudaGetDeviceProperties(&gpu.properties, index));
        gpu.bus = bus_of(gpu.properties);
        PROBE_CHECK(cudaSetDevice(index));
        PROBE_CHECK(cudaFree(nullptr));   // Makes the context: a GPU that is taken says so here.
        machine.gpus.push_back(gpu);
    }
    if (machine.gpus.empty()) check(cudaErrorNoDevice, "looking for GPUs");
    for (int a = 0; a < machine.count(); ++a) {
        machine.peer.emplace_back(size_t(machine.count()), false);
        for (int b = 0; b < machine.count(); ++b) {
            int can = 0;
            if (a != b && context.options.peers) PROBE_CHECK(cudaDeviceCanAccessPeer(&can, a, b));
            if (!can) continue;
            PROBE_CHECK(cudaSetDevice(a));
            const cudaError_t code = cudaDeviceEnablePeerAccess(b, 0);
            if (code != cudaSuccess && code != cudaErrorPeerAccessAlreadyEnabled) {
                cudaGetLastError();
                machine.remarks.push_back("GPU " + std::to_string(a) + " does not address GPU " +
                                          std::to_string(b) + ": " + cudaGetErrorString(code));
                continue;
            }
            cudaGetLastError();
            machine.peer[size_t(a)][size_t(b)] = true;
        }
    }
}

void describe_machine(Context& context) {
    Machine& machine = context.machine;
    find_others(context);
    for (Gpu& gpu : machine.gpus) {
        read_clocks(gpu);
        gpu.link = busy_link(gpu);
        if (gpu.tick_ns > 100) {
            machine.remarks.push_back("GPU " + std::to_string(gpu.index) + "'s timer has steps of " +
                                      figure(gpu.tick_ns) + " ns: times of single calls are coarse");
        }
    }
    const size_t known = lines_of(output_of("nvidia-smi --query-gpu=index --format=csv,noheader")).size();
    // The matrix counts all GPUs of the machine; with some hidden its numbers are not ours.
    if (int(known) >= machine.count() && !std::getenv("CUDA_VISIBLE_DEVICES")) {
        const std::string text = output_of("nvidia-smi topo -m");
        for (const std::string& line : lines_of(text.substr(0, text.find("Legend")))) {
            std::string row;
            for (const std::string& word : words(line)) row += (row.empty() ? "" : " ") + word;
            if (!row.empty()) machine.topology_text += row + "\n";
        }
        machine.matrix = topo_matrix(text, machine.count());
    }
    if (machine.count() < 2) {
        machine.remarks.push_back("one GPU: nothing between GPUs was measured");
    } else if (!machine.all_peers()) {
        machine.remarks.push_back(
            "not all GPUs address each other (no P2P): pairs that do not are measured by host memory");
    }
}

void find_newcomers(Context& context) {
    if (!context.table.remark.empty() || context.seconds() < context.looked + 1) return;
    context.looked = context.seconds();
    const size_t others = other_processes().size();
    if (others == 0) return;
    context.table.remark = not_idle;
    context.machine.remarks.push_back("GPUs were used by others before the end: other processes: " +
                                      std::to_string(others) +
                                      "; all rows say so and are for spread only");
    std::printf("note: %s\n", context.machine.remarks.back().c_str());
}

std::string system_json(const Context& context, const std::string& questions, bool complete) {
    const Machine& machine = context.machine;
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    Json gpus('[');
    for (const Gpu& gpu : machine.gpus) {
        Json one('{');
        one.text("model", gpu.properties.name);
        one.text("compute_capability", std::to_string(gpu.properties.major) + "." +
                                           std::to_string(gpu.properties.minor));
        one.number("sms", gpu.properties.multiProcessorCount);
        one.number("memory_mib", double(gpu.properties.totalGlobalMem >> 20));
        one.number("l2_mib", double(gpu.properties.l2CacheSize) / (1 << 20));
        one.text("bus_id", gpu.bus);
        one.number("timer_step_ns", gpu.tick_ns);
        one.number("sm_clock_ghz", gpu.clock_ghz);
        one.number("link_generation", gpu.link.generation);
        one.number("link_width", gpu.link.width);
        one.number("max_payload_bytes", gpu.link.max_payload);
        one.number("max_read_request_bytes", gpu.link.max_read_request);
        const char* acs[] = {"no capability read", "off", "on"};
        one.text("acs_of_function", acs[gpu.link.acs + 1]);
        gpus.value(one.close());
    }
    Json matrix('['), remarks('['), peer('[');
    for (const std::string& line : lines_of(machine.topology_text)) matrix.value(quoted_json(line));
    for (const std::string& remark : machine.remarks) remarks.value(quoted_json(remark));
    for (int a = 0; a < machine.count(); ++a) {
        for (int b = 0; b < machine.count(); ++b) {
            if (!machine.peer[size_t(a)][size_t(b)]) continue;
            peer.value(quoted_json(std::to_string(a) + ">" + std::to_string(b)));
        }
    }
    Json all('{');
    all.text("id", context.options.out.substr(context.options.out.find_last_of('/') + 1));
    all.text("source", "probe of this project, docs/probe.md");
    all.flag("complete", complete);
    all.number("seconds", std::round(context.seconds()));
    all.text("mode", context.options.tiny ? "tiny" : context.options.quick ? "quick" : "full");
    all.text("driver", lines_of(output_of("nvidia-smi --query-gpu=driver_version --format=csv,noheader") + "\n")[0]);
    all.text("driver_cuda", version_text(driver));
    all.text("cuda_runtime", version_text(runtime));
    all.text("nccl", nccl_version());
    all.text("cpu", cpu_model());
    all.number("numa_nodes", numa_nodes());
    all.flag("virtual_machine", virtual_machine());
    all.member("gpus", gpus.close());
    all.member("addresses_peer", peer.close());
    all.member("topo_matrix", matrix.close());
    all.member("remarks", remarks.close());
    all.member("questions", questions);
    return all.close() + "\n";
}

}  // namespace probe
