#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <sstream>
#include <string>

#include "base/error.h"
#include "chat/template.h"

namespace coterie::chat_test {

/// One worker for a whole test program: a start costs more than most tests.
inline std::shared_ptr<TemplateWorker> shared_worker() {
    static const auto worker = std::make_shared<TemplateWorker>();
    return worker;
}

inline std::string render(const std::string& source, const RenderRequest& request = {}) {
    return ChatTemplate::compile(shared_worker(), source, "test",
                                 {{"bos_token", "<s>"}, {"eos_token", "</s>"}})
        .render(request);
}

/// The text of the error that `action` ends with; fails the test if it ends otherwise or with another code.
template <typename Action>
std::string error_of(ErrorCode code, Action action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no error";
    return {};
}

inline std::string render_error(const std::string& source, const RenderRequest& request = {}) {
    return error_of(ErrorCode::InvalidArgument, [&] { render(source, request); });
}

inline std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

inline std::filesystem::path data_folder() {
    return std::filesystem::path(COTERIE_SOURCE_DIR) / "tests" / "data" / "chat";
}

}  // namespace coterie::chat_test
