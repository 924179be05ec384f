#include "sampling/grammar/loops.h"

#include <algorithm>
#include <map>
#include <utility>

namespace coterie::grammar {
namespace {

/// Where a character is read: in the node's own rule, or in one that was called for it.
struct Place {
    NodeId node = kNoNode;
    NodeId back = kNoNode;  ///< where the caller goes on
    auto operator<=>(const Place&) const = default;
};

class Loops {
  public:
    Loops(const Automaton& automaton, std::span<const NodeId> lookalikes)
        : automaton_(automaton), lookalikes_(lookalikes) {}

    ByteKinds of(NodeId node) {
        home_ = lookalikes_[node];
        known_.clear();
        ByteKinds kinds = ~(kCharacters | kBroken | kMark);
        for (int byte = 0; byte < 0x80; ++byte) {
            if (!leads_home(node, byte, Utf8Place::Between))
                kinds &= ~kind_of(static_cast<std::uint8_t>(byte));
        }
        if (all_lead_home(node, [](std::uint8_t) { return Utf8Place::Between; }))
            return kinds | kCharacters | kBroken;
        const auto utf8 = [](std::uint8_t byte) { return read_utf8(Utf8Place::Between, byte); };
        return all_lead_home(node, utf8) ? kinds | kCharacters : kinds;
    }

  private:
    /// Of the bytes beyond ASCII those that may stand there; `place_after` says what follows one.
    template <typename PlaceAfter>
    bool all_lead_home(NodeId node, PlaceAfter place_after) {
        for (int byte = 0x80; byte < 0xFF; ++byte) {
            const Utf8Place place = place_after(static_cast<std::uint8_t>(byte));
            if (place != Utf8Place::Nowhere && !leads_home(node, byte, place)) return false;
        }
        return true;
    }

    /// A character's first byte. One parse that comes back is enough, whatever others there are.
    bool leads_home(NodeId id, int byte, Utf8Place utf8) {
        const Automaton::Node& node = automaton_.node(id);
        if (goes_home({id, kNoNode}, byte, utf8)) return true;
        const auto calls = automaton_.calls(node);
        return std::any_of(calls.begin(), calls.end(), [&](const Automaton::Call& call) {
            return goes_home({call.start, call.back}, byte, utf8);
        });
    }

    /// Whether every way from behind this byte to the character's end leads home; `utf8` is what it has come
    /// to.
    bool goes_home(Place from, int byte, Utf8Place utf8) {
        const NodeId next = automaton_.node(from.node).next[static_cast<std::size_t>(byte)];
        if (next == kNoNode) return false;
        if (utf8 != Utf8Place::Between) return every_end_is_home({next, from.back}, utf8);
        if (from.back == kNoNode) return lookalikes_[next] == home_;
        return automaton_.node(next).accepts && lookalikes_[from.back] == home_;
    }

    bool every_end_is_home(Place place, Utf8Place utf8) {
        const auto [known, is_new] = known_.try_emplace({place, utf8}, true);
        if (!is_new) return known->second;
        bool all = true;
        for (int byte = 0x80; byte < 0xC0 && all; ++byte) {
            const Utf8Place next = read_utf8(utf8, static_cast<std::uint8_t>(byte));
            if (next != Utf8Place::Nowhere) all = goes_home(place, byte, next);
        }
        return known_[{place, utf8}] = all;
    }

    const Automaton& automaton_;
    std::span<const NodeId> lookalikes_;
    NodeId home_ = kNoNode;
    std::map<std::pair<Place, Utf8Place>, bool> known_;
};

}  // namespace

std::vector<ByteKinds> find_loops(const Automaton& automaton, std::span<const NodeId> lookalikes) {
    Loops loops(automaton, lookalikes);
    std::vector<ByteKinds> kinds(automaton.size(), 0);
    for (std::size_t id = 0; id < kinds.size(); ++id) {
        const bool first = lookalikes[id] == id;  // the others have its loops
        kinds[id] = first ? loops.of(static_cast<NodeId>(id)) : kinds[lookalikes[id]];
    }
    return kinds;
}

}  // namespace coterie::grammar
