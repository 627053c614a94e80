// The part of NCCL's interface that the probe uses, looked up in libnccl.so.2 when it is there, so
// that building needs no header of it. No CUDA kernel here.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace probe {

struct NcclId {
    char bytes[128];
};
using NcclComm = void*;
constexpr int nccl_bfloat16 = 9;
constexpr int nccl_sum = 0;

struct Nccl {
    int (*get_version)(int*);
    int (*get_unique_id)(NcclId*);
    int (*comm_init_rank)(NcclComm*, int, NcclId, int);
    int (*comm_destroy)(NcclComm);
    int (*group_start)();
    int (*group_end)();
    int (*all_reduce)(const void*, void*, size_t, int, int, NcclComm, cudaStream_t);
    int (*all_gather)(const void*, void*, size_t, int, NcclComm, cudaStream_t);
    int (*reduce_scatter)(const void*, void*, size_t, int, int, NcclComm, cudaStream_t);
    int (*send)(const void*, size_t, int, int, NcclComm, cudaStream_t);
    int (*recv)(void*, size_t, int, int, NcclComm, cudaStream_t);
    const char* (*error_string)(int);

    void check(int code, const char* what) const {
        if (code != 0) throw std::runtime_error(std::string(what) + ": " + error_string(code));
    }
    // As it is written: 2.28.9.
    std::string version() const {
        int code = 0;
        check(get_version(&code), "ncclGetVersion");
        const int major = code >= 10000 ? code / 10000 : code / 1000;
        const int rest = code % (code >= 10000 ? 10000 : 1000);
        return std::to_string(major) + "." + std::to_string(rest / 100) + "." +
               std::to_string(rest % 100);
    }
};

template <typename F>
void look_up(void* library, const char* name, F& function) {
    void* symbol = dlsym(library, name);
    if (!symbol) throw std::runtime_error(std::string("libnccl.so.2 has no ") + name);
    function = reinterpret_cast<F>(symbol);
}

// Whether there is one at all.
inline bool nccl_present() {
    void* library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
    if (library) dlclose(library);
    return library != nullptr;
}

inline Nccl open_nccl() {
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error("there is no libnccl.so.2 on the library path");
    Nccl nccl = {};
    look_up(library, "ncclGetVersion", nccl.get_version);
    look_up(library, "ncclGetUniqueId", nccl.get_unique_id);
    look_up(library, "ncclCommInitRank", nccl.comm_init_rank);
    look_up(library, "ncclCommDestroy", nccl.comm_destroy);
    look_up(library, "ncclGroupStart", nccl.group_start);
    look_up(library, "ncclGroupEnd", nccl.group_end);
    look_up(library, "ncclAllReduce", nccl.all_reduce);
    look_up(library, "ncclAllGather", nccl.all_gather);
    look_up(library, "ncclReduceScatter", nccl.reduce_scatter);
    look_up(library, "ncclSend", nccl.send);
    look_up(library, "ncclRecv", nccl.recv);
    look_up(library, "ncclGetErrorString", nccl.error_string);
    return nccl;
}

// Which calls a setting is for.
enum class NcclCalls { all, sends };

// What is forced in a run; every one also sets NCCL_NVLS_ENABLE=0.
struct NcclSetting {
    const char* name;
    const char* algorithm;   // Empty: NCCL chooses.
    const char* protocol;
    bool peer_to_peer;
    const char* more = "";   // Other variables, separated by blanks.
    NcclCalls calls = NcclCalls::all;
};

constexpr NcclSetting nccl_settings[] = {
    {"free", "", "", true},           {"Ring_LL", "Ring", "LL", true},
    {"Ring_LL128", "Ring", "LL128", true}, {"Ring_Simple", "Ring", "Simple", true},
    {"Tree_LL", "Tree", "LL", true},  {"P2P_off", "", "", false},
    {"P2P_off_Ring_LL", "Ring", "LL", false}, {"P2P_off_Ring_Simple", "Ring", "Simple", false},
};

// How data get from one GPU to the next: by copy engines, and sends by protocol and channels.
constexpr NcclSetting nccl_hops[] = {
    {"engines", "", "", true, "NCCL_P2P_USE_CUDA_MEMCPY=1"},
    {"sends_LL", "", "", true, "NCCL_P2P_LL_THRESHOLD=1073741824", NcclCalls::sends},
    {"sends_Simple", "", "", true, "NCCL_P2P_LL_THRESHOLD=0", NcclCalls::sends},
    {"sends_one", "", "", true, "NCCL_P2P_LL_THRESHOLD=0 NCCL_MIN_P2P_NCHANNELS=1 NCCL_MAX_P2P_NCHANNELS=1",
     NcclCalls::sends},
    {"P2P_off_sends_LL", "", "", false, "NCCL_P2P_LL_THRESHOLD=1073741824", NcclCalls::sends},
    {"P2P_off_sends_Simple", "", "", false, "NCCL_P2P_LL_THRESHOLD=0", NcclCalls::sends},
    {"P2P_off_sends_one", "", "", false,
     "NCCL_P2P_LL_THRESHOLD=0 NCCL_MIN_P2P_NCHANNELS=1 NCCL_MAX_P2P_NCHANNELS=1", NcclCalls::sends},
};

// NCCL by host memory and peer to peer beside copies: settings by name.
constexpr const char* nccl_beside[] = {"P2P_off", "free"};

// The setting of this name.
inline const NcclSetting& find_setting(const std::string& name) {
    for (const NcclSetting& setting : nccl_settings) {
        if (name == setting.name) return setting;
    }
    for (const NcclSetting& setting : nccl_hops) {
        if (name == setting.name) return setting;
    }
    throw std::runtime_error("there is no setting " + name);
}

// The variables of a setting, as they stand in a row's condition.
inline std::string nccl_variables(const NcclSetting& setting) {
    std::string out = "NCCL_NVLS_ENABLE=0";
    if (setting.algorithm[0] != '\0') out += std::string(" NCCL_ALGO=") + setting.algorithm;
    if (setting.protocol[0] != '\0') out += std::string(" NCCL_PROTO=") + setting.protocol;
    if (!setting.peer_to_peer) out += " NCCL_P2P_DISABLE=1";
    if (setting.more[0] != '\0') out += std::string(" ") + setting.more;
    return out;
}

}  // namespace probe
