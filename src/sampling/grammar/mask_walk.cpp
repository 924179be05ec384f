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
            add(trie_.tokens_from(i));
            i = nodes[i].subtree_end;
            continue;
        }
        add(trie_.tokens_at(i));
        if (to.ended && trie_.has_children(i)) exits_.push_back(i);
        ++i;
    }
}

/// Whether whatever follows in the trie leads back to a node that the level stands at. (Frames below could
/// add no token there, so exits among them do not matter.)
bool MaskWalk::takes_all_below(std::uint32_t place, const Level& level) const {
    constexpr std::uint32_t kWorthwhile = 6;  // nodes; fewer are sooner read
    if (trie_.nodes()[place].subtree_end - place < kWorthwhile) return false;
    const ByteKinds below = trie_.kinds_below(place);
    const auto loops = [&](const Parse& parse) { return (below & ~loops_[parse.node]) == 0; };
    if (level.is_single) return loops(level.parse);
    return std::any_of(level.set.parses.begin(), level.set.parses.end(), loops);
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
