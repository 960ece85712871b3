// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "../ranks/scores.hpp"
#include "partita/io/whole_file.hpp"
#include "trace.hpp"

namespace {

using partita::comm::event;

/// Whether a phase is part of an epoch's training steps.
bool is_training(std::string_view phase) {
  return phase == "forward" || phase == "backward" || phase == "training" || phase == "features" ||
         phase == "sampling";
}

constexpr std::array colors{"#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b7791f", "#718096"};
constexpr double plot_width = 640, label_width = 250;

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) safe += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

std::string label(double x, double y, const char* anchor, std::string_view text) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", x, y, anchor, escaped(text));
}

std::string figure(double height, std::string_view title, const std::string& inside) {
  return fmt::format(
      "<h2>{}</h2>\n<svg viewBox='0 0 {} {}' width='{}' role='img' aria-label='{}'>\n{}</svg>\n", title,
      label_width + plot_width + 90, height, label_width + plot_width + 90, title, inside);
}

/// Curves over epochs, each with its name; values that are not numbers are left out.
struct curve {
  std::string name;
  std::vector<double> values;
};
std::string curves(std::string_view title, const std::vector<curve>& all) {
  constexpr double height = 220, top = 10, left = 60;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  std::size_t epochs = 1;
  for (const curve& c : all) {
    epochs = std::max(epochs, c.values.size());
    for (const double v : c.values)
      if (std::isfinite(v)) least = std::min(least, v), most = std::max(most, v);
  }
  if (least > most) return {};
  if (least == most) most = least + 1;
  const auto at = [&](std::size_t k, double v) {
    return std::pair(left + plot_width * static_cast<double>(k) /
                                static_cast<double>(std::max<std::size_t>(1, epochs - 1)),
                     top + height * (most - v) / (most - least));
  };
  std::string inside =
      fmt::format("<path class='axis' d='M{0} {1}V{2}H{3}'/>\n", left, top, top + height, left + plot_width);
  inside += label(left - 6, top + 10, "end", fmt::format("{:.3g}", most)) +
            label(left - 6, top + height, "end", fmt::format("{:.3g}", least)) +
            label(left, top + height + 16, "middle", "1") +
            label(left + plot_width, top + height + 16, "middle", fmt::format("epoch {}", epochs));
  for (std::size_t n = 0; n < all.size(); ++n) {
    std::string points;
    for (std::size_t k = 0; k < all[n].values.size(); ++k)
      if (const double v = all[n].values[k]; std::isfinite(v)) {
        const auto [x, y] = at(k, v);
        points += fmt::format("{:.1f},{:.1f} ", x, y);
      }
    if (points.empty()) continue;
    const char* const color = colors[n % colors.size()];
    inside += fmt::format("<polyline points='{}' stroke='{}'/>\n", points, color) +
              fmt::format(
                  "<g fill='{}'>{}</g>\n", color,
                  label(left + plot_width + 8, top + 14 + 16 * static_cast<double>(n), "start", all[n].name));
  }
  return figure(top + height + 24, title, inside);
}

/// A row of bars behind each other, with what stands at its end.
struct bar {
  std::string name, end;
  std::vector<std::pair<double, std::string>> parts;  ///< sizes and how they are filled
};
std::string bars(std::string_view title, const std::vector<bar>& rows, const std::string& legend = {}) {
  double most = 0;
  for (const bar& r : rows) {
    double sum = 0;
    for (const auto& [size, fill] : r.parts) sum += size;
    most = std::max(most, sum);
  }
  if (most == 0) return {};
  std::string inside;
  double y = 4;
  for (const bar& r : rows) {
    inside += label(label_width - 8, y + 13, "end", r.name);
    double x = label_width;
    for (const auto& [size, fill] : r.parts) {
      const double width = (plot_width - 120) * size / most;
      inside += fmt::format("<rect x='{:.1f}' y='{}' width='{:.1f}' height='16' {}/>\n", x, y, width, fill);
      x += width;
    }
    inside += label(x + 6, y + 13, "start", r.end);
    y += 22;
  }
  return figure(y, title, inside) + legend;
}

std::string filled(std::size_t color, bool pale = false) {
  return fmt::format("fill='{}'{}", colors[color % colors.size()], pale ? " opacity='.35'" : "");
}

/// What ranks wait for, by operation, axis and phase.
using wait_key = std::array<std::string, 3>;

/// Where the time of a rank went, in seconds. Set-up is left out.
struct rank_time {
  std::map<std::string, double> phases;  ///< waits included
  std::map<wait_key, double> waits;
  double all = 0, waiting = 0;
  double computing() const { return all - waiting; }
};

/// Phases are the spans that are in no other one.
rank_time time_of(std::vector<event> events) {
  std::ranges::sort(events, [](const event& a, const event& b) {
    return std::pair(a.wait, -a.end) < std::pair(b.wait, -b.end);
  });
  rank_time t;
  double end = 0;
  std::string phase;
  for (const event& e : events) {
    if (!e.kind && e.wait >= end) {
      end = e.end;
      phase = e.name;
      if (is_training(phase)) t.phases[phase] += e.end - e.wait, t.all += e.end - e.wait;
    } else if (e.kind && e.wait < end && is_training(phase)) {
      t.waits[{name_of(*e.kind), e.axis, phase}] += e.end - e.wait;
      t.waiting += e.end - e.wait;
    }
  }
  return t;
}

/// What an operation brings, where that is known.
std::string brought_by(const wait_key& k) {
  const auto& [operation, axis, phase] = k;
  const std::string along = " along " + axis;
  if (axis == "stages") return "the rows of another stage";
  if (phase == "features") return "features of its samples";
  if (phase == "sampling") return "samples of other ranks";
  if (operation == "all_reduce")
    return phase == "backward" || phase == "training" ? "sums of gradients" : "sums" + along;
  if (operation == "reduce_scatter") return "sums of partial products" + along;
  if (axis == "row" || axis.starts_with("row "))
    return (phase == "backward" ? "rows of gradients" : "rows of X") + along;
  if (operation == "all_to_all") return "rows and columns that change places" + along;
  if (operation == "broadcast" || operation == "all_gather") return "blocks" + along;
  return "a message" + along;
}

/// What limits the run: where ranks wait most, and why, or how evenly they compute.
std::string limit_of(const std::vector<rank_time>& ranks) {
  const auto by = [&](auto of) {
    return static_cast<std::size_t>(std::ranges::max_element(ranks, {}, of) - ranks.begin());
  };
  const std::size_t waits = by([](const rank_time& t) { return t.all > 0 ? t.waiting / t.all : 0; });
  const std::size_t busy = by(&rank_time::computing);
  double mean = 0;
  for (const rank_time& t : ranks) mean += t.computing() / static_cast<double>(ranks.size());
  const rank_time& w = ranks[waits];
  const double more = mean > 0 ? ranks[busy].computing() / mean : 1;
  if (ranks.size() == 1) return "There is one rank, which waits for nobody.";
  if (w.waits.empty() || w.waiting < .1 * w.all)
    return fmt::format(
        "Computation limits this run: no rank waits more than {:.0f} % of the time, and rank {} computes "
        "{:.2f} "
        "times as long as the mean.",
        w.all > 0 ? 100 * w.waiting / w.all : 0, busy, more);
  const auto& [what, seconds] =
      *std::ranges::max_element(w.waits, {}, [](const auto& each) { return each.second; });
  const bool uneven = waits != busy && ranks[busy].computing() - w.computing() > w.waiting / 2;
  return fmt::format(
      "Rank {} waits {:.0f} % of the time, {:.0f} % for {} ({}){}.", waits, 100 * w.waiting / w.all,
      100 * seconds / w.all, brought_by(what), what[0],
      uneven ? fmt::format(
                   ", most of it until rank {} has computed, which takes {:.2f} times as long as the mean",
                   busy, more)
             : ": communication limits this run");
}

/// Where ranks have fewer cores than threads: they wait for these, too.
std::string note_on_cores(const command& c, std::size_t ranks) {
  const std::size_t cores = std::thread::hardware_concurrency();
  const std::size_t threads =
      c.comm == "threads" && !c.machine ? ranks * static_cast<std::size_t>(c.threads.value()) : 0;
  return threads <= cores
             ? ""
             : fmt::format(" {} threads share {} cores here, for which they wait, too.", threads, cores);
}

std::string time_bars(const std::vector<rank_time>& ranks, std::size_t epochs) {
  std::map<std::string, std::size_t> colors_of;
  for (const rank_time& t : ranks)
    for (const auto& [phase, seconds] : t.phases) colors_of.emplace(phase, colors_of.size());
  std::vector<bar> rows;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const rank_time& t = ranks[r];
    bar row{
        fmt::format("rank {}", r), fmt::format("{:.3g} ms", 1e3 * t.all / static_cast<double>(epochs)), {}};
    for (const auto& [phase, seconds] : t.phases) {
      double waiting = 0;
      for (const auto& [key, of_key] : t.waits)
        if (key[2] == phase) waiting += of_key;
      row.parts.emplace_back(seconds - waiting, filled(colors_of[phase]));
      row.parts.emplace_back(waiting, filled(colors_of[phase], true));
    }
    rows.push_back(std::move(row));
  }
  std::string legend = "<p>";
  for (const auto& [phase, color] : colors_of)
    legend +=
        fmt::format("<span style='color:{}'>&#9632;</span> {} &nbsp; ", colors[color % colors.size()], phase);
  return bars("Time of an epoch, by rank", rows, legend + "pale: waiting for others</p>\n");
}

std::string traffic_bars(const nn::training_result& result) {
  std::vector<bar> of_ledger;
  for (const partita::comm::ledger_entry& e : result.ledger)
    if (e.phase != "evaluation" && e.phase != "checkpoint" && e.received.words > 0)
      of_ledger.push_back(
          {fmt::format("{} {}, {}", e.phase, name_of(e.kind), e.axis),
           fmt::format("{} words, {:.4g} MB", e.received.words, 1e-6 * static_cast<double>(e.bytes)),
           {{static_cast<double>(e.received.words), filled(0)}}});
  std::vector<bar> both;
  for (const auto& [name, of, color] :
       {std::tuple("busiest rank, predicted", result.predicted_words_received.max_rank, 1),
        std::tuple("busiest rank, measured", result.words_received.max_rank, 0),
        std::tuple("all ranks, predicted", result.predicted_words_received.total, 1),
        std::tuple("all ranks, measured", result.words_received.total, 0)})
    both.push_back({name,
                    fmt::format("{} words", of),
                    {{static_cast<double>(of), filled(static_cast<std::size_t>(color))}}});
  return bars("Received in the last epoch, all ranks, by phase, operation and axis", of_ledger) +
         bars("Received in an epoch: predicted beside measured", both);
}

}  // namespace

void write_page(const std::string& path, const command& c, const outcome& run, const io::dataset& data,
                const std::vector<std::vector<event>>& events) {
  const nn::training_result& result = run.result;
  std::vector<rank_time> ranks;
  for (const auto& of_rank : events) ranks.push_back(time_of(of_rank));
  std::array<curve, 4> of{{{"loss", {}}, {"train", {}}, {"validation", {}}, {"test", {}}}};
  for (const nn::epoch_report& e : result.epochs) {
    of[0].values.push_back(e.loss);
    of[1].values.push_back(e.train_accuracy);
    of[2].values.push_back(e.validation_accuracy);
    of[3].values.push_back(e.test_accuracy);
  }
  const std::size_t here = result.epochs.size() - static_cast<std::size_t>(result.resumed_from);
  std::string text = fmt::format(
      "<!doctype html>\n<html lang='en'>\n<meta charset='utf-8'>\n<title>train: {0} on {1}</title>\n"
      "<style>body{{font:15px system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 "
      "1em;color:#1a202c}}"
      "svg{{max-width:100%;height:auto;font:12px "
      "system-ui,sans-serif;fill:#1a202c}}polyline{{fill:none;stroke-width:1.6}}"
      ".axis{{fill:none;stroke:#a0aec0}}h2{{font-size:1.05em;margin:1.6em 0 .4em}}</style>\n"
      "<h1>{0} on {1}</h1>\n<p>{2} {3}, {4} on a mesh {5}, {6}; {7} epochs of {8:.4g} ms "
      "(median{10}).</p>\n<p><strong>{9}</strong></p>\n",
      escaped(c.training.model), escaped(data.name), events.size(), events.size() == 1 ? "rank" : "ranks",
      run.how.policy, to_string(run.how.mesh), c.precision, here, 1e3 * result.seconds_per_epoch,
      limit_of(ranks) + note_on_cores(c, events.size()),
      c.machine ? ", in the virtual time of " + escaped(c.machine->file) : "");
  text += curves("Loss", {of[0]});
  std::string score = title_of(data.task);
  score.front() = static_cast<char>(std::toupper(score.front()));
  text += curves(score, {of[1], of[2], of[3]});
  text += time_bars(ranks, std::max<std::size_t>(1, here)) + traffic_bars(result) + "</html>\n";
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  io::write_whole_file(path, parts);
}
