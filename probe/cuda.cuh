// The CUDA runtime with every call checked, and memory that frees itself. Plain allocations only:
// no managed memory, no multicast.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace probe {

// A CUDA call that failed; `fatal` when the context is lost, so that nothing more can be measured.
struct CudaError : std::runtime_error {
    CudaError(const std::string& what, cudaError_t code) : std::runtime_error(what), code(code) {}
    cudaError_t code;
    bool memory() const { return code == cudaErrorMemoryAllocation; }
    bool fatal() const {
        return code == cudaErrorIllegalAddress || code == cudaErrorLaunchFailure ||
               code == cudaErrorLaunchTimeout || code == cudaErrorECCUncorrectable ||
               code == cudaErrorMisalignedAddress;
    }
};

// What to do about an error, for people.
inline const char* advice(cudaError_t code) {
    switch (code) {
        case cudaErrorNoDevice: return "no GPU is visible: is CUDA_VISIBLE_DEVICES empty?";
        case cudaErrorInsufficientDriver:
            return "no NVIDIA driver answers, or it is older than this program's CUDA: try nvidia-smi";
        case cudaErrorDevicesUnavailable:
            return "the GPU is in use by another process, in exclusive mode: wait, or end that process";
        case cudaErrorMemoryAllocation:
            return "too little memory is free: end what else uses the GPU, or run with --quick";
        case cudaErrorNoKernelImageForDevice:
            return "built for another GPU: build with -arch=native on this machine";
        default: return "";
    }
}

inline void check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    cudaGetLastError();
    std::string message = std::string(what) + ": " + cudaGetErrorString(code);
    const std::string help = advice(code);
    throw CudaError(help.empty() ? message : message + " (" + help + ")", code);
}

#define PROBE_CHECK(call) ::probe::check((call), #call)
// After a launch: what the launch itself refused.
#define PROBE_LAUNCHED(name) ::probe::check(cudaGetLastError(), "launch of " name)

// Where a buffer lies.
enum class Home { device, host };

// Memory of a GPU, or pinned memory of the host that every GPU addresses.
template <typename T>
class Buffer {
  public:
    Buffer() = default;
    // Of the host: near the GPU that is current. Always filled with zero bytes.
    Buffer(int gpu, Home home, size_t count) : gpu_(gpu), home_(home), count_(count) {
        const size_t bytes = count * sizeof(T);
        PROBE_CHECK(cudaSetDevice(gpu));
        if (home == Home::device) {
            PROBE_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), bytes));
        } else {
            PROBE_CHECK(cudaHostAlloc(reinterpret_cast<void**>(&data_), bytes,
                                      cudaHostAllocPortable | cudaHostAllocMapped));
        }
        PROBE_CHECK(cudaMemset(data_, 0, bytes));
        PROBE_CHECK(cudaDeviceSynchronize());
    }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() {
        if (!data_) return;
        cudaSetDevice(gpu_);
        if (home_ == Home::device) {
            cudaFree(data_);
        } else {
            cudaFreeHost(data_);
        }
    }
    T* get() const { return data_; }
    size_t count() const { return count_; }
    size_t bytes() const { return count_ * sizeof(T); }

  private:
    void swap(Buffer& other) {
        std::swap(gpu_, other.gpu_);
        std::swap(home_, other.home_);
        std::swap(count_, other.count_);
        std::swap(data_, other.data_);
    }
    int gpu_ = 0;
    Home home_ = Home::device;
    size_t count_ = 0;
    T* data_ = nullptr;
};

// A stream of a GPU; it does not wait for the legacy default stream.
class Stream {
  public:
    explicit Stream(int gpu) : gpu_(gpu) {
        PROBE_CHECK(cudaSetDevice(gpu));
        PROBE_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    Stream(const Stream&) = delete;
    Stream(Stream&& other) noexcept : gpu_(other.gpu_), stream_(other.stream_) {
        other.stream_ = nullptr;
    }
    ~Stream() {
        if (!stream_) return;
        cudaSetDevice(gpu_);
        cudaStreamDestroy(stream_);
    }
    // Makes its GPU current.
    cudaStream_t use() const {
        PROBE_CHECK(cudaSetDevice(gpu_));
        return stream_;
    }
    void wait() const { PROBE_CHECK(cudaStreamSynchronize(use())); }
    int gpu() const { return gpu_; }

  private:
    int gpu_;
    cudaStream_t stream_ = nullptr;
};

// Time between two points of a stream, us.
class Timer {
  public:
    explicit Timer(const Stream& stream) : stream_(stream) {
        stream.use();
        PROBE_CHECK(cudaEventCreate(&from_));
        PROBE_CHECK(cudaEventCreate(&to_));
    }
    Timer(const Timer&) = delete;
    ~Timer() {
        cudaEventDestroy(from_);
        cudaEventDestroy(to_);
    }
    void start() { PROBE_CHECK(cudaEventRecord(from_, stream_.use())); }
    void stop() { PROBE_CHECK(cudaEventRecord(to_, stream_.use())); }
    double us() {
        stream_.wait();
        float ms = 0;
        PROBE_CHECK(cudaEventElapsedTime(&ms, from_, to_));
        return double(ms) * 1e3;
    }

  private:
    const Stream& stream_;
    cudaEvent_t from_ = nullptr, to_ = nullptr;
};

template <typename T>
void to_gpu(T* to, const T* from, size_t count) {
    PROBE_CHECK(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDefault));
}

}  // namespace probe
