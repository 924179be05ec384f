#include "cli/replay/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace coterie::cli {
namespace {

constexpr double kWidth = 560.0;  ///< of a chart, in SVG units
constexpr double kHeight = 400.0;
constexpr double kLeft = 70.0;
constexpr double kRight = 120.0;  ///< with the legend
constexpr double kTop = 45.0;
constexpr double kBottom = 55.0;

/// Okabe and Ito's colours, which people who see colours differently tell apart.
constexpr std::array kColours{"#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"};

using Buffer = fmt::memory_buffer;

template <typename... Args>
void add(Buffer& svg, fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg), format, std::forward<Args>(args)...);
}

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '&') {
            result += "&amp;";
        } else if (c == '<') {
            result += "&lt;";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            result += ' ';
        } else {
            result += c;
        }
    }
    return result;
}

/// Values to places in the drawing.
class Axes {
  public:
    explicit Axes(const LineChart& chart) {
        double x = 0.0;
        double y = 0.0;
        for (const ChartLine& line : chart.lines) {
            for (const ChartPoint& point : line.points) {
                x = std::max(x, point.x);
                y = std::max(y, point.y);
            }
        }
        x_ticks_ = axis_ticks(x);
        y_ticks_ = axis_ticks(y);
    }
    const std::vector<double>& x_ticks() const { return x_ticks_; }
    const std::vector<double>& y_ticks() const { return y_ticks_; }
    double x(double value) const { return kLeft + value / x_ticks_.back() * (kWidth - kLeft - kRight); }
    double y(double value) const {
        return kHeight - kBottom - value / y_ticks_.back() * (kHeight - kTop - kBottom);
    }

  private:
    std::vector<double> x_ticks_;
    std::vector<double> y_ticks_;
};

void draw_axes(Buffer& svg, const LineChart& chart, const Axes& axes) {
    const double right = kWidth - kRight;
    const double bottom = kHeight - kBottom;
    for (const double tick : axes.y_ticks()) {
        const double y = axes.y(tick);
        add(svg, "<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", kLeft, y, right,
            y);
        add(svg, "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", kLeft - 8, y + 4, tick);
    }
    for (const double tick : axes.x_ticks()) {
        add(svg, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", axes.x(tick),
            bottom + 18, tick);
    }
    add(svg, "<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#333\"/>\n", kLeft, kTop, bottom, right);
    const double middle = (kLeft + right) / 2;
    add(svg, "<text x=\"{}\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">{}</text>\n", middle,
        escaped(chart.title));
    add(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", middle, kHeight - 14,
        escaped(chart.x_label));
    add(svg, "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        (kTop + bottom) / 2, escaped(chart.y_label));
}

void draw_line(Buffer& svg, const ChartLine& line, std::size_t number, const Axes& axes) {
    const char* const colour = kColours[number % kColours.size()];
    const char* const dash = line.dashed ? " stroke-dasharray=\"6 4\"" : "";
    add(svg, "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{} points=\"", colour, dash);
    for (const ChartPoint& point : line.points) add(svg, "{:.1f},{:.1f} ", axes.x(point.x), axes.y(point.y));
    add(svg, "\"/>\n");
    for (const ChartPoint& point : line.points) {
        add(svg, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", axes.x(point.x),
            axes.y(point.y), colour);
    }
    const double x = kWidth - kRight + 14;
    const double y = kTop + 10 + 20 * static_cast<double>(number);
    add(svg, "<path d=\"M{} {}h24\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", x, y, colour, dash);
    add(svg, "<text x=\"{}\" y=\"{}\">{}</text>\n", x + 30, y + 4, escaped(line.name));
}

void draw_chart(Buffer& svg, const LineChart& chart, double left) {
    const Axes axes(chart);
    add(svg, "<g transform=\"translate({} 0)\">\n", left);
    draw_axes(svg, chart, axes);
    for (std::size_t i = 0; i < chart.lines.size(); ++i) draw_line(svg, chart.lines[i], i, axes);
    add(svg, "</g>\n");
}

}  // namespace

std::vector<double> axis_ticks(double highest) {
    if (highest <= 0.0) highest = 1.0;
    const double rough = highest / 5.0;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10.0 * power;
    for (const double factor : {5.0, 2.0, 1.0}) {
        if (rough <= factor * power) step = factor * power;
    }
    std::vector<double> ticks;
    const auto count = static_cast<int>(std::ceil(highest / step - 1e-9));
    for (int i = 0; i <= count; ++i) ticks.push_back(i * step);
    return ticks;
}

std::string render_svg(std::span<const LineChart> charts) {
    Buffer svg;
    const double width = kWidth * static_cast<double>(charts.size());
    add(svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" ",
        width, kHeight);
    add(svg, "font-family=\"sans-serif\" font-size=\"12\">\n");
    add(svg, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    for (std::size_t i = 0; i < charts.size(); ++i)
        draw_chart(svg, charts[i], kWidth * static_cast<double>(i));
    add(svg, "</svg>\n");
    return fmt::to_string(svg);
}

}  // namespace coterie::cli
