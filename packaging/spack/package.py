# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Partita(CMakePackage):
    """Distributed sparse-dense linear algebra and GNN training, a header-only C++20 library.

    Nothing is fetched: `spack dev-build partita@0.2.0` in the project's folder installs its sources."""

    license("Apache-2.0")

    version("0.2.0")

    variant("mpi", default=True, description="Ranks as processes")
    variant("blas", default=True, description="Dense products by a CBLAS library")
    variant("lapack", default=True, when="+blas", description="Small dense problems by LAPACKE")
    variant("npz", default=True, description="Features in .npz files")
    variant("zlib", default=True, description="Text files that gzip has packed")
    variant("json", default=True, description="Models in .safetensors files")
    variant("dlpack", default=True, description="Blocks of matrices to and from other libraries by DLPack")
    variant("metis", default=True, description="Parts of graphs by METIS")
    variant("cuda", default=False, description="CUDA devices, with cuBLASLt and cuSPARSE")
    variant("nccl", default=False, when="+cuda", description="NCCL, one GPU a rank")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("openblas", when="+blas")
    depends_on("libzip", when="+npz")
    depends_on("zlib-api", when="+zlib")
    depends_on("nlohmann-json", when="+json")
    depends_on("dlpack", when="+dlpack")
    depends_on("metis@5:", when="+metis")
    depends_on("cuda@13:", when="+cuda")
    depends_on("nccl", when="+nccl")

    conflicts("%gcc@:11")
    conflicts("%clang@:15")

    def cmake_args(self):
        backends = ("mpi", "blas", "lapack", "npz", "zlib", "json", "dlpack", "metis", "cuda", "nccl")
        return [self.define_from_variant(f"PARTITA_{name.upper()}", name) for name in backends] + [
            self.define_from_variant("PARTITA_CUBLAS", "cuda"),
            self.define_from_variant("PARTITA_CUSPARSE", "cuda"),
            self.define("PARTITA_BUILD_TESTS", False),
            self.define("PARTITA_BUILD_EXAMPLES", False),
            self.define("PARTITA_BUILD_BENCH", False),
        ]
