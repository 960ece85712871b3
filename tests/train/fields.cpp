// SPDX-License-Identifier: Apache-2.0
#include "partita/train/fields.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace partita;
using nn::fields;

namespace {

const nn::field& named(std::string_view name) { return *std::ranges::find(fields, name, &nn::field::name); }

/// A text of the field that is not its default.
std::string other_text(const nn::field& f) {
  if (f.name == "model") return "gat";
  if (f.has_words()) return std::string(f.word(1));
  if (f.form.empty() && f.range.is.empty()) return "true";
  return f.form.find(',') == f.form.npos ? "0.75" : "7,5";
}

}  // namespace

TEST_CASE("every field is there once, and reads what it writes") {
  std::set<std::string_view> names;
  const nn::training_options usual;
  for (const nn::field& f : fields) {
    CAPTURE(f.name);
    CHECK(names.insert(f.name).second);
    CHECK(is_default(f, usual));
    nn::training_options o;
    if (!nn::take(f, o, other_text(f))) CHECK(nn::take(f, o, "7"));  // a whole number
    CHECK_FALSE(is_default(f, o));
    for (const nn::field& other : fields) CHECK(is_default(other, o) == (&other != &f));
    nn::training_options again;
    CHECK(nn::take(f, again, text_of(f, o)));
    CHECK(text_of(f, again) == text_of(f, o));
    CHECK(nn::take(f, o, text_of(f, usual)));
    CHECK(is_default(f, o));
  }
}

TEST_CASE("every word is a value") {
  for (const nn::field& f : fields)
    for (std::size_t k = 0; f.has_words() && k < f.number_of({}); ++k) {
      nn::training_options o;
      CHECK(nn::take(f, o, f.word(k)));
      CHECK(text_of(f, o) == f.word(k));
    }
  nn::training_options o;
  CHECK(nn::take(named("on-divergence"), o, "warm-up"));
  CHECK(o.pipeline.on_divergence == nn::guard_action::warm_up);
  CHECK(nn::take(named("graph"), o, "cut"));
  CHECK(o.mini_batch.cut_graph);
  CHECK(nn::take(named("no-shuffle"), o, "true"));
  CHECK_FALSE(o.pipeline.shuffle);
  CHECK(nn::take(named("chunk-cut"), o, "metis"));
  CHECK(o.pipeline.cut == nn::chunk_cut::partitioned);
  CHECK(nn::take(named("placement"), o, "column_gather"));
  CHECK(text_of(named("placement"), o) == name_of(sampling::placement::column_gather));
  CHECK(nn::take(named("fanout"), o, "10/5/0,-1"));
  CHECK(o.mini_batch.fanouts == std::vector<sampling::fanout>{{10, 5, 0}, -1});
  CHECK(text_of(named("fanout"), o) == "10/5/0,-1");
}

TEST_CASE("a text that is no value changes nothing") {
  for (const auto& [name, text] : {std::pair{"heads", "0"},
                                   {"heads", "8x"},
                                   {"layers", "-1"},
                                   {"layers", "10001"},
                                   {"seed", "-1"},
                                   {"alpha", "nan"},
                                   {"alpha", " 1"},
                                   {"hidden", "6,"},
                                   {"hidden", "0"},
                                   {"fanout", "3/,2"},
                                   {"coupling", "loose"},
                                   {"coupling", ""},
                                   {"raw-features", "yes"}}) {
    CAPTURE(name);
    nn::training_options o;
    CHECK_FALSE(nn::take(named(name), o, text));
    CHECK(is_default(named(name), o));
  }
}

TEST_CASE("what a model does not read is named") {
  for (const nn::model_row& row : nn::model_rows) {
    nn::training_options usual{
        .model = std::string(row.name), .coupling = row.coupling, .aggregation = row.aggregation};
    CHECK(find_row(usual) == &row);
    CHECK(nn::unread_field(usual) == nullptr);
    for (const nn::field& f : fields) {
      if (f.name == "model" || f.name == "coupling" || f.name == "aggregation") continue;
      CAPTURE(f.name);
      nn::training_options o = usual;
      if (!nn::take(f, o, other_text(f))) nn::take(f, o, "7");
      CHECK((nn::unread_field(o) == nullptr) == (models_of(f).empty() || row.reads(f.name)));
    }
  }
  CHECK(nn::unread_field({.model = "gin", .coupling = nn::coupling::decoupled}) == &named("coupling"));
  CHECK(nn::unread_field({.model = "gcn", .aggregation = nn::aggregation::max}) == &named("aggregation"));
  CHECK(nn::unread_field({.model = "none", .heads = 3}) == nullptr);
  CHECK(models_of(named("heads")) == "gat, gatv2, transformer and rgat");
  CHECK(models_of(named("alpha")) == "appnp and gcnii");
  CHECK(models_of(named("split-pieces")) ==
        "sgc, appnp, gcn in its decoupled form and sage in its decoupled form");
  CHECK(models_of(named("lr")).empty());
}

TEST_CASE("the options that models read are fields") {
  for (const nn::model_row& row : nn::model_rows) {
    std::size_t known = 0;
    for (const nn::field& f : fields) known += row.reads(f.name);
    CHECK(known == static_cast<std::size_t>(std::ranges::count(row.options, ' ')) + 1);
  }
}

TEST_CASE("an option of one's own is as any other, under a name that is free") {
  const nn::field own{.name = "widening",
                      .of = [](nn::training_options& o) -> nn::field_value { return &o.own["widening"]; },
                      .range = {"a number", 1, 9}};
  nn::training_options o;
  CHECK(is_default(own, o));
  CHECK(nn::take(own, o, "2.5"));
  CHECK(text_of(own, o) == "2.5");
  CHECK_FALSE(is_default(own, o));
  CHECK_THROWS_WITH_AS(nn::add_field(named("heads")), "there is an option heads already", error);
}

TEST_CASE("options of a mode need it") {
  nn::training_options o;
  CHECK(named("fanout").mode.refusal(o) == " needs --batch");
  CHECK(named("window").mode.refusal(o) == " needs --stages");
  CHECK(named("tolerance").mode.refusal(o) == " needs --stages");
  o.pipeline.stages = 2;
  CHECK(named("tolerance").mode.refusal(o) == " needs --guard");
  CHECK(named("window").mode.refusal(o).empty());
  o.pipeline.history = nn::chunk_history::zero;
  CHECK(named("window").mode.refusal(o) == " is for --history window and halo");
  CHECK(named("lr").mode.refusal(o).empty());
  CHECK(is_recorded(named("stages"), o));
  CHECK_FALSE(is_recorded(named("guard"), o));
  CHECK_FALSE(is_recorded(named("window"), o));
  CHECK_FALSE(is_recorded(named("batch"), o));
}
