#include "server/http/gate.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie::server {
namespace {

using Verdict = Gate::Verdict;
using Headers = std::multimap<std::string, std::string>;

HttpRequest request(const std::string& path, const Headers& headers, const std::string& method = "POST") {
    HttpRequest made;
    made.method = method;
    made.path = path;
    made.headers = {{"host", "localhost:8080"}};
    for (const auto& [name, value] : headers) {
        if (name == "host") made.headers.clear();
    }
    made.headers.insert(headers.begin(), headers.end());
    return made;
}

TEST(Gate, AsksForAKeyOnEveryRouteThatComputesOrShowsSomething) {
    const Gate gate({.keys = {"first", "second"}});
    for (const char* path : {"/v1/chat/completions", "/v1/models", "/slots", "/props", "/metrics", "/cache",
                             "/tokenize", "/v1/messages", "/no/such/route"}) {
        for (const char* method : {"GET", "POST"}) {
            EXPECT_EQ(gate.judge(request(path, {}, method)), Verdict::NoKey) << path;
            EXPECT_EQ(gate.judge(request(path, {{"authorization", "Bearer wrong"}}, method)),
                      Verdict::WrongKey);
            EXPECT_EQ(gate.judge(request(path, {{"authorization", "Bearer second"}}, method)), Verdict::Open);
            EXPECT_EQ(gate.judge(request(path, {{"authorization", "bEARER first"}}, method)), Verdict::Open);
            EXPECT_EQ(gate.judge(request(path, {{"authorization", "Bearer FIRST"}}, method)),
                      Verdict::WrongKey);
            EXPECT_EQ(gate.judge(request(path, {{"x-api-key", "first"}}, method)), Verdict::Open);
            EXPECT_EQ(gate.judge(request(path, {{"x-api-key", "firs"}}, method)), Verdict::WrongKey);
        }
    }
    EXPECT_EQ(gate.judge(request("/health", {}, "GET")), Verdict::Open);
    EXPECT_EQ(gate.judge(request("/health", {}, "POST")), Verdict::NoKey);
    EXPECT_EQ(gate.judge(request("/v1/chat/completions", {}, "OPTIONS")), Verdict::Open);
}

TEST(Gate, IsOpenWithoutKeys) {
    EXPECT_EQ(Gate({}).judge(request("/v1/chat/completions", {})), Verdict::Open);
}

TEST(Gate, TurnsAwayNamesThatAPageMayHavePointedHere) {
    const Gate gate({.allowed_hosts = {"Box.lan"}});
    for (const char* host : {"localhost", "localhost:1", "LocalHost:1", "127.0.0.1:8080", "[::1]:8080",
                             "192.168.1.5", "box.lan:80", "BOX.LAN"}) {
        EXPECT_EQ(gate.judge(request("/v1/models", {{"host", host}})), Verdict::Open) << host;
    }
    for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example", ""}) {
        EXPECT_EQ(gate.judge(request("/v1/models", {{"host", host}})), Verdict::WrongHost) << host;
    }
    const Gate with_key({.keys = {"k"}});
    EXPECT_EQ(with_key.judge(request("/v1/models", {{"host", "any.example"}, {"x-api-key", "k"}})),
              Verdict::Open);
}

TEST(Gate, LetsOnlyAllowedOriginsIn) {
    const Gate closed({});
    EXPECT_EQ(closed.judge(request("/v1/models", {{"origin", "http://localhost:8080"}})), Verdict::Open);
    EXPECT_EQ(closed.judge(request("/v1/models", {{"origin", "http://LOCALHOST:8080"}})), Verdict::Open);
    EXPECT_EQ(closed.judge(request("/v1/models", {{"origin", "http://localhost:3000"}})),
              Verdict::WrongOrigin);
    EXPECT_EQ(closed.judge(request("/v1/models", {{"origin", "null"}})), Verdict::WrongOrigin);
    EXPECT_TRUE(closed.cors_headers(request("/", {{"origin", "http://localhost:8080"}})).empty());

    const Gate open({.cors_origins = {"https://app.example"}});
    const HttpRequest allowed = request("/v1/models", {{"origin", "https://app.example"}});
    EXPECT_EQ(open.judge(allowed), Verdict::Open);
    EXPECT_THAT(open.cors_headers(allowed),
                testing::Contains(testing::Pair("Access-Control-Allow-Origin", "https://app.example")));
    EXPECT_EQ(open.judge(request("/v1/models", {{"origin", "https://other.example"}})), Verdict::WrongOrigin);
}

TEST(Gate, LetsPagesSendTheHeadersThatTheyAskFor) {
    const Gate gate({.cors_origins = {"https://app.example"}});
    const auto allowed = [&](const std::string& wanted, const std::string& origin = "https://app.example") {
        Headers headers = {{"origin", origin}};
        if (!wanted.empty()) headers.emplace("access-control-request-headers", wanted);
        const auto answer = gate.cors_headers(request("/v1/messages", headers, "OPTIONS"));
        const auto found = std::find_if(answer.begin(), answer.end(), [](const auto& header) {
            return header.first == "Access-Control-Allow-Headers";
        });
        return found == answer.end() ? std::string("nothing") : found->second;
    };
    EXPECT_EQ(allowed("x-stainless-os,anthropic-beta , content-type"),
              "x-stainless-os, anthropic-beta, content-type");
    EXPECT_EQ(allowed("x-one,,bad header,x:y,\"q\",x-two,"), "x-one, x-two");
    EXPECT_THAT(allowed(""), testing::HasSubstr("Authorization"));
    EXPECT_THAT(allowed("not one"), testing::HasSubstr("Authorization"));
    EXPECT_EQ(allowed("x-one", "https://other.example"), "nothing");
}

TEST(Gate, ReadsKeysFromAFile) {
    const std::string path = testing::TempDir() + "coterie_keys.txt";
    std::ofstream(path) << "# people\nfirst \n\n  second\n";
    EXPECT_THAT(read_key_file(path), testing::ElementsAre("first", "second"));
    std::ofstream(path) << "# nobody\n";
    EXPECT_THROW(read_key_file(path), Error);
    std::remove(path.c_str());
    EXPECT_THROW(read_key_file(path), Error);
}

}  // namespace
}  // namespace coterie::server
