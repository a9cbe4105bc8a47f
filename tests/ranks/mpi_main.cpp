// The main of every rank test: gtest under mpirun. The job fails when any rank fails, wherever and however; a rank
// whose test ends early would leave its peers waiting, so a fatal failure ends the whole job; running no test at all,
// or not the same number on all ranks, is a failure too.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

namespace {

// Says on stderr which rank failed where, and ends the job when the test does not go on.
class rank_listener : public testing::EmptyTestEventListener {
 public:
  explicit rank_listener(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::cerr << "rank " << rank_ << " failed at " << (part.file_name() != nullptr ? part.file_name() : "(no file)")
              << ':' << part.line_number() << ": " << part.message() << std::endl;
    if (part.fatally_failed()) MPI_Abort(MPI_COMM_WORLD, 1);
  }

  int rank_;
};

int run_all(int rank) {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new rank_listener(rank));
  const int failed = RUN_ALL_TESTS();

  const int tests = testing::UnitTest::GetInstance()->test_to_run_count();
  std::array<int, 3> verdict = {failed, tests, -tests};  // the maximum of each: failures, most tests, fewest tests
  MPI_Allreduce(MPI_IN_PLACE, verdict.data(), 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  const int most = verdict[1];
  const int fewest = -verdict[2];
  if (rank == 0 && fewest == 0) std::cerr << "no test ran" << std::endl;
  if (rank == 0 && most != fewest) std::cerr << "ranks ran different numbers of tests" << std::endl;
  return verdict[0] != 0 || fewest == 0 || most != fewest ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads) != MPI_SUCCESS) return 1;
  testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int verdict = run_all(rank);
  MPI_Finalize();
  return verdict;
}
