// What a program's threads wait for at the store: room for a value, and values that are not in memory.
#include <fmt/format.h>
#include <rota/error.h>

#include "runtime/worker/process.h"

namespace rota::detail {
namespace {

constexpr auto longest_pause = std::chrono::milliseconds(10);
constexpr int most_breaks = 3;  // of transfers that bring a copy back

// A task that waits for the store keeps its slot: others in its place would pin their first arguments and wait for the
// next, until all that is in memory is pinned.
class kept_slot {
 public:
  explicit kept_slot(running_task& task) : task_(task), job_(std::exchange(task.job, 0)) {}
  kept_slot(const kept_slot&) = delete;
  kept_slot& operator=(const kept_slot&) = delete;
  ~kept_slot() { task_.job = job_; }

 private:
  running_task& task_;
  const std::uint32_t job_;
};

}  // namespace

// Calls take() until it is true; with and without the pump.
void process::find_room(rooms::search search, const std::function<bool()>& take) {
  const kept_slot slot(current());
  for (bool taken = false;;) {
    rooms::look seen = rooms::look::again;
    auto look = [&] {
      if (!(taken = take())) seen = stored_.room().step(search);
      if (seen == rooms::look::again && !taken) taken = take();
      if (taken) stored_.room().end(search);
      return taken || seen != rooms::look::again;
    };
    wait_until(look, std::chrono::steady_clock::now() + longest_pause);
    if (taken) return;
    if (seen == rooms::look::granted) {
      const bool good = stored_.room().adopt(search);
      visit([&](agent::agent&) { stored_.room().adopted(search, good); });
    }
    if (seen != rooms::look::hopeless) continue;
    std::string why;
    visit([&](agent::agent&) { why = stored_.room().why(search); });
    throw out_of_memory(fmt::format(
        "rank {} ({}): no room for {} bytes in the node's store of {} bytes: {}; raise --rota-store or let go of refs",
        setup_.rank, setup_.host, search.bytes, std::size_t{store().extents()} * objectstore::extent_bytes, why));
  }
}

place process::reserve(std::size_t bytes) {
  if (over()) throw_over();
  if (drops_.any()) turn at_the_pump(*this);  // what was just let go is used again
  std::optional<place> found = store().try_reserve(bytes);
  if (!found) find_room(stored_.room().begin(bytes), [&] { return (found = store().try_reserve(bytes)).has_value(); });
  return *found;
}

void process::grow_pins() {
  const auto alone = store().pins().growing();
  if (!store().pins().full()) return;
  const std::size_t bytes = store().pins().next_block();
  if (bytes == 0) {
    throw out_of_memory(fmt::format("rank {} ({}) reads {} stored values at once, and no more can be: let go of arrays",
                                    setup_.rank, setup_.host, store().pins().in_use()));
  }
  std::optional<std::uint64_t> block;
  auto take = [&] {
    block = store().books([&](objectstore::values& v) { return v.take_for_pins(bytes); });
    return block.has_value();
  };
  rooms::search search = stored_.room().begin(bytes);
  search.books_only = true;
  if (!take()) find_room(search, take);
  store().pins().grow(*block);
}

local_store::brought process::bring_back(rank_t owner, std::uint64_t cell, deadline until, bool& in_time) {
  struct question {  // whatever ends the wait
    process& p;
    std::uint32_t number;
    ~question() {
      turn at_the_pump(p);
      p.stored_.no_answer(number);
    }
  } asked{*this, visit([&](agent::agent&) { return stored_.ask_back(owner, cell); })};
  const kept_slot slot(current());
  local_store::brought answer{wire::fetch_outcome::broken, {}};
  in_time = wait_until(
      [&] {
        const local_store::brought* came = stored_.answer(asked.number);
        if (came) answer = *came;
        return came != nullptr;
      },
      until);
  return answer;
}

std::optional<objectstore::pins::taken> process::pin(rank_t owner, std::uint64_t cell, deadline until) {
  for (int breaks = 0;;) {
    const objectstore::pins::taken t = store().pins().take(cell);
    if (t.how == objectstore::pins::outcome::pinned) return t;
    if (t.how == objectstore::pins::outcome::full) {
      grow_pins();
      continue;
    }
    bool in_time = false;
    const local_store::brought answer = bring_back(owner, cell, until, in_time);
    if (!in_time) return std::nullopt;
    switch (answer.outcome) {
      case wire::fetch_outcome::whole:
        break;
      case wire::fetch_outcome::no_room:
        throw out_of_memory(fmt::format(
            "rank {} ({}): no room to bring a value back into the node's store: {}; raise --rota-store or let go of "
            "refs and arrays",
            owner, setup_.host,
            answer.why.empty() ? "the node that has it on disk has no memory to read it" : answer.why));
      case wire::fetch_outcome::broken:
      case wire::fetch_outcome::away:
        if (over()) throw_over();  // the rank that has it was lost, and the run with it
        if (++breaks < most_breaks) break;
        [[fallthrough]];
      case wire::fetch_outcome::lost:
        throw object_lost(fmt::format("rank {} ({}) cannot bring a value back into the node's store: {}", owner,
                                      setup_.host,
                                      answer.why.empty() ? "the node that has it is out of reach" : answer.why));
    }
  }
}

}  // namespace rota::detail
