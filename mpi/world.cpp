#include "mpi/world.h"

#include <rota/error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "mpi/devices.h"
#include "mpi/launcher.h"
#include "mpi/patience.h"
#include "runtime/base/log.h"

namespace rota::mpi {
namespace {

using clock = std::chrono::steady_clock;

constexpr int tag_arrived = 1;
constexpr int tag_released = 2;
constexpr auto meeting_pause = std::chrono::milliseconds(1);  // at most

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What travels in gather_facts.
struct packed_facts {
  std::int32_t pid;
  std::int32_t lowest_of_node;  // rank
  std::int32_t node_rank;
  std::array<char, 64> host;
};
static_assert(std::is_trivially_copyable_v<packed_facts>);

int flag_of(int (*question)(int*), const char* call) {
  int answer = 0;
  check(question(&answer), call);
  return answer;
}

void require_threads(int provided) {
  if (provided == MPI_THREAD_MULTIPLE) return;
  throw config_error("MPI on " + host_name() + " gives thread level " + std::to_string(provided) +
                     " where rota needs MPI_THREAD_MULTIPLE (" + std::to_string(MPI_THREAD_MULTIPLE) +
                     "): ask for it in your MPI_Init_thread, or use an MPI built with threads");
}

void return_errors(MPI_Comm comm) {
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

}  // namespace

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string whole(text.data(), static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n\0"));
}

void check(int rc, const char* call) {
  if (rc == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(rc, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw error(std::string(call) + " failed on " + host_name() + " (pid " + std::to_string(getpid()) +
              "): " + std::string(text.data(), static_cast<std::size_t>(length)) + ", code " + std::to_string(rc));
}

std::unique_ptr<world> world::start(int& argc, char**& argv, const start_advice& advice) {
  if (flag_of(MPI_Finalized, "MPI_Finalized") != 0) {
    throw config_error("MPI was already finalized in this process: rota::init must come before MPI_Finalize");
  }
  std::unique_ptr<world> made(new world);
  const bool never_alone = !advice.when_alone.empty() && !under_mpirun();
  made->launched_ = has_launcher();
  int provided = 0;
  if (flag_of(MPI_Initialized, "MPI_Initialized") != 0) {
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
  } else {
    // Open MPI would end the process inside MPI_Init with advice of its own.
    if (never_alone && !made->launched_) throw config_error(advice.when_alone);
    if (!made->launched_) prepare_singleton();
    // Without it Open MPI ends the process by _exit, with advice on how to build Slurm.
    if (under_old_pmi() && !advice.with_old_pmi.empty() && library_version().starts_with("Open MPI"))
      base::log().warn("{}", advice.with_old_pmi);
    keep_mpi_off_inner_bridges();
    const auto before = clock::now();
    check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    made->init_time_ = clock::now() - before;
    made->finalizes_ = true;
    return_errors(MPI_COMM_WORLD);
    return_errors(MPI_COMM_SELF);
  }
  require_threads(provided);
  made->settle_in(MPI_COMM_WORLD);
  if (made->size() == 1 && never_alone) {
    made->finish(std::chrono::nanoseconds(0));
    throw config_error(advice.when_alone);
  }
  made->launched_ = made->launched_ || made->size() > 1;
  return made;
}

std::unique_ptr<world> world::adopt(MPI_Comm comm) {
  std::unique_ptr<world> made(new world);
  int provided = 0;
  check(MPI_Query_thread(&provided), "MPI_Query_thread");
  require_threads(provided);
  made->settle_in(comm);
  made->launched_ = has_launcher() || made->size() > 1;
  return made;
}

void world::settle_in(MPI_Comm parent) {
  come_together(parent);
  check(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
  return_errors(comm_);
  int rank = 0;
  check(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank");
  rank_ = static_cast<rank_t>(rank);
  check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node_comm_), "MPI_Comm_split_type");
  return_errors(node_comm_);
  gather_facts();
}

void world::gather_facts() {
  packed_facts mine{};
  mine.pid = getpid();
  check(MPI_Comm_rank(node_comm_, &mine.node_rank), "MPI_Comm_rank");
  mine.lowest_of_node = static_cast<std::int32_t>(rank_);
  broadcast_over(node_comm_, &mine.lowest_of_node, sizeof mine.lowest_of_node, 0);
  const std::string host = host_name();
  std::memcpy(mine.host.data(), host.data(), std::min(host.size(), mine.host.size() - 1));

  int size = 0;
  check(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
  std::vector<packed_facts> all(static_cast<std::size_t>(size));
  allgather_over(comm_, &mine, sizeof mine, all.data());

  facts_.reserve(all.size());
  nodes_ = 0;
  std::vector<std::uint32_t> node_of(all.size());  // by lowest rank: a node's lowest rank comes before its others
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const packed_facts& one = all[rank];
    const auto lowest = static_cast<std::size_t>(one.lowest_of_node);
    if (lowest == rank) node_of[rank] = nodes_++;
    facts_.push_back({one.host.data(), one.pid, node_of[lowest], static_cast<std::uint32_t>(one.node_rank)});
    if (one.lowest_of_node == mine.lowest_of_node) node_ranks_.push_back(static_cast<rank_t>(rank));
  }
}

std::vector<std::string> world::allgather(std::string_view mine) const {
  std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(size());
  allgather_over(comm_, &length, sizeof length, lengths.data());
  std::vector<int> counts, offsets;
  std::uint64_t total = 0;
  for (std::uint64_t one : lengths) {
    if (one > INT_MAX - total) throw config_error("world::allgather: more than 2 GiB together");
    counts.push_back(static_cast<int>(one));
    offsets.push_back(static_cast<int>(total));
    total += one;
  }
  std::string bytes(total, '\0');
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgatherv(mine.data(), static_cast<int>(length), MPI_BYTE, bytes.data(), counts.data(), offsets.data(),
                        MPI_BYTE, comm_, &request),
        "MPI_Iallgatherv");
  await(request);
  std::vector<std::string> all;
  all.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    all.push_back(bytes.substr(static_cast<std::size_t>(offsets[i]), lengths[i]));
  }
  return all;
}

std::string world::broadcast(std::string_view mine, rank_t root) const {
  std::uint64_t length = mine.size();
  broadcast_over(comm_, &length, sizeof length, root);
  if (length > INT_MAX) throw config_error("world::broadcast: more than 2 GiB");
  std::string bytes = rank_ == root ? std::string(mine) : std::string(length, '\0');
  broadcast_over(comm_, bytes.data(), length, root);
  return bytes;
}

void world::meet(std::chrono::nanoseconds deadline, const std::function<void()>& meanwhile) const {
  const auto until = clock::now() + deadline;
  if (size() == 1) return;
  rank_ == 0 ? await_all(until, meanwhile) : await_release(until, meanwhile);
}

// Rank 0 counts in who comes, so that it can name who does not; then it lets all go.
void world::await_all(clock::time_point until, const std::function<void()>& meanwhile) const {
  const int peers = static_cast<int>(size()) - 1;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(peers), MPI_REQUEST_NULL);
  std::vector<bool> here(size(), false);
  std::vector<int> done(requests.size());
  for (int i = 0; i < peers; ++i) {
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, i + 1, tag_arrived, comm_, &requests[static_cast<std::size_t>(i)]),
          "MPI_Irecv");
  }
  patience patient(until, meeting_pause);
  for (int missing = peers;;) {
    int count = 0;
    check(MPI_Testsome(peers, requests.data(), &count, done.data(), MPI_STATUSES_IGNORE), "MPI_Testsome");
    if (count == MPI_UNDEFINED) count = 0;
    for (int i = 0; i < count; ++i) here[static_cast<std::size_t>(done[static_cast<std::size_t>(i)]) + 1] = true;
    missing -= count;
    if (missing == 0) break;
    if (meanwhile) meanwhile();
    if (patient.pause()) continue;
    std::string names;
    for (rank_t r = 1; r < size(); ++r) {
      if (here[r]) continue;
      names += (names.empty() ? "" : ", ") + std::to_string(r) + " (" + facts_[r].host + ", pid " +
               std::to_string(facts_[r].pid) + ")";
    }
    throw error("rank 0 waited in vain at the end for rank " + names);
  }
  for (int i = 0; i < peers; ++i) check(MPI_Send(nullptr, 0, MPI_BYTE, i + 1, tag_released, comm_), "MPI_Send");
}

void world::await_release(clock::time_point until, const std::function<void()>& meanwhile) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(nullptr, 0, MPI_BYTE, 0, tag_released, comm_, &request), "MPI_Irecv");
  check(MPI_Send(nullptr, 0, MPI_BYTE, 0, tag_arrived, comm_), "MPI_Send");
  patience patient(until, meeting_pause);
  for (;;) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    if (meanwhile) meanwhile();
    if (!patient.pause()) break;
  }
  throw error("rank " + std::to_string(rank_) + " on " + facts_[rank_].host +
              " waited in vain at the end for rank 0 (" + facts_[0].host + ", pid " + std::to_string(facts_[0].pid) +
              "), or for a rank that rank 0 waits for");
}

void world::finish(std::chrono::nanoseconds deadline) {
  if (comm_ == MPI_COMM_NULL) return;
  meet(deadline);
  check(MPI_Comm_free(&node_comm_), "MPI_Comm_free");
  check(MPI_Comm_free(&comm_), "MPI_Comm_free");
  if (finalizes_) check(MPI_Finalize(), "MPI_Finalize");
  finalizes_ = false;
}

void world::abandon() noexcept {
  comm_ = MPI_COMM_NULL;
  node_comm_ = MPI_COMM_NULL;
  finalizes_ = false;
}

}  // namespace rota::mpi
