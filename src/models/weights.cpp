#include "models/weights.h"

#include "base/error.h"

namespace coterie::models {

Matrix Matrix::slice(std::int64_t begin, std::int64_t count) const {
    COTERIE_CHECK(begin >= 0 && count >= 0 && begin + count <= rows);
    Matrix part = *this;
    part.rows = count;
    part.data = data + begin * row_bytes;
    if (!bias.empty()) part.bias.assign(bias.begin() + begin, bias.begin() + begin + count);
    return part;
}

}  // namespace coterie::models
