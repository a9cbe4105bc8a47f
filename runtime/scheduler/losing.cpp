// A rank is lost: its survivors say what they have from it; then, and only then, its work is done again.
#include <fmt/format.h>

#include "runtime/scheduler/scheduler.h"

namespace rota::scheduler {
namespace {

constexpr std::uint16_t most_retries = 3;

}  // namespace

void scheduler::lose(rank_t rank) {
  if (rank >= ranks_.size() || !ranks_[rank].alive) return;
  ranks_[rank].alive = false;
  order_.remove(rank);
  loss& fresh = losses_[++view_];
  fresh.rank = rank;
  wire::lost_head head;
  head.rank = rank;
  head.view = view_;
  for (rank_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].alive) continue;
    fresh.awaited.insert(r);
    out_.send(r, {reinterpret_cast<const std::byte*>(&head), sizeof(head)});
  }
  // Earlier losses no longer wait for the word of this rank.
  for (auto at = losses_.begin(); at != losses_.end();) {
    at->second.awaited.erase(rank);
    if (!at->second.awaited.empty()) {
      ++at;
      continue;
    }
    finish_loss(at->second);
    at = losses_.erase(at);
  }
  settle();
}

void scheduler::finish_loss(loss& l) {
  rank_state& r = ranks_[l.rank];
  for (auto& [e, reports] : l.reported) {
    entry& at = entries_[e];
    if (at.rank != l.rank || !at.value) continue;
    scratch_serves_.clear();
    for (const auto& report : reports) scratch_serves_.push_back({report.by, report.item.taken});
    if (at.state == stage::assigned) unlist_task(e);
    blob value = std::move(at.value);
    base::cursor from(value.view());
    wire::value_view view = wire::get_value(from);
    commit(e, view);
  }
  close_accounts(l.rank);

  std::vector<index> again;
  for (index e = 1; e < entries_.end(); ++e) {
    entry& at = entries_[e];
    if (at.id == 0 || at.rank != l.rank) continue;
    if (at.state == stage::assigned) {
      unlist_task(e);
      again.push_back(e);
    } else if (at.state == stage::produced) {
      fail(e, wire::failure_kind::object_lost,
           fmt::format("the result was being made for rank {} ({}), which is lost", l.rank, r.host));
    } else if (at.state == stage::done && (at.flags & is_actor)) {
      at.rank = no_rank;
      end_actor(e, true, fmt::format("its rank {} ({}) is lost", l.rank, r.host));
      maybe_free(e);
    }
  }
  for (index e : again) {
    entry& at = entries_[e];
    at.rank = no_rank;
    at.state = stage::waiting;
    at.unmet = 0;
    at.flags &= static_cast<std::uint8_t>(~(kept_by_rank | holds_needs));
    // Those who counted on it as handed out wait again.
    for (index d = at.dependents; d; d = edges_[d].next_dependent) {
      if (edges_[d].kind != edge_dep) continue;
      index task = edges_[d].task;
      if (entries_[task].state == stage::queued) unqueue(task);
      if (entries_[task].state == stage::waiting) ++entries_[task].unmet;
    }
  }
  for (index e : again) {
    entry& at = entries_[e];
    at.unmet = 0;
    for (index a = at.arguments; a; a = edges_[a].next_argument) {
      if (edges_[a].kind == edge_dep && !known_place(entries_[edges_[a].object])) ++at.unmet;
    }
  }
  for (index e : again) {
    if (entries_[e].state != stage::waiting) continue;  // ended through another one's failure
    retry(e, l.rank);
  }
}

void scheduler::retry(index e, rank_t lost) {
  entry& at = entries_[e];
  base::cursor rest(at.task.view());
  bool wanted = rest.get<spawned_rest>().parent == 0 || at.accounts > 0 || at.holds > 0;
  if (at.flags & actor_over) {
    base::buffer bytes = wire::encode(dead_[at.id].first);
    scratch_serves_.clear();
    return commit(e, wire::failed_value(bytes.view()));
  }
  if (!wanted || at.attempt >= most_retries) {
    return fail(e, wire::failure_kind::rank_lost,
                fmt::format("{} ran on rank {} ({}), which is lost, and {}", title(at), lost, ranks_[lost].host,
                            wanted ? "no retry was left" : "nobody waits for it"));
  }
  ++at.attempt;
  ++counters_.retried;
  if (!ever_feasible(lanes_[at.lane])) {
    return fail(e, wire::failure_kind::infeasible,
                fmt::format("{} can never run: {}", title(at), why_infeasible(lanes_[at.lane])));
  }
  if (at.unmet == 0) ready(e);
}

// Every count of the lost rank ends, and whatever it still asked for.
void scheduler::close_accounts(rank_t rank) {
  for (index e = 1; e < entries_.end(); ++e) {
    if (entries_[e].id == 0) continue;
    for (index d = entries_[e].dependents; d; d = edges_[d].next_dependent) {
      if (edges_[d].kind == edge_pull && edges_[d].task == rank) edges_[d].kind = edge_dead;
    }
    std::uint32_t count = account_of(entries_[e].id, rank);
    for (std::uint32_t i = 0; i < count; ++i) drop_account(e, rank);
  }
  for (auto& [actor, asked] : where_asked_) std::erase(asked, rank);
}

// Tasks that wait in a lane for this rank alone can never run now.
void scheduler::unqueue(index e) {
  entry& at = entries_[e];
  lane& l = lanes_[at.lane];
  (at.previous ? entries_[at.previous].next : l.first) = at.next;
  (at.next ? entries_[at.next].previous : l.last) = at.previous;
  at.previous = at.next = 0;
  at.state = stage::waiting;
  --queued_;
}

}  // namespace rota::scheduler
