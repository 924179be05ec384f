#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/layer_ops.h"

namespace coterie::engine {

/// Cosines and sines of a step's positions, formed once per step for each kind of rope and used by all its
/// layers.
class RopeTables {
  public:
    void begin(std::span<const std::int64_t> positions) {
        positions_ = positions;
        for (Table& table : tables_) table.valid = false;
    }

    struct Row {
        const float* cosines;
        const float* sines;
    };
    /// [rows][pairs], valid until the next step.
    Row row(const models::Rope& rope, std::int64_t t);

  private:
    struct Table {
        const models::Rope* rope = nullptr;
        bool valid = false;
        std::vector<float> cosines;
        std::vector<float> sines;
    };
    Table& table(const models::Rope& rope);
    void fill(Table& table) const;

    std::span<const std::int64_t> positions_;
    std::vector<Table> tables_;
};

}  // namespace coterie::engine
