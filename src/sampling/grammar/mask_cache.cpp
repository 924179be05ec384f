#include "sampling/grammar/mask_cache.h"

#include <bit>
#include <utility>

#include "sampling/grammar/lookalikes.h"
#include "sampling/grammar/mask_walk.h"

namespace coterie::grammar {

FrameMask::FrameMask(std::vector<std::uint64_t> tokens, std::vector<std::uint32_t> exits, NodeId node)
    : exits_(std::move(exits)), node_(node) {
    std::size_t count = 0;
    for (const std::uint64_t word : tokens) count += static_cast<std::size_t>(std::popcount(word));
    if (count >= 2 * tokens.size()) {
        bits_ = std::move(tokens);
        return;
    }
    for (std::size_t word = 0; word < tokens.size(); ++word) {
        for (std::uint64_t bits = tokens[word]; bits != 0; bits &= bits - 1)
            ids_.push_back(static_cast<std::int32_t>(word * 64) + std::countr_zero(bits));
    }
}

FrameMask::~FrameMask() {
    // Siblings one by one: a list of any length must not become recursion of any depth.
    FrameMask* below = first_below_.load(std::memory_order_acquire);
    while (below) {
        FrameMask* const next = below->next_sibling_;
        delete below;
        below = next;
    }
}

void FrameMask::add_to(std::span<std::uint64_t> mask) const {
    for (std::size_t word = 0; word < bits_.size(); ++word) mask[word] |= bits_[word];
    for (const std::int32_t id : ids_)
        mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
}

std::size_t FrameMask::bytes() const {
    return sizeof(*this) + bits_.capacity() * sizeof(bits_[0]) + ids_.capacity() * sizeof(ids_[0]) +
           exits_.capacity() * sizeof(exits_[0]);
}

MaskCache::MaskCache(GrammarPointer grammar, std::shared_ptr<const GrammarVocabulary> vocabulary,
                     std::size_t budget_bytes)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      budget_bytes_(budget_bytes),
      lookalikes_(find_lookalikes(grammar_->automaton(), vocabulary_->trie().longest())),
      loops_(find_loops(grammar_->automaton(), lookalikes_)),
      tops_(grammar_->automaton().size()) {}

MaskCache::~MaskCache() {
    for (const auto& top : tops_) delete top.load(std::memory_order_acquire);
}

void MaskCache::fill(const ParseState& state, std::span<std::uint64_t> mask) {
    for (const Parse parse : state.parses()) {
        if (grammar_->automaton().node(parse.node).has_bytes) fill_parse(state, parse, mask);
    }
}

void MaskCache::prepare(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    const auto go_on = [&](const Uncached& uncached) {  // while there is time, and room for more
        return uncached.empty() && std::chrono::steady_clock::now() < end;
    };
    const Automaton& automaton = grammar_->automaton();
    Uncached uncached;
    for (std::size_t id = 0; id < lookalikes_.size() && go_on(uncached); ++id) {
        if (lookalikes_[id] == id && automaton.node(lookalikes_[id]).has_bytes)
            on_top(lookalikes_[id], uncached);
    }
    for (std::size_t id = 0; id < lookalikes_.size(); ++id) {
        if (lookalikes_[id] != id) continue;
        for (const Automaton::Call& call : automaton.calls(automaton.node(lookalikes_[id]))) {
            if (!go_on(uncached)) return;
            if (!automaton.node(call.start).has_bytes) continue;
            const FrameMask& called = on_top(lookalikes_[call.start], uncached);
            if (!called.exits().empty()) below(called, lookalikes_[call.back], uncached);
        }
    }
}

void MaskCache::fill_parse(const ParseState& state, Parse parse, std::span<std::uint64_t> mask) {
    Uncached uncached;
    const FrameMask* frame = &on_top(lookalikes_[parse.node], uncached);
    frame->add_to(mask);
    for (StackId stack = parse.stack; stack != 0 && !frame->exits().empty();) {
        frame = &below(*frame, lookalikes_[state.stacks()[stack].back], uncached);
        frame->add_to(mask);
        stack = state.stacks()[stack].below;
    }
}

const FrameMask& MaskCache::on_top(NodeId node, Uncached& uncached) {
    if (const FrameMask* known = tops_[node].load(std::memory_order_acquire)) return *known;
    MaskWalk walk(grammar_->automaton(), loops_, vocabulary_->trie(), vocabulary_->mask_words());
    walk.walk_on_top(node);
    auto mask = std::make_unique<FrameMask>(walk.take_tokens(), walk.take_exits(), node);
    FrameMask* none = nullptr;
    if (reserve(mask->bytes()) &&
        tops_[node].compare_exchange_strong(none, mask.get(), std::memory_order_acq_rel)) {
        return *mask.release();
    }
    uncached.push_back(std::move(mask));
    return *uncached.back();
}

/// Two threads may add the same mask; both stay, and the later one is found.
const FrameMask& MaskCache::below(const FrameMask& above, NodeId node, Uncached& uncached) {
    FrameMask* first = above.first_below_.load(std::memory_order_acquire);
    for (FrameMask* known = first; known; known = known->next_sibling_) {
        if (known->node_ == node) return *known;
    }
    MaskWalk walk(grammar_->automaton(), loops_, vocabulary_->trie(), vocabulary_->mask_words());
    walk.walk_below(above.exits(), node);
    auto mask = std::make_unique<FrameMask>(walk.take_tokens(), walk.take_exits(), node);
    if (!reserve(mask->bytes())) {
        uncached.push_back(std::move(mask));
        return *uncached.back();
    }
    do {
        mask->next_sibling_ = first;
    } while (!above.first_below_.compare_exchange_weak(first, mask.get(), std::memory_order_acq_rel));
    return *mask.release();
}

bool MaskCache::reserve(std::size_t bytes) {
    if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= budget_bytes_) return true;
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

}  // namespace coterie::grammar
