#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace coterie::scheduler {

/// Which of the kept token sequences begin as a prompt does, and how far.
///
/// A radix tree: a node's label is a run of tokens, a sequence ends at a node, and what two sequences share
/// stands in the tree once. Finding takes the prompt's length plus the number of sequences.
class PrefixTree {
  public:
    using Id = std::uint64_t;

    PrefixTree();
    ~PrefixTree();
    PrefixTree(const PrefixTree&) = delete;
    PrefixTree& operator=(const PrefixTree&) = delete;

    /// Requires that `id` is not in the tree.
    void insert(Id id, std::span<const TokenId> tokens);
    /// Nothing happens where it is not there.
    void remove(Id id);

    struct Match {
        Id id;
        std::int64_t length;  ///< tokens that both begin with
        friend bool operator==(const Match&, const Match&) = default;
    };
    /// Every sequence that shares at least one token, the longest matches first.
    std::vector<Match> matches(std::span<const TokenId> tokens) const;

    std::size_t size() const { return ends_.size(); }
    std::size_t nodes() const;
    /// Throws Internal unless the tree is one.
    void check_integrity() const;

  private:
    struct Node;

    static void split(Node& node, std::size_t length);
    static void collect(const Node& node, std::int64_t length, std::vector<Match>& into);
    void prune(Node* node);

    std::unique_ptr<Node> root_;
    std::unordered_map<Id, Node*> ends_;
};

}  // namespace coterie::scheduler
