#include "engine/forward/rope_tables.h"

#include <algorithm>
#include <cmath>

namespace coterie::engine {

RopeTables::Row RopeTables::row(const models::Rope& rope, std::int64_t t) {
    const Table& entry = table(rope);
    const auto offset = static_cast<std::size_t>(t) * rope.frequencies.size();
    return {entry.cosines.data() + offset, entry.sines.data() + offset};
}

RopeTables::Table& RopeTables::table(const models::Rope& rope) {
    auto found =
        std::find_if(tables_.begin(), tables_.end(), [&](const Table& t) { return t.rope == &rope; });
    if (found == tables_.end()) {
        tables_.push_back({.rope = &rope, .valid = false, .cosines = {}, .sines = {}});
        found = tables_.end() - 1;
    }
    if (!found->valid) fill(*found);
    return *found;
}

void RopeTables::fill(Table& table) const {
    const std::vector<double>& frequencies = table.rope->frequencies;
    table.cosines.resize(positions_.size() * frequencies.size());
    table.sines.resize(table.cosines.size());
    std::size_t i = 0;
    for (const std::int64_t position : positions_) {
        for (const double frequency : frequencies) {
            const double angle = static_cast<double>(position) * frequency;
            table.cosines[i] = static_cast<float>(std::cos(angle) * table.rope->magnitude);
            table.sines[i] = static_cast<float>(std::sin(angle) * table.rope->magnitude);
            ++i;
        }
    }
    table.valid = true;
}

}  // namespace coterie::engine
