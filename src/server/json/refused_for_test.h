#pragma once

#include <gtest/gtest.h>
#include <string>

#include "server/json/api_error.h"

namespace coterie::server {

/// The field that a refusal names, which its sentence must hold.
template <typename Read>
std::string refused(Read read) {
    try {
        read();
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400);
        EXPECT_NE(std::string(error.what()).find(error.parameter()), std::string::npos);
        return error.parameter();
    }
    return "not refused";
}

}  // namespace coterie::server
