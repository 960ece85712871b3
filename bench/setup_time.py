#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What train needs before its first epoch, against SciPy for the same work: setup_time.py TRAIN DATA [--mpirun COMMAND]

DATA: a data directory, such as rmat_data makes. SciPy makes compressed rows of the edges, their transpose and the symmetric normalisation, on
one core, in the same run. Prints a table in Markdown: seconds, and peaks of resident memory in GB."""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

SCIPY = """
import sys, time, json, resource
import numpy as np
import scipy.sparse as sp
folder = sys.argv[1]
begin = time.perf_counter()
edges, features = np.load(folder + "/edges.npy"), np.load(folder + "/features.npy")
read = time.perf_counter()
n = len(features)
a = sp.coo_matrix((np.ones(len(edges), np.float32), (edges[:, 1], edges[:, 0])), shape=(n, n)).tocsr()
transposed = a.T.tocsr()
a = a + sp.identity(n, np.float32, format="csr")
scale = sp.diags((1 / np.sqrt(np.asarray(a.sum(1)).ravel())).astype(np.float32))
a = scale @ a @ scale
print(json.dumps([read - begin, time.perf_counter() - read, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def scipy_seconds(folder):
    """To read, to compute, and the peak in bytes."""
    core = str(min(os.sched_getaffinity(0)))
    return json.loads(subprocess.run(["taskset", "-c", core, sys.executable, "-c", SCIPY, folder], check=True, capture_output=True, text=True).stdout)


def train_seconds(command, folder):
    with tempfile.TemporaryDirectory() as scratch:
        found = os.path.join(scratch, "run.json")
        subprocess.run([*command, "--data", folder, "--model", "gcn", "--epochs", "1", "--quiet", "--json", found], check=True)
        with open(found, encoding="utf-8") as file:
            run = json.load(file)
    return run["setup_seconds"], run["peak_rss_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--policies", default="row_1d,grid_2d", help="with commas between, or auto")
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--mpirun", type=shlex.split, default=[], help="what launches over MPI, before -n N, in quotes")
    given = parser.parse_args()
    reference = [scipy_seconds(given.data) for _ in range(given.rounds)]
    read, compute, peak = (statistics.median(column) for column in zip(*reference))
    print(f"SciPy, one core: {compute:.2f} s, and {read:.2f} s to read; {1e-9 * peak:.2f} GB\n")
    print("| ranks | policy | read, s | distribute, s | plan, s | of (0.4 SciPy + its reading) | peak, GB |")
    print("|---|---|---|---|---|---|---|")
    for ranks in given.ranks.split(","):
        for policy in given.policies.split(","):
            for launch in [[]] + ([given.mpirun] if given.mpirun and ranks != "1" else []):
                options = ["--policy", policy, "--ranks", ranks]
                command = [*launch, "-n", ranks, given.train, *options, "--comm", "mpi"] if launch else [given.train, *options]
                runs = [train_seconds(command, given.data) for _ in range(given.rounds)]
                seconds = {key: statistics.median(run[0][key] for run in runs) for key in ("read", "distribute", "plan")}
                memory = statistics.median(run[1]["total"] for run in runs)
                share = sum(seconds.values()) / (0.4 * compute + read)
                print(f"| {ranks}{' over MPI' if launch else ''} | {policy} | {seconds['read']:.2f} | {seconds['distribute']:.2f} | {seconds['plan']:.2f} "
                      f"| {share:.2f} | {1e-9 * memory:.2f} |", flush=True)


if __name__ == "__main__":
    main()
