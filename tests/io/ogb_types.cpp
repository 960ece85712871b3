// SPDX-License-Identifier: Apache-2.0
// Folders of the Open Graph Benchmark with several types of vertices.
#include "partita/io/ogb_types.hpp"

#include <map>

#include "support/gzip_files.hpp"
#include "support/scratch.hpp"

namespace test_ogb_types {

using namespace test_support;
using files = std::map<std::string, std::string>;

files small() {
  return {{"raw/num-node-dict.csv.gz", "author,paper,field_of_study\n3,2,4\n"},
          {"raw/triplet-type-list.csv.gz", "author,writes,paper\npaper,has_topic,field_of_study\r\n"},
          {"raw/relations/author___writes___paper/edge.csv.gz", "0,1\n2,0\n1,1\n"},
          {"raw/relations/author___writes___paper/num-edge-list.csv.gz", "3\n"},
          {"raw/relations/author___writes___paper/edge-feat.csv.gz", "1,2\n3,4\n5,-6\n"},
          {"raw/relations/paper___has_topic___field_of_study/edge.csv.gz", "1,3\n"},
          {"raw/relations/paper___has_topic___field_of_study/num-edge-list.csv.gz", "1\n"},
          {"raw/node-feat/paper/node-feat.csv.gz", "0.5,1\n-2,3\n"},
          {"raw/node-label/paper/node-label.csv.gz", "1\n0\n"},
          {"split/time/nodetype-has-split.csv.gz", "author,paper,field_of_study\nFalse,True,False\n"},
          {"split/time/paper/train.csv.gz", "1\n"},
          {"split/time/paper/valid.csv.gz", ""},
          {"split/time/paper/test.csv.gz", "0\n"}};
}

void write(const scratch& folder, const files& texts) {
  fs::remove_all(folder / "g");
  for (const auto& [name, text] : texts) {
    fs::create_directories((folder / "g" / name).parent_path());
    write_text(folder / "g" / name, gzip(text));
  }
}

TEST_CASE("OGB folders of several types: each type and each relation by itself") {
  const scratch folder;
  write(folder, small());
  CHECK(io::ogb_types::are_in(folder / "g"));
  const io::ogb_types graph(folder / "g");
  REQUIRE(graph.types().size() == 3);
  CHECK(graph.types()[2].name == "field_of_study");
  CHECK(graph.types()[2].vertices == 4);
  CHECK(graph.vertices(graph.types()[0]).features == 0);
  CHECK(graph.vertices(graph.types()[0]).labels.empty());
  const io::dataset papers = graph.vertices(graph.types()[1]);
  CHECK(papers.vertices == 2);
  CHECK(papers.features == 2);
  CHECK(papers.labels == std::vector<std::int64_t>{1, 0});
  CHECK(papers.split == std::vector<std::uint8_t>{3, 1});
  REQUIRE(graph.relations().size() == 2);
  CHECK(graph.relations()[1].name == "has_topic");
  CHECK(graph.edges(graph.relations()[0]) == std::vector<io::edge>{{0, 1}, {2, 0}, {1, 1}});
  CHECK(graph.edge_features(graph.relations()[0], 3).row_sum(2) == -1);
  CHECK(graph.edge_features(graph.relations()[1], 1).rows == 0);
  CHECK(graph.edges(graph.relations()[1]) == std::vector<io::edge>{{1, 3}});
  CHECK(complaint(folder.dir, [&] { io::load_ogb(folder / "g"); }) ==
        "g: has several types of vertices, which convert makes a data directory of");
}

TEST_CASE("OGB folders of several types: what is wrong is named with its file and row") {
  const scratch folder;
  const auto refused = [&](const std::string& name, const std::string& text) {
    files texts = small();
    texts[name] = text;
    write(folder, texts);
    const std::string said = complaint(folder.dir, [&] {
      const io::ogb_types graph(folder / "g");
      for (const auto& type : graph.types()) graph.vertices(type);
      for (const auto& relation : graph.relations()) graph.edges(relation);
    });
    const std::string file = "g/" + name + ": ";
    return said.starts_with(file) ? said.substr(file.size()) : said;
  };
  const std::string types = "raw/num-node-dict.csv.gz", list = "raw/triplet-type-list.csv.gz",
                    writes = "raw/relations/author___writes___paper/";
  CHECK(refused(types, "author,paper\n3,2,4\n") ==
        "expected a line of types of vertices, and one of how many there are of each");
  CHECK(refused(types, "author,paper,field_of_study\n3,0,4\n") == "there are 0 vertices of the type paper");
  CHECK(refused(types, "author/b,paper\n3,2\n") ==
        "row 0 has \"author/b\", which cannot be the name of a folder");
  CHECK(refused(list, "author,writes,paper\nauthor,.hidden,paper\n") ==
        "row 1 has \".hidden\", which cannot be the name of a folder");
  CHECK(refused(list, "author,writes\n") == "row 0 has 2 words, expected source, relation and target");
  CHECK(refused(list, "author,writes,paper\nauthor,writes,book\n") ==
        "row 1 has \"book\", which is no type of vertices in num-node-dict.csv.gz");
  CHECK(refused(list, "author,cites,paper\n") ==
        "g/raw/relations/author___cites___paper/num-edge-list.csv.gz: no such file");
  CHECK(refused(list, "") == "has no relation");
  CHECK(refused(writes + "edge.csv.gz", "0,1\n2,2\n1,1\n") ==
        "row 1 is the edge 2 -> 2, outside the graph of 3 and 2 vertices");
  CHECK(refused(writes + "num-edge-list.csv.gz", "4\n") ==
        "g/" + writes + "edge.csv.gz: expected 4 rows, found 3");
  CHECK(refused("raw/node-feat/paper/node-feat.csv.gz", "1\n2\n3\n") == "expected 2 rows, found 3");
  CHECK(refused("raw/node-label/paper/node-label.csv.gz", "1\n2\n") ==
        "label 2.000000 of vertex 1 is outside the classes");
  CHECK(refused("split/time/paper/train.csv.gz", "2\n") ==
        "row 0 is vertex 2, outside the graph of 2 vertices");
}

}  // namespace test_ogb_types
