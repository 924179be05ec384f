#include "devices/fake_spec.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace coterie {
namespace {

constexpr std::uint64_t kMaxDevices = 16;
constexpr double kMaxBytes = 0x1p46;  // what a device address can hold with room to spare

/// Reads a specification from its front; every error names the whole of it.
class SpecReader {
  public:
    explicit SpecReader(std::string_view text) : text_(text), rest_(text) {}

    bool at_end() const { return rest_.empty(); }
    bool take(std::string_view word) {
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    void expect(std::string_view word) {
        if (!take(word)) refuse(fmt::format("'{}' is missing", word));
    }
    double number() {
        double value = 0;
        const auto [end, error] =
            std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, std::chars_format::fixed);
        if (error != std::errc() || !(value >= 0) || !(value < 1e18)) refuse("a number is missing");
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }
    /// The factor of an optional K, M, G or T.
    double multiple(double base) {
        double factor = 1;
        for (const char* unit : {"K", "M", "G", "T"}) {
            factor *= base;
            if (take(unit)) return factor;
        }
        return 1;
    }
    [[noreturn]] void refuse(const std::string& why) const {
        fail(ErrorCode::InvalidArgument,
             "cannot use fake devices '{}': {} at '{}'; write COUNTxMEMORY@RATE:LATENCY, as in "
             "2x64M@1G/s:20us "
             "or 64M@1G/s,32M@500M/s",
             text_, why, rest_);
    }

  private:
    std::string_view text_;
    std::string_view rest_;
};

/// "2x", or nothing: one. A number that no x follows is the memory, and is left.
std::uint64_t read_count(SpecReader& reader) {
    SpecReader ahead = reader;
    const double count = ahead.number();
    if (!ahead.take("x")) return 1;
    if (count < 1 || count > kMaxDevices || count != std::floor(count)) {
        reader.refuse(fmt::format("the count is not a whole number from 1 to {}", kMaxDevices));
    }
    reader = ahead;
    return static_cast<std::uint64_t>(count);
}

std::uint64_t read_memory(SpecReader& reader) {
    const double bytes = reader.number() * reader.multiple(1024);
    reader.take("B");
    if (bytes < 1 || bytes > kMaxBytes) reader.refuse("the memory is not between 1 byte and 64 T");
    return static_cast<std::uint64_t>(bytes);
}

double read_rate(SpecReader& reader) {
    const double rate = reader.number() * reader.multiple(1000);
    reader.take("B");
    reader.expect("/s");
    if (rate < 1) reader.refuse("the rate of the link is 0");
    return rate;
}

Nanoseconds read_latency(SpecReader& reader) {
    if (!reader.take(":")) return Nanoseconds(0);
    const double value = reader.number();
    double unit = 0;
    if (reader.take("ns"))
        unit = 1;
    else if (reader.take("us"))
        unit = 1e3;
    else if (reader.take("ms"))
        unit = 1e6;
    else
        reader.refuse("the latency's unit is not ns, us or ms");
    if (value * unit > 1e10) reader.refuse("the latency is above 10 seconds");
    return Nanoseconds(static_cast<Nanoseconds::rep>(value * unit));
}

}  // namespace

std::vector<FakeDeviceSpec> parse_fake_devices(std::string_view text) {
    std::vector<FakeDeviceSpec> devices;
    SpecReader reader(text);
    do {
        const std::uint64_t count = read_count(reader);
        FakeDeviceSpec spec;
        spec.memory_bytes = read_memory(reader);
        reader.expect("@");
        spec.link_rate = read_rate(reader);
        spec.latency = read_latency(reader);
        devices.insert(devices.end(), count, spec);
    } while (reader.take(","));
    if (!reader.at_end()) reader.refuse("this is too much");
    if (devices.size() > kMaxDevices)
        reader.refuse(fmt::format("there are more than {} devices", kMaxDevices));
    return devices;
}

}  // namespace coterie
