// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The few shapes that the pictures in docs/ are made of, as SVG text.

#include <array>
#include <string>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"

namespace draw {

constexpr const char *dark = "#222222", *grey = "#666666", *pale = "#eeeeee";

/// The colour of a rank.
inline const char* color(int rank) {
  static constexpr std::array colors{"#4477aa", "#66ccee", "#228833", "#ccbb44",
                                     "#ee6677", "#aa3377", "#bbbbbb", "#ee9955"};
  return colors[static_cast<std::size_t>(rank) % colors.size()];
}

/// What can be read on that colour.
inline const char* ink(int rank) {
  static constexpr std::array light{true, false, true, false, false, true, false, false};
  return light[static_cast<std::size_t>(rank) % light.size()] ? "white" : dark;
}

struct box {
  int x = 0, y = 0, width = 0, height = 0;
};

/// A picture on white ground, written from its upper left corner on.
class picture {
 public:
  void rectangle(box b, const std::string& fill, const std::string& more = "") {
    add({"<rect x=\"", b.x, "\" y=\"", b.y, "\" width=\"", b.width, "\" height=\"", b.height, "\" fill=\"",
         fill, "\" ", more, "/>\n"});
  }
  void text(int x, int y, int size, const std::string& words, const std::string& fill = dark,
            const std::string& more = "") {
    add({"<text x=\"", x, "\" y=\"", y, "\" font-size=\"", size, "\" fill=\"", fill, "\" ", more, ">", words,
         "</text>\n"});
  }
  void centered(int x, int y, int size, const std::string& words, const std::string& fill = dark) {
    text(x, y, size, words, fill, "text-anchor=\"middle\"");
  }
  void path(const std::string& d, const std::string& stroke) {
    add({"<path d=\"", d, "\" fill=\"none\" ", stroke, "/>\n"});
  }
  void area(const std::string& d, const std::string& fill, const std::string& more) {
    add({"<path d=\"", d, "\" fill=\"", fill, "\" ", more, "/>\n"});
  }
  std::string document(int width, int height) const {
    return partita::base::sentence_of(
        {"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, "\" width=\"", width,
         "\" height=\"", height, "\" font-family=\"sans-serif\">\n",
         "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", body_, "</svg>\n"});
  }

 private:
  void add(std::initializer_list<partita::base::sentence_piece> pieces) {
    body_ += partita::base::sentence_of(pieces);
  }

  std::string body_;
};

}  // namespace draw
