// Templates come with untrusted model files: each of these is a program that tries to harm.
#include <chrono>
#include <gmock/gmock.h>
#include <string>

#include "chat/test_support.h"

namespace coterie {
namespace {

using chat_test::error_of;
using chat_test::read_file;
using chat_test::render;
using chat_test::render_error;
using chat_test::shared_worker;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// Kilobytes that the worker holds after it has answered once more.
long worker_resident_kilobytes() {
    EXPECT_EQ(render("{{ 'alive' }}"), "alive");
    const std::string status =
        read_file("/proc/" + std::to_string(shared_worker()->process_id()) + "/status");
    return std::stol(status.substr(status.find("VmRSS:") + 6));
}

/// The error of a hostile template; the worker must answer within seconds and hold little memory afterwards.
std::string hostile_error(const std::string& source) {
    EXPECT_EQ(render("{{ 'alive' }}"), "alive");
    const auto start = std::chrono::steady_clock::now();
    const std::string error = render_error(source);
    // Its processor time is half a second; the rest is for machines that are busy.
    EXPECT_LE(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    EXPECT_LE(worker_resident_kilobytes(), 100'000);
    EXPECT_THAT(error, Not(HasSubstr("\n")));
    return error;
}

TEST(TemplateSandbox, AttributesOfObjectsAreOutOfReach) {
    for (const char* source :
         {"{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ (''|attr('__class__')).mro() }}",
          "{{ raise_exception.__globals__['os'].system('id') }}", "{{ cycler.__init__.__globals__.os }}",
          "{{ messages.__class__.__base__ }}", "{{ self.__init__.__globals__ }}",
          "{{ self._TemplateReference__context.x }}", "{{ '{0.__class__.__mro__}'.format(1) }}",
          "{{ ''['__class__']['__mro__'] }}", "{{ namespace.__init__.__builtins__ }}",
          "{{ ['__class__'] | map('attr') | list }}",
          "{% macro m() %}{% endmacro %}{{ m._func.__code__.co_code }}",
          "{{ lipsum.__globals__.os.popen('id') }}"}) {
        SCOPED_TRACE(source);
        hostile_error(source);
    }
    EXPECT_EQ(render("{{ ''.__class__ }}{{ messages.__class__ }}"), "");
}

TEST(TemplateSandbox, DataCannotBeChanged) {
    EXPECT_THAT(hostile_error("{{ messages.append(1) }}"), HasSubstr("unsafe"));
    EXPECT_THAT(hostile_error("{% set x = {} %}{{ x.update({'a': 1}) }}"), HasSubstr("unsafe"));
}

TEST(TemplateSandbox, UnknownNamesAreUndefined) {
    for (const char* name :
         {"open('/etc/passwd')", "eval('1')", "__import__('os')", "exec('1')", "input()", "config()"}) {
        EXPECT_THAT(hostile_error("{{ " + std::string(name) + " }}"), HasSubstr("is undefined"));
    }
}

TEST(TemplateSandbox, OtherFilesCannotBeIncluded) {
    for (const char* source : {"{% include '/etc/passwd' %}", "{% import 'os' as os %}{{ os }}",
                               "{% extends 'base' %}", "{% from 'x' import y %}{{ y }}"}) {
        EXPECT_THAT(hostile_error(source), HasSubstr("no loader"));
    }
}

TEST(TemplateSandbox, LongLoopsEnd) {
    EXPECT_THAT(hostile_error("{% for i in range(1000000000) %}{% endfor %}"), HasSubstr("Range too big"));
    EXPECT_THAT(
        hostile_error("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
        HasSubstr("too much processor time"));
}

TEST(TemplateSandbox, GiantNumbersEnd) {
    EXPECT_THAT(hostile_error("{{ 9 ** (9 ** (8 + messages | length)) }}"),
                AnyOf(HasSubstr("too much processor time"), HasSubstr("too much memory")));
}

TEST(TemplateSandbox, GiantTextsEnd) {
    const std::string doubling =
        "{% set n = namespace(s='0123456789') %}{% for i in range(30) %}{% set n.s = n.s ~ n.s %}{% endfor "
        "%}";
    EXPECT_THAT(hostile_error(doubling + "{{ n.s | length }}"),
                AnyOf(HasSubstr("too much memory"), HasSubstr("too much processor time")));
    EXPECT_THAT(hostile_error("{{ 'x' * (10 ** 10 + messages | length) }}"), HasSubstr("too much memory"));
    EXPECT_THAT(hostile_error("{{ '%9999999999d' % 1 }}"), Not(testing::IsEmpty()));
}

TEST(TemplateSandbox, ManySmallPiecesAreCounted) {
    EXPECT_THAT(hostile_error("{% set s = 'x' * (1000000 + messages | length) %}{% for i in range(99999) "
                              "%}{{ s }}{% endfor %}"),
                HasSubstr("longer than 67108864 bytes"));
}

TEST(TemplateSandbox, RecursionEnds) {
    EXPECT_THAT(hostile_error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
                HasSubstr("nested too deeply"));
}

TEST(TemplateSandbox, DeepTemplatesEnd) {
    const std::string deep = "{{ " + std::string(50'000, '(') + "1" + std::string(50'000, ')') + " }}";
    const std::string error = error_of(ErrorCode::InvalidArgument, [&] { render(deep); });
    EXPECT_THAT(error, AnyOf(HasSubstr("nested too deeply"), HasSubstr("too much")));
    EXPECT_LE(worker_resident_kilobytes(), 100'000);
}

}  // namespace
}  // namespace coterie
