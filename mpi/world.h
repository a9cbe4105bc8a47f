#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/types.h"

namespace rota::mpi {

// Throws rota::error with the name of the call and MPI's own words unless rc is MPI_SUCCESS.
void check(int rc, const char* call);

// The MPI in use, in its own words: name, version.
std::string library_version();

// What world::start says to a user whose launcher and MPI do not speak the same language; empty where that cannot be.
struct start_advice {
  std::string when_alone{};    // MPI makes a world of one, where that is wrong
  std::string with_old_pmi{};  // before Open MPI starts under a PMI that few of its builds speak
};

// What every rank of a world knows about every other.
struct rank_facts {
  std::string host;
  std::int32_t pid = 0;
  std::uint32_t node = 0;       // nodes are numbered by their lowest rank
  std::uint32_t node_rank = 0;  // its place among the ranks of the node
};

// The ranks that one launcher started together, on a communicator of our own. Calls that say "collective" are made by
// all ranks in the same order and by one thread at a time; the facts may be read by any thread. MPI is not polled
// between calls. Errors of MPI come back as rota::error. The destructor neither waits nor finalizes: finish() does.
class world {
 public:
  // Initialises MPI (MPI_THREAD_MULTIPLE) unless the program has: then that MPI is used and never finalized. Without a
  // launcher this process is a world of its own. Collective. Throws config_error when MPI gives less than
  // MPI_THREAD_MULTIPLE, was finalized, or makes a world of one although that is wrong: `advice` says then what to do;
  // it does not count under mpirun.
  static std::unique_ptr<world> start(int& argc, char**& argv, const start_advice& advice = {});

  // For MPI programs with a main loop of their own: works on a duplicate of comm and never finalizes. Collective.
  static std::unique_ptr<world> adopt(MPI_Comm comm);

  world(const world&) = delete;
  world& operator=(const world&) = delete;
  ~world() = default;

  rank_t rank() const { return rank_; }
  rank_t size() const { return static_cast<rank_t>(facts_.size()); }
  MPI_Comm comm() const { return comm_; }
  MPI_Comm node_comm() const { return node_comm_; }

  // One entry a rank; lives as long as the world.
  const std::vector<rank_facts>& facts() const { return facts_; }
  const rank_facts& facts(rank_t rank) const { return facts_[rank]; }

  // The ranks of this rank's node, in node order.
  const std::vector<rank_t>& node_ranks() const { return node_ranks_; }
  std::uint32_t node() const { return facts_[rank_].node; }
  std::uint32_t nodes() const { return nodes_; }

  // Did a launcher (mpirun, srun) start us, or the program's own MPI? False for a plain ./app.
  bool launched() const { return launched_; }

  // Time that MPI_Init took; 0 when the program had called it.
  std::chrono::nanoseconds init_time() const { return init_time_; }

  // Everyone's bytes, by rank; sizes may differ. At most 2 GiB together. Collective.
  std::vector<std::string> allgather(std::string_view mine) const;

  // The root's bytes on every rank. Collective.
  std::string broadcast(std::string_view mine, rank_t root = 0) const;

  // A barrier that ends: throws rota::error that names the ranks (host, pid) that did not come in time. After a throw
  // only abandon() is left. Sleeps rather than spins, and calls `meanwhile` at least once a millisecond. Collective.
  void meet(std::chrono::nanoseconds deadline, const std::function<void()>& meanwhile = {}) const;

  // meet(), then leaves MPI: frees the communicators and finalizes if start() had initialised. Collective; windows are
  // closed before.
  void finish(std::chrono::nanoseconds deadline);

  // Leaves without a word to anyone, for worlds that lost a rank: MPI_Finalize would hang there. The process should
  // end by _exit. Any thread.
  void abandon() noexcept;

 private:
  world() = default;

  void settle_in(MPI_Comm parent);
  void gather_facts();
  void await_all(std::chrono::steady_clock::time_point until, const std::function<void()>& meanwhile) const;
  void await_release(std::chrono::steady_clock::time_point until, const std::function<void()>& meanwhile) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm node_comm_ = MPI_COMM_NULL;
  rank_t rank_ = 0;
  std::uint32_t nodes_ = 1;
  bool launched_ = false;
  bool finalizes_ = false;
  std::chrono::nanoseconds init_time_{0};
  std::vector<rank_facts> facts_;
  std::vector<rank_t> node_ranks_;
};

}  // namespace rota::mpi
