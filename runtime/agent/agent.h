#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime/agent/parts.h"
#include "runtime/agent/work.h"
#include "runtime/base/id_map.h"
#include "runtime/base/pool.h"
#include "runtime/base/slab.h"
#include "runtime/wire/copy_messages.h"
#include "runtime/wire/failure.h"
#include "runtime/wire/outbox.h"
#include "runtime/wire/resources.h"

namespace rota::agent {

// The rank's state machine: what is assigned to it and when it may start, who gets its results, its refs, the actors
// that live on it and the calls it has made. Pure: no clock, no threads, no I/O; messages leave through the outbox.
// Not thread-safe: one caller at a time (the holder of the pump), save the handle counts of objects.
class agent {
 public:
  // `free_place` is called when a value in this rank's own heap is no longer needed.
  agent(rank_t self, wire::resources offered, wire::outbox& out);
  ~agent();
  agent(const agent&) = delete;
  agent& operator=(const agent&) = delete;

  // -- what the program does -------------------------------------------------------------------------------------
  // A fresh object without a handle: for submit, call or put.
  object& make(object_id id) { return *slab_.make(id); }
  // `result` is fresh, with the caller's handle in it. Called by the submitting thread or on its behalf, in its order.
  void submit(object& result, const submission& s);
  // Tasks that differ in nothing but their argument bytes, one CPU each and without refs in those; their results are
  // fresh too, with ids in a row.
  void submit_all(std::span<object* const> results, submission alike, std::span<const bytes_view> bytes);
  void call(object& result, object& actor, const submission& s);
  void kill(object& actor);
  // Adopts a fresh object (one handle in it) with a value made here.
  void put(object& fresh, const made_value& v);
  // Makes sure that the value will come, if it has not; or only word that there is one.
  void want(object& o) {
    o.flags |= object::wanted;
    ask_for(o);
  }
  void ask_for(object& o);
  // The last handle went (drop_handle returned true).
  void dropped(object& o);
  // An object by id, with a new handle in it; created where unknown. `counted`: the head has counted this rank already.
  object& adopt(object_id id, bool counted);
  // A query to the head; the answer comes back by take_reply.
  std::uint32_t ask(wire::query_kind kind, bytes_view body);
  std::optional<base::buffer> take_reply(std::uint32_t number);

  // -- messages --------------------------------------------------------------------------------------------------
  // Takes a message for this rank. False where it is none of the agent's (store, close, ...).
  bool receive(rank_t from, bytes_view record) {
    bool known = take(from, record);
    if (anything_fails()) work_off_failing();
    return known;
  }
  // Sends what has been held back for a batch. Call it before sleeping and before leaving the pump.
  void flush();
  bool has_unsent_counts() const { return !plus_.empty() || !minus_.empty(); }

  // -- execution -------------------------------------------------------------------------------------------------
  // The next thing to run, if anything may start now; for a thread whose job waits, an unstarted child of that job.
  std::optional<work> next();
  std::optional<work> next_child(std::uint32_t j);
  // Calls of actors and, where slots are free, tasks that next() would return now.
  std::uint32_t runnable() const;
  void finished(std::uint32_t j, const made_value& v, std::uint32_t nanoseconds);
  // The job waits in get: its slot may be used by another one. `parked`: it sleeps, the head should know.
  void blocked(std::uint32_t j, bool parked);
  void unblocked(std::uint32_t j);
  // True once after anything became ready, failed or was answered.
  bool take_news() { return std::exchange(news_, false); }
  bool has_news() const { return news_; }
  bool idle() const { return jobs_.live() == 0; }
  std::uint32_t live_jobs() const { return jobs_.live(); }
  std::size_t live_objects() const { return objects_.size(); }
  std::size_t actors_alive() const { return actor_of_.size(); }
  object_id id_of(std::uint32_t j) const { return jobs_[j].id; }
  std::string describe_live(std::size_t most) const;
  // Drops whatever has not started (the session ends). Actors get their destroy jobs.
  void close();
  std::function<void(std::uint64_t place)> free_place;
  std::function<std::string(std::uint32_t function)> function_name;
  void set_nodes(std::vector<std::uint32_t> of_ranks) { nodes_ = {self_, std::move(of_ranks)}; }  // before all else
  // Brings what lies in the heap of another rank, of another node, into this rank's own. Ends in fetched().
  std::function<void(std::uint64_t number, const source& from, std::uint64_t size)> fetch;
  void fetched(std::uint64_t number, wire::fetch_outcome outcome, std::uint64_t place);
  // For the simulator: what the head will hear with the next flush; every object that this rank names with a handle.
  const std::vector<object_id>& unsent_plus() const { return plus_; }
  const std::vector<object_id>& unsent_minus() const { return minus_; }
  template <class F>
  void for_each_object(F&& use) const {
    objects_.for_each([&](object_id, object* o) { use(*o); });
  }

 private:
  // objects.cpp
  object& find_or_make(object_id id);
  object* find(object_id id) const { return objects_.find(id); }
  void set_value(object& o, const wire::value_view& v, bool lasting);
  void set_made(object& o, const made_value& v, bool lasting);
  void pin(object& o) { ++o.pins; }
  void unpin(object& o);
  // Keeps the object while a function works on it; not what the head covers, so that its account does not depend on it.
  void keep(object& o) { ++o.loans; }
  void unlend(object& o);
  void hold(object& o) { add_handle(o); }
  void unhold(object& o);
  void uncovered(object& o);
  bool is_unused(object& o);
  void erase_if_unused(object& o);
  void publish(object& o);
  void publish_all(std::span<object* const> objects);
  wire::value_view view_of(const object& o);
  void count_plus(object& o);
  void count_minus(object& o);
  void add_waiter(object& o, index j, bool any);
  void release_any(object& o);
  void forget_waiter(object& o, index j);
  void deliver(object& o, std::uint32_t count);
  void take_early(object& o);
  void send_routes(object& o, const wire::value_view& v, std::vector<wire::serve>& served);
  void route(object& o, wire::serve to);
  void release_place(rank_t owner, std::uint64_t place);

  // jobs.cpp
  void on_assign(bytes_view record);
  void on_value(rank_t from, bytes_view record);
  void on_route(bytes_view record);
  void on_recall(bytes_view record);
  index make_job(std::uint32_t deps, std::uint32_t held, std::string_view name, bytes_view bytes);
  void drop_job(index j);
  void make_ready(index j);
  void list_ready(index j);
  void unlist_ready(index j);
  std::uint32_t class_of(std::int32_t priority, std::uint8_t code, const wire::resources* needs);
  work start(index j);
  void finish_task(index j, const made_value& v, std::uint32_t nanoseconds);
  bool anything_fails() const { return !failing_.empty() || !failing_calls_.empty(); }
  void work_off_failing();
  void fail_job(index j, bytes_view failure);
  void tell_blocked(std::uint32_t& count, std::int64_t& cpus);
  const object* failed_dep(index j) const;
  void give_back_unfit();
  void take_out(index j);
  bool keep_here(const submission& s) const;
  void put_contains(std::span<object* const> contains, base::buffer& to);

  // calls.cpp
  void on_call(rank_t from, bytes_view record);
  void on_returned(rank_t from, bytes_view record);
  void on_settle(object_id id);
  void on_actor_at(bytes_view record);
  void on_end_actor(bytes_view record);
  void on_counted(bytes_view record);
  void finish_call(index j, const made_value& v);
  void finish_construct(index j, const made_value& v, std::uint32_t nanoseconds);
  void finish_destroy(index j);
  void list_actor(index a);
  void unlist_actor(index a);
  void push(job_list& list, index j);
  index pop(job_list& list);
  void call_ready(index j);
  void answer_failed(index a);
  void answer(index j, const made_value& v);
  index host_of(object_id actor);
  void end_hosted(index a);
  void fail_calls(index a);
  void forget_hosted(index a);
  void complete_call(object& result, const wire::value_view& v, rank_t from, bool settled);
  void drop_call(index c);
  known_actor& link_to(object& actor);
  void return_failed(rank_t caller, object_id id, bytes_view failure);

  // fetching.cpp
  void note_elsewhere(object& o);
  void on_fetch(bytes_view record);
  bool fetch_result(rank_t from, object_id call, const wire::value_view& v, bytes_view record);
  void finish_fetched_result(const fetching& f, wire::fetch_outcome outcome, std::uint64_t place);

  // losing.cpp
  bool take(rank_t from, bytes_view record);
  void on_lost(bytes_view record);
  void count_loans(rank_t lost);
  void end_calls_to(rank_t lost, std::vector<object*>& kept);
  void on_closed(std::uint32_t view);
  void send_sync(rank_t rank, std::uint32_t view);

  std::uint32_t fresh_token() { return ++next_token_ ? next_token_ : ++next_token_; }  // 0: none
  void send_head(bytes_view record);
  void send_counts(std::span<const object_id> minus);
  void send(rank_t to, bytes_view record);

  const rank_t self_;
  wire::resources offered_;
  std::int64_t capacity_;  // offered CPUs less those that actors hold for life
  wire::resources free_;
  wire::outbox& out_;
  base::slab<object> slab_;  // of all objects, known to objects_ or still fresh
  base::id_map<object*> objects_;
  base::id_map<index> job_of_;  // tasks of this rank that are not done
  base::pool<job> jobs_;
  base::pool<waiter> waiters_;
  base::pool<hosted> hosted_;
  base::pool<pending_call> calls_;
  base::id_map<index> actor_of_;  // actors that live here
  base::id_map<index> call_of_;   // calls that have not been settled
  std::unordered_map<object_id, known_actor> links_;
  std::vector<ready_class> classes_;
  std::map<std::tuple<std::int32_t, std::int64_t, decltype(wire::resources::others)>, std::uint32_t> class_ids_;
  std::vector<std::uint32_t> class_order_;  // those with ready jobs, by priority, highest first
  std::uint32_t common_class_ = 0;
  std::deque<index> ready_actors_;
  std::uint32_t ready_tasks_ = 0;
  blocked_tasks blocked_, blocked_told_;  // now, and what the head knows
  std::vector<object_id> plus_, minus_;
  std::uint64_t head_sends_ = 0;
  std::uint32_t next_token_ = 0;
  std::unordered_map<std::uint32_t, std::pair<rank_t, object_id>> settling_;  // token -> who gets settle for what
  std::unordered_map<object_id, std::vector<object*>> loans_;                 // refs in returned results, until settled
  node_map nodes_;
  fetch_book fetching_;
  std::uint32_t next_query_ = 0;
  std::unordered_map<std::uint32_t, base::buffer> replies_;
  std::set<rank_t> lost_;
  std::map<std::uint32_t, std::vector<object*>> kept_;  // view -> refs lent to the lost rank, until all have counted
  std::vector<index> failing_;                          // jobs whose arguments failed
  std::vector<index> failing_calls_;                    // actors whose next call's have
  std::vector<wire::serve> served_;
  std::vector<object*> dep_scratch_;
  base::buffer scratch_, scratch_ids_, scratch_counts_;
  bool news_ = false;
  bool closing_ = false;
};

}  // namespace rota::agent
