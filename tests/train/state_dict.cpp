// SPDX-License-Identifier: Apache-2.0
// Files of runs and models have the bytes that they have always had.
#include "partita/train/state_dict.hpp"

#include <cstring>
#include <regex>

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/checkpoint.hpp"
#include "partita/train/model_file.hpp"
#include "support/datasets.hpp"
#include "support/scratch.hpp"

namespace test_state_dict {

using namespace partita;
using namespace test_support;

const io::dataset d = directed_graph();

/// The metadata and the list of tensors, without spaces behind them, and what follows.
struct file_parts {
  std::string header, bytes;
};

file_parts parts_of(const fs::path& file) {
  const std::string all = read_text(file);
  std::uint64_t length = 0;
  std::memcpy(&length, all.data(), sizeof length);
  std::string header = all.substr(8, length);
  header.resize(header.find_last_not_of(' ') + 1);
  return {header, all.substr(8 + length)};
}

/// The entry of a tensor in the list, at so many bytes.
std::string entry(const std::string& name, matrix_shape shape, std::size_t& at) {
  const std::size_t begin = at;
  at += static_cast<std::size_t>(shape.rows * shape.cols) * 8;
  return ",\"" + name + "\":{\"dtype\":\"F64\",\"shape\":[" + std::to_string(shape.rows) + "," +
         std::to_string(shape.cols) + "],\"data_offsets\":[" + std::to_string(begin) + "," +
         std::to_string(at) + "]}";
}

std::string bytes_of(const std::vector<double>& values) {
  std::string bytes(values.size() * 8, 0);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_CASE("checkpoints and saved models have the same keys, order and bytes as ever") {
  const nn::training_options o{.hidden = {2}, .epochs = 1, .embedding = 3};
  const scratch folder;
  const mesh<host> m(self::world(), {1, 1, 1});
  nn::trainer<double, host> training(m, d, o, nn::make_model<double>(m, d, o, row_1d));
  const nn::epoch_report r =
      training.run({}, nn::checkpoints_in<double>({.folder = folder.dir}, o, d)).epochs.back();
  nn::save_model(folder.dir / "model", training.values(), o, d);

  auto& set = training.parameters();
  const auto& moments = training.optimizer().state_of(set);
  std::string bytes, of_model, list, model_list;
  std::size_t at = 0, model_at = 0, element = 0;
  for (auto& p : set.list()) {
    const auto size = static_cast<std::size_t>(p.shape().rows * p.shape().cols);
    for (const auto& [prefix, row] :
         {std::pair("", &std::as_const(set.values())), std::pair("adam.first.", &moments.first_moment),
          std::pair("adam.second.", &moments.second_moment)}) {
      const auto part = row->values().subspan(element, size);
      bytes += bytes_of({part.begin(), part.end()});
      list += entry(prefix + p.name(), p.shape(), at);
    }
    of_model += bytes.substr(bytes.size() - 3 * 8 * size, 8 * size);
    model_list += entry(p.name(), p.shape(), model_at);
    element += size;
  }
  const auto x = training.embedding()->values();
  const file_parts run = parts_of(folder.dir / "checkpoint-1.safetensors"),
                   model = parts_of(folder.dir / "model");
  of_model += bytes_of({x.begin(), x.end()});
  model_list += entry("embedding", {61, 3}, model_at);
  CHECK(model.bytes == of_model);
  CHECK(run.bytes.starts_with(bytes));
  CHECK(run.bytes.ends_with(
      bytes_of({r.loss, r.train_accuracy, r.validation_accuracy, r.test_accuracy, r.seconds})));
  for (const char* name : {"embedding", "adam.first.embedding", "adam.second.embedding"})
    list += entry(name, {61, 3}, at);
  list += entry("epochs", {1, 5}, at);
  CHECK(run.bytes.size() == at);
  CHECK(std::regex_replace(run.header,
                           std::regex("(fnv1a_64\":\")[0-9a-f]+|(validation\":\"|accuracy\":\")[.0-9]+"),
                           "$1$2*") ==
        R"({"__metadata__":{"best_validation_accuracy":"*","best_validation_epoch":"1","fnv1a_64":"*",)"
        R"("option.aggregation":"mean","option.alpha":"0.1","option.batch":"0","option.classes":"5",)"
        R"("option.convolution-decay":"0.01","option.coupling":"coupled","option.dropout":"0.5",)"
        R"("option.embedding":"3","option.epsilon":"0","option.features":"13","option.heads":"8",)"
        R"("option.hidden":"2","option.hops":"10","option.lambda":"0.5","option.last-heads":"1",)"
        R"("option.layers":"0","option.lr":"0.01","option.model":"gcn","option.precision":"f64",)"
        R"("option.raw-features":"no","option.seed":"0","option.self-loops":"sum","option.vertices":"61",)"
        R"("option.weight-decay":"5e-04","steps":"1","test_accuracy_at_best_validation":"*"})" +
            list + "}");
  CHECK(model.header ==
        R"({"__metadata__":{"aggregation":"mean","alpha":"0.1","classes":"5","coupling":"coupled",)"
        R"("data":"directed graph","embedding":"3","epsilon":"0","features":"13","heads":"8","hidden":"2",)"
        R"("hops":"10","lambda":"0.5","last_heads":"1","layers":"0","model":"gcn","precision":"f64",)"
        R"("raw_features":"false","seed":"0","self_loops":"sum"})" +
            model_list + "}");
}

TEST_CASE("a state that is put back is the same, and rows of vertices are found again") {
  const nn::training_options o{.hidden = {2}, .epochs = 2, .embedding = 3};
  const mesh<host> m(self::world(), {1, 1, 1});
  nn::trainer<double, host> first(m, d, o, nn::make_model<double>(m, d, o, row_1d)),
      second(m, d, o, nn::make_model<double>(m, d, o, row_1d));
  first.epoch(1);
  second.restore(first.state());
  const auto expected = first.state(), found = second.state();
  CHECK(found.steps == 1);
  REQUIRE(found.tensors.size() == expected.tensors.size());
  for (std::size_t k = 0; k < found.tensors.size(); ++k) {
    CHECK(found.tensors[k].name == expected.tensors[k].name);
    CHECK(found.tensors[k].values == expected.tensors[k].values);
  }
  const std::vector<global_index> vertices{2, 0, 1};
  const std::vector<double> rows{1, 2, 3, 4, 5, 6}, sorted = nn::in_order_of_vertices(rows, 2, vertices);
  CHECK(sorted == std::vector<double>{3, 4, 5, 6, 1, 2});
  CHECK(nn::in_order_of_vertices(sorted, 2, vertices, true) == rows);
}

}  // namespace test_state_dict
