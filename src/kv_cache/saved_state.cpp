// What SequenceState::save writes and restore reads. Numbers are little endian.
//
//     bytes  what
//     0      kMagic
//     8      format version (4), number of snapshots (4)
//     16     fingerprint of model and configuration
//     24     fingerprint of the layout
//     32     length in tokens
//     40     bytes of the whole, from kMagic to the checksum
//     48     rows: page by page, in it part by part, the rows below the length only, so that nothing of an
//     earlier
//            user of the last page gets into the file
//            recurrent state
//            snapshots in order of position: position (8), recurrent state
//            XXH64 of everything before

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>
#include <xxhash.h>

#include "base/checked.h"
#include "base/error.h"
#include "kv_cache/byte_stream.h"
#include "kv_cache/sequence_state.h"

namespace coterie {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMagic = 0x31'45'54'41'54'53'43'7F;  // "\x7F" "CSTATE1"
constexpr std::uint32_t kVersion = 1;

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t snapshots;
    std::uint64_t fingerprint;
    std::uint64_t layout;
    std::uint64_t length;
    std::uint64_t total_bytes;
};
static_assert(sizeof(Header) == 48);

struct FreeHash {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
};

class Checksum {
  public:
    Checksum() : state_(XXH64_createState()) {
        if (!state_) throw std::bad_alloc();
        XXH64_reset(state_.get(), 0);
    }
    void add(std::span<const std::byte> bytes) { XXH64_update(state_.get(), bytes.data(), bytes.size()); }
    std::uint64_t value() const { return XXH64_digest(state_.get()); }

  private:
    std::unique_ptr<XXH64_state_t, FreeHash> state_;
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

class Writer {
  public:
    explicit Writer(ByteSink& sink) : sink_(sink) {}
    void write(std::span<const std::byte> bytes) {
        checksum_.add(bytes);
        sink_.write(bytes);
    }
    void finish() { sink_.write(bytes_of(checksum_.value())); }

  private:
    ByteSink& sink_;
    Checksum checksum_;
};

class Reader {
  public:
    explicit Reader(ByteSource& source) : source_(source) {}
    void read(std::span<std::byte> bytes) {
        source_.read(bytes);
        checksum_.add(bytes);
    }
    template <typename T>
    T read() {
        T value;
        read(std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }
    void finish() {
        const std::uint64_t computed = checksum_.value();
        if (read<std::uint64_t>() != computed) fail_damaged("its checksum differs");
    }
    [[noreturn]] void fail_damaged(const char* why) const {
        fail(ErrorCode::InvalidFile, "{}: the saved state is damaged, {}; delete it", source_.name(), why);
    }
    const ByteSource& source() const { return source_; }

  private:
    ByteSource& source_;
    Checksum checksum_;
};

/// Bytes of a whole saved state; nothing on overflow.
std::optional<std::uint64_t> saved_bytes(const StateLayout& layout, std::uint64_t length,
                                         std::uint64_t snapshots) {
    constexpr std::uint64_t kFrame = sizeof(Header) + sizeof(std::uint64_t);
    const auto rows = checked_multiply(layout.token_bytes(), length);
    const auto snapshot = checked_add(layout.fixed_bytes(), sizeof(std::int64_t));
    const auto snapshots_bytes = snapshot ? checked_multiply(*snapshot, snapshots) : std::nullopt;
    const auto frame = checked_add(layout.fixed_bytes(), kFrame);
    if (!rows || !snapshots_bytes || !frame) return std::nullopt;
    const auto sum = checked_add(*rows, *snapshots_bytes);
    return sum ? checked_add(*sum, *frame) : std::nullopt;
}

void check_origin(const Header& header, const std::string& name, const StateLayout& layout,
                  std::uint64_t fingerprint) {
    if (header.magic != kMagic) fail(ErrorCode::InvalidFile, "{}: is not a saved state", name);
    if (header.version != kVersion) {
        fail(ErrorCode::InvalidFile, "{}: saved in format version {}, this program reads version {}", name,
             header.version, kVersion);
    }
    if (header.fingerprint != fingerprint) {
        fail(ErrorCode::InvalidFile,
             "{}: saved with another model or configuration (fingerprint {:016x}, here {:016x})", name,
             header.fingerprint, fingerprint);
    }
    if (header.layout != layout.fingerprint()) {
        fail(ErrorCode::InvalidFile, "{}: saved with other cache types or layers; use the same -ctk and -ctv",
             name);
    }
}

Header read_header(Reader& reader, const StateLayout& layout, std::uint64_t fingerprint) {
    const ByteSource& source = reader.source();
    if (source.size() < sizeof(Header))
        fail(ErrorCode::InvalidFile, "{}: is not a saved state", source.name());
    const auto header = reader.read<Header>();
    check_origin(header, source.name(), layout, fingerprint);
    const auto expected = saved_bytes(layout, header.length, header.snapshots);
    const bool snapshots_of_nothing = header.snapshots > 0 && layout.fixed_bytes() == 0;
    // Half the signed range leaves room for the steps that follow.
    if (snapshots_of_nothing || header.length > INT64_MAX / 2 || !expected ||
        *expected != header.total_bytes) {
        reader.fail_damaged("its sizes contradict each other");
    }
    if (source.size() != header.total_bytes) {
        fail(ErrorCode::InvalidFile, "{}: the saved state is cut: {} bytes instead of {}; delete it",
             source.name(), source.size(), header.total_bytes);
    }
    return header;
}

/// Calls `use` with the address and size of every run of rows below `length`, in the order of the format.
template <typename Use>
void for_each_run(const StateLayout& layout, const PageTable& pages, std::int64_t length, Use use) {
    for (std::int64_t page = 0; page < pages.size(); ++page) {
        const std::int64_t rows = std::min(length - page * kPageTokens, kPageTokens);
        if (rows <= 0) return;
        for (const PagePart& part : layout.parts()) {
            use(pages.data(page) + part.offset, part.row_bytes * static_cast<std::uint64_t>(rows));
        }
    }
}

}  // namespace

void SequenceState::save(ByteSink& sink, std::uint64_t fingerprint) const {
    const auto& snapshots = snapshots_.entries();
    const auto length = static_cast<std::uint64_t>(length_);
    Writer writer(sink);
    writer.write(bytes_of(Header{.magic = kMagic,
                                 .version = kVersion,
                                 .snapshots = static_cast<std::uint32_t>(snapshots.size()),
                                 .fingerprint = fingerprint,
                                 .layout = layout_->fingerprint(),
                                 .length = length,
                                 .total_bytes = saved_bytes(*layout_, length, snapshots.size()).value()}));
    std::vector<std::byte> rows;
    for_each_run(*layout_, pages_, length_, [&](const std::byte* from, std::uint64_t bytes) {
        rows.resize(bytes);
        pages_.memory().read(rows, from);
        writer.write(rows);
    });
    writer.write(std::as_bytes(recurrent_.span()));
    for (const auto& snapshot : snapshots) {
        writer.write(bytes_of(snapshot->position));
        writer.write(std::as_bytes(snapshot->state.span()));
    }
    writer.finish();
}

std::optional<SequenceState> SequenceState::restore(const StateLayout& layout, BlockPool& pool,
                                                    ByteSource& source, std::uint64_t fingerprint,
                                                    const SequenceOptions& options) {
    Reader reader(source);
    const Header header = read_header(reader, layout, fingerprint);
    SequenceState state(layout, pool, options);
    const auto length = static_cast<std::int64_t>(header.length);
    if (!state.prepare(length)) return std::nullopt;
    state.advance(length);
    std::vector<std::byte> rows;
    for_each_run(layout, state.pages_, length, [&](std::byte* to, std::uint64_t bytes) {
        rows.resize(bytes);
        reader.read(std::span(rows));
        pool.memory().write(to, rows);
    });
    reader.read(std::as_writable_bytes(state.recurrent_.span()));
    AlignedBuffer<float> kept(layout.recurrent_floats());
    std::int64_t previous = 0;
    for (std::uint32_t i = 0; i < header.snapshots; ++i) {
        const auto position = reader.read<std::int64_t>();
        if (position <= previous || position > length) reader.fail_damaged("its snapshots are out of order");
        reader.read(std::as_writable_bytes(kept.span()));
        state.snapshots_.add(position, kept);
        previous = position;
    }
    reader.finish();
    return state;
}

}  // namespace coterie
