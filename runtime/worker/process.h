#pragma once

#include <rota/config.h>
#include <rota/detail/core.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "mpi/window.h"
#include "runtime/agent/agent.h"
#include "runtime/base/thrown.h"
#include "runtime/scheduler/scheduler.h"
#include "runtime/worker/drops.h"
#include "runtime/worker/functions.h"
#include "runtime/worker/links.h"
#include "runtime/worker/local_store.h"
#include "runtime/worker/outboxes.h"
#include "runtime/worker/rank_setup.h"
#include "runtime/worker/running_task.h"
#include "runtime/worker/stack_thread.h"

namespace rota::detail {

// One rank of a session: agent, links and store, rank 0's scheduler, and the threads that drive them. One thread at a
// time holds the pump (`mutex_`): it takes messages in, lets the machines decide and sends what they say. Whoever waits
// takes the pump itself; see runtime/README.md for the threads. Public functions: any thread, unless they say
// otherwise. Lives until the process ends, so that refs may outlive the session.
class process {
 public:
  process(rank_setup setup, config values, function_table functions, mpi::node_window& window);
  // Before start_threads(): the way to ranks of other nodes. Called with the pump: `broken` when one is lost,
  // `run_ends` when the head goes without this rank.
  void connect(std::unique_ptr<mpi::fabric> way, std::function<void(rank_t, const std::string&)> broken,
               std::function<void()> run_ends);
  // Rank 0, when it goes without the others: tells those of other nodes. Gives up after a moment.
  void tell_run_ends() noexcept;
  void disconnect(std::chrono::steady_clock::time_point until);  // once all threads have ended
  void drive_fabric();               // between the end of the threads and disconnect(): others may still need it
  std::string way_to(rank_t other);  // of the fabric; empty on its own node
  // Rank 0, before start_threads(): `offers` by rank.
  void become_head(const std::vector<scheduler::rank_offer>& offers);

  const rank_setup& setup() const { return setup_; }
  const config& values() const { return values_; }
  const function_table& functions() const { return functions_; }
  store_link& store() { return stored_.link(); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }  // pairs with close_here
  // Nothing can be asked for any more: the session is closed, or has lost a rank and only waits to be ended.
  bool over() const { return over_.load(std::memory_order_acquire); }  // pairs with lose
  bool ending() const { return ending_.load(std::memory_order_relaxed); }
  void refuse_when_ending() const;  // for what a program's own threads begin

  // The first of `count` fresh ids of this rank's own, in a row.
  object_id next_ids(std::size_t count) {
    const std::uint64_t first = next_sequence_.fetch_add(count, std::memory_order_relaxed);  // relaxed: only unique
    return first + count - 1 > most_sequence ? throw_no_ids() : make_id(setup_.rank, first);
  }
  object_id next_id() { return next_ids(1); }

  // Runs use(agent) under the pump, then sends what came of it. Throws config_error when the session has ended,
  // rank_lost when it has lost a rank.
  template <class F>
  decltype(auto) visit(F&& use) {
    if (over()) throw_over();
    turn at_the_pump(*this);
    if (over()) throw_over();
    return use(agent_);
  }
  // For the done() of wait_until, which has the pump: the value is asked for unless it comes by itself.
  void want(agent::object& o) { agent_.want(o); }
  void dropped(agent::object& o) noexcept;  // its last handle went

  // Drives the runtime until done() or the deadline; done() is called with the pump, often. True if done. Throws as
  // visit(), also when the session ends meanwhile.
  bool wait_until(const std::function<bool()>& done, deadline until);
  void poll();                                                 // takes in what has come, once
  base::buffer query(wire::query_kind kind, bytes_view body);  // asks the head and waits for the answer
  std::string describe_timeout(object_id id);
  void throttle();  // waits while receivers are so far behind that more calls would only pile up
  bool throttled() const { return throttled_.load(std::memory_order_relaxed); }

  // Room for a value; waits for it, then throws out_of_memory.
  place reserve(std::size_t bytes);
  void free_place(std::uint64_t cell) noexcept;
  // Keeps a stored value of this node in memory until unpin(), once it is there; nullopt: not at the deadline. Throws
  // object_lost, out_of_memory.
  std::optional<objectstore::pins::taken> pin(rank_t owner, std::uint64_t cell, deadline until);
  void unpin(std::uint32_t slot) noexcept { store().pins().give_back(slot); }

  std::size_t thread_count();  // of the runtime in this process
  void start_threads();
  // Worker ranks: returns once the head has closed and all threads have ended; false as close_here.
  bool serve(std::chrono::nanoseconds limit, std::string& names);
  // Rank 0, in this order: drops what waits and lets what runs end; tells the others; ends its own threads.
  bool end_tasks(deadline until, std::string& names);
  void send_close();
  bool close_here(std::chrono::steady_clock::time_point until, std::string& names);
  // Rank 0, with the pump: the run has lost a rank. From now on whoever asks for something gets rank_lost.
  void lose(std::string why);
  void abandon();  // gives up on threads that still run: the process is about to end
  // Rank 0: what is held although the program holds nothing; empty if nothing is.
  std::string leaks();

  static running_task& current();
  static std::string function_title(std::string_view pretty);

 private:
  struct executor {
    stack_thread thread;
    std::atomic<std::uint32_t> wake{0};
    unsigned core = 0;
    bool bound = false;
    bool exited = false;
  };
  enum class sleeper : std::uint8_t { none, executor, client, helper };
  enum class helper_mode : std::uint8_t { parked, called, ticking, sentinel };

  // Holds the pump; gives it back with everything sent.
  class turn {
   public:
    explicit turn(process& p) : process_(p) { p.enter(); }
    ~turn() { process_.leave(); }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    process& process_;
  };
  [[noreturn]] void throw_over() const;
  [[noreturn]] object_id throw_no_ids() const;

  // What other nodes bring besides messages.
  class far_hearer final : public far_links::hearer {
   public:
    explicit far_hearer(process& p) : process_(p) {}
    void received(std::uint64_t number, bool whole) override;
    void sent(rank_t to, std::uint64_t number) override;
    void broken(rank_t peer, const std::string& why) override;
    void suspected(rank_t peer, bool silent) override;
    std::function<void(rank_t, const std::string&)> on_broken;

   private:
    process& process_;
  };

  // pump.cpp
  void enter();
  void unlock();
  void leave();
  bool step();
  void dispatch(rank_t from, bytes_view record);
  [[noreturn]] void throw_unknown(rank_t from, wire::message type) const;
  void drain_local() {
    if (!outboxes_.empty()) drain();
  }
  void drain();
  void let_go() noexcept;
  void take_drops();
  void wake_others(bool by_helper);
  bool anything_waits();
  bool spin(std::uint64_t& until);
  void sleep(sleeper who, deadline until);
  void park_client(deadline until);
  bool settle_down(sleeper who);
  void publish(wake whom);
  void publish_leisurely();
  bool await_room();
  void tell_of_room(links::backlog before);
  void tell_clients();

  // helper.cpp
  void ensure_helper();
  void call_helper();
  void helper_main(const std::stop_token& stop);
  helper_mode help(std::uint64_t& seen);

  // executors.cpp
  void executor_main(executor& self);
  void run(agent::work& w);
  void park(executor& self);
  void unpark(executor& e);
  void add_executor();
  void take_ended(std::list<executor>& to);
  bool run_child(std::uint32_t job);
  void note_time(std::uint32_t function, std::uint64_t nanoseconds);
  std::string_view title_of(const agent::work& w) const;
  base::buffer describe_failure(const agent::work& w, thrown cause) const;

  // process.cpp
  void stop_threads();
  bool flush_links(deadline until);

  // store_waits.cpp
  void find_room(rooms::search search, const std::function<bool()>& take);
  void grow_pins();
  local_store::brought bring_back(rank_t owner, std::uint64_t cell, deadline until, bool& in_time);

  rank_setup setup_;
  config values_;
  function_table functions_;
  std::vector<std::string> titles_;  // of the functions, for messages and this_task()
  mpi::node_window& window_;
  links links_;
  outboxes outboxes_;
  local_store stored_;
  far_hearer far_out_;
  std::function<void()> run_ends_;
  agent::agent agent_;
  std::unique_ptr<scheduler::scheduler> head_;  // rank 0
  std::atomic<std::uint64_t> next_sequence_{1};

  std::mutex mutex_;                                  // the pump; guards everything below that is not atomic
  std::atomic<std::uint32_t> wanted_{0};              // threads that wait for the pump
  std::atomic<const running_task*> holder_{nullptr};  // current() of the thread that has the pump
  std::uint64_t visits_ = 0, owed_since_ = 0;
  sleeper sentinel_ = sleeper::none;                // who sleeps on the doorbell
  std::atomic<std::uint32_t> epoch_{0};             // parked clients sleep on it
  std::uint32_t parked_clients_ = 0, clients_ = 0;  // threads in wait_until; of them, those that sleep on epoch_
  std::list<executor> executors_;
  std::vector<executor*> idle_;  // parked executors, latest last
  std::uint32_t hunting_ = 0;    // executors that look for work
  std::uint32_t spinning_ = 0;   // threads in spin() that lent the pump to another
  std::uint32_t in_get_ = 0;     // executors whose task waits
  std::uint32_t live_executors_ = 0;
  wake heard_ = wake::all;  // the strongest of what has come since a client last looked
  static constexpr float unknown_ns = 1e9f;
  std::vector<float> function_ns_;  // recent run time by function; unknown_ns before the first
  std::uint32_t runs_ = 0;

  drops drops_;  // needs no pump, save to take them

  std::atomic<std::uint32_t> helper_word_{0};
  std::atomic<helper_mode> helper_{helper_mode::parked};  // written with the pump
  std::jthread helper_thread_;

  std::atomic<bool> throttled_{false}, closed_{false}, ending_{false}, over_{false};
  std::string lost_why_;                       // written before over_
  bool news_ = false;                          // something that a parked thread may wait for has come
  std::atomic<std::uint32_t> close_asked_{0};  // the main thread of a worker sleeps on it
  bool stopping_ = false, told_of_threads_ = false;
};

}  // namespace rota::detail
