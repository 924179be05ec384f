#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/forward/cuda/resident_table.h"
#include "engine/forward/hybrid/expert_catalog.h"
#include "expert_cache/expert_cache.h"

namespace coterie::engine {

/// Brings a prompt's missing experts over the link, a layer at a time, into memory that the coldest slots
/// lend. Two layers' worth: one is filled while the other is read. All of it is queued ahead, so copies run
/// through attention and the products of the layer before.
class PromptStream {
  public:
    PromptStream(CudaDevice& device, const ExpertCatalog& catalog, LayerRange layers);

    /// Borrows memory of the cache's device `index` for a step. False where the cache cannot lend enough: the
    /// CPU then computes what is missing. Before the cache's step begins.
    bool begin(expert_cache::ExpertCache& cache, std::int32_t index);
    /// Says in the table, which has just been refreshed, where each layer's missing experts are going to be
    /// when `bring` has brought them, and queues its copy. One copy for all layers: a small one in between
    /// would wait for the large ones that are under way on the same link.
    void name_places(ResidentTable& table, Stream& compute);
    /// Queues the copies of a layer's missing experts; what `compute` runs after this call finds them.
    /// Returns the bytes that travel.
    std::uint64_t bring(int layer, Stream& compute);
    /// What reads the layer's experts is queued.
    void consumed(int layer, Stream& compute);
    void end() { loan_.reset(); }

  private:
    struct Half {
        std::uint64_t offset = 0;  ///< in the loan
        std::unique_ptr<Event> filled;
        std::unique_ptr<Event> free;
    };
    struct Missing {
        std::int32_t expert;
        DeviceAddress place;
    };
    struct Layer {
        std::size_t half = 0;  ///< layers with experts take turns
        std::vector<Missing> missing;
    };
    Layer& at(int layer) { return plan_[static_cast<std::size_t>(layer)]; }
    Half& half_of(int layer) { return halves_[at(layer).half]; }

    const ExpertCatalog& catalog_;
    const LayerRange layers_;
    std::unique_ptr<Stream> stream_;
    std::array<Half, 2> halves_;
    std::uint64_t half_bytes_ = 0;
    std::vector<Layer> plan_;  ///< [layers of the model]
    std::optional<expert_cache::MemoryLoan> loan_;
};

}  // namespace coterie::engine
