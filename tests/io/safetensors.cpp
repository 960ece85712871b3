// SPDX-License-Identifier: Apache-2.0
// Tensors in files: what is written is read, and what is damaged is refused by name.
#include "partita/io/safetensors.hpp"

#include <numeric>

#include "partita/base/random.hpp"
#include "support/scratch.hpp"

namespace test_io_safetensors {

using namespace test_support;

/// A file with this header, as its length says, and this data.
std::string file_of(const std::string& header, const std::string& data = "") {
  std::string length(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(length.data(), &size, 8);
  return length + header + data;
}

/// Read from a buffer of exactly this size, so that a sanitizer sees any step beyond it.
io::safetensors_file parsed(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin());
  return {std::move(bytes), "x"};
}

std::string said_of(const std::string& text) {
  try {
    parsed(text);
    return "";
  } catch (const input_error& e) {
    return e.what();
  }
}

/// The description of a float32 tensor of 2 values.
const std::string pair_at_0 = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

std::string refused(const std::string& header, const std::string& data = "12345678") {
  return said_of(file_of(header, data));
}

std::string refused_tensor(const std::string& description, const std::string& data = "12345678") {
  return refused(R"({"w":)" + description + "}", data);
}

/// Whatever the bytes are: a file is refused by name, or every byte of its data belongs to one tensor.
bool read_or_refused(const std::string& text) {
  try {
    const io::safetensors_file file = parsed(text);
    std::size_t sum = 0;
    for (const io::named_tensor& tensor : file.tensors()) {
      REQUIRE(file.at(tensor.name).bytes.data() == tensor.bytes.data());
      sum += tensor.bytes.size();
      if (tensor.dtype == "F32" || tensor.dtype == "F64")
        REQUIRE(file.values<float>(tensor.name).size() * (tensor.dtype == "F32" ? 4 : 8) ==
                tensor.bytes.size());
    }
    REQUIRE(8 + sum <= text.size());
    return true;
  } catch (const input_error& e) {
    REQUIRE(std::string(e.what()).starts_with("x: "));
    return false;
  }
}

const std::vector<float> two{1.0F, -2.5F};
const std::vector<double> three{0.5, 3, -1e300};
const std::vector<std::int64_t> count{7};

std::vector<io::named_tensor> small_tensors() {
  return {io::tensor_of("b", {2}, two), io::tensor_of("W", {3, 1}, three), io::tensor_of("epoch", {}, count)};
}

TEST_CASE("safetensors: what is written is read") {
  const scratch folder;
  const fs::path path = folder / "x.safetensors";
  const io::tensor_metadata metadata{{"model", "gcn"}, {"\"quoted\"\n", "\xc3\xa9 and \\"}};
  io::save_safetensors(path, small_tensors(), metadata);
  const io::safetensors_file file = io::load_safetensors(path);
  CHECK(file.name() == path.string());
  CHECK(file.metadata() == metadata);
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "W");  // wider values first
  CHECK(file.tensors()[1].name == "epoch");
  CHECK(file.tensors()[2].name == "b");
  CHECK(file.contains("W"));
  CHECK_FALSE(file.contains("V"));
  CHECK(file.at("W").dtype == "F64");
  CHECK(file.at("W").shape == std::vector<global_index>{3, 1});
  CHECK(file.at("epoch").shape.empty());
  CHECK(file.values<double>("W") == three);
  CHECK(file.values<float>("b") == two);
  CHECK(file.values<std::int64_t>("epoch") == count);
  CHECK(file.values<double>("b") == std::vector<double>{1, -2.5});
  CHECK(std::ranges::distance(fs::directory_iterator(folder.dir)) == 1);

  const fs::path copy = folder / "y.safetensors";
  io::save_safetensors(copy, file.tensors(), file.metadata());
  CHECK(read_text(copy) == read_text(path));
}

TEST_CASE_TEMPLATE("safetensors: shapes and values of every type", T, float, double, std::int64_t) {
  const scratch folder;
  for (const std::vector<global_index>& shape :
       std::vector<std::vector<global_index>>{{}, {1}, {7}, {0}, {5, 0}, {3, 4}, {2, 3, 4}, {1, 1, 1, 5}}) {
    const global_index size =
        std::accumulate(shape.begin(), shape.end(), global_index{1}, [](auto a, auto b) { return a * b; });
    std::vector<T> values(static_cast<std::size_t>(size));
    std::iota(values.begin(), values.end(), static_cast<T>(-3));
    if (!values.empty()) values.front() = std::numeric_limits<T>::max();
    io::save_safetensors(folder / "x", std::vector{io::tensor_of("t", shape, std::span<const T>(values))});
    const io::safetensors_file file = io::load_safetensors(folder / "x");
    CHECK(file.at("t").shape == shape);
    CHECK(file.values<T>("t") == values);
    CHECK(file.metadata().empty());
  }
}

TEST_CASE("safetensors: values are rounded where the wanted type is narrower, and other types are refused") {
  const scratch folder;
  const std::vector<double> wide{0.1, 1e-3, -7};
  std::vector<io::named_tensor> tensors{io::tensor_of("wide", {3}, wide), io::tensor_of("n", {}, count)};
  const std::vector<std::byte> halves(6);
  tensors.push_back({"half", "F16", {3}, halves});
  io::save_safetensors(folder / "x", tensors);
  const io::safetensors_file file = io::load_safetensors(folder / "x");
  CHECK(file.values<float>("wide") == std::vector<float>{0.1F, 1e-3F, -7});
  CHECK(file.at("half").bytes.size() == 6);
  const auto reading = [&](auto read) { return complaint(folder.dir, read); };
  CHECK(reading([&] { file.values<float>("half"); }) ==
        "x: tensor \"half\" has the dtype F16, expected F32 or F64");
  CHECK(reading([&] { file.values<double>("n"); }) ==
        "x: tensor \"n\" has the dtype I64, expected F32 or F64");
  CHECK(reading([&] { file.values<std::int64_t>("wide"); }) ==
        "x: tensor \"wide\" has the dtype F64, expected I64");
  CHECK(reading([&] { file.values<double>("V"); }) == "x: has no tensor \"V\"");
}

TEST_CASE("safetensors: the bytes of a file") {
  const scratch folder;
  const std::vector<float> w{1.0F, 2.0F};
  io::save_safetensors(folder / "x", std::vector{io::tensor_of("w", {1, 2}, w)}, {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  REQUIRE(header.size() == 81);
  CHECK(read_text(folder / "x") == std::string("\x58\0\0\0\0\0\0\0", 8) + header + std::string(7, ' ') +
                                       std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8));
  io::save_safetensors(folder / "x", {});
  CHECK(read_text(folder / "x") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(io::load_safetensors(folder / "x").tensors().empty());
  io::save_safetensors(folder / "x", {}, {{"k", "v"}});
  CHECK(read_text(folder / "x").substr(8) == R"({"__metadata__":{"k":"v"}}      )");
  CHECK(io::load_safetensors(folder / "x").metadata().at("k") == "v");
}

TEST_CASE("safetensors: headers as others write them") {
  // Any order of keys and fields, spaces, no padding, tensors without bytes, values at any address.
  const io::safetensors_file file = parsed(file_of(
      R"({ "z" : {"data_offsets":[1,9], "shape":[2], "dtype":"F32"}, "none":{"dtype":"F64","shape":[0],)"
      R"("data_offsets":[1,1]}, "a\u0062":{"dtype":"U8","shape":[],"data_offsets":[0,1]}, "__metadata__":{} })",
      std::string("\x05\0\0\x80\x3f\0\0\0\x40", 9)));
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "ab");
  CHECK(file.tensors()[1].name == "none");
  CHECK(file.values<double>("none").empty());
  CHECK(file.values<double>("z") == std::vector<double>{1, 2});
}

TEST_CASE("safetensors: headers that are none") {
  CHECK(said_of("") == "x: expected 8 bytes or more, found 0");
  CHECK(said_of("\x93NUMPY and a header") == "x: is a NumPy array, not a safetensors file");
  CHECK(said_of("PK\x03\x04 of an .npz") == "x: is a zip archive, not a safetensors file");
  CHECK(said_of("1234567") == "x: expected 8 bytes or more, found 7");
  CHECK(said_of(std::string(8, '\xff') + "{}") ==
        "x: its header claims 18446744073709551615 bytes, but only 2 follow");
  CHECK(said_of(file_of("{}").substr(0, 9)) == "x: its header claims 2 bytes, but only 1 follow");
  CHECK(refused("", "") == "x: its header is not a JSON object");
  CHECK(refused("[]", "") == "x: its header is not a JSON object");
  CHECK(refused("\"a\"", "") == "x: its header is not a JSON object");
  CHECK(refused(" {}", "") == "x: its header is not a JSON object");
  CHECK(refused("\xef\xbb\xbf{}", "") == "x: its header is not a JSON object");
  CHECK(refused("{", "") == "x: its header is not JSON from byte 2 on");
  CHECK(refused("{}}", "") == "x: its header is not JSON from byte 3 on");
  CHECK(refused(std::string("{}\0 ", 4), "") == "x: its header is not JSON from byte 3 on");
  CHECK(refused(R"({"w":)" + pair_at_0 + ",}") == "x: its header is not JSON from byte 55 on");
  CHECK(refused("{\"\xff\":1}", "") == "x: its header is not JSON from byte 3 on");
  CHECK(refused(std::string(100000, '{'), "") == "x: its header is not JSON from byte 2 on");
  CHECK(refused(R"({"w":)" + std::string(100000, '[')) == "x: tensor \"w\" is not described by an object");
  CHECK(refused(R"({"w":)" + pair_at_0 + R"(,"w":)" + pair_at_0 + "}") == "x: the key \"w\" is there twice");
  CHECK(refused(R"({"__metadata__":{},"__metadata__":{}})", "") ==
        "x: the key \"__metadata__\" is there twice");
  CHECK(refused(R"({"__metadata__":{"a":"b","a":"b"}})", "") ==
        "x: the key \"a\" of its metadata is there twice");
  for (const char* metadata : {"[]", "{\"a\":1}", "{\"a\":{}}", "{\"a\":null}", "\"a\"", "true"})
    CHECK(refused(std::string(R"({"__metadata__":)") + metadata + "}", "") ==
          "x: its metadata are not an object of texts");
}

TEST_CASE("safetensors: descriptions of tensors that are none") {
  for (const char* description : {"1", "\"F32\"", "[]", "null"})
    CHECK(refused_tensor(description) == "x: tensor \"w\" is not described by an object");
  for (const char* fields : {R"("dtype":"F32","shape":[2])", R"("dtype":"F32","data_offsets":[0,8])",
                             R"("shape":[2],"data_offsets":[0,8])", ""})
    CHECK(refused_tensor(std::string("{") + fields + "}") ==
          "x: tensor \"w\" lacks one of dtype, shape and data_offsets");
  CHECK(refused_tensor(R"({"strides":[1]})") == "x: tensor \"w\" has the unknown field \"strides\"");
  CHECK(refused_tensor(R"({"dtype":"F32","dtype":"F32"})") ==
        "x: tensor \"w\" has the field \"dtype\" twice");
  CHECK(refused_tensor(R"({"dtype":32})") == "x: the dtype of tensor \"w\" is not a text");
  for (const char* shape : {"2", "{}", "[\"2\"]", "[[2]]", "[2.0]", "[-2]", "[9223372036854775808]",
                            "[99999999999999999999]", "[true]"})
    CHECK(refused_tensor(std::string(R"({"dtype":"F32","shape":)") + shape + "}") ==
          "x: the shape of tensor \"w\" is not a list of whole numbers from 0 to 2^63 - 1");
  for (const char* offsets : {"8", "[]", "[0]", "[0,8,9]", "[-1,8]", "[0,\"8\"]", "[0,18446744073709551616]"})
    CHECK(refused_tensor(std::string(R"({"data_offsets":)") + offsets + "}") ==
          "x: the data_offsets of tensor \"w\" are not a list of two whole numbers from 0 on");
  std::string ones = "1";
  for (int k = 0; k < 64; ++k) ones += ",1";
  CHECK(refused_tensor(R"({"shape":[)" + ones + "]}") ==
        "x: the shape of tensor \"w\" has too many dimensions");
}

TEST_CASE("safetensors: shapes and places that do not fit") {
  const auto tensor = [](const std::string& name, const std::string& shape, const std::string& offsets) {
    return '"' + name + R"(":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}";
  };
  const auto one = [&](const std::string& shape, const std::string& offsets) {
    return refused('{' + tensor("w", shape, offsets) + '}');
  };
  CHECK(one("2", "0,8") == "");
  CHECK(one("3", "0,8") == "x: expected 12 bytes for the shape (3,) of tensor \"w\", found 8");
  CHECK(one("", "0,8") == "x: expected 4 bytes for the shape () of tensor \"w\", found 8");
  CHECK(one("0,2", "0,8") == "x: expected 0 bytes for the shape 0 x 2 of tensor \"w\", found 8");
  CHECK(one("9223372036854775807", "0,8") ==
        "x: the shape (9223372036854775807,) of tensor \"w\" is too large");
  CHECK(one("4294967296,4294967296", "0,8") ==
        "x: the shape 4294967296 x 4294967296 of tensor \"w\" is too large");
  CHECK(one("0,9223372036854775807", "0,0") ==
        "x: the shape 0 x 9223372036854775807 of tensor \"w\" is too large");
  CHECK(one("1000000000000", "0,4000000000000") ==
        "x: tensor \"w\" is said to be at bytes 0 to 4000000000000 of 8");
  CHECK(one("2", "8,0") == "x: tensor \"w\" is said to be at bytes 8 to 0 of 8");
  CHECK(one("2", "4,12") == "x: tensor \"w\" is said to be at bytes 4 to 12 of 8");
  CHECK(one("2", "18446744073709551608,18446744073709551615") ==
        "x: tensor \"w\" is said to be at bytes 18446744073709551608 to 18446744073709551615 of 8");
  CHECK(one("1", "4,8") == "x: there is no tensor at byte 0, before tensor \"w\" at bytes 4 to 8 of 8");
  CHECK(one("1", "0,4") == "x: 4 bytes follow the last tensor");
  CHECK(refused("{}") == "x: 8 bytes follow the last tensor");
  const auto both = [&](const std::string& first, const std::string& second) {
    return refused('{' + tensor("a", "1", first) + ',' + tensor("b", "1", second) + '}', "123456789abc");
  };
  CHECK(both("4,8", "8,12") == "x: there is no tensor at byte 0, before tensor \"a\" at bytes 4 to 8 of 12");
  CHECK(both("0,4", "8,12") == "x: there is no tensor at byte 4, before tensor \"b\" at bytes 8 to 12 of 12");
  CHECK(both("8,12", "0,4") == "x: there is no tensor at byte 4, before tensor \"a\" at bytes 8 to 12 of 12");
  CHECK(both("0,4", "2,6") == "x: tensor \"b\" overlaps the one before it, at bytes 2 to 6 of 12");
  CHECK(both("0,4", "0,4") == "x: tensor \"b\" overlaps the one before it, at bytes 0 to 4 of 12");
  CHECK(both("0,4", "4,8") == "x: 4 bytes follow the last tensor");
}

TEST_CASE("safetensors: what cannot be written is refused, and no file is there") {
  const scratch folder;
  const auto writing = [&](const std::vector<io::named_tensor>& tensors,
                           const io::tensor_metadata& metadata) {
    return complaint(folder.dir, [&] { io::save_safetensors(folder / "x", tensors, metadata); });
  };
  CHECK(writing({io::tensor_of("w", {3}, two)}, {}) ==
        "x: expected 12 bytes for the shape (3,) of tensor \"w\", found 8");
  CHECK(writing({io::tensor_of("w", {-2}, two)}, {}) ==
        "x: the shape of tensor \"w\" has the negative size -2");
  CHECK(writing({{"w", "float", {2}, std::as_bytes(std::span(two))}}, {}) ==
        "x: tensor \"w\" has the unknown dtype \"float\"");
  CHECK(writing({io::tensor_of("w", {2}, two), io::tensor_of("w", {3}, three)}, {}) ==
        "x: two tensors, or a tensor and the metadata, have the name \"w\"");
  CHECK(writing({io::tensor_of("__metadata__", {2}, two)}, {}) ==
        "x: two tensors, or a tensor and the metadata, have the name \"__metadata__\"");
  CHECK(writing({io::tensor_of("\xff", {2}, two)}, {}) == "x: the name \"?\" is not UTF-8");
  CHECK(writing({}, {{"k\xff", ""}}) == "x: the key \"k?\" is not UTF-8");
  CHECK(writing({}, {{"k", "v\xff"}}) == "x: the text \"v?\" is not UTF-8");
  CHECK(fs::is_empty(folder.dir));
  CHECK(complaint(folder.dir, [&] { io::save_safetensors(folder / "none/x", small_tensors()); }) ==
        "none/x: cannot be written (No such file or directory)");
  CHECK(complaint(folder.dir, [&] { io::load_safetensors(folder / "x"); }) == "x: no such file");
  write_text(folder / "x", "1234");
  CHECK(complaint(folder.dir, [&] { io::load_safetensors(folder / "x"); }) ==
        "x: expected 8 bytes or more, found 4");
}

TEST_CASE("safetensors: damaged bytes are read or refused, nothing else") {
  const scratch folder;
  io::save_safetensors(folder / "x", small_tensors(), {{"k", "v"}});
  const std::string whole = read_text(folder / "x");
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), 8);
  for (std::size_t size = 0; size < whole.size(); ++size)
    REQUIRE_FALSE(read_or_refused(whole.substr(0, size)));
  for (std::size_t extra = 1; extra < 9; ++extra)
    REQUIRE_FALSE(read_or_refused(whole + std::string(extra, '\0')));

  int read = 0;
  for (std::size_t at = 0; at < 8 + length; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      read += read_or_refused(text) ? 1 : 0;
    }
  CHECK(read > 0);  // names and metadata are no less well-formed with another letter
  CHECK(read < static_cast<int>(8 * length) / 2);

  const std::string hints = "0123456789-,{}[]:\"\\eE. F3264\n\xff";
  int refusals = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::string text = whole;
    auto draw = [word = random_key{23, static_cast<std::uint64_t>(trial), 0}.word(),
                 k = std::int64_t{0}](std::size_t bound) mutable {
      return static_cast<std::size_t>(base::random_bits(word, k++, 0) % bound);
    };
    for (std::size_t change = 1 + draw(3); change-- > 0;) {
      const std::size_t at = 8 + draw(length);
      if (draw(2) == 0)
        text[at] = hints[draw(hints.size())];
      else
        std::swap(text[at], text[8 + draw(length)]);
    }
    refusals += read_or_refused(text) ? 0 : 1;
  }
  CHECK(refusals > 2000);
}

TEST_CASE("safetensors: a tensor of a type that is not known is in nobody's way until it is asked for") {
  const std::string header =
      R"({"s":{"dtype":"F4","shape":[3],"data_offsets":[0,2]},"w":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  text += header + std::string("\0\0\0\0\xc0\x3f", 6);
  std::vector<std::byte> bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  const io::safetensors_file file(bytes, "x");
  CHECK(file.values<double>("w") == std::vector<double>{1.5});
  CHECK(file.at("s").dtype == "F4");
  CHECK_THROWS_WITH(file.values<float>("s"), "x: tensor \"s\" has the dtype F4, expected F32 or F64");
}

}  // namespace test_io_safetensors
