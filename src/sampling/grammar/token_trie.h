#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sampling/grammar/byte_kinds.h"

namespace coterie::grammar {

/// All tokens' byte strings as a trie in preorder: a walk goes forward through one array, and what a grammar
/// refuses is skipped in one jump.
class TokenTrie {
  public:
    struct Node {
        std::uint32_t subtree_end = 0;  ///< index behind the last node of its subtree
        std::uint32_t first_token = 0;  ///< its tokens are [first_token, next node's first_token) of tokens()
        std::uint16_t depth = 0;        ///< bytes from the root
        std::uint8_t byte = 0;          ///< on the edge to this node; of the root, nothing
    };

    struct Entry {
        std::string_view text;
        std::int32_t id;
        auto operator<=>(const Entry&) const = default;
    };

    TokenTrie() = default;
    /// Texts are not kept. Throws InvalidFile for one above 65,535 bytes. Requires: none is empty.
    explicit TokenTrie(std::vector<Entry> entries);

    /// The root is node 0; one node more than there are stands at the end, so that token ranges are closed.
    std::span<const Node> nodes() const { return nodes_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()) - 1; }
    std::span<const std::int32_t> tokens_at(std::uint32_t node) const {
        return std::span(tokens_).subspan(nodes_[node].first_token,
                                          nodes_[node + 1].first_token - nodes_[node].first_token);
    }
    /// Those at a node and below it.
    std::span<const std::int32_t> tokens_from(std::uint32_t node) const {
        const std::uint32_t first = nodes_[node].first_token;
        return std::span(tokens_).subspan(first, nodes_[nodes_[node].subtree_end].first_token - first);
    }
    /// What texts go on with behind a node that ends a character.
    ByteKinds kinds_below(std::uint32_t node) const { return kinds_below_[node]; }
    bool has_children(std::uint32_t node) const { return nodes_[node].subtree_end > node + 1; }
    std::uint32_t longest() const { return longest_; }

  private:
    void add(const Entry& entry, std::string_view before);
    void close_subtrees(std::size_t kept);
    void find_kinds();
    ByteKinds kinds_from(std::uint32_t child, Utf8Place place) const;

    std::vector<Node> nodes_ = {{.subtree_end = 1}, {}};
    std::vector<std::uint32_t> open_ = {0};  ///< while building: the path to the last node
    std::vector<std::int32_t> tokens_;
    std::vector<ByteKinds> kinds_below_ = {0};  ///< [nodes]
    std::uint32_t longest_ = 0;
};

}  // namespace coterie::grammar
