#pragma once

#include <memory>
#include <span>

#include "scheduler/constraint.h"

namespace coterie::server {

/// For an answer that is not to end by itself: holds it to the constraint, and allows end tokens only where
/// the constraint leaves nothing else, since a complete answer can do nothing but end.
std::unique_ptr<scheduler::TokenConstraint> end_late(std::unique_ptr<scheduler::TokenConstraint> constraint,
                                                     std::span<const TokenId> end_tokens);

}  // namespace coterie::server
