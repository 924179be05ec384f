#include "kernels/cpu/matmul/scalar.h"

#include <cstddef>
#include <utility>

namespace coterie::cpu::matmul::scalar {
namespace {

template <std::size_t kType>
void multiply(const MatmulArgs& args) {
    const DotFunction dot = traits(static_cast<DataType>(kType)).dot;
    for (std::int64_t r = 0; r < args.rows; ++r) {
        const std::byte* row = args.weights + r * args.row_bytes;
        for (std::int64_t t = 0; t < args.tokens; ++t) {
            args.out[t * args.out_token_stride + r] = dot(row, args.activations[t]);
        }
    }
}

template <std::size_t kType>
MatmulFunction function_of() {
    const DataTypeTraits* type = find_data_type(static_cast<std::uint32_t>(kType));
    return type != nullptr && type->dot != nullptr ? multiply<kType> : nullptr;
}

template <std::size_t... kTypes>
std::array<MatmulFunction, kDataTypeIds> all_functions(std::index_sequence<kTypes...>) {
    return {function_of<kTypes>()...};
}

}  // namespace

std::array<MatmulFunction, kDataTypeIds> matmul_table() {
    return all_functions(std::make_index_sequence<kDataTypeIds>());
}

}  // namespace coterie::cpu::matmul::scalar
