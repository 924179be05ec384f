#include "engine/forward/cuda/step_block.h"

#include <algorithm>

#include "base/error.h"
#include "quant/data_type.h"

namespace coterie::engine {

StepBlock::StepBlock(CudaDevice& device, DeviceArena& arena, Shape shape) : shape_(std::move(shape)) {
    std::uint64_t end = 0;
    const auto place = [&end](std::int64_t count, std::uint64_t element) {
        const std::uint64_t at = end;
        end += (static_cast<std::uint64_t>(count) * element + 63) / 64 * 64;
        return at;
    };
    place(1, sizeof(std::uint64_t));
    positions_ = place(shape_.tokens, sizeof(std::int32_t));
    sequences_ = place(shape_.tokens, sizeof(std::int32_t));
    logits_rows_ = place(shape_.tokens, sizeof(std::int32_t));
    cells_ = place(shape_.tokens / kPageTokens, sizeof(std::int32_t));
    in_cells_ = place(shape_.tokens, 1);
    pages_ = place(shape_.sequences * shape_.page_stride, sizeof(std::uint32_t));
    for (const models::Rope* rope : shape_.ropes) {
        ropes_.push_back(
            place(2 * shape_.tokens * static_cast<std::int64_t>(rope->frequencies.size()), sizeof(float)));
    }
    embeddings_ = end;
    place(shape_.tokens * shape_.embedding_stride, sizeof(float));
    host_ = device.allocate_pinned(end);
    std::fill(host_->span().begin(), host_->span().end(), std::byte{0});
    device_ = arena.take<std::byte>(static_cast<std::int64_t>(embeddings_));
}

void StepBlock::write(const Step& step, std::uint64_t number, RopeTables& ropes) {
    if (static_cast<std::int64_t>(step.slices.size()) > shape_.sequences) {
        fail(ErrorCode::InvalidArgument, "a step of {} sequences; at most {} run at once on a GPU",
             step.slices.size(), shape_.sequences);
    }
    *on_host<std::uint64_t>(0) = number;
    cell_count_ = 0;
    std::fill_n(on_host<std::uint8_t>(in_cells_), step.tokens.size(), std::uint8_t{0});
    for (std::size_t s = 0; s < step.slices.size(); ++s) {
        const StepSlice& slice = step.slices[s];
        const PageTable& pages = slice.state->pages();
        auto* numbers = on_host<std::uint32_t>(pages_) + static_cast<std::int64_t>(s) * shape_.page_stride;
        COTERIE_CHECK(pages.size() <= shape_.page_stride);
        for (std::int64_t p = 0; p < pages.size(); ++p) numbers[p] = pages.id(p);
        for (std::int64_t i = 0; i < slice.count; ++i) {
            on_host<std::int32_t>(positions_)[slice.first_row + i] =
                static_cast<std::int32_t>(slice.position + i);
            on_host<std::int32_t>(sequences_)[slice.first_row + i] = static_cast<std::int32_t>(s);
        }
        mark_cells(slice);
    }
    for (std::size_t i = 0; i < step.logits_rows.size(); ++i)
        on_host<std::int32_t>(logits_rows_)[i] = static_cast<std::int32_t>(step.logits_rows[i]);
    const auto tokens = static_cast<std::int64_t>(step.tokens.size());
    for (const models::Rope* rope : shape_.ropes) {
        const auto count = tokens * static_cast<std::int64_t>(rope->frequencies.size());
        auto* target = on_host<float>(ropes_[rope_index(*rope)]);
        const RopeTables::Row table = ropes.row(*rope, 0);
        std::copy_n(table.cosines, count, target);
        std::copy_n(table.sines, count,
                    target + shape_.tokens * static_cast<std::int64_t>(rope->frequencies.size()));
    }
}

void StepBlock::write_embeddings(const Step& step, const models::Matrix& token_embedding) {
    float* row = on_host<float>(embeddings_);
    for (const std::int64_t token : step.tokens) {
        traits(token_embedding.type)
            .decode(token_embedding.data + token * token_embedding.row_bytes, token_embedding.columns, row);
        row += shape_.embedding_stride;
    }
}

void StepBlock::mark_cells(const StepSlice& slice) {
    const std::int64_t end = slice.position + slice.count;
    for (std::int64_t cell = pages_for(slice.position) * kPageTokens; cell + kPageTokens <= end;
         cell += kPageTokens) {
        const std::int64_t row = slice.first_row + cell - slice.position;
        on_host<std::int32_t>(cells_)[cell_count_++] = static_cast<std::int32_t>(row);
        std::fill_n(on_host<std::uint8_t>(in_cells_) + row, kPageTokens, std::uint8_t{1});
    }
}

void StepBlock::send(Stream& stream) const {
    stream.copy_to_device(device_address(device_), host_->span().first(embeddings_));
}

void StepBlock::send_embeddings(Stream& stream, std::int64_t tokens, float* residual) const {
    const auto bytes = static_cast<std::size_t>(tokens * shape_.embedding_stride) * sizeof(float);
    stream.copy_to_device(device_address(residual), host_->span().subspan(embeddings_, bytes));
}

std::size_t StepBlock::rope_index(const models::Rope& rope) const {
    const auto found = std::find(shape_.ropes.begin(), shape_.ropes.end(), &rope);
    COTERIE_CHECK(found != shape_.ropes.end());
    return static_cast<std::size_t>(found - shape_.ropes.begin());
}

StepBlock::Angles StepBlock::angles(const models::Rope& rope) const {
    const auto* table = on_device<float>(ropes_[rope_index(rope)]);
    return {table, table + shape_.tokens * static_cast<std::int64_t>(rope.frequencies.size())};
}

}  // namespace coterie::engine
