# SPDX-License-Identifier: Apache-2.0
import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

PROJECT = pathlib.Path(__file__).resolve().parents[2]


class Partita(ConanFile):
    """The headers and partita's own CMake package: `conan create packaging/conan -s compiler.cppstd=20` in the project's folder.

    Backends are what find_package(partita COMPONENTS mpi blas) finds on the consumer's machine, or among its requirements."""

    name = "partita"
    license = "Apache-2.0"
    description = "Distributed sparse-dense linear algebra and GNN training, a header-only C++20 library"
    topics = ("sparse-matrix", "linear-algebra", "gnn", "mpi", "cuda", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self):
        self.version = re.search(r"project\(partita VERSION ([\d.]+)", (PROJECT / "CMakeLists.txt").read_text())[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "include/*", "cmake/*", "docs/Doxyfile.in"):
            copy(self, pattern, PROJECT, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"PARTITA_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/partita"]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
