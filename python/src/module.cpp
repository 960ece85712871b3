// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include <nanobind/stl/string.h>
#include <string>
#include <utility>

namespace nb = nanobind;
using namespace partita::python;

NB_MODULE(_core, m) {
  using namespace nb::literals;
  m.doc() = "partita's verbs on the ranks of this process; partita and partita.sparse are made of them.";
  m.attr("__version__") = version_text();

  const auto base = nb::exception<partita::error>(m, "Error", PyExc_RuntimeError);
  const nb::object wrong_value = nb::make_tuple(base, nb::handle(PyExc_ValueError));
  const auto with_doc = [](nb::handle type, const char* doc) { type.attr("__doc__") = doc; };
  with_doc(base, "What the library throws.");
  with_doc(nb::exception<partita::shape_error>(m, "ShapeError", wrong_value), "Shapes that do not match.");
  with_doc(nb::exception<partita::mesh_error>(m, "MeshError", wrong_value), "No such policy or mesh.");
  with_doc(nb::exception<partita::input_error>(m, "InputError", wrong_value), "A file that cannot be used.");
  with_doc(nb::exception<partita::communication_error>(m, "CommunicationError", base), "Ranks disagree.");
  with_doc(nb::exception<partita::budget_error>(m, "BudgetError", base), "Memory does not suffice.");

  nb::class_<partita::communicator>(m, "Communicator", "Ranks, of which this process is one.");
  nb::class_<place>(m, "Place", "Where the ranks of a call compute.")
      .def(nb::init<std::string, std::string, int>(), "policy"_a = "row_1d", "mesh"_a = "", "threads"_a = 0);
  m.def(
      "use_threads",
      [](int ranks, const place& where) {
        where.shape(ranks);
        unlocked([&] { shared_team() = std::make_shared<team>(ranks); });
      },
      "ranks"_a, "place"_a,
      "From now on so many threads are the ranks. Throws MeshError if the place is for others.");
  m.def(
      "use_world",
      [](const partita::communicator& world, const place& where) {
        where.shape(world.size());
        shared_team() = std::make_shared<team>(world);
      },
      "world"_a, "place"_a, "From now on this process is one of these ranks. Throws as use_threads does.");
  m.def(
      "leave", [] { shared_team() = nullptr; }, "From now on this process is one rank by itself.");
  m.def(
      "forget", [] { new std::shared_ptr<team>(std::exchange(shared_team(), nullptr)); },
      "The same in a process that fork has made, which has no threads of its parent.");
  m.def(
      "size", [] { return current()->size(); }, "The number of ranks.");
  m.def(
      "rank", [] { return current()->first_rank(); }, "The first rank of this process.");
  m.def(
      "words_received", [] { return current()->received().words; },
      "Numbers that the ranks of this process have received so far. Local.");
  bind_products(m);
  bind_dataset(m);
  bind_training(m);
  bind_prediction(m);
}
