#pragma once

#include <cstdint>
#include <vector>

#include "engine/forward/cuda/device_arena.h"
#include "engine/forward/rope_tables.h"
#include "engine/forward/step.h"
#include "kernels/cuda/attention.h"

namespace coterie::engine {

/// What changes from step to step and kernels read: written by the host into pinned memory and sent in one
/// copy.
///
///     part           shape                              what
///     number         [1]                                number of the step
///     positions      [tokens]
///     sequences      [tokens]                           row of `pages`
///     logits_rows    [tokens]
///     cells          [tokens / 64]                      first rows of cells that the step holds whole
///     in_cells       [tokens]                           whether a row is in one
///     pages          [sequences][page_stride]           numbers in the pool
///     ropes          per rope: cosines, sines           [tokens][pairs] each
///     embeddings     [tokens][stride]                   goes to the residual stream in a copy of its own,
///     where
///                                                       the layers are a model's first
class StepBlock {
  public:
    struct Shape {
        std::int64_t tokens;     ///< at most
        std::int64_t sequences;  ///< at most
        std::int64_t page_stride;
        std::int64_t embedding_stride;
        std::vector<const models::Rope*> ropes;
    };
    StepBlock(CudaDevice& device, DeviceArena& arena, Shape shape);

    /// Fills the host's side. Throws InvalidArgument where the step has more sequences than the shape.
    void write(const Step& step, std::uint64_t number, RopeTables& ropes);
    void write_embeddings(const Step& step, const models::Matrix& token_embedding);
    /// Queues the block's copy.
    void send(Stream& stream) const;
    /// Queues the copy of the embeddings of `tokens` tokens to `residual`.
    void send_embeddings(Stream& stream, std::int64_t tokens, float* residual) const;

    const std::uint64_t* number() const { return on_device<std::uint64_t>(0); }
    cuda::TokenPlaces places() const {
        return {on_device<std::int32_t>(positions_), on_device<std::int32_t>(sequences_),
                on_device<std::uint32_t>(pages_), static_cast<std::int32_t>(shape_.page_stride),
                cell_count_ > 0 ? on_device<std::uint8_t>(in_cells_) : nullptr};
    }
    cuda::PromptCells cells() const { return {on_device<std::int32_t>(cells_), cell_count_}; }
    const std::int32_t* logits_rows() const { return on_device<std::int32_t>(logits_rows_); }
    struct Angles {
        const float* cosines;
        const float* sines;
    };
    Angles angles(const models::Rope& rope) const;

  private:
    template <typename T>
    T* on_host(std::uint64_t offset) const {
        return reinterpret_cast<T*>(host_->span().data() + offset);
    }
    template <typename T>
    T* on_device(std::uint64_t offset) const {
        return reinterpret_cast<T*>(device_ + offset);
    }
    void mark_cells(const StepSlice& slice);
    std::size_t rope_index(const models::Rope& rope) const;

    Shape shape_;
    std::uint64_t positions_ = 0;  ///< offsets in the block
    std::uint64_t sequences_ = 0;
    std::uint64_t logits_rows_ = 0;
    std::uint64_t cells_ = 0;
    std::uint64_t in_cells_ = 0;
    std::uint64_t pages_ = 0;
    std::vector<std::uint64_t> ropes_;
    std::uint64_t embeddings_ = 0;
    std::unique_ptr<PinnedMemory> host_;
    std::int32_t cell_count_ = 0;
    std::byte* device_ = nullptr;  ///< without the embeddings
};

}  // namespace coterie::engine
