#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coterie::grammar {

using NodeId = std::uint16_t;
inline constexpr NodeId kNoNode = 0xFFFF;
inline constexpr std::size_t kMaxNodes = 60'000;

/// The automaton reads bytes. Text is UTF-8, in which 0xFF never occurs; so a token without text is spelled
/// `FF name FF`.
inline constexpr char kTokenMark = '\xFF';
std::string spell_token(std::string_view name);

/// A grammar as one deterministic automaton per rule. On a byte a node has at most one successor; besides, it
/// may call other rules, each with a node at which the caller goes on. A parse is therefore a node and a
/// stack of return nodes, and several parses at once exist only where calls leave a choice.
///
/// From every node the end of its rule can be reached.
class Automaton {
  public:
    struct Call {
        NodeId start;  ///< of the called rule
        NodeId back;
    };
    struct Node {
        std::array<NodeId, 256> next;  ///< by byte; kNoNode: refused
        std::uint32_t first_call = 0;
        std::uint32_t calls = 0;
        bool accepts = false;    ///< the rule may end here
        bool has_bytes = false;  ///< some byte has a successor

        /// Nothing happens here but reading bytes.
        bool is_plain() const { return !accepts && calls == 0; }
        /// Nothing happens here but the rule's end.
        bool is_end() const { return accepts && calls == 0 && !has_bytes; }
    };

    /// Requires: every target is a node, and `names` has what `token_names` gives.
    Automaton(std::vector<Node> nodes, std::vector<Call> calls, NodeId start, std::vector<std::string> names);

    NodeId start() const { return start_; }
    std::size_t size() const { return nodes_.size(); }
    const Node& node(NodeId id) const { return nodes_[id]; }
    /// What happens at a node besides reading bytes; from a table that fits in a near cache.
    enum class Kind : std::uint8_t { Plain, MayEnd, Calls };
    Kind kind(NodeId id) const { return kinds_[id]; }
    std::span<const Call> calls(const Node& node) const {
        return std::span(calls_).subspan(node.first_call, node.calls);
    }
    /// Tokens that the grammar calls by name, of which the vocabulary must have all.
    std::span<const std::string> token_names() const { return token_names_; }

  private:
    std::vector<Node> nodes_;
    std::vector<Call> calls_;
    std::vector<Kind> kinds_;
    std::vector<std::string> token_names_;
    NodeId start_ = 0;
};

}  // namespace coterie::grammar
