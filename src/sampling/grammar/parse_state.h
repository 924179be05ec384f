#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sampling/grammar/automaton.h"

namespace coterie::grammar {

using StackId = std::uint32_t;

/// Stacks of return nodes that share their lower parts: a stack is its top and the stack below it. Equal
/// stacks have equal ids. Stack 0 is the empty one.
class StackPool {
  public:
    struct Frame {
        NodeId back = kNoNode;
        std::uint16_t depth = 0;
        StackId below = 0;
        StackId first_above = 0;   ///< list of the stacks that lie directly on this one
        StackId next_sibling = 0;  ///< in that list
    };

    StackPool() : frames_(1) {}
    /// Throws InvalidArgument above kMaxDepth or kMaxFrames.
    StackId push(StackId below, NodeId back);
    const Frame& operator[](StackId id) const { return frames_[id]; }
    std::size_t size() const { return frames_.size(); }
    void clear();

    static constexpr std::size_t kMaxDepth = 4000;
    static constexpr std::size_t kMaxFrames = std::size_t{1} << 20;

  private:
    StackId find_or_add(StackId below, NodeId back);

    static constexpr std::size_t kRecent = 64;

    std::vector<Frame> frames_;
    std::array<StackId, kRecent> recent_ = {};  ///< by hash: stacks that were pushed lately
};

/// One parse: at a node, with what to go on with when its rule ends.
struct Parse {
    NodeId node;
    StackId stack;
    bool operator==(const Parse&) const = default;
};

/// All parses of what was read so far, each once.
struct ParseSet {
    std::vector<Parse> parses;
    bool ended = false;  ///< in one of them the lowest rule has ended
    void clear();
};

/// A grammar that leaves more parses open at one place is refused while it is used.
inline constexpr std::size_t kMaxParses = 512;

/// Adds the parse and whatever is reached from it without reading a byte. Throws InvalidArgument above
/// kMaxParses.
void add_parse(const Automaton& automaton, StackPool& stacks, ParseSet& set, Parse parse);

/// Reads one byte: sets `to` to what follows from `from`. False if nothing does.
bool read_byte(const Automaton& automaton, StackPool& stacks, const ParseSet& from, std::uint8_t byte,
               ParseSet& to);

/// A sequence's place in a grammar.
class ParseState {
  public:
    explicit ParseState(const Automaton& automaton);

    /// Reads bytes. False, with the state as it was, if the grammar refuses them.
    bool read(std::string_view bytes);
    /// Whether `read` would succeed.
    bool can_read(std::string_view bytes);

    std::span<const Parse> parses() const { return now_.parses; }
    const StackPool& stacks() const { return stacks_; }
    bool may_end() const { return now_.ended; }
    bool must_end() const;

  private:
    bool try_read(std::string_view bytes);
    void compact();

    const Automaton* automaton_;
    StackPool stacks_;
    ParseSet now_;
    ParseSet next_;  ///< where `try_read` ends
    ParseSet scratch_;
    StackPool kept_stacks_;  ///< scratch of `compact`
    std::size_t compact_above_ = kSmallPool;
    std::vector<StackId> path_;

    static constexpr std::size_t kSmallPool = 1024;
};

}  // namespace coterie::grammar
