#include "server/api/slot_name.h"

#include <gtest/gtest.h>

#include "server/json/api_error.h"

namespace coterie::server {
namespace {

TEST(SlotName, TakesPlainNamesOnly) {
    EXPECT_EQ(slot_path("/slots", "chat-1.bin"), "/slots/chat-1.bin");
    for (const std::string& name :
         {std::string(), std::string("."), std::string(".."), std::string("../a"), std::string("/etc/passwd"),
          std::string("a/b"), std::string("a\\b"), std::string(".hidden"), std::string("a\0b", 3),
          std::string(300, 'a'), std::string("caf\xc3\xa9"), std::string("a b"), std::string("a\nb")}) {
        EXPECT_THROW(slot_path("/slots", name), ApiError) << name;
    }
}

TEST(SlotName, NeedsAFolder) { EXPECT_THROW(slot_path("", "a.bin"), ApiError); }

}  // namespace
}  // namespace coterie::server
