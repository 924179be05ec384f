#include "gguf/file_reading.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "base/error.h"
#include "gguf/descriptor.h"

namespace coterie::gguf {
namespace {

constexpr unsigned kReaders = 8;
constexpr std::size_t kPieceBytes = std::size_t{16} << 20;
// What direct reads' addresses, offsets and lengths are multiples of: disks ask for 512 or 4096.
constexpr std::size_t kDirectBytes = 4096;

/// Where and how much a read asks for.
struct Stretch {
    std::size_t begin;
    std::size_t bytes;
};

/// [begin, end) in whole blocks; the last one may reach past the file's end.
Stretch in_blocks(std::size_t begin, std::size_t end) {
    const std::size_t first = begin / kDirectBytes * kDirectBytes;
    return {first, (end - first + kDirectBytes - 1) / kDirectBytes * kDirectBytes};
}

/// Reads pieces of a file into memory, one after the other, as many threads as call it.
class PieceReader {
  public:
    /// `direct`: the same file for direct reads, or -1.
    PieceReader(int cached, int direct, std::span<std::byte> to)
        : cached_(cached), direct_(direct), to_(to), reads_directly_(direct >= 0) {}

    void run() {
        while (!failed_.load()) {
            const std::size_t begin = next_.fetch_add(kPieceBytes);
            if (begin >= to_.size()) return;
            read_piece(begin, std::min(begin + kPieceBytes, to_.size()));
        }
    }
    std::uint64_t done() const { return done_.load(); }
    bool failed() const { return failed_.load(); }
    bool reads_directly() const { return reads_directly_.load(); }

    /// Lets the readers end early where an exception passes.
    class Stop {
      public:
        explicit Stop(PieceReader& reader) : reader_(reader) {}
        ~Stop() {
            if (std::uncaught_exceptions() > 0) reader_.failed_ = true;
        }
        Stop(const Stop&) = delete;
        Stop& operator=(const Stop&) = delete;

      private:
        PieceReader& reader_;
    };

  private:
    void read_piece(std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end;) {
            const bool direct = reads_directly_.load();
            const Stretch ask = direct ? in_blocks(at, end) : Stretch{at, end - at};
            const ssize_t n = ::pread(direct ? direct_ : cached_, to_.data() + ask.begin, ask.bytes,
                                      static_cast<off_t>(ask.begin));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && direct && errno == EINVAL) {  // some file systems find out only now
                reads_directly_ = false;
                continue;
            }
            const std::size_t reached =
                std::min(ask.begin + static_cast<std::size_t>(std::max<ssize_t>(n, 0)), end);
            if (reached <= at) {
                failed_ = true;
                return;
            }
            done_ += reached - at;
            at = reached;
        }
    }

    int cached_;
    int direct_;
    std::span<std::byte> to_;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::uint64_t> done_{0};
    std::atomic<bool> failed_{false};
    std::atomic<bool> reads_directly_;
};

/// The very file that is open, whatever its path names by now.
std::string path_of(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

}  // namespace

Reading read_file(int descriptor, const std::string& name, std::span<std::byte> to, Reading wish,
                  FunctionRef<void(std::uint64_t)> progress) {
    const Descriptor direct(wish == Reading::Direct ? path_of(descriptor).c_str() : "", O_DIRECT);
    PieceReader reader(descriptor, direct.value(), to);
    {
        std::vector<std::jthread> threads;  // joined also where `progress` throws
        for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1u, kReaders); ++i)
            threads.emplace_back([&reader] { reader.run(); });
        const PieceReader::Stop stop(reader);
        while (reader.done() < to.size() && !reader.failed()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            progress(reader.done());
        }
    }
    if (reader.failed()) fail(ErrorCode::Io, "{}: cannot read the file to its end; check the disk", name);
    progress(to.size());
    return reader.reads_directly() ? Reading::Direct : Reading::Cached;
}

}  // namespace coterie::gguf
