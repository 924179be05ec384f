#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

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
    /// Queues the copies of a layer's missing experts and names their places in the table; what `compute`
    /// runs after this call finds them there. Returns the bytes that travel.
    std::uint64_t bring(int layer, ResidentTable& table, Stream& compute);
    /// What reads the layer's experts is queued.
    void consumed(Stream& compute);
    void end() { loan_.reset(); }

  private:
    struct Half {
        std::unique_ptr<Event> filled;
        std::unique_ptr<Event> free;
    };
    const ExpertCatalog& catalog_;
    std::unique_ptr<Stream> stream_;
    std::array<Half, 2> halves_;
    std::uint64_t half_bytes_ = 0;
    std::size_t next_ = 0;
    std::optional<expert_cache::MemoryLoan> loan_;
};

}  // namespace coterie::engine
