#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/grammar/parse_state.h"
#include "sampling/grammar/token_trie.h"

namespace coterie::grammar {

/// Walks the token trie with the parses of one frame. Collects the tokens that end within the frame and the
/// places at which the frame may end. Parts of the trie that hold nothing but what leads back to the same
/// node (loops.h) are taken as they are.
class MaskWalk {
  public:
    /// `loops` are the automaton's.
    MaskWalk(const Automaton& automaton, std::span<const ByteKinds> loops, const TokenTrie& trie,
             std::size_t mask_words);

    /// Starts at the trie's root with the node alone: its rule's end and its calls are other parses' affair.
    void walk_on_top(NodeId node);
    /// Starts at each entry with the node and whatever is reached from it.
    void walk_below(std::span<const std::uint32_t> entries, NodeId node);

    /// Bits by token.
    std::vector<std::uint64_t> take_tokens() { return std::move(tokens_); }
    /// Ascending, each once.
    std::vector<std::uint32_t> take_exits();

  private:
    /// The parses behind the bytes of one depth. Nearly always there is one, at a node without calls: then it
    /// stands here, and `set` is stale.
    struct Level {
        bool is_single = false;
        bool ended = false;
        Parse parse = {};
        ParseSet set;
    };

    void walk(std::uint32_t entry);
    bool step(const Level& from, std::uint8_t byte, Level& to);
    bool takes_all_below(std::uint32_t place, const Level& level) const;
    bool is_single(Parse parse) const;
    void add(std::span<const std::int32_t> tokens);
    void count_step(std::size_t parses);

    const Automaton& automaton_;
    std::span<const ByteKinds> loops_;
    const TokenTrie& trie_;
    StackPool stacks_;
    ParseSet start_;
    std::vector<Level> levels_;  ///< by the trie's depth
    std::vector<std::uint64_t> tokens_;
    std::vector<std::uint32_t> exits_;
    std::uint64_t steps_ = 0;
};

}  // namespace coterie::grammar
