#include "sampling/grammar/json_schema/string_formats.h"

namespace coterie::grammar {
namespace {

// Days by month, and 29 February in leap years.
#define DATE                                                                                             \
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|" \
    "1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
#define TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define HOST LABEL "(\\." LABEL "){0,5}"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define GROUP "[0-9a-fA-F]{1,4}"

struct Format {
    std::string_view name;
    std::string_view pattern;
};

constexpr Format kFormats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration",
     "^P([0-9]{1,4}W|([0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,4}D)?)?|[0-9]{1,4}M([0-9]{1,4}D)?|[0-9]{1,4}D)(T("
     "[0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S))?|T([0-9]{1,4}H([0-9]"
     "{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S))$"},
    {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
    {"email", "^[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,32}){0,3}@" HOST "$"},
    {"hostname", "^" HOST "$"},
    {"ipv4", "^" BYTE "\\." BYTE "\\." BYTE "\\." BYTE "$"},
    {"ipv6", "^" GROUP "(:" GROUP "){7}$"},
    {"uri",
     "^[a-z][a-z0-9+.-]{0,20}://" HOST "(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*(\\?[A-Za-z0-"
     "9._~!$&'()*+,;=:@/?-]*)?(#[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?$"},
};

// An e-mail address as the zod library has it: two looks ahead forbid a dot at the beginning and two in a
// row.
#define EMAIL_HOST(LETTERS) "@([" LETTERS "0-9][" LETTERS "0-9\\-]*\\.)+[" LETTERS "]{2,}$"
#define EMAIL(LETTERS) \
    "^(?!\\.)(?!.*\\.\\.)([" LETTERS "0-9_'+\\-\\.]*)[" LETTERS "0-9_+-]" EMAIL_HOST(LETTERS)
#define EMAIL_BY_PARTS "^([A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]" EMAIL_HOST("A-Za-z")

}  // namespace

std::string_view without_look_around(std::string_view pattern) {
    // Written with the letters in one order or the other.
    if (pattern == EMAIL("A-Za-z") || pattern == EMAIL("a-zA-Z")) return EMAIL_BY_PARTS;
    return pattern;
}

std::optional<std::string_view> format_pattern(std::string_view format) {
    for (const Format& known : kFormats) {
        if (known.name == format) return known.pattern;
    }
    return std::nullopt;
}

std::string format_names() {
    std::string names;
    for (const Format& known : kFormats) {
        if (!names.empty()) names += ", ";
        names += known.name;
    }
    return names;
}

}  // namespace coterie::grammar
