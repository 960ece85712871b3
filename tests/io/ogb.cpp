// SPDX-License-Identifier: Apache-2.0
// Node-property folders of the Open Graph Benchmark.
#include "partita/io/ogb.hpp"

#include <map>

#include "support/gzip_files.hpp"
#include "support/scratch.hpp"

namespace test_ogb {

using namespace test_support;
using files = std::map<std::string, std::string>;

files small() {
  return {{"raw/num-node-list.csv.gz", "4\n"},
          {"raw/num-edge-list.csv.gz", "3\n"},
          {"raw/edge.csv.gz", "0,1\n2,3\n3,3\n"},
          {"raw/node-feat.csv.gz", "0.5,1\n-2,3\n1e-3,0\n4,4\n"},
          {"raw/node-label.csv.gz", "1\nnan\n0.0\n2\n"},
          {"split/time/train.csv.gz", "0\n"},
          {"split/time/valid.csv.gz", "3\n"},
          {"split/time/test.csv.gz", "2\n"}};
}

void write(const scratch& folder, const files& texts) {
  fs::remove_all(folder / "g");
  for (const auto& [name, text] : texts) {
    fs::create_directories((folder / "g" / name).parent_path());
    write_text(folder / "g" / name, gzip(text));
  }
}

TEST_CASE("OGB folders: one label each, or several of 0 and 1") {
  const scratch folder;
  write(folder, small());
  const io::dataset data = io::load_ogb(folder / "g");
  CHECK(data.name == "g");
  CHECK(data.vertices == 4);
  CHECK(data.features == 2);
  CHECK(data.classes == 3);
  CHECK(data.edges == std::vector<io::edge>{{0, 1}, {2, 3}, {3, 3}});
  CHECK(data.labels == std::vector<std::int64_t>{1, -1, 0, 2});
  CHECK(data.split == std::vector<std::uint8_t>{1, 0, 3, 2});
  std::vector<float> first;
  data.vertex_features.for_row(2,
                               [&](global_index, auto value) { first.push_back(static_cast<float>(value)); });
  CHECK(first == std::vector<float>{1e-3f, 0});
  const io::dataset both = io::load_ogb((folder / "g").string() + "/", io::inverse_edges::added, 3);
  CHECK(both.name == "g");
  CHECK(both.edges == std::vector<io::edge>{{0, 1}, {2, 3}, {3, 3}, {1, 0}, {3, 2}, {3, 3}});

  CHECK(both.edge_features.rows == 0);

  files with_edges = small();
  with_edges["raw/edge-feat.csv.gz"] = "0.5,1\n2,3\n4,-5\n";
  write(folder, with_edges);
  const io::dataset rows = io::load_ogb(folder / "g", io::inverse_edges::added);
  CHECK(rows.edge_features.rows == 6);
  CHECK(rows.edge_features.cols == 2);
  std::vector<float> row(2);
  for (const global_index edge : {2, 5}) {
    rows.edge_features.fill_row(edge, row);
    CHECK(row == std::vector<float>{4, -5});
  }

  files several = small();
  several["raw/node-label.csv.gz"] = "1,0\n0,0\n1,1\n0,1\n";
  several.erase("raw/node-feat.csv.gz");
  write(folder, several);
  const io::dataset tasks = io::load_ogb(folder / "g");
  CHECK(tasks.task == io::task::labels);
  CHECK(tasks.classes == 2);
  CHECK(tasks.features == 0);
  CHECK(tasks.label_matrix == std::vector<std::uint8_t>{1, 0, 0, 0, 1, 1, 0, 1});
}

TEST_CASE("OGB folders of links: what PyTorch has is exported first, weights and types follow their edges") {
  const scratch folder;
  files links = small();
  for (const char* part : {"train", "valid", "test"})
    links.erase("split/time/" + std::string(part) + ".csv.gz"),
        links["split/time/" + std::string(part) + ".pt"] = "PK";
  links.erase("raw/node-label.csv.gz");
  links["raw/edge_weight.csv.gz"] = "2\n0.5\n1\n";
  links["raw/edge_reltype.csv.gz"] = "1\n0\n2\n";
  write(folder, links);
  const auto refused = [&] { return complaint(folder.dir, [&] { io::load_ogb(folder / "g"); }); };
  const auto pickle = [](const std::string& part) {
    return "g/split/time/" + part +
           ".pt: is an archive of PyTorch, which is not read; the lines of Python in " +
           "docs/links.md, OGB's links, make links_" + part + ".npy of it";
  };
  CHECK(refused() == pickle("valid"));
  io::write_npy(folder / "g/split/time/links_valid.npy", {1, 2}, std::vector<std::int64_t>{3, 0});
  CHECK(refused() == pickle("test"));
  CHECK(complaint(folder.dir, [&] { io::load_ogb_links(folder / "g", 4); }) == pickle("test"));
  io::write_npy(folder / "g/split/time/links_test.npy", {2, 2}, std::vector<std::int64_t>{0, 2, 1, 2});
  io::write_npy(folder / "g/split/time/links_test_negatives.npy", {2, 3},
                std::vector<std::int64_t>{1, 2, 3, 3, 3, 0});

  const io::dataset data = io::load_ogb(folder / "g", io::inverse_edges::added);
  CHECK(data.task == io::task::links);
  CHECK(data.features == 2);
  CHECK(data.labels.empty());
  CHECK(data.edge_weights == std::vector<double>{2, 0.5, 1, 2, 0.5, 1});
  CHECK(data.edge_types == std::vector<std::int64_t>{1, 0, 2, 1, 0, 2});
  CHECK(data.relations == 3);
  const io::given_links given = io::load_ogb_links(folder / "g", 4).value();
  CHECK(given.train.empty());
  CHECK(given.validation == std::vector<io::edge>{{3, 0}});
  CHECK(given.test == std::vector<io::edge>{{0, 2}, {1, 2}});
  CHECK(given.negatives[1].vertices.size() == 6);
  write(folder, small());
  CHECK_FALSE(io::load_ogb_links(folder / "g", 4).has_value());
}

TEST_CASE("OGB folders: what is wrong is named with its file and row") {
  const scratch folder;
  const auto refused = [&](const std::string& name, const std::string& text) {
    files texts = small();
    texts[name] = text;
    write(folder, texts);
    const std::string said = complaint(folder.dir, [&] { io::load_ogb(folder / "g"); });
    const std::string file = "g/" + name + ": ";
    return said.starts_with(file) ? said.substr(file.size()) : said;
  };
  CHECK(refused("raw/num-node-list.csv.gz", "4\n5\n") ==
        "expected one number, as the folder has one graph, found 2");
  CHECK(refused("raw/num-node-list.csv.gz", "0\n") == "there are no vertices");
  CHECK(refused("raw/num-edge-list.csv.gz", "4\n") == "g/raw/edge.csv.gz: expected 4 rows, found 3");
  CHECK(refused("raw/edge.csv.gz", "0,1\n2,4\n3,3\n") ==
        "row 1 is the edge 2 -> 4, outside the graph of 4 vertices");
  CHECK(refused("raw/edge.csv.gz", "0\n1\n2\n") == "expected two vertices in each row, found 1");
  CHECK(refused("raw/edge.csv.gz", "0,1\n2,3\n3,x\n") ==
        "g/raw/edge.csv.gz:3: expected 2 whole numbers and commas between, found \"3,x\"");
  CHECK(refused("raw/edge-feat.csv.gz", "1\n2\n") == "expected 3 rows, found 2");
  CHECK(refused("raw/edge-feat.csv.gz", "1,2\n3,4\n5,nan\n") == "feature 1 of edge 2 is not a finite number");
  CHECK(refused("raw/edge_weight.csv.gz", "1\n-2\n3\n") ==
        "row 1 is -2.000000, expected a finite number that is not negative");
  CHECK(refused("raw/edge_weight.csv.gz", "1,2\n1,2\n1,2\n") == "expected one number in each row, found 2");
  CHECK(refused("raw/edge_reltype.csv.gz", "0\n3\n1\n") == "has the type 3 of 3 edges");
  CHECK(refused("raw/node-feat.csv.gz", "1\n2\n3\n") == "expected 4 rows, found 3");
  CHECK(refused("raw/node-feat.csv.gz", "1,2\n3,4\n5,nan\n7,8\n") ==
        "feature 1 of vertex 2 is not a finite number");
  CHECK(refused("raw/node-label.csv.gz", "1\n4\n0\n2\n") ==
        "label 4.000000 of vertex 1 is outside the classes");
  CHECK(refused("raw/node-label.csv.gz", "1,2\n0,0\n0,0\n0,0\n") ==
        "label 2.000000 of vertex 0 is neither 0 nor 1");
  CHECK(refused("split/time/train.csv.gz", "0\n4\n") == "row 1 is vertex 4, outside the graph of 4 vertices");
  CHECK(refused("split/time/test.csv.gz", "2\n0\n") == "row 1 is vertex 0, which has come before");
  CHECK(refused("split/time/test.csv.gz", "1\n") == "row 0 is vertex 1, which has no label");
  CHECK(refused("split/time/train.csv.gz", "") == "no vertex is in the training set");
  CHECK(refused("split/random/train.csv.gz", "0\n") == "g/split: expected one folder, found 2");
  write(folder, {});
  CHECK(complaint(folder.dir, [&] { io::load_ogb(folder / "g"); }) == "g: is not a directory");
  files texts = small();
  texts.erase("raw/edge.csv.gz");
  write(folder, texts);
  CHECK(complaint(folder.dir, [&] { io::load_ogb(folder / "g"); }) == "g/raw/edge.csv.gz: no such file");
}

}  // namespace test_ogb
