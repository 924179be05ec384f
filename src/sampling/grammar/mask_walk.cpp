#include "sampling/grammar/mask_walk.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/mask_cache.h"

namespace coterie::grammar {

MaskWalk::MaskWalk(const Automaton& automaton, std::span<const ByteKinds> loops, const TokenTrie& trie,
                   std::size_t mask_words)
    : automaton_(automaton), loops_(loops), trie_(trie), levels_(trie.longest() + 1), tokens_(mask_words) {}

void MaskWalk::walk_on_top(NodeId node) {
    start_.parses = {{node, 0}};
    walk(0);
}

void MaskWalk::walk_below(std::span<const std::uint32_t> entries, NodeId node) {
    add_parse(automaton_, stacks_, start_, {node, 0});
    if (start_.ended) exits_.assign(entries.begin(), entries.end());
    for (const std::uint32_t entry : entries) walk(entry);
}

void MaskWalk::walk(std::uint32_t entry) {
    const std::span<const TokenTrie::Node> nodes = trie_.nodes();
    Level& start = levels_[nodes[entry].depth];
    start.set = start_;
    start.is_single = false;
    for (std::uint32_t i = entry + 1; i < nodes[entry].subtree_end;) {
        Level& to = levels_[nodes[i].depth];
        if (!step(levels_[nodes[i].depth - 1u], nodes[i].byte, to)) {
            i = nodes[i].subtree_end;
            continue;
        }
        if (takes_all_below(i, to)) {
            take_all_from(i, to.ended);
            i = nodes[i].subtree_end;
            continue;
        }
        add(trie_.tokens_at(i));
        if (to.ended && trie_.has_children(i)) exits_.push_back(i);
        ++i;
    }
}

/// Whether whatever follows in the trie leads back to the one node that the level stands at.
bool MaskWalk::takes_all_below(std::uint32_t place, const Level& level) const {
    constexpr std::uint32_t kWorthwhile = 6;  // nodes; fewer are sooner read
    if (trie_.nodes()[place].subtree_end - place < kWorthwhile) return false;
    const NodeId node = only_node(level);
    if (node == kNoNode) return false;
    const ByteKinds below = trie_.kinds_below(place);
    if ((below & ~loops_[node]) != 0) return false;
    // Where a frame may end between its characters, the walk has to know where they end.
    return !level.ended || (below & kCharacters) == 0 || (loops_[node] & kBroken) != 0;
}

/// The node from which all goes on; kNoNode where there are several.
NodeId MaskWalk::only_node(const Level& level) const {
    if (level.is_single) return level.parse.node;
    if (level.ended) return kNoNode;
    const Parse* only = nullptr;
    const Parse* called = nullptr;
    for (const Parse& parse : level.set.parses) {
        if (automaton_.node(parse.node).is_end()) continue;  // it went on with its caller
        if (called) return kNoNode;
        (only ? called : only) = &parse;
    }
    if (!only || !called) return kNoNode;
    const Automaton::Node& node = automaton_.node(only->node);
    if (node.calls != 1 || node.has_bytes || node.accepts) return kNoNode;
    const Automaton::Call& call = automaton_.calls(node).front();
    const StackPool::Frame& frame = stacks_[called->stack];
    const bool is_its_call =
        called->node == call.start && frame.back == call.back && frame.below == only->stack;
    return is_its_call ? only->node : kNoNode;
}

void MaskWalk::take_all_from(std::uint32_t place, bool ended) {
    add(trie_.tokens_from(place));
    if (!ended) return;
    for (std::uint32_t i = place; i < trie_.nodes()[place].subtree_end; ++i) {
        if (trie_.has_children(i)) exits_.push_back(i);
    }
}

bool MaskWalk::step(const Level& from, std::uint8_t byte, Level& to) {
    if (!from.is_single) {
        count_step(from.set.parses.size());
        if (!read_byte(automaton_, stacks_, from.set, byte, to.set)) return false;
        to.is_single = to.set.parses.size() == 1 && is_single(to.set.parses[0]);
        to.ended = to.set.ended;
        if (to.is_single) to.parse = to.set.parses[0];
        return true;
    }
    const NodeId next = automaton_.node(from.parse.node).next[byte];
    if (next == kNoNode) return false;
    to.parse = {next, from.parse.stack};
    to.is_single = is_single(to.parse);
    to.ended = to.is_single && automaton_.kind(next) == Automaton::Kind::MayEnd;
    if (to.is_single) return true;
    count_step(1);
    to.set.clear();
    add_parse(automaton_, stacks_, to.set, to.parse);
    to.ended = to.set.ended;
    return true;
}

/// Whether no other parse follows from this one without reading. The frame's own end leads out of the walk.
bool MaskWalk::is_single(Parse parse) const {
    const Automaton::Kind kind = automaton_.kind(parse.node);
    return kind == Automaton::Kind::Plain || (kind == Automaton::Kind::MayEnd && parse.stack == 0);
}

void MaskWalk::add(std::span<const std::int32_t> tokens) {
    for (const std::int32_t id : tokens)
        tokens_[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
}

void MaskWalk::count_step(std::size_t parses) {
    steps_ += parses;
    if (steps_ <= MaskCache::kMaxSteps) return;
    fail(ErrorCode::InvalidArgument,
         "the grammar is too ambiguous: finding the tokens that fit takes more than {} steps",
         MaskCache::kMaxSteps);
}

std::vector<std::uint32_t> MaskWalk::take_exits() {
    std::sort(exits_.begin(), exits_.end());
    exits_.erase(std::unique(exits_.begin(), exits_.end()), exits_.end());
    return std::move(exits_);
}

}  // namespace coterie::grammar
