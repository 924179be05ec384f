#include "sampling/grammar/loops.h"

#include <array>
#include <map>
#include <optional>
#include <utility>

namespace coterie::grammar {
namespace {

/// Between the bytes of one character, perhaps within a rule that was called for it.
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
        const std::optional<Place> start = place_of(node);
        if (!start) return 0;
        ByteKinds kinds = ascii(*start);
        if (characters_lead_home(*start, Utf8Place::Between)) kinds |= kCharacters;
        if (every_byte_leads_home(*start)) kinds |= kCharacters | kBroken;
        return kinds;
    }

  private:
    /// Where the node reads its next byte, if there is one such place.
    std::optional<Place> place_of(NodeId id) const {
        const Automaton::Node& node = automaton_.node(id);
        if (node.calls == 0) return Place{id, kNoNode};
        if (node.calls > 1 || node.has_bytes || node.accepts) return std::nullopt;
        const Automaton::Call call = automaton_.calls(node).front();
        if (!automaton_.node(call.start).is_plain()) return std::nullopt;
        return Place{call.start, call.back};
    }

    /// Nothing where the byte does not fit, or where more than one parse goes on behind it.
    std::optional<Place> read(Place from, std::uint8_t byte) const {
        const NodeId next = automaton_.node(from.node).next[byte];
        if (next == kNoNode) return std::nullopt;
        if (from.back == kNoNode || automaton_.node(next).is_plain()) return Place{next, from.back};
        if (automaton_.node(next).is_end()) return Place{from.back, kNoNode};
        return std::nullopt;
    }
    bool is_home(Place place) const { return place.back == kNoNode && lookalikes_[place.node] == home_; }
    bool leads_home(Place from, std::uint8_t byte) const {
        const std::optional<Place> next = read(from, byte);
        return next && is_home(*next);
    }

    ByteKinds ascii(Place start) const {
        ByteKinds kinds = ~(kCharacters | kBroken | kMark);
        for (std::uint8_t byte = 0; byte < 0x80; ++byte) {
            if (!leads_home(start, byte)) kinds &= ~kind_of(byte);
        }
        return kinds;
    }

    bool every_byte_leads_home(Place start) const {
        for (int byte = 0x80; byte < 0xFF; ++byte) {
            if (!leads_home(start, static_cast<std::uint8_t>(byte))) return false;
        }
        return true;
    }

    bool characters_lead_home(Place from, Utf8Place utf8) {
        const auto [known, is_new] = known_.try_emplace({from, utf8}, true);
        if (!is_new) return known->second;
        bool all = true;
        for (int byte = 0x80; byte < 0x100 && all; ++byte) {
            const Utf8Place next_utf8 = read_utf8(utf8, static_cast<std::uint8_t>(byte));
            if (next_utf8 == Utf8Place::Nowhere) continue;
            const std::optional<Place> next = read(from, static_cast<std::uint8_t>(byte));
            if (!next) {
                all = false;
            } else if (next_utf8 == Utf8Place::Between) {
                all = is_home(*next);
            } else {
                const bool within = next->back != kNoNode || automaton_.node(next->node).is_plain();
                all = within && characters_lead_home(*next, next_utf8);
            }
        }
        return known_[{from, utf8}] = all;
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
