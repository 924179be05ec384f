#pragma once

#include <span>
#include <string>
#include <vector>

namespace coterie::cli {

struct ChartPoint {
    double x;
    double y;
};

struct ChartLine {
    std::string name;
    std::vector<ChartPoint> points;  ///< finite
    bool dashed = false;
};

/// A plot of lines over one pair of axes, both from 0.
struct LineChart {
    std::string title;
    std::string x_label;
    std::string y_label;
    std::vector<ChartLine> lines;
};

/// The charts side by side as an SVG document, each with its axes and legend. Texts may hold any characters.
std::string render_svg(std::span<const LineChart> charts);

/// Round numbers from 0 to at least `highest`, about five steps. Requires: highest finite.
std::vector<double> axis_ticks(double highest);

}  // namespace coterie::cli
