#include "sampling/grammar/parse_state.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace coterie::grammar {

StackId StackPool::push(StackId below, NodeId back) {
    StackId& recent = recent_[(below * 31 + back) % kRecent];
    if (recent != 0 && frames_[recent].below == below && frames_[recent].back == back) return recent;
    return recent = find_or_add(below, back);
}

StackId StackPool::find_or_add(StackId below, NodeId back) {
    for (StackId id = frames_[below].first_above; id != 0; id = frames_[id].next_sibling) {
        if (frames_[id].back == back) return id;
    }
    if (frames_[below].depth >= kMaxDepth) {
        fail(ErrorCode::InvalidArgument, "the answer nests the grammar's rules more than {} deep", kMaxDepth);
    }
    if (frames_.size() >= kMaxFrames) {
        fail(ErrorCode::InvalidArgument, "the grammar is too ambiguous: it leaves more than {} stacks open",
             kMaxFrames);
    }
    const auto id = static_cast<StackId>(frames_.size());
    frames_.push_back({.back = back,
                       .depth = static_cast<std::uint16_t>(frames_[below].depth + 1),
                       .below = below,
                       .next_sibling = frames_[below].first_above});
    frames_[below].first_above = id;
    return id;
}

void StackPool::clear() {
    frames_.resize(1);
    frames_[0].first_above = 0;
    recent_.fill(0);
}

void ParseSet::clear() {
    parses.clear();
    ended = false;
}

namespace {

void add_once(ParseSet& set, Parse parse) {
    if (std::find(set.parses.begin(), set.parses.end(), parse) != set.parses.end()) return;
    if (set.parses.size() >= kMaxParses) {
        fail(ErrorCode::InvalidArgument,
             "the grammar is too ambiguous: what was written so far can be read in more than {} ways",
             kMaxParses);
    }
    set.parses.push_back(parse);
}

}  // namespace

void add_parse(const Automaton& automaton, StackPool& stacks, ParseSet& set, Parse parse) {
    std::size_t next = set.parses.size();
    add_once(set, parse);
    for (; next < set.parses.size(); ++next) {
        const Parse current = set.parses[next];
        const Automaton::Node& node = automaton.node(current.node);
        if (node.accepts && current.stack == 0) set.ended = true;
        if (node.accepts && current.stack != 0) {
            const StackPool::Frame& frame = stacks[current.stack];
            add_once(set, {frame.back, frame.below});
        }
        for (const Automaton::Call& call : automaton.calls(node)) {
            // A call at the very end of a rule needs no way back: lists may recurse to the right for ever.
            const bool last = automaton.node(call.back).is_end();
            add_once(set, {call.start, last ? current.stack : stacks.push(current.stack, call.back)});
        }
    }
}

bool read_byte(const Automaton& automaton, StackPool& stacks, const ParseSet& from, std::uint8_t byte,
               ParseSet& to) {
    to.clear();
    for (const Parse parse : from.parses) {
        const NodeId next = automaton.node(parse.node).next[byte];
        if (next == kNoNode) continue;
        if (to.parses.empty() && automaton.node(next).is_plain()) {
            to.parses.push_back({next, parse.stack});
        } else {
            add_parse(automaton, stacks, to, {next, parse.stack});
        }
    }
    return to.ended || !to.parses.empty();
}

ParseState::ParseState(const Automaton& automaton) : automaton_(&automaton) {
    add_parse(automaton, stacks_, now_, {automaton.start(), 0});
}

bool ParseState::try_read(std::string_view bytes) {
    next_ = now_;
    for (const char byte : bytes) {
        if (!read_byte(*automaton_, stacks_, next_, static_cast<std::uint8_t>(byte), scratch_)) return false;
        std::swap(next_, scratch_);
    }
    return true;
}

bool ParseState::can_read(std::string_view bytes) {
    const bool fits = try_read(bytes);
    if (stacks_.size() > compact_above_) compact();
    return fits;
}

bool ParseState::read(std::string_view bytes) {
    const bool fits = try_read(bytes);
    if (fits) std::swap(now_, next_);
    if (stacks_.size() > compact_above_) compact();
    return fits;
}

bool ParseState::must_end() const {
    return std::none_of(now_.parses.begin(), now_.parses.end(),
                        [&](const Parse& parse) { return automaton_->node(parse.node).has_bytes; });
}

/// Keeps the stacks in use alone, so that a long answer needs no more memory than a short one.
void ParseState::compact() {
    kept_stacks_.clear();
    for (Parse& parse : now_.parses) {
        path_.clear();
        for (StackId id = parse.stack; id != 0; id = stacks_[id].below) path_.push_back(id);
        StackId kept = 0;
        for (auto id = path_.rbegin(); id != path_.rend(); ++id)
            kept = kept_stacks_.push(kept, stacks_[*id].back);
        parse.stack = kept;
    }
    std::swap(stacks_, kept_stacks_);
    compact_above_ = std::max(kSmallPool, 2 * stacks_.size());
}

}  // namespace coterie::grammar
