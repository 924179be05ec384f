#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gguf/archive.h"
#include "gguf/writer.h"

namespace coterie::testing {

/// A model file taken apart, to be put together in another form.
class EditableModel {
  public:
    struct TensorData {
        gguf::TensorSpec spec;
        std::vector<std::byte> bytes;
    };

    explicit EditableModel(const std::string& path);

    TensorData& tensor(const std::string& name);
    bool has(const std::string& name) const { return tensors_.contains(name); }
    TensorData take(const std::string& name);
    void put(TensorData tensor) { tensors_[tensor.spec.name] = std::move(tensor); }
    void rename(const std::string& from, const std::string& to);
    std::vector<std::string> names() const;

    /// Keys in `removed_keys` are left out, those in `integers` replace or add a u32, those in `numbers` a
    /// binary64.
    std::set<std::string> removed_keys;
    std::map<std::string, std::uint32_t> integers;
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> strings;

    /// The file in memory, as an archive that owns its bytes.
    std::shared_ptr<const gguf::Archive> build();

  private:
    gguf::Archive source_;
    std::map<std::string, TensorData> tensors_;
    std::vector<std::vector<std::byte>> built_;
};

/// Tensors of two or three dimensions, each matrix of the result holding the rows of all parts, one part
/// after another.
EditableModel::TensorData join_rows(const std::string& name,
                                    const std::vector<EditableModel::TensorData>& parts);

}  // namespace coterie::testing
