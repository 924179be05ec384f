#include "sampling/grammar/automaton.h"

#include <utility>

namespace coterie::grammar {

std::string spell_token(std::string_view name) {
    std::string spelling(1, kTokenMark);
    spelling += name;
    return spelling + kTokenMark;
}

Automaton::Automaton(std::vector<Node> nodes, std::vector<Call> calls, NodeId start,
                     std::vector<std::string> names)
    : nodes_(std::move(nodes)), calls_(std::move(calls)), token_names_(std::move(names)), start_(start) {
    for (const Node& node : nodes_)
        kinds_.push_back(node.calls > 0 ? Kind::Calls : node.accepts ? Kind::MayEnd : Kind::Plain);
}

}  // namespace coterie::grammar
