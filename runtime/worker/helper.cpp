// The helper thread: the rank answers while all its other threads compute.
#include "runtime/base/futex.h"
#include "runtime/worker/process.h"

namespace rota::detail {
namespace {

constexpr auto tick = std::chrono::milliseconds(1);

}  // namespace

// The helper looks at the rank once a tick from now on.
void process::ensure_helper() {
  const helper_mode was = helper_.load();
  if (was == helper_mode::ticking || sentinel_ == sleeper::helper) return;
  helper_ = helper_mode::ticking;
  if (was != helper_mode::sentinel) {
    helper_word_.fetch_add(1);
    base::futex_wake(helper_word_, 1);
  } else {
    mpi::ring(links_.own_bell());  // it sleeps on a doorbell that others have used since, and hears no more
  }
}

// The helper looks once, a tick from now: for what may wait for company meanwhile.
void process::call_helper() {
  const helper_mode was = helper_.load();
  if (was == helper_mode::sentinel) {  // it sleeps on the doorbell, alone or beside whoever took that over
    helper_ = helper_mode::ticking;
    return mpi::ring(links_.own_bell());
  }
  if (was != helper_mode::parked) return;
  helper_ = helper_mode::called;
  helper_word_.fetch_add(1);
  base::futex_wake(helper_word_, 1);
}

// One look of the helper, with the pump. `seen`: the visits that it knows of.
process::helper_mode process::help(std::uint64_t& seen) {
  if (agent_.has_unsent_counts() || stored_.searching() || anything_waits()) {
    step();
    wake_others(true);
  }
  publish(wake::all);
  const bool moving = stored_.searching();
  const bool unserved = agent_.runnable() > hunting_;  // calls, or tasks of less than a CPU, and no thread for them
  if (unserved) wake_others(true);
  if (!unserved && !moving && (sentinel_ == sleeper::client || sentinel_ == sleeper::executor)) {
    helper_ = helper_mode::parked;
    if (drops_.any()) helper_ = helper_mode::ticking;  // seq_cst: pairs with let_go()
  } else if (unserved || moving || visits_ != seen) {
    helper_ = helper_mode::ticking;
  } else {
    helper_ = helper_mode::sentinel;
    step();
    wake_others(true);
    sleep(sleeper::helper, std::nullopt);
    --visits_;  // its own
    step();
    wake_others(true);
    publish(wake::all);
    // Others came meanwhile, and will again; or what came looks for room.
    if (visits_ != seen || stored_.searching()) helper_ = helper_mode::ticking;
  }
  seen = visits_;
  return helper_;
}

// Keeps the rank reachable while all its threads compute: once nobody has held the pump for a tick, it sleeps on the
// doorbell and takes in what comes, until someone is back.
void process::helper_main(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    std::uint32_t value = helper_word_.load();
    helper_mode mode = helper_mode::ticking;
    std::list<executor> ended;
    if (mutex_.try_lock()) {                                 // else somebody is at the pump, and nothing is to be done
      holder_.store(&current(), std::memory_order_relaxed);  // relaxed: see enter
      mode = help(seen);
      take_ended(ended);
      unlock();
    }
    for (executor& e : ended) e.thread.join();
    if (stop.stop_requested()) return;
    if (mode == helper_mode::parked) {
      base::futex_wait(helper_word_, value);
      value = helper_word_.load();
      if (helper_.load() == helper_mode::called) base::futex_wait(helper_word_, value, tick);
    }
    if (mode == helper_mode::ticking) base::futex_wait(helper_word_, value, tick);
  }
}

}  // namespace rota::detail
