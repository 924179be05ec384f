#include "synth/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "quant/random_blocks.h"

namespace coterie::synth {
namespace {

constexpr std::int64_t kStretchBytes = 1 << 20;
constexpr int kStretchesPerThread = 4;

/// FNV-1a of the tensor's name, so that tensors have unrelated random numbers.
std::uint64_t hash(std::string_view text) {
    std::uint64_t result = 0xcbf29ce484222325u;
    for (const char c : text) result = (result ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return result;
}

/// The rows [first, first + count) of a tensor, counted over all its matrices.
struct Stretch {
    std::int64_t first;
    std::int64_t count;
    std::byte* out;
};

/// Makes one tensor's rows.
class RowMaker {
  public:
    RowMaker(const PlannedTensor& tensor, const RoutingModel& model, const ReservedPart& reserved,
             SplitMix64 random)
        : tensor_(tensor),
          model_(model),
          reserved_(reserved),
          row_bytes_(*coterie::row_bytes(tensor.type, tensor.dims[0])),
          row_blocks_(tensor.dims[0] / traits(tensor.type).block_values) {
        if (tensor.content == Content::Router) ranks_ = popularity_ranks(tensor.dims[1], random);
        if (const auto rms = random_rms()) blocks_.emplace(tensor.type, *rms);
    }

    std::int64_t row_bytes() const { return row_bytes_; }
    std::int64_t rows() const {
        std::int64_t rows = 1;
        for (std::size_t i = 1; i < tensor_.dims.size(); ++i) rows *= tensor_.dims[i];
        return rows;
    }

    void make(SplitMix64& random, const Stretch& stretch) const {
        const std::int64_t bytes = stretch.count * row_bytes_;
        if (!blocks_) {
            std::fill_n(stretch.out, bytes, std::byte{0});
        } else {
            blocks_->fill(random, stretch.count * row_blocks_, stretch.out);
        }
        for (std::int64_t i = 0; i < stretch.count; ++i) {
            finish_row(stretch.first + i, stretch.out + i * row_bytes_);
        }
    }

  private:
    std::optional<float> random_rms() const {
        switch (tensor_.content) {
            case Content::Random:
                return tensor_.rms;
            case Content::Embedding:
                return 1.0f;
            case Content::Router:
                // The token's own part of a logit: variance 1 from the dimensions that are not reserved.
                return 1.0f / std::sqrt(static_cast<float>(tensor_.dims[0] - kReservedDimensions));
            case Content::MixerNorm:
            case Content::FfnNorm:
            case Content::Norm:
                return 0.05f;  // around 1
            case Content::Zero:
                break;
        }
        return std::nullopt;
    }

    void finish_row(std::int64_t row, std::byte* out) const {
        switch (tensor_.content) {
            case Content::Random:
                if (tensor_.writes_residual) clear_reserved(row, out);
                break;
            case Content::Embedding: {
                const auto bytes = reserved_.embedding_bytes(row % model_.options().topics);
                std::memcpy(out, bytes.data(), bytes.size());
                break;
            }
            case Content::Router: {
                std::vector<float> weights(kReservedDimensions);
                reserved_.write_router_row(model_, ranks_[static_cast<std::size_t>(row)], weights);
                std::memcpy(out, weights.data(), weights.size() * sizeof(float));
                break;
            }
            case Content::MixerNorm:
                finish_norm(out, 0.0f);
                break;
            case Content::FfnNorm:
                finish_norm(out, kReservedNormWeight);
                break;
            case Content::Norm:
                finish_norm(out, std::nullopt);
                break;
            case Content::Zero:
                break;
        }
    }

    /// A matrix's row r writes dimension r; a bias row holds all dimensions of one expert.
    void clear_reserved(std::int64_t row, std::byte* out) const {
        if (tensor_.type == DataType::F32 && tensor_.name.ends_with(".bias")) {
            std::fill_n(out, kReservedDimensions * static_cast<std::int64_t>(sizeof(float)), std::byte{0});
        } else if (row % tensor_.dims[1] < kReservedDimensions) {
            std::fill_n(out, row_bytes_, std::byte{0});  // scales of zero in every type
        }
    }

    void finish_norm(std::byte* out, std::optional<float> reserved_weight) const {
        std::vector<float> weights(static_cast<std::size_t>(tensor_.dims[0]));
        std::memcpy(weights.data(), out, weights.size() * sizeof(float));
        for (float& weight : weights) weight += 1.0f;
        if (reserved_weight) std::fill_n(weights.begin(), kReservedDimensions, *reserved_weight);
        std::memcpy(out, weights.data(), weights.size() * sizeof(float));
    }

    const PlannedTensor& tensor_;
    const RoutingModel& model_;
    const ReservedPart& reserved_;
    std::int64_t row_bytes_;
    std::int64_t row_blocks_;
    std::vector<std::int64_t> ranks_;     ///< routers: of each expert
    std::optional<RandomBlocks> blocks_;  ///< nothing: zeros
};

}  // namespace

WeightMaker::WeightMaker(const RoutingModel& model, const ReservedPart& reserved, std::uint64_t seed,
                         int threads)
    : model_(model), reserved_(reserved), seed_(seed), pool_(threads) {
    buffers_.resize(static_cast<std::size_t>(pool_.size() * kStretchesPerThread));
}

void WeightMaker::write(const PlannedTensor& tensor, gguf::TensorOutput& output,
                        FunctionRef<void(std::uint64_t bytes)> progress) {
    SplitMix64 seeds(seed_ ^ hash(tensor.name));
    const std::uint64_t tensor_seed = seeds.next();
    const RowMaker rows(tensor, model_, reserved_, seeds);
    const std::int64_t stretch_rows = std::max<std::int64_t>(1, kStretchBytes / rows.row_bytes());
    const std::int64_t stretches = (rows.rows() + stretch_rows - 1) / stretch_rows;
    const auto buffers = static_cast<std::int64_t>(buffers_.size());
    for (std::int64_t base = 0; base < stretches; base += buffers) {
        const std::int64_t count = std::min(buffers, stretches - base);
        pool_.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t first = (base + i) * stretch_rows;
                auto& buffer = buffers_[static_cast<std::size_t>(i)];
                const std::int64_t made = std::min(stretch_rows, rows.rows() - first);
                buffer.resize(static_cast<std::size_t>(made * rows.row_bytes()));
                SplitMix64 random(tensor_seed + static_cast<std::uint64_t>(base + i));
                rows.make(random, {first, made, buffer.data()});
            }
        });
        for (std::int64_t i = 0; i < count; ++i) {
            const auto& buffer = buffers_[static_cast<std::size_t>(i)];
            output.append(std::span<const std::byte>(buffer));
            progress(buffer.size());
        }
    }
}

}  // namespace coterie::synth
