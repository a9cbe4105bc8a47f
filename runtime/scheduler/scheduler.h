#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/scheduler/entries.h"
#include "runtime/scheduler/lanes.h"
#include "runtime/scheduler/parts.h"
#include "runtime/wire/failure.h"
#include "runtime/wire/outbox.h"

namespace rota::scheduler {

// The head's state machine: which task runs where, where each value is, who holds a ref to what. Pure: events in,
// messages out through the outbox; no clock, no threads, no I/O. Not thread-safe: one caller at a time. The work of an
// event is proportional to the message that brings it, save losing a rank and joining.
class scheduler {
 public:
  explicit scheduler(wire::outbox& out) : out_(out) {}

  void join(rank_t rank, rank_offer offer);

  // Takes a message of docs/protocol.md that is addressed to the head. Messages of a lost rank are ignored.
  void receive(rank_t from, bytes_view record);

  // The rank is gone: nothing more will come from it. Its mailbox must have been drained into receive() before.
  void lose(rank_t rank);

  // Names a task or actor for error texts. Set by the head; the default gives the function's number.
  std::function<std::string(std::uint32_t function)> function_name;

  // Drops what has not started (the session ends): each gets task_cancelled. What ranks were handed ahead follows when
  // they have given it back.
  void drop_queued();

  // Tasks handed to ranks and not done; and of them the first few, for messages.
  std::size_t assigned_tasks() const { return outstanding_; }
  std::vector<std::pair<object_id, rank_t>> some_assigned(std::size_t most) const;

  // For messages: a task's name, a rank's host.
  std::string title_of(object_id id) const;
  std::string progress_of(object_id id) const;  // "; task f waits for a free slot"
  const std::string& host_of(rank_t rank) const { return ranks_[rank].host; }

  // Live entries that anything still names. 0 once every ref is gone and every task done.
  std::size_t live_objects() const { return entries_.live(); }
  std::string describe_live(std::size_t most) const;

  const counters& count() const { return counters_; }

  // Throws std::logic_error with the reason if an invariant of docs/protocol.md does not hold. Walks everything.
  void check() const;
  std::uint32_t account_of(object_id id, rank_t rank) const;
  // For the simulator: is a count held for id by anything (an account, a task's argument, a value)?
  bool covered(object_id id) const;

 private:
  // entries.cpp: objects, edges, counts
  index touch(object_id id);
  void add_edge(index task, object_id object, edge_kind kind);
  void link_dependent(index object, index e);
  void drop_edges(index task, rank_t used_at);
  void add_account(index e, rank_t rank);
  void drop_account(index e, rank_t rank);
  void maybe_free(index e);
  void free_now(index e);
  void forget_actor(object_id actor);
  void hold_contained(const wire::value_view& value);
  void release(index object);
  bool known_place(const entry& e) const;

  // messages.cpp: one function a message
  void on_spawned(rank_t from, bytes_view record);
  void on_spawned_all(rank_t from, bytes_view record);
  void begin_task(index e, std::uint32_t function, std::uint32_t lane_id, rank_t from);
  std::uint32_t lane_of(const wire::spawned_head& head, base::cursor& cursor);
  std::uint32_t common_lane();
  void on_done(rank_t from, bytes_view record);
  void on_count(rank_t from, bytes_view record);
  void on_pull(rank_t from, object_id id);
  void on_publish(rank_t from, bytes_view record);
  void on_recalled(rank_t from, bytes_view record);
  void on_where(rank_t from, object_id actor);
  void on_end_actor(rank_t from, const wire::id_head& head);
  void on_query(rank_t from, bytes_view record);
  void on_sync(rank_t from, bytes_view record);

  // placing.cpp: lanes and ranks
  std::uint32_t intern(const shape_key& key, const wire::resources& needs, std::uint8_t code);
  bool feasible(const lane& l, rank_t rank) const;
  bool ever_feasible(const lane& l) const;  // walks the ranks: lane::possible remembers it
  void fail_impossible(index e);
  std::string why_infeasible(const lane& l) const;
  void ready(index e);
  void hand_back(index e);
  void wait_for_makers(index e);
  void forget_used(index e);
  void note_used(index e, rank_t rank);
  void settle();  // works off ready_ and handed_ until nothing follows from anything
  void place(index e);
  std::optional<rank_t> choose(index e, const lane& l);
  std::optional<rank_t> choose_on(std::uint32_t node, const lane& l, bool ripe);
  rank_t place_of_near(const entry& task) const;
  bool has_room(const lane& l, rank_t rank, bool ripe) const;
  static bool has_simple_room(const rank_state& r, bool ripe) {
    if (r.load() < r.deep) return true;
    const std::uint32_t idle = r.blocked + r.waiting;
    return ripe && std::int64_t{r.outstanding - std::min(idle, r.outstanding)} * wire::resources::unit < r.total.cpus;
  }
  std::vector<std::uint32_t>& listed_with(const lane& l);
  void list_lane(std::uint32_t id);
  void unlist_lane(std::uint32_t id);
  lane::list& list_of(index e);
  bool reserves(index e) const;
  void argument_done(index e);
  std::uint32_t depth(const rank_state& r) const;
  void assign(index e, rank_t rank);
  void send_assign(index e, rank_t rank);
  void list_task(index e, rank_t rank);
  void unlist_task(index e);
  void take_needs(index e, rank_t rank);
  void give_needs(index e, rank_t rank);
  void enqueue(index e, bool front);
  void unqueue(index e);
  void refill(rank_t rank);
  index next_for(rank_t rank) const;
  void update_load(rank_t rank) {
    if (!std::exchange(ranks_[rank].load_changed, true)) load_changed_.push_back(rank);
  }
  load_order& by_load();
  bool someone_is_idle();
  void ask_recall(rank_t victim);

  // committing.cpp: values and consumers
  void commit(index e, const wire::value_view& value, rank_t maker = no_rank);
  void commit_encoded(index e, bytes_view encoded, rank_t maker);
  void serve_dependents(index e, std::vector<wire::serve>& served);
  void fail(index e, wire::failure_kind kind, const std::string& what);
  void drop(index e);
  void send_value(rank_t to, index e, std::uint32_t count);
  void send_this(rank_t to, index e, std::uint32_t count, const wire::value_view& value);
  void collect_consumers(index e, std::vector<wire::serve>& out, bool used = false) const;
  wire::value_view value_of(const entry& e) const;
  std::string title(const entry& e) const;
  void end_actor(index e, bool now, const std::string& why);
  void tell_where(rank_t to, index e);

  // copies.cpp: values on other nodes
  node_copy* find_copy(index e, std::uint32_t node);
  wire::value_view value_for(index e, rank_t rank);
  void tell_submitter(rank_t submitter, index e);
  void want_copy(index e, rank_t to, std::uint32_t count);
  void start_fetches(index e);
  void on_fetched(rank_t from, bytes_view record);
  void free_copies(index e);
  void free_place(rank_t owner, std::uint64_t place);
  std::optional<std::uint32_t> node_of_arguments(index task);

  // losing.cpp
  void finish_losses();
  void commit_reported(loss& l);
  void close_accounts(rank_t rank);
  void redo_lost(rank_t rank);
  void retry(index e, rank_t lost);
  void drop_impossible();
  void forget_names(rank_t lost);
  wire::failure loss_of(object_id id) const;

  wire::outbox& out_;
  base::pool<entry> entries_;
  base::pool<edge> edges_;
  base::id_map<index> by_id_;
  account_book accounts_;
  std::vector<rank_state> ranks_;
  std::vector<lane> lanes_ = std::vector<lane>(1);  // 0: none
  std::map<shape_key, std::uint32_t> lane_ids_;
  std::uint32_t common_lane_ = 0;  // one CPU, priority 0, anywhere
  // Lanes with tasks, by priority: those that any rank may serve, and of each node; rank_state::pinned has its own.
  std::vector<std::uint32_t> open_lanes_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> node_lanes_;
  std::uint32_t special_lanes_ = 0;  // of the listed ones, those for which has_simple_room() does not say all
  std::size_t queued_ = 0;
  std::uint32_t next_age_ = 0;
  load_order order_;  // save for load_changed_: by_load() works them in
  std::vector<rank_t> load_changed_;
  std::size_t outstanding_ = 0;  // of all ranks
  std::unordered_map<std::string, object_id> names_;
  std::unordered_map<object_id, std::pair<std::string, std::string>> named_;  // actor -> name, class
  std::unordered_map<object_id, std::vector<rank_t>> where_asked_;            // who waits to hear where an actor is
  std::unordered_map<object_id, std::pair<wire::failure, rank_t>> dead_;      // why an actor died, and where it lived
  std::unordered_map<index, value_copies> copies_;
  std::unordered_map<std::uint32_t, node_ranks> nodes_;
  bool several_nodes_ = false;
  std::vector<index> ready_;
  std::vector<index> handed_;
  std::vector<index> freeing_;
  bool settling_ = false, dropping_ = false;
  std::uint32_t view_ = 0;
  std::map<std::uint32_t, loss> losses_;
  std::vector<wire::serve> scratch_serves_, scratch_consumers_;
  base::buffer scratch_;
  base::buffer scratch_value_;
  counters counters_;
};

}  // namespace rota::scheduler
