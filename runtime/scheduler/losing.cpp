// A rank is lost: its survivors say what they have from it; then, and only then, its work is done again.
#include <fmt/format.h>

#include <algorithm>

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
    out_.send(r, wire::as_bytes(head));
  }
  // What it was making has no known place now. So whoever is handed out as a consumer of it later counts on its next
  // maker, and survivors' answers count exactly those that wait.
  for (index e = 1; e < entries_.end(); ++e) {
    entry& at = entries_[e];
    if (at.id == 0 || at.rank != rank || (at.state != stage::assigned && at.state != stage::produced)) continue;
    hand_back(e);
    at.state = stage::lost;
    at.flags &= static_cast<std::uint8_t>(~(kept_by_rank | holds_needs));
  }
  drop_impossible();
  // Earlier losses no longer wait for the word of this rank.
  for (auto& [view, earlier] : losses_) earlier.awaited.erase(rank);
  finish_losses();
  settle();
}

// Once all survivors have answered for all that were lost. Not one by one: what a rank that was lost later had lent to
// a survivor is counted by it only when it has heard of that loss, too.
void scheduler::finish_losses() {
  bool open = std::any_of(losses_.begin(), losses_.end(), [](const auto& l) { return !l.second.awaited.empty(); });
  if (open) return;
  std::map<std::uint32_t, loss> ended = std::move(losses_);
  losses_.clear();
  for (auto& [view, l] : ended) commit_reported(l);
  for (auto& [view, l] : ended) close_accounts(l.rank);
  for (auto& [view, l] : ended) ranks_[l.rank].gone = true;
  for (auto& [view, l] : ended) {
    forget_names(l.rank);
    redo_lost(l.rank);
  }
  for (auto& [view, l] : ended) {
    wire::lost_head head;
    head.flags = wire::lost_closed;
    head.rank = l.rank;
    head.view = view;
    for (rank_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].alive) out_.send(r, wire::as_bytes(head));
    }
  }
}

// Results that reached a survivor though their maker's DONE did not reach the head.
void scheduler::commit_reported(loss& l) {
  for (auto& [e, reports] : l.reported) {
    entry& at = entries_[e];
    if (at.state != stage::lost || at.rank != l.rank || !at.value) continue;
    std::vector<wire::serve> consumers;
    collect_consumers(e, consumers, true);
    scratch_serves_.clear();
    for (wire::serve report : reports) {
      std::uint32_t there = 0;
      for (wire::serve c : consumers) there += c.rank == report.rank ? c.count : 0;
      scratch_serves_.push_back({report.rank, there - std::min(report.count, there), 0});
    }
    blob value = std::move(at.value);
    base::cursor from(value.view());
    commit(e, wire::get_value(from));
  }
}

wire::failure scheduler::loss_of(object_id id) const {
  rank_t rank = origin_of(id);
  return {wire::failure_kind::object_lost,
          fmt::format("object {:#x} was lost with rank {} ({}), which had made it", id, rank, ranks_[rank].host),
          {}};
}

void scheduler::redo_lost(rank_t rank) {
  const rank_state& r = ranks_[rank];
  std::vector<index> again;
  for (index e = 1; e < entries_.end(); ++e) {
    entry& at = entries_[e];
    if (at.id == 0) continue;
    if (at.state == stage::unknown && origin_of(at.id) == rank) {
      wire::failure why = loss_of(at.id);
      auto asked = where_asked_.extract(at.id);
      fail(e, why.kind, why.what);
      if (asked.empty() || entries_[e].id != asked.key()) continue;
      for (rank_t asker : asked.mapped()) tell_where(asker, e);
    } else if (at.rank != rank) {
      continue;
    } else if (at.state == stage::lost && (at.flags & is_task)) {
      again.push_back(e);
    } else if (at.state == stage::lost) {
      forget_used(e);
      fail(e, wire::failure_kind::object_lost,
           fmt::format("the result was being made for rank {} ({}), which is lost", rank, r.host));
    } else if (at.state == stage::done && (at.flags & is_actor)) {
      at.rank = no_rank;
      end_actor(e, true, fmt::format("its rank {} ({}) is lost", rank, r.host));
      maybe_free(e);
    }
  }
  for (index e : again) entries_[e].state = stage::waiting;
  for (index e : again) {
    forget_used(e);
    wait_for_makers(e);
  }
  for (index e : again) {
    if (entries_[e].state == stage::waiting) retry(e, rank);  // else it ended through another one's failure
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
}

// Tasks that wait for a place that no rank that is left can give.
void scheduler::drop_impossible() {
  for (lane& l : lanes_) {
    l.possible = ever_feasible(l);
    while (!l.possible && !l.empty()) {
      index e = l.ripe.first ? l.ripe.first : l.unripe.first;
      unqueue(e);
      fail_impossible(e);
    }
  }
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

// Names that it had claimed for actors that the head never heard of.
void scheduler::forget_names(rank_t lost) {
  std::erase_if(names_, [&](const auto& claim) {
    index e = by_id_.find(claim.second);
    bool never_made = origin_of(claim.second) == lost && (!e || entries_[e].state == stage::unknown);
    if (never_made) named_.erase(claim.second);
    return never_made;
  });
}

}  // namespace rota::scheduler
