// The threads that run tasks and calls.
#include <cxxabi.h>
#include <fmt/format.h>
#include <pthread.h>
#include <rota/detail/frame.h>

#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"
#include "runtime/base/log.h"
#include "runtime/base/running_mean.h"
#include "runtime/base/thrown.h"
#include "runtime/worker/cores.h"
#include "runtime/worker/process.h"

namespace rota::detail {
namespace {

// Stacks are reserved, not used: recursion through get runs children on the stack of the parent.
constexpr std::size_t stack_bytes = std::size_t{64} << 20;
constexpr std::size_t stack_reserve = std::size_t{512} << 10;  // left for the user's own frames
constexpr float long_task_ns = 50'000;
constexpr float short_task_ns = 5'000;
constexpr std::uint64_t most_owed_ns = 100'000;  // docs/protocol.md: DONE is told within 100 µs
constexpr std::uint32_t most_threads = 4096;

std::byte* stack_limit_of_this_thread() {
  pthread_attr_t attributes;
  void* base = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return nullptr;
  pthread_attr_getstack(&attributes, &base, &size);
  pthread_attr_destroy(&attributes);
  return static_cast<std::byte*>(base) + std::min(stack_reserve, size / 2);
}

}  // namespace

// Read on every way to the pump. initial-exec: librota is loaded with the program.
[[gnu::tls_model("initial-exec")]] static constinit thread_local running_task the_task;

running_task& process::current() { return the_task; }

void process::start_threads() {
  enter();
  for (unsigned i = 0; i < setup_.slots; ++i) add_executor();
  unlock();
  helper_thread_ = std::jthread([this](const std::stop_token& stop) { helper_main(stop); });
}

void process::add_executor() {
  if (stopping_ || live_executors_ >= most_threads) return;
  executor& made = executors_.emplace_back();
  made.bound = !setup_.cores.empty();
  if (made.bound) made.core = setup_.cores[live_executors_ % setup_.cores.size()];
  try {
    made.thread.start(stack_bytes, [this, &made] { executor_main(made); });
  } catch (const std::exception& e) {
    executors_.pop_back();
    if (live_executors_ < setup_.slots) throw;  // at the start; later, what waits runs when a thread comes free
    if (!std::exchange(told_of_threads_, true)) {
      base::log().warn("rank {} ({}) goes on with {} threads: {}", setup_.rank, setup_.host, live_executors_, e.what());
    }
    return;
  }
  ++live_executors_;
  ++hunting_;
}

// Threads that have ended, to be joined without the pump: their thread_local destructors may want it.
void process::take_ended(std::list<executor>& to) {
  for (auto at = executors_.begin(); at != executors_.end();) {
    auto next = std::next(at);
    if (at->exited) to.splice(to.end(), executors_, at);
    at = next;
  }
}

void process::executor_main(executor& self) {
  if (self.bound) bind_this_thread(self.core);
  current().stack_limit = stack_limit_of_this_thread();
  turn at_the_pump(*this);
  bool hunting = true;
  std::uint64_t spin_until = 0;
  while (true) {
    step();
    std::optional<agent::work> work = agent_.next();
    if (work) {
      if (hunting) --hunting_;
      hunting = false;
      spin_until = 0;
      wake_others(false);
      run(*work);
      continue;
    }
    if (!hunting) ++hunting_;
    hunting = true;
    if (stopping_) break;
    wake_others(false);
    if (spin(spin_until)) continue;
    spin_until = 0;
    --hunting_;
    hunting = false;
    if (idle_.size() >= setup_.slots) break;  // a spare thread that nobody needs
    if (sentinel_ == sleeper::none || sentinel_ == sleeper::helper) {
      sleep(sleeper::executor, std::nullopt);
    } else {
      park(self);
    }
    ++hunting_;
    hunting = true;
  }
  if (hunting) --hunting_;
  --live_executors_;
  self.exited = true;
}

void process::park(executor& self) {
  if (!settle_down(sleeper::executor)) return;
  std::uint32_t value = self.wake.load();
  idle_.push_back(&self);
  unlock();
  while (self.wake.load() == value) base::futex_wait(self.wake, value);
  enter();
}

void process::unpark(executor& e) {
  std::erase(idle_, &e);
  e.wake.fetch_add(1);
  base::futex_wake(e.wake, 1);
}

// Runs one piece of work: leaves the pump for it and comes back with the result.
void process::run(agent::work& w) {
  const float known_ns = w.kind == agent::job_kind::destroy ? unknown_ns : function_ns_[w.function];
  const bool unknown_or_long = known_ns > long_task_ns;
  // A clock read costs as much as the shortest tasks: of functions that are known to be short, one run in eight is
  // timed.
  const bool timed = known_ns > short_task_ns || ++runs_ % 8 == 0;
  const std::uint64_t now = timed || links_.wakes_owed() ? base::now_ns() : 0;
  const bool overdue = links_.wakes_owed() && owed_since_ != 0 && now - owed_since_ > most_owed_ns;
  publish(unknown_or_long || overdue ? wake::all : wake::urgent);
  owed_since_ = links_.wakes_owed() ? (owed_since_ ? owed_since_ : now) : 0;
  if (sentinel_ == sleeper::none) {
    if (unknown_or_long && !idle_.empty()) unpark(*idle_.back());  // takes over the doorbell
    ensure_helper();
  } else if (links_.wakes_owed()) {
    call_helper();  // if this one runs long after all
  }
  unlock();

  running_task saved = current();
  running_task& task = current();
  task.job = w.job;
  task.id = w.id;
  task.attempt = w.attempt;
  task.name = title_of(w);
  base::buffer failure;
  agent::made_value result;
  result.value.kind = wire::value_kind::inlined;
  value_bytes bytes{w.bytes.data(), w.bytes.size(), w.held.data(), w.held.size()};
  call_frame frame(bytes, w.mask, w.deps);
  if (w.instance) {
    frame.instance = *w.instance;
    frame.destroy = *w.destroy;
  }
  try {
    if (w.kind == agent::job_kind::destroy) {
      if (frame.destroy) frame.destroy(frame.instance);
    } else {
      functions_.at(w.function)(frame);
    }
    if (encoded* made = frame.result()) {
      result.contains = made->bytes.refs();
      result.value.size = made->size;
      if (made->placed) {
        result.value.kind = wire::value_kind::placed;
        result.value.owner = setup_.rank;
        result.value.place = made->where.cell;
        made->placed = false;
        store().seal(made->where.cell);
      } else {
        result.value.data = {made->bytes.data(), made->size};
      }
    }
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    failure = describe_failure(w, describe_current_exception());
    result.value = wire::failed_value(failure.view());
    result.contains = {};
  }
  const auto spent = timed ? base::now_ns() - now : static_cast<std::uint64_t>(known_ns);
  task = saved;

  enter();
  if (w.kind == agent::job_kind::construct && result.value.kind != wire::value_kind::failed) {
    *w.instance = frame.instance;
    *w.destroy = frame.destroy;
  }
  if (timed && w.kind != agent::job_kind::destroy) note_time(w.function, spent);
  agent_.finished(w.job, result, static_cast<std::uint32_t>(std::min<std::uint64_t>(spent, 0xffff'ffff)));
  if (agent_.runnable() == 0) {  // nothing follows that would take the result along
    drain_local();
    publish(wake::wanted);
  }
}

std::string_view process::title_of(const agent::work& w) const {
  if (!w.name.empty() || w.kind == agent::job_kind::destroy) return w.name;
  return titles_[w.function];
}

void process::note_time(std::uint32_t function, std::uint64_t nanoseconds) {
  float& known = function_ns_[function];
  if (known == unknown_ns) known = std::max(static_cast<float>(nanoseconds), 1.0f);
  known = base::moved_mean(known, static_cast<float>(nanoseconds), 0.1f);
}

// A task that waits lets an unstarted child of its own run on its stack. Called with the pump.
bool process::run_child(std::uint32_t job) {
  std::byte here;
  std::byte* limit = current().stack_limit;
  if (limit && &here < limit) return false;
  std::optional<agent::work> work = agent_.next_child(job);
  if (!work) return false;
  --in_get_;  // this thread computes
  wake_others(false);
  run(*work);
  ++in_get_;
  return true;
}

// What get() throws elsewhere for an exception of user code.
base::buffer process::describe_failure(const agent::work& w, thrown cause) const {
  wire::failure f;
  std::string_view name = title_of(w);
  const char* kind = w.kind == agent::job_kind::task ? "task" : w.kind == agent::job_kind::call ? "call" : "actor";
  f.what = fmt::format("{} {} on rank {} ({}) threw {}: {}", kind, name, setup_.rank, setup_.host, cause.type_name,
                       cause.message);
  if (w.kind == agent::job_kind::construct) {
    f.what = fmt::format("the actor is gone: its constructor {} on rank {} ({}) threw {}: {}", name, setup_.rank,
                         setup_.host, cause.type_name, cause.message);
  }
  f.kind = wire::failure_kind::task;
  if (cause.kind == thrown_kind::task_cancelled) f.kind = wire::failure_kind::cancelled;
  if (cause.kind == thrown_kind::out_of_memory) f.kind = wire::failure_kind::out_of_memory;
  if (cause.kind == thrown_kind::object_lost) f.kind = wire::failure_kind::object_lost;
  f.cause = std::move(cause);
  return wire::encode(f);
}

std::size_t process::thread_count() {
  turn at_the_pump(*this);
  return live_executors_ + (helper_thread_.joinable() ? 1 : 0) + (stored_.has_thread() ? 1 : 0) + 1;
}

void process::stop_threads() {
  stored_.stop();
  {
    turn at_the_pump(*this);
    stopping_ = true;
    while (!idle_.empty()) unpark(*idle_.back());
    mpi::ring(links_.own_bell());
    helper_thread_.request_stop();
    helper_word_.fetch_add(1);
    base::futex_wake(helper_word_, 1);
  }
  if (helper_thread_.joinable()) helper_thread_.join();
  for (executor& e : executors_) e.thread.join();
  executors_.clear();
}

}  // namespace rota::detail
