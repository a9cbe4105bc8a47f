// The pump: taking messages in, sending, sleeping and waking.
#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"
#include "runtime/worker/process.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rota::detail {
namespace {

constexpr std::uint64_t spin_ns = 20'000;
constexpr std::uint64_t crowded_spin_ns = 5'000;

#if defined(__x86_64__)
inline void relax() { _mm_pause(); }
#else
inline void relax() {}
#endif

// nullopt: without end.
std::optional<std::chrono::nanoseconds> left_until(deadline until) {
  if (!until) return std::nullopt;
  const std::chrono::nanoseconds left = *until - std::chrono::steady_clock::now();
  return std::max(left, std::chrono::nanoseconds(0));
}

}  // namespace

void process::enter() {
  if (!mutex_.try_lock()) {
    wanted_.fetch_add(1);
    mutex_.lock();
    wanted_.fetch_sub(1);
  }
  holder_.store(&current(), std::memory_order_relaxed);  // relaxed: only this thread can find itself there
  ++visits_;
}

void process::unlock() {
  holder_.store(nullptr, std::memory_order_relaxed);  // relaxed: see enter
  mutex_.unlock();
}

// A program's thread leaves the pump: what it caused is on its way first, then what can wait is worked off, and
// somebody will take in what comes next. A thread that keeps coming, to submit, takes in what has come for all.
void process::leave() {
  if (closed()) return unlock();  // nothing of the session is touched any more
  constexpr std::uint64_t visits_per_look = 256;
  drain_local();
  publish_leisurely();
  if (visits_ % visits_per_look == 0 && links_.anything_waits()) step();
  if (drops_.any()) take_drops();
  // Counts may wait for company only where the helper will soon look.
  if (agent_.has_unsent_counts() && helper_.load() != helper_mode::ticking) agent_.flush();
  drain_local();
  wake_others(false);
  publish_leisurely();
  throttled_.store(links_.throttled(), std::memory_order_relaxed);  // relaxed: a hint
  if (sentinel_ == sleeper::none || agent_.has_unsent_counts() || links_.wakes_owed()) ensure_helper();
  if (stored_.searching()) call_helper();
  unlock();
}

bool process::step() {
  bool any = false;
  if (far_links* far = links_.far()) far->tend();
  if (drops_.any()) {
    take_drops();
    any = true;
  }
  drain_local();
  any |= links_.receive([this](rank_t from, bytes_view record) {
    dispatch(from, record);
    drain_local();
  });
  if (stored_.searching()) news_ |= stored_.tend();
  agent_.flush();
  drain_local();
  if (links_.clogged()) publish(wake::urgent);
  return any;
}

void process::dispatch(rank_t from, bytes_view record) {
  heard_ = std::max(heard_, need_of(record));
  wire::message type = wire::type_of(record);
  if (head_ && wire::for_head(type)) return head_->receive(from, record);
  if (agent_.receive(from, record)) return;
  if (type == wire::message::run_ends) return run_ends_();
  if (type == wire::message::close) {
    if (links_.far()) links_.far()->forgive_silence();
    close_asked_.store(1);
    base::futex_wake(close_asked_, 1);
    return;
  }
  if (!stored_.receive(from, record)) throw_unknown(from, type);
  news_ = true;
}

// What this rank's machines have for its agent, until they have no more to say.
void process::drain() {
  outboxes_.drain([this](bytes_view record) {
    if (!agent_.receive(setup_.rank, record)) stored_.receive(setup_.rank, record);
  });
}

void process::take_drops() {
  drops_.take([this](agent::object& o) { agent_.dropped(o); },
              [this](std::uint64_t cell) { store().free(cell, outboxes_.of_agent()); });
}

// For handles that go: in any thread, and in one that has the pump. The helper or the next visit works it off.
// seq_cst here and before: the helper looks once more after it has stopped ticking.
void process::let_go() noexcept {
  if (helper_.load() == helper_mode::ticking) return;
  if (holder_.load(std::memory_order_relaxed) == &current()) return;  // relaxed: see enter. It will leave().
  turn at_the_pump(*this);
}

void process::dropped(agent::object& o) noexcept {
  if (closed()) return;
  drops_.add(o);
  let_go();
}

void process::free_place(std::uint64_t cell) noexcept {
  if (closed()) return;
  drops_.add_place(cell);
  let_go();
}

bool process::anything_waits() { return links_.anything_waits() || drops_.any(); }

// What was sent becomes visible; programs that were held back hear when receivers have caught up.
void process::publish(wake whom) {
  const links::backlog before = links_.waits();
  links_.publish(whom);
  tell_of_room(before);
}

void process::publish_leisurely() {
  const links::backlog before = links_.waits();
  links_.publish_leisurely();
  tell_of_room(before);
}

// news_: the thread that finds the room may itself be about to sleep until there is some.
void process::tell_of_room(links::backlog before) {
  if (links_.waits() >= before) return;
  news_ = true;
  tell_clients();
}

// Whoever waits in get, wait or throttle looks again.
void process::tell_clients() {
  if (parked_clients_ > 0) {
    epoch_.fetch_add(1);
    base::futex_wake(epoch_, 1 << 30);
  }
  if (sentinel_ == sleeper::client) mpi::ring(links_.own_bell());
}

// Work and values that this thread leaves behind find a thread.
void process::wake_others(bool by_helper) {
  if (agent_.take_news() || std::exchange(news_, false) || ending()) tell_clients();
  std::uint32_t work = agent_.runnable();
  if (work == 0 || stopping_) return;
  std::uint32_t awake = hunting_;
  if (awake >= work) return;
  std::uint32_t wake = work - awake;
  for (; wake > 0 && !idle_.empty(); --wake) unpark(*idle_.back());
  if (wake > 0 && sentinel_ == sleeper::executor) {
    mpi::ring(links_.own_bell());
    --wake;
  }
  if (wake == 0) return;
  // Everyone computes or waits in get. A free slot gets a thread at once; calls of actors when the helper sees that
  // nobody comes back soon.
  std::uint32_t computing = live_executors_ - in_get_;
  if (computing < setup_.slots || by_helper) return add_executor();
  if (helper_ == helper_mode::sentinel) return mpi::ring(links_.own_bell());
  ensure_helper();
}

// Looks for a while before sleeping, in all until `until` (0: from now on). True: something came, or another thread was
// at the pump: look again. Called with the pump, which others get meanwhile. Never by sched_yield: from Linux 6.18 on
// each costs the thread a slice, and who has yielded a thousand times does not run for seconds once others want to.
bool process::spin(std::uint64_t& until) {
  publish(wake::wanted);
  if (!links_.wakes_owed()) owed_since_ = 0;
  if (setup_.crowded && spinning_ > 0) return false;  // one thread looks for all
  far_links* const far = links_.far();
  if (until == 0) {
    const std::uint64_t now = base::now_ns();
    until = now + (setup_.crowded ? crowded_spin_ns : spin_ns);
    if (far && !setup_.crowded) until = now + std::max(spin_ns, far->patience_ns(now));
  }
  for (int look = 1;; ++look) {
    if (anything_waits()) {
      if (!setup_.crowded) until = 0;
      return true;
    }
    if (far && far->moves()) until = std::max(until, base::now_ns() + spin_ns);
    constexpr int looks_per_clock = 16;
    const bool others = wanted_.load(std::memory_order_relaxed) > 0;
    const bool over = (setup_.crowded || others || look % looks_per_clock == 0) && base::now_ns() >= until;
    if (over) return false;
    if (others) {
      ++spinning_;
      unlock();
      while (wanted_.load(std::memory_order_relaxed) > 0 && base::now_ns() < until) relax();
      enter();
      --spinning_;
      return true;
    }
    relax();
  }
}

// Before sleeping: what is held back goes out, and what comes of it here finds a thread. False if that may be what this
// thread itself looks for: it must not sleep then.
bool process::settle_down(sleeper who) {
  agent_.flush();
  drain_local();
  publish(wake::all);
  if (stored_.searching()) {
    if (who == sleeper::helper) return false;  // it is the one to look again
    call_helper();
  }
  if (who == sleeper::executor && agent_.runnable() > 0) return false;
  const bool news = agent_.has_news() || news_;
  wake_others(false);
  return who != sleeper::client || !news;
}

// False if some room has come: there may be more to send, and programs that were held back may go on.
bool process::await_room() {
  const links::backlog before = links_.waits();
  const bool none = links_.await_room();
  tell_of_room(before);
  return none;
}

// Sleeps on the rank's doorbell. Called with the pump and returns with it; sleeps without.
void process::sleep(sleeper who, deadline until) {
  if (!settle_down(who)) return;
  mpi::doorbell& bell = links_.own_bell();
  bell.counter.fetch_add(1);  // so that senders can tell this sleep from the last (links::wake)
  sentinel_ = who;
  std::uint32_t value = bell.prepare();
  bool stay = !anything_waits() && await_room() && !(stopping_ && who != sleeper::client) && links_.arm();
  if (stay) {
    unlock();
    bell.wait(value, left_until(until));
    enter();
  }
  if (sentinel_ == who) {
    bell.awake();
    sentinel_ = sleeper::none;
  }
}

void process::park_client(deadline until) {
  if (!settle_down(sleeper::client)) return;
  std::uint32_t value = epoch_.load();
  ++parked_clients_;
  unlock();
  base::futex_wait(epoch_, value, left_until(until));
  enter();
  --parked_clients_;
}

// What the program waits for: the thread itself does the work that brings it.
bool process::wait_until(const std::function<bool()>& done, deadline until) {
  if (over()) throw_over();
  running_task& task = current();
  turn at_the_pump(*this);
  if (over()) throw_over();
  struct presence {  // the window stays while anyone is in here
    std::uint32_t& count;
    explicit presence(std::uint32_t& clients) : count(clients) { ++count; }
    ~presence() { --count; }
  } here(clients_);
  if (task.job) {
    agent_.blocked(task.job, false);
    ++in_get_;
  }
  bool finished = false;
  std::uint64_t spin_until = 0;
  for (;;) {
    step();
    finished = done();
    if (finished || over() || (until && std::chrono::steady_clock::now() >= *until)) break;
    if (task.job && run_child(task.job)) {
      spin_until = 0;
      continue;
    }
    wake_others(false);
    if (std::exchange(heard_, wake::all) != wake::all) spin_until = 0;
    if (spin(spin_until)) continue;
    spin_until = 0;
    if (task.job) agent_.blocked(task.job, true);
    if (sentinel_ == sleeper::none || sentinel_ == sleeper::helper) {
      sleep(sleeper::client, until);
    } else {
      park_client(until);
    }
  }
  if (task.job) {
    --in_get_;
    agent_.unblocked(task.job);
  }
  // The next one to wait takes over the doorbell.
  if (sentinel_ == sleeper::none && parked_clients_ > 0) {
    epoch_.fetch_add(1);
    base::futex_wake(epoch_, 1);
  }
  if (!finished && over()) throw_over();
  return finished;
}

void process::throttle() {
  if (throttled()) wait_until([this] { return !links_.throttled(); }, std::nullopt);
}

}  // namespace rota::detail
