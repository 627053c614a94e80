// Loads, stores, flags and clocks as kernels use them. All data accesses are volatile at system
// scope, so that each one is a transaction of its own: nothing is served by the L1 cache.
//
// Flags are raced on by intent: one thread stores, another polls. Every such access goes through
// store_flag, store_release, load_flag and load_acquire below; all other memory is handed over by
// them or by barriers of a block.
#pragma once

#include <cstdint>

namespace probe {

// A poll that has not seen its flag after so many looks gives up, so that no kernel hangs: about a
// second in local memory, ten through a link.
constexpr uint32_t polls_max = 8u << 20;

__device__ inline uint64_t now() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

__device__ inline uint32_t load4(const uint32_t* at) {
    uint32_t value;
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ inline uint2 load8(const uint2* at) {
    uint2 value;
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.x), "=r"(value.y)
                 : "l"(at)
                 : "memory");
    return value;
}

__device__ inline uint4 load16(const uint4* at) {
    uint4 value;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(at)
                 : "memory");
    return value;
}

__device__ inline void store4(uint32_t* at, uint32_t value) {
    asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ inline void store8(uint2* at, uint2 value) {
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(value.x), "r"(value.y)
                 : "memory");
}

__device__ inline void store16(uint4* at, uint4 value) {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(value.x),
                 "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

__device__ inline void store_flag(uint32_t* at, uint32_t value) { store4(at, value); }
__device__ inline uint32_t load_flag(const uint32_t* at) { return load4(at); }

__device__ inline void store_release(uint32_t* at, uint32_t value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ inline uint32_t load_acquire(const uint32_t* at) {
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

// Polls until the flag has reached `value`; false when it gave up. Counts may pass each other, so
// later values count too.
template <bool Acquire>
__device__ inline bool poll(const uint32_t* flag, uint32_t value) {
#pragma unroll 1
    for (uint32_t polls = 0; polls < polls_max; ++polls) {
        const uint32_t seen = Acquire ? load_acquire(flag) : load_flag(flag);
        if (int32_t(seen - value) >= 0) return true;
    }
    return false;
}

// Waits until the GPU's clock shows `time`.
__device__ inline void wait_until(uint64_t time) {
    while (now() < time) {
    }
}

}  // namespace probe
