#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using testing::RawFile;

constexpr std::uint64_t kMax = UINT64_MAX;
constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ4_K = 12;

/// A file that must be refused, and what the one line must say.
struct Refusal {
    const char* name;
    Bytes bytes;
    std::vector<const char*> fragments;
};

Bytes text_file(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Bytes key(std::uint32_t type, const RawFile& value) {
    const Bytes whole = value;
    RawFile file(3, 0, 1);
    file.string("some.key").u32(type);
    Bytes result = file;
    result.insert(result.end(), whole.begin() + 24, whole.end());
    return result;
}

Bytes one_tensor(const std::vector<std::uint64_t>& dims, std::uint32_t type = kF32,
                 std::uint64_t offset = 0) {
    return RawFile(3, 1, 0).tensor("blk.0.w", dims, type, offset).zeros(1024);
}

/// A claim of dimensions without the dimensions themselves.
Bytes ranked(std::uint32_t rank) { return RawFile(3, 1, 0).string("blk.0.w").u32(rank).zeros(1024); }

Bytes two_tensors(const char* first, const char* second, std::uint64_t second_offset) {
    return RawFile(3, 2, 0)
        .tensor(first, {64}, kF32, 0)
        .tensor(second, {64}, kF32, second_offset)
        .zeros(1024);
}

Bytes alignment(std::uint32_t value) {
    return RawFile(3, 0, 1).string("general.alignment").u32(4).u32(value);
}

Bytes nested_arrays() {
    RawFile value;
    for (int i = 0; i < 100000; ++i) value.u32(9).u64(1);
    return key(9, value);
}

std::vector<Refusal> container_refusals() {
    return {
        {"Empty", {}, {"byte 0", "the file is empty"}},
        {"WebPage", text_file("<!DOCTYPE html>"), {"web page"}},
        {"LfsPointer", text_file("version https://git-lfs.github.com/spec/v1\n"), {"git lfs pull"}},
        {"Checkpoint", text_file("PK\3\4...."), {"PyTorch"}},
        {"OldMagic", text_file("tjgg\1\0\0\0"), {"before GGUF"}},
        {"OtherMagic", text_file("U\1\2\3GGUF"), {"not a GGUF file", "'U\\x01\\x02\\x03'"}},
        {"Version0", RawFile(0), {"byte 4", "GGUF version 0 is unknown"}},
        {"Version1", RawFile(1), {"byte 4", "GGUF version 1 is no longer in use"}},
        {"Version4", RawFile(4), {"byte 4", "GGUF version 4 is unknown"}},
        {"BigEndian", RawFile(0x03000000), {"byte 4", "big-endian"}},
        {"TensorCount", RawFile(3, std::uint64_t{1} << 40, 0), {"byte 8", "claims 1099511627776 tensors"}},
        {"NegativeTensorCount", RawFile(3, kMax, 0), {"byte 8", "tensors"}},
        {"TensorsWithoutBytes", RawFile(3, 3, 0), {"byte 8", "claims 3 tensors but only 0 bytes follow"}},
        {"KeyCount", RawFile(3, 0, kMax), {"byte 16", "keys"}},
        {"KeysWithoutBytes",
         RawFile(3, 0, 2).zeros(20),
         {"byte 16", "claims 2 keys but only 20 bytes follow"}},
    };
}

std::vector<Refusal> key_refusals() {
    const RawFile duplicate = RawFile(3, 0, 2).string("a.key").u32(0).u8(1).string("a.key").u32(0).u8(1);
    return {
        {"EmptyKey", RawFile(3, 0, 1).string("").u32(4).u32(1), {"byte 24", "key 1 of 1", "name is empty"}},
        {"DuplicateKey", duplicate, {"key 'a.key'", "stands twice", "keys 1 and 2"}},
        {"LongKey", RawFile(3, 0, 1).u64(65536).zeros(70000), {"65536 bytes, more than the 65535 allowed"}},
        {"KeyPastEnd", RawFile(3, 0, 1).u64(1000).zeros(20), {"byte 32", "needs 1000 bytes and 20 are left"}},
        {"KeyLengthWraps", RawFile(3, 0, 1).u64(kMax - 31).zeros(20), {"byte 24", "key 1 of 1"}},
        {"ValueType", key(13, RawFile().u64(1)), {"key 'some.key'", "the value's type is 13"}},
        {"ElementType", key(9, RawFile().u32(99).u64(1)), {"key 'some.key'", "the element type is 99"}},
        {"NestedArrays", nested_arrays(), {"byte 44", "key 'some.key'", "arrays of arrays"}},
        {"Bool7", key(7, RawFile().u8(7)), {"byte 44", "key 'some.key'", "a bool is 7"}},
        {"BoolInArray", key(9, RawFile().u32(7).u64(3).u8(1).u8(0).u8(2)), {"byte 58", "a bool is 2"}},
        {"ArrayCount",
         key(9, RawFile().u32(8).u64(std::uint64_t{1} << 40)),
         {"byte 48", "claims 1099511627776"}},
        {"ArrayWraps",
         key(9, RawFile().u32(10).u64((std::uint64_t{1} << 61) + 1).zeros(8)),
         {"byte 48", "u64"}},
        {"ArrayPastEnd",
         key(9, RawFile().u32(4).u64(3).zeros(8)),
         {"claims 3 elements of type u32 but only 8"}},
        {"StringPastEnd",
         key(8, RawFile().u64(9).zeros(8)),
         {"byte 52", "'some.key'", "9 bytes and 8 are left"}},
        {"StringInArray", key(9, RawFile().u32(8).u64(2).string("a").u64(kMax)), {"'some.key'", "a string"}},
        {"Alignment0", alignment(0), {"general.alignment", "not a power of two"}},
        {"Alignment48", alignment(48), {"'general.alignment' is 48"}},
        {"AlignmentHuge", alignment(0x80000000), {"'general.alignment' is 2147483648"}},
        {"AlignmentText",
         RawFile(3, 0, 1).string("general.alignment").u32(8).string("x"),
         {"general.alignment"}},
        {"KeyIsOneLine", RawFile(3, 0, 1).string("a\nb\x1B[0m").u32(77).zeros(9), {"key 'a\\nb\\x1b[0m'"}},
    };
}

std::vector<Refusal> tensor_refusals() {
    return {
        {"NoDims", ranked(0), {"tensor 'blk.0.w'", "has 0 dimensions"}},
        {"FiveDims", ranked(5), {"has 5 dimensions"}},
        {"NineDims", ranked(9), {"has 9 dimensions"}},
        {"MillionDims", ranked(1000000), {"has 1000000 dimensions"}},
        {"AllDims", ranked(UINT32_MAX), {"has 4294967295 dimensions"}},
        {"ProductWraps",
         one_tensor({1ULL << 32, 1ULL << 32}),
         {"'blk.0.w'", "4294967296 x 4294967296", "larger"}},
        {"ProductNearlyWraps", one_tensor({INT64_MAX, 2}), {"'blk.0.w'", "larger than any file"}},
        {"SizeWraps", one_tensor({1ULL << 61, 2}), {"'blk.0.w'", "larger than any file"}},
        {"PatchedRows", one_tensor({8, (1ULL << 42) + 1}), {"'blk.0.w'", "end past the file"}},
        {"NegativeDim", one_tensor({4, kMax}), {"dimension 1 is 18446744073709551615"}},
        {"ZeroDim", one_tensor({0}), {"dimension 0 is 0"}},
        {"PartOfABlock", one_tensor({255}, kQ4_K), {"rows of 255 elements", "Q4_K blocks of 256"}},
        {"Unknown43", one_tensor({32}, 43), {"tensor 'blk.0.w'", "unknown type 43", "another program"}},
        {"Fork105", one_tensor({32}, 105), {"unknown type 105", "ik_llama.cpp"}},
        {"Retired4", one_tensor({32}, 4), {"'blk.0.w'", "retired type 4 (Q4_2)"}},
        {"Retired5", one_tensor({32}, 5), {"retired type 5 (Q4_3)"}},
        {"Retired31", one_tensor({32}, 31), {"retired type 31 (Q4_0_4_4)"}},
        {"Retired32", one_tensor({32}, 32), {"retired type 32"}},
        {"Retired33", one_tensor({32}, 33), {"retired type 33"}},
        {"Retired36", one_tensor({32}, 36), {"retired type 36 (IQ4_NL_4_4)"}},
        {"Retired37", one_tensor({32}, 37), {"retired type 37"}},
        {"Retired38", one_tensor({32}, 38), {"retired type 38"}},
        {"TypeMinus1", one_tensor({32}, UINT32_MAX), {"unknown type 4294967295"}},
        {"OffsetPastEnd",
         one_tensor({4}, kF32, 1 << 20),
         {"'blk.0.w'", "offset 1048576", "end past the file"}},
        {"OffsetWraps", one_tensor({64}, kF32, kMax - 31), {"'blk.0.w'", "end past the file"}},
        {"OffsetUnaligned", one_tensor({4}, kF32, 16), {"'blk.0.w'", "offset 16", "alignment 32"}},
        {"Overlap", two_tensors("a.w", "b.w", 224), {"tensor 'a.w'", "overlap tensor 'b.w' at offset 224"}},
        {"SamePlace", two_tensors("a.w", "b.w", 0), {"overlap"}},
        {"DuplicateTensor",
         two_tensors("blk.0.ffn_norm.weight", "blk.0.ffn_norm.weight", 256),
         {"tensor 'blk.0.ffn_norm.weight'", "stands twice", "tensors 1 and 2"}},
        {"EmptyTensorName",
         RawFile(3, 1, 0).tensor("", {4}, kF32, 0).zeros(64),
         {"tensor 1 of 1", "name is empty"}},
    };
}

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, SaysWhatIsWrongInOneLine) {
    const std::string message = testing::refusal(GetParam().bytes);
    EXPECT_THAT(message, HasSubstr("model.gguf: "));
    for (const char* fragment : GetParam().fragments) EXPECT_THAT(message, HasSubstr(fragment));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 400U) << message;
}

std::string case_name(const ::testing::TestParamInfo<Refusal>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Container, RefusalTest, ::testing::ValuesIn(container_refusals()), case_name);
INSTANTIATE_TEST_SUITE_P(Keys, RefusalTest, ::testing::ValuesIn(key_refusals()), case_name);
INSTANTIATE_TEST_SUITE_P(Tensors, RefusalTest, ::testing::ValuesIn(tensor_refusals()), case_name);

TEST(RefusalCodeTest, TellsDamageFromWhatIsNotSupported) {
    const auto code_of = [](const Bytes& bytes) {
        try {
            read_directory(bytes, "model.gguf");
        } catch (const Error& error) {
            return error.code();
        }
        return ErrorCode::Internal;
    };
    EXPECT_EQ(code_of(RawFile(1)), ErrorCode::Unsupported);
    EXPECT_EQ(code_of(RawFile(0x02000000)), ErrorCode::Unsupported);
    EXPECT_EQ(code_of(one_tensor({32}, 105)), ErrorCode::Unsupported);
    EXPECT_EQ(code_of(one_tensor({0})), ErrorCode::InvalidFile);
}

}  // namespace
}  // namespace coterie::gguf
