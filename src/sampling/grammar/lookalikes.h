#pragma once

#include <cstddef>
#include <vector>

#include "sampling/grammar/automaton.h"

namespace coterie::grammar {

/// For each node the first one that cannot be told from it within `bytes` bytes of its rule. A repetition of
/// up to 1000 characters has thousands of nodes, and nearly all of them allow the same tokens, whose length
/// is limited: such nodes share one mask.
///
/// Nodes are told apart in rounds (Moore 1956): after n rounds by what n bytes show. Nodes that call rules
/// which may be empty stay alone, since behind such a call no byte has been read.
std::vector<NodeId> find_lookalikes(const Automaton& automaton, std::size_t bytes);

}  // namespace coterie::grammar
