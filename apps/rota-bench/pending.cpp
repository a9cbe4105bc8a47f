// What tasks that cannot start yet cost rank 0.

#include <malloc.h>
#include <rota/rota.h>

#include <fstream>
#include <string>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/peers.h"

namespace bench {
namespace {

// How much memory of its own this process has: pages in use, and what malloc has handed out. The first counts whatever
// the runtime maps by itself, and what malloc keeps for later.
struct memory_use {
  double resident = 0;
  double allocated = 0;
};

memory_use memory_now() {
  memory_use now;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) now.resident = 1024.0 * std::stod(line.substr(8));
  }
  const struct mallinfo2 heap = mallinfo2();
  now.allocated = static_cast<double>(heap.uordblks) + static_cast<double>(heap.hblkhd);
  return now;
}

int one_argument(int a) { return a; }
int nine_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
  return a + b + c + d + e + f + g + h + i;
}

// Bytes a task by which rank 0 grows while `count` tasks are submitted by `submit`, refs included.
template <class Submit>
memory_use growth(std::vector<rota::ref<int>>& refs, std::size_t count, Submit&& submit) {
  const memory_use before = memory_now();
  refs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) refs.push_back(submit());
  rota::available_resources();  // a round trip: the scheduler has seen them all
  const memory_use after = memory_now();
  const auto tasks = static_cast<double>(count);
  return {(after.resident - before.resident) / tasks, (after.allocated - before.allocated) / tasks};
}

std::string malloc_says(double allocated) {
  return "growth of RssAnon; by mallinfo2 " + std::to_string(allocated) + " B; measured once";
}

}  // namespace

void run_pending(const context& run) {
  constexpr std::size_t many = 1'000'000;
  constexpr std::size_t fewer = 200'000;
  constexpr double further_arguments = 8;
  close_gate();
  const auto gate = rota::remote<wait_at_gate>.with({.where = rota::on_rank(1)})();
  std::vector<rota::ref<int>> late;  // further values that do not exist
  for (int i = 0; i < 8; ++i) late.push_back(rota::remote<one_argument>(gate));

  show_progress("pending", 0, 2);
  std::vector<rota::ref<int>> refs, more_refs;
  const memory_use one = growth(refs, many, [&] { return rota::remote<one_argument>(gate); });
  show_progress("pending", 1, 2);
  const memory_use nine = growth(more_refs, fewer, [&] {
    return rota::remote<nine_arguments>(gate, late[0], late[1], late[2], late[3], late[4], late[5], late[6], late[7]);
  });
  report(run, {.bench = "pending", .value = one.resident, .unit = "B", .note = malloc_says(one.allocated)});
  report(run, {.bench = "pending_argument",
               .value = (nine.resident - one.resident) / further_arguments,
               .unit = "B",
               .note = malloc_says((nine.allocated - one.allocated) / further_arguments)});

  open_gate();
  for (int value : rota::get(refs)) expect(value == 1, "pending", "wrong result");
  for (int value : rota::get(more_refs)) expect(value == 9, "pending", "wrong result");
}

}  // namespace bench
