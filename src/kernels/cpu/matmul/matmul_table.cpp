#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/matmul/rows/rows.h"
#include "kernels/cpu/matmul/scalar.h"

namespace coterie::cpu {
namespace {

using Table = std::array<MatmulFunction, kDataTypeIds>;

#define COTERIE_SET_MATMUL(type) table[static_cast<std::size_t>(DataType::type)] = matmul_##type;

/// Up to this many tokens, going row by row beats transposing strips.
constexpr std::int64_t kRowTokens = 2;

template <MatmulFunction kRows, MatmulFunction kStrips>
void by_tokens(const MatmulArgs& args) {
    return args.tokens <= kRowTokens ? kRows(args) : kStrips(args);
}

#define COTERIE_SET_BY_TOKENS(type) \
    table[static_cast<std::size_t>(DataType::type)] = by_tokens<matmul::avx2::rows_##type, matmul_##type>;

Table avx2_table() {
    using namespace matmul::avx2;
    Table table{};
    COTERIE_FOR_FLOAT_TYPES(COTERIE_SET_MATMUL)
    COTERIE_FOR_BLOCK_TYPES(COTERIE_SET_MATMUL)
    COTERIE_FOR_ROW_TYPES(COTERIE_SET_BY_TOKENS)
    return table;
}

Table avx512_table() {
    using namespace matmul::avx512;
    Table table{};
    COTERIE_FOR_FLOAT_TYPES(COTERIE_SET_MATMUL)
    COTERIE_FOR_BLOCK_TYPES(COTERIE_SET_MATMUL)
    COTERIE_FOR_ROW_TYPES(COTERIE_SET_BY_TOKENS)
    return table;
}

}  // namespace

Table matmul_table(InstructionSet set) {
    switch (set) {
        case InstructionSet::Scalar:
            return matmul::scalar::matmul_table();
        case InstructionSet::Avx2:
            return avx2_table();
        case InstructionSet::Avx512:
            return avx512_table();
    }
    return {};
}

}  // namespace coterie::cpu
