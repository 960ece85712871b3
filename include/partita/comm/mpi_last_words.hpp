// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Why the ranks of an MPI job fail, printed once where it is the same for several.

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "partita/comm/mpi_call.hpp"

namespace partita::mpi::detail {

/// Ranks that fail about the same time tell one another why, and one of them speaks for all: the one that
/// has failed first, or the lowest of those that none was before.
class last_words {
 public:
  /// Tells the other ranks of `comm`, of which none has to listen. `why` is one line.
  last_words(MPI_Comm comm, std::string why) : comm_(comm) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    hear();
    speaks_ = words_.empty();
    const std::string& mine = words_.emplace(rank_, std::move(why)).first->second;
    for (int q = 0; q < size_; ++q)
      if (q != rank_)
        MPI_Isend(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, q, speaks_ ? speaker : follower,
                  comm_, &sent_.emplace_back(MPI_REQUEST_NULL));
  }
  last_words(const last_words&) = delete;
  last_words& operator=(const last_words&) = delete;

  /// The lines that this rank has to print: those of all ranks that fail within a moment, each reason once;
  /// its own where whoever speaks for it has not ended the job for long.
  std::string lines() {
    const auto begin = std::chrono::steady_clock::now();
    while (!all_is_said() && std::chrono::steady_clock::now() - begin < (speaks_ ? moment : long_time)) {
      hear();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!speaks_) return line(rank_);
    std::string all;
    for (auto at = words_.begin(); at != words_.end(); ++at) {
      const auto same = [&](const auto& before) { return before.second == at->second; };
      if (!std::any_of(words_.begin(), at, same)) all += line(at->first);
    }
    return all;
  }

  static std::string line(int rank, const std::string& why) {
    return "partita: rank " + std::to_string(rank) + ": " + why + "\n";
  }

 private:
  static constexpr int speaker = 1, follower = 2;  ///< tags; notices have 0
  static constexpr std::chrono::milliseconds moment{250}, long_time{5000};

  std::string line(int rank) const { return line(rank, words_.at(rank)); }

  /// Whether this rank speaks, has heard all others, and has been heard by them.
  bool all_is_said() {
    int sent = 0;
    MPI_Testall(static_cast<int>(sent_.size()), sent_.data(), &sent, MPI_STATUSES_IGNORE);
    return speaks_ && sent != 0 && static_cast<int>(words_.size()) == size_;
  }

  void hear() {
    for (const int tag : {speaker, follower})
      for (int any = 1; any != 0;) {
        any = 0;
        MPI_Message message;
        MPI_Status status;
        if (MPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &any, &message, &status) != MPI_SUCCESS || any == 0)
          break;
        int bytes = 0;
        MPI_Get_count(&status, MPI_CHAR, &bytes);
        std::string why(static_cast<std::size_t>(bytes), ' ');
        MPI_Mrecv(why.data(), bytes, MPI_CHAR, &message, MPI_STATUS_IGNORE);
        words_.emplace(status.MPI_SOURCE, std::move(why));
        if (tag == speaker && status.MPI_SOURCE < rank_) speaks_ = false;
      }
  }

  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  bool speaks_ = true;
  std::map<int, std::string> words_;  ///< of each rank that has failed
  std::vector<MPI_Request> sent_;
};

}  // namespace partita::mpi::detail
