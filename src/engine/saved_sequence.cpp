// What Engine::save writes and restore reads. Numbers are little endian.
//
//     bytes  what
//     0      kMagic
//     8      format version (4), zero (4)
//     16     fingerprint of model and configuration
//     24     number of tokens
//     32     tokens, 4 bytes each
//            XXH64 of everything before
//            the state (kv_cache/saved_state.cpp)

#include <bit>
#include <vector>
#include <xxhash.h>

#include "base/error.h"
#include "engine/engine.h"
#include "gguf/content_hash.h"

namespace coterie::engine {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMagic = 0x31'51'45'53'54'4F'43'7F;  // "\x7F" "COTSEQ1"
constexpr std::uint32_t kVersion = 1;

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t zero;
    std::uint64_t fingerprint;
    std::uint64_t tokens;
};
static_assert(sizeof(Header) == 32);

std::uint64_t checksum(const Header& header, std::span<const TokenId> tokens) {
    return XXH64(tokens.data(), tokens.size_bytes(), XXH64(&header, sizeof header, 0));
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

void check(const Header& header, std::uint64_t fingerprint, const ByteSource& source) {
    if (header.magic != kMagic) fail(ErrorCode::InvalidFile, "{}: not a saved slot", source.name());
    if (header.version != kVersion) {
        fail(ErrorCode::InvalidFile, "{}: saved in format {}, and this program reads {}", source.name(),
             header.version, kVersion);
    }
    if (header.fingerprint != fingerprint) {
        fail(ErrorCode::InvalidFile, "{}: saved with another model or another type of cache", source.name());
    }
    if (header.tokens > source.size() / sizeof(TokenId)) {
        fail(ErrorCode::InvalidFile, "{}: says that it holds {} tokens, more than the file has room for",
             source.name(), header.tokens);
    }
}

/// What follows the tokens, as a source of its own.
class StateSource final : public ByteSource {
  public:
    StateSource(ByteSource& source, std::uint64_t offset) : source_(source), offset_(offset) {}
    std::uint64_t size() const override { return source_.size() - offset_; }
    const std::string& name() const override { return source_.name(); }
    void read(std::span<std::byte> bytes) override { source_.read(bytes); }

  private:
    ByteSource& source_;
    std::uint64_t offset_;
};

}  // namespace

/// Of the weights: what else shapes a state is in the layout's own fingerprint.
std::uint64_t Engine::fingerprint() const { return gguf::content_hash(*archive_); }

void Engine::save(const Sequence& sequence, ByteSink& sink) const {
    const std::uint64_t print = fingerprint();
    const Header header{kMagic, kVersion, 0, print, static_cast<std::uint64_t>(sequence.length())};
    sink.write(bytes_of(header));
    sink.write(std::as_bytes(sequence.tokens()));
    sink.write(bytes_of(checksum(header, sequence.tokens())));
    sequence.state_.save(sink, print);
}

std::optional<Sequence> Engine::restore(ByteSource& source) {
    const std::uint64_t print = fingerprint();
    Header header{};
    source.read(std::as_writable_bytes(std::span(&header, 1)));
    check(header, print, source);
    std::vector<TokenId> tokens(header.tokens);
    source.read(std::as_writable_bytes(std::span(tokens)));
    std::uint64_t written = 0;
    source.read(std::as_writable_bytes(std::span(&written, 1)));
    if (written != checksum(header, tokens)) fail(ErrorCode::InvalidFile, "{}: damaged", source.name());
    check_tokens(tokens);
    StateSource rest(source, sizeof header + tokens.size() * sizeof(TokenId) + sizeof written);
    auto state =
        SequenceState::restore(*layout_, *pool_, rest, print, {.snapshot_limit = options_.snapshots});
    if (!state) return std::nullopt;
    if (state->length() != static_cast<std::int64_t>(tokens.size())) {
        fail(ErrorCode::InvalidFile, "{}: has {} tokens and the state of {}", source.name(), tokens.size(),
             state->length());
    }
    Sequence sequence(std::move(*state));
    sequence.tokens_ = std::move(tokens);
    return sequence;
}

}  // namespace coterie::engine
