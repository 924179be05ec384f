#include "synth/synth.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "gguf/archive.h"
#include "models/registry.h"
#include "synth/disk_space.h"
#include "synth/metadata.h"

namespace coterie::synth {
namespace {

Options tiny_options() {
    Options options;
    options.shape = "tiny-qwen3moe";
    options.layers = 1;
    return options;
}

/// A folder that goes away with the test.
struct TemporaryFolder {
    TemporaryFolder() : path(std::filesystem::temp_directory_path() / ("synth_test_" + unique())) {
        std::filesystem::create_directories(path);
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path); }
    static std::string unique() {
        const auto* info = testing::UnitTest::GetInstance()->current_test_info();
        return std::string(info->name()) + "_" + std::to_string(::getpid());
    }
    std::filesystem::path path;
};

std::vector<float> decode(const gguf::Archive& archive, std::string_view name) {
    const gguf::Tensor& tensor = archive.tensor(name);
    std::vector<float> values(static_cast<std::size_t>(tensor.values()));
    traits(tensor.type).decode(tensor.bytes.data(), tensor.values(), values.data());
    return values;
}

double rms(std::span<const float> values) {
    double sum = 0.0;
    for (const float value : values) sum += static_cast<double>(value) * value;
    return std::sqrt(sum / static_cast<double>(values.size()));
}

double rms_of_first(const gguf::Archive& archive, std::string_view name, std::size_t values) {
    const std::vector<float> all = decode(archive, name);
    return rms(std::span(all).first(values));
}

TEST(MakeBytes, DependOnOptionsAndNotOnThreads) {
    const Options options = tiny_options();
    const auto bytes = make_bytes(options, 1);
    EXPECT_EQ(bytes, make_bytes(options, 3));
    Options other = options;
    other.seed = 2;
    EXPECT_NE(bytes, make_bytes(other, 1));
}

/// Pins the file's bytes: a change of them makes measurements of before incomparable.
TEST(MakeBytes, StayAsTheyAre) {
    Options options = tiny_options();
    options.topics = 3;
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::byte b : make_bytes(options, 2)) {
        hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    }
    EXPECT_EQ(hash, 11523674340256255536u);
}

TEST(MakeBytes, OnlyTheEmbeddingWritesAndOnlyRoutersReadTheReservedDimensions) {
    for (const char* quant : {"f32", "q4_k_m", "pure-iq1_m", "pure-iq2_xxs", "pure-tq1_0", "pure-nvfp4",
                              "pure-mxfp4", "pure-q2_k", "pure-q3_k", "pure-q5_1", "pure-iq3_s"}) {
        Options options = tiny_options();
        options.quant = quant;
        const auto bytes = make_bytes(options, 2);
        const auto archive = gguf::Archive::from_bytes(bytes, quant);
        const auto down = decode(archive, "blk.0.ffn_down_exps.weight");  // [32][768][256]
        for (std::size_t expert = 0; expert < 32; ++expert) {
            const auto matrix = std::span(down).subspan(expert * 768 * 256, 768 * 256);
            EXPECT_EQ(rms(matrix.first(256 * 256)), 0.0) << quant;
            EXPECT_GT(rms(matrix.subspan(256 * 256)), 0.01) << quant;
        }
        EXPECT_EQ(rms_of_first(archive, "blk.0.attn_output.weight", 256 * 256), 0.0) << quant;
        EXPECT_EQ(rms_of_first(archive, "blk.0.attn_norm.weight", 256), 0.0);
        EXPECT_EQ(rms_of_first(archive, "output_norm.weight", 256), 0.0);
        const auto embedding = decode(archive, "token_embd.weight");
        EXPECT_TRUE(std::equal(embedding.begin(), embedding.begin() + 256, embedding.begin() + 768)) << quant;
        EXPECT_FALSE(std::equal(embedding.begin(), embedding.begin() + 768, embedding.begin() + 768));
    }
}

TEST(MakeBytes, SmallGptOssBiasesLeaveTheReservedDimensionsAlone) {
    Options options = tiny_options();
    options.shape = "tiny-gpt-oss";
    options.quant = "mxfp4";
    const auto bytes = make_bytes(options, 2);
    const auto archive = gguf::Archive::from_bytes(bytes, "gpt-oss");
    const auto bias = decode(archive, "blk.0.ffn_down_exps.bias");  // [32][768]
    EXPECT_EQ(rms(std::span(bias).subspan(768, 256)), 0.0);
    EXPECT_GT(rms(std::span(bias).subspan(768 + 256, 512)), 0.0);
}

/// The full-size models as files without weights: the disk holds the directory only.
TEST(NamedShapes, AreBuiltByTheirArchitectures) {
    const TemporaryFolder folder;
    for (const Shape& shape : all_shapes()) {
        SCOPED_TRACE(shape.name);
        const QuantMix mix("q4_k_m");
        gguf::Header header;
        set_model_keys(header, shape, shape.layers, mix);
        set_vocabulary_keys(header, shape);
        for (const PlannedTensor& tensor : plan_tensors(shape, shape.layers, mix)) {
            header.add_tensor({tensor.name, tensor.type, tensor.dims});
        }
        const std::filesystem::path path = folder.path / "model.gguf";
        const auto directory = header.serialise();
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(directory.data()),
                   static_cast<std::streamsize>(directory.size()));
        std::filesystem::resize_file(path, header.file_bytes());

        const auto archive = gguf::Archive::open(path);
        const auto model = models::build_model(archive);
        EXPECT_EQ(model->config.layers, shape.layers);
        EXPECT_EQ(model->config.experts, shape.experts);
        EXPECT_EQ(model->config.vocabulary, shape.vocabulary);
        EXPECT_EQ(model->predictions.size(), static_cast<std::size_t>(shape.prediction_layers));
    }
}

TEST(Plan, StatesTheSizesOfTheRealFile) {
    Options options;
    const Plan full = plan(options);
    EXPECT_NEAR(static_cast<double>(full.file_bytes), 18.6e9, 0.1e9);
    EXPECT_EQ(full.expert_layers, 48);
    EXPECT_EQ(full.smallest_expert_bytes, 2654208u);
    EXPECT_EQ(full.largest_expert_bytes, 3059712u);
    std::uint64_t sum = 0;
    for (const PartSize& part : full.parts) sum += part.bytes;
    EXPECT_EQ(sum, full.file_bytes);

    const std::string text = render(full);
    EXPECT_NE(text.find("qwen3-30b-a3b, 48 layers, q4_k_m: 18."), std::string::npos) << text;
    EXPECT_NE(text.find("one expert is 2.65 MB to 3.06 MB"), std::string::npos) << text;
    EXPECT_NE(text.find("50 %"), std::string::npos) << text;
}

TEST(Plan, AgreesWithTheFileThatIsWritten) {
    for (const char* shape : {"tiny-qwen3moe", "tiny-glm4moe", "tiny-gpt-oss"}) {
        Options options;
        options.shape = shape;
        EXPECT_EQ(plan(options).file_bytes, make_bytes(options, 2).size()) << shape;
    }
}

TEST(Plan, RefusesOptionsOutsideTheirRanges) {
    const auto refused = [](auto change) {
        Options options = tiny_options();
        change(options);
        try {
            plan(options);
        } catch (const Error& error) {
            return error.code() == ErrorCode::InvalidArgument ? std::string(error.what()) : "";
        }
        return std::string();
    };
    EXPECT_EQ(refused([](Options& o) { o.layers = 4; }), "--layers is 4; it must be from 1 to 3");
    EXPECT_NE(refused([](Options& o) { o.layers = -1; }), "");
    EXPECT_NE(refused([](Options& o) { o.skew = -0.1; }), "");
    EXPECT_NE(refused([](Options& o) { o.skew = std::nan(""); }), "");
    EXPECT_NE(refused([](Options& o) { o.topics = 0; }), "");
    EXPECT_NE(refused([](Options& o) { o.topics = 65; }), "");
    EXPECT_NE(refused([](Options& o) { o.topic_strength = 9.0; }), "");
    EXPECT_NE(refused([](Options& o) { o.shape = "gpt-5"; }), "");
    EXPECT_NE(refused([](Options& o) { o.quant = "q4"; }), "");
}

TEST(Write, StreamsTheSameBytesAndTellsProgress) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path / "m.gguf";
    std::uint64_t last = 0;
    std::uint64_t total = 0;
    write(tiny_options(), path, gguf::Overwrite::No, 2, [&](std::uint64_t done, std::uint64_t of) {
        EXPECT_GT(done, last);
        last = done;
        total = of;
    });
    EXPECT_EQ(last, total);
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto expected = make_bytes(tiny_options(), 1);
    EXPECT_EQ(text.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), std::as_bytes(std::span(text)).begin()));
}

TEST(Write, KeepsAnExistingFileUnlessForced) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path / "m.gguf";
    std::ofstream(path) << "mine";
    const auto quiet = [](std::uint64_t, std::uint64_t) {};
    EXPECT_THROW(write(tiny_options(), path, gguf::Overwrite::No, 1, quiet), Error);
    EXPECT_EQ(std::filesystem::file_size(path), 4u);
    write(tiny_options(), path, gguf::Overwrite::Yes, 1, quiet);
    EXPECT_EQ(std::filesystem::file_size(path), plan(tiny_options()).file_bytes);
}

TEST(DiskSpace, RefusesWhatDoesNotFit) {
    const TemporaryFolder folder;
    check_disk_space(folder.path / "m.gguf", 1);
    try {
        check_disk_space(folder.path / "m.gguf", std::uint64_t{1} << 62);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Io);
        EXPECT_NE(std::string(error.what()).find("takes 4194304 TiB and"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("B free"), std::string::npos) << error.what();
    }
}

TEST(Write, AnEndedWriteLeavesNothingBehind) {
    const TemporaryFolder folder;
    const auto cancel = [](std::uint64_t, std::uint64_t) { fail(ErrorCode::Cancelled, "stopped"); };
    EXPECT_THROW(write(tiny_options(), folder.path / "m.gguf", gguf::Overwrite::No, 1, cancel), Error);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(Write, NamesAFolderThatIsNotThere) {
    const auto quiet = [](std::uint64_t, std::uint64_t) {};
    try {
        write(tiny_options(), "/nowhere/at/all/m.gguf", gguf::Overwrite::No, 1, quiet);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::NotFound);
    }
}

}  // namespace
}  // namespace coterie::synth
