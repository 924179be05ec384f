#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/grammar/grammar.h"
#include "sampling/grammar/grammar_vocabulary.h"
#include "sampling/grammar/loops.h"
#include "sampling/grammar/parse_state.h"

namespace coterie::grammar {

/// Tokens that are allowed while one frame of a parse's stack is on top, however deep it lies:
///
///     token  = a part read within the frame  +  the rest, read by the frame below
///
/// What begins at given places of the token trie and ends within the frame (or in rules that it calls) does
/// not depend on the stack; it is computed once. Places at which the frame's rule may end are the frame's
/// exits, where the frame below goes on: another such mask, found by its exits' owner and its node.
class FrameMask {
  public:
    FrameMask(std::vector<std::uint64_t> tokens, std::vector<std::uint32_t> exits, NodeId node);
    ~FrameMask();
    FrameMask(const FrameMask&) = delete;
    FrameMask& operator=(const FrameMask&) = delete;

    void add_to(std::span<std::uint64_t> mask) const;
    /// Nodes of the trie with children, ascending.
    std::span<const std::uint32_t> exits() const { return exits_; }
    std::size_t bytes() const;

  private:
    friend class MaskCache;

    // One of the two: bits where many tokens are allowed, ids where few are.
    std::vector<std::uint64_t> bits_;
    std::vector<std::int32_t> ids_;
    std::vector<std::uint32_t> exits_;
    NodeId node_;                                            ///< on which the frame goes on
    mutable std::atomic<FrameMask*> first_below_ = nullptr;  ///< masks of frames that go on from the exits
    FrameMask* next_sibling_ = nullptr;
};

/// All masks computed so far for one grammar and one vocabulary, shared by threads without locks: a mask
/// never changes and is found by following pointers. Above a budget of memory nothing more is kept.
class MaskCache {
  public:
    MaskCache(GrammarPointer grammar, std::shared_ptr<const GrammarVocabulary> vocabulary,
              std::size_t budget_bytes = kBudgetBytes);
    ~MaskCache();

    static constexpr std::size_t kBudgetBytes = std::size_t{256} << 20;
    /// Bytes of tokens that one mask may have to read; 40 times what a permissive grammar takes.
    static constexpr std::uint64_t kMaxSteps = 40'000'000;

    /// Sets the bits of all tokens that may follow the state, end tokens left out. Throws InvalidArgument
    /// for a grammar too ambiguous to compute it.
    void fill(const ParseState& state, std::span<std::uint64_t> mask);

    /// Computes masks of single nodes, and of calls where they begin, before they are asked for, until that
    /// has taken `limit`: what an answer then has to compute is little. Any thread may, at any time.
    void prepare(std::chrono::milliseconds limit);

    const Grammar& grammar() const { return *grammar_; }
    const GrammarVocabulary& vocabulary() const { return *vocabulary_; }
    std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  private:
    using Uncached = std::vector<std::unique_ptr<FrameMask>>;

    void fill_parse(const ParseState& state, Parse parse, std::span<std::uint64_t> mask);
    const FrameMask& on_top(NodeId node, Uncached& uncached);
    const FrameMask& below(const FrameMask& above, NodeId node, Uncached& uncached);
    /// Takes the bytes from the budget, if they are left.
    bool reserve(std::size_t bytes);

    GrammarPointer grammar_;
    std::shared_ptr<const GrammarVocabulary> vocabulary_;
    std::size_t budget_bytes_;
    std::atomic<std::size_t> bytes_ = 0;
    std::vector<NodeId> lookalikes_;             ///< by node: the one that has its masks
    std::vector<ByteKinds> loops_;               ///< by node
    std::vector<std::atomic<FrameMask*>> tops_;  ///< by node
};

}  // namespace coterie::grammar
