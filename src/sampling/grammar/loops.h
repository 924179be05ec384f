#pragma once

#include <span>
#include <vector>

#include "sampling/grammar/automaton.h"
#include "sampling/grammar/byte_kinds.h"

namespace coterie::grammar {

/// Of every node the characters that lead back to it, or to a node that no token can tell from it: within a
/// string, nearly all. A walk need not read texts of such characters to know that they fit.
///
/// A kind is in the set if all its bytes are. kCharacters stands for all characters beyond ASCII, of which
/// even a part fits; kBroken for every byte from 80 to FE by itself. A character may also be read by a rule
/// that is called for it, and there may be other parses besides.
///
/// `lookalikes` is what find_lookalikes gives for texts as long as those that are looked up.
std::vector<ByteKinds> find_loops(const Automaton& automaton, std::span<const NodeId> lookalikes);

}  // namespace coterie::grammar
