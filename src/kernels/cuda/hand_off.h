#pragma once

#include <cstdint>

struct CUstream_st;

/// What the shortest exchange between device and host takes: one word there, one word back.
namespace coterie::cuda {

/// Three words in mapped host memory, each on a line of its own.
///
///     request  device  the round's number, from 1 on       host, polling
///     reply    host    then: the same number               device, polling, less than a second
///     failed   device  instead: the round that was not answered in time; the kernel then ends
///
/// kReleased as a reply lets the device go through all rounds without waiting, so that it can be drained.
struct HandOffWords {
    volatile std::uint64_t* request = nullptr;
    volatile std::uint64_t* reply = nullptr;
    volatile std::uint64_t* failed = nullptr;

    static constexpr std::uint64_t kBytes = 3 * 128;
    static constexpr std::uint64_t kReleased = ~std::uint64_t{0};

    /// Cuts `kBytes` bytes at `memory` into the words.
    static HandOffWords in(void* memory) {
        auto* words = static_cast<std::uint64_t*>(memory);
        return {words, words + 16, words + 32};
    }
};

/// One thread asks `rounds` times, each time waiting for the reply. All words are 0 when it begins.
void hand_off(const HandOffWords& words, std::uint64_t rounds, CUstream_st* stream);

}  // namespace coterie::cuda
