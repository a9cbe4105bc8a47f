// The invariants of docs/protocol.md that the head alone can see. For the simulator and for tests: walks everything.
#include <fmt/format.h>

#include <stdexcept>

#include "runtime/scheduler/scheduler.h"

namespace rota::scheduler {

void scheduler::check() const {
  auto demand = [](bool holds, const std::string& what) {
    if (!holds) throw std::logic_error("invariant broken: " + what);
  };
  std::vector<std::uint32_t> holds(entries_.end()), listed(ranks_.size()), waiting(ranks_.size());
  std::vector<std::int64_t> load(ranks_.size()), waiting_load(ranks_.size());
  std::vector<wire::resources> room(ranks_.size());
  for (rank_t r = 0; r < ranks_.size(); ++r) room[r] = ranks_[r].total;
  for (const auto& [e, copies] : copies_) {
    for (const node_copy& c : copies.all) holds[e] += c.source != no_rank ? 1 : 0;
  }
  for (index e = 1; e < entries_.end(); ++e) {
    const entry& at = entries_[e];
    if (at.id == 0) continue;
    demand(by_id_.find(at.id) == e, "an entry is found by its id");
    std::uint32_t unmet = 0, awaited = 0;
    for (index a = at.arguments; a; a = edges_[a].next_argument) {
      ++holds[edges_[a].object];
      demand(entries_[edges_[a].object].id != 0, "an argument of a task that is not done exists");
      if (edges_[a].kind == edge_dep && !known_place(entries_[edges_[a].object])) ++unmet;
      if (edges_[a].kind == edge_dep && entries_[edges_[a].object].state != stage::done) ++awaited;
    }
    if (at.state == stage::waiting) demand(unmet == at.unmet, fmt::format("unmet of {:#x} is right", at.id));
    if (at.state == stage::queued || at.state == stage::assigned) {
      demand(awaited == at.unmet, fmt::format("{:#x} awaits {} arguments, counted {}", at.id, at.unmet, awaited));
    }
    demand(at.state != stage::waiting || at.unmet > 0, fmt::format("a task that can be placed is placed"));
    if (at.state == stage::done && at.value) {
      wire::value_view v = value_of(at);
      for (std::size_t i = 0; i < wire::id_count(v.contains); ++i) {
        index contained = by_id_.find(wire::id_at(v.contains, i));
        demand(contained != 0, "what a live value contains exists");
        ++holds[contained];
      }
    }
    if (at.state == stage::assigned) {
      demand(ranks_[at.rank].joined, "a task is assigned to a rank that joined");
      ++listed[at.rank];
      load[at.rank] += lanes_[at.lane].needs.cpus;
      if (at.unmet > 0) {
        ++waiting[at.rank];
        waiting_load[at.rank] += lanes_[at.lane].needs.cpus;
      }
    }
    if (at.state == stage::queued) demand(lanes_[at.lane].possible, "no task waits for a rank that does not exist");
    if (at.state == stage::queued && at.unmet == 0) {
      for (rank_t r = 0; r < ranks_.size(); ++r) {
        bool idle = ranks_[r].outstanding <= ranks_[r].blocked + ranks_[r].waiting;
        demand(!idle || !has_room(lanes_[at.lane], r, true),
               fmt::format("{:#x} does not wait while rank {} fits it and idles", at.id, r));
      }
    }
    if ((at.flags & holds_needs) && ranks_[at.rank].alive) {
      wire::resources taken = lanes_[at.lane].needs;
      if (!(at.flags & is_actor)) taken.cpus = 0;
      taken.take_from(room[at.rank]);
    }
  }
  for (index e = 1; e < entries_.end(); ++e) {
    if (entries_[e].id != 0) {
      demand(entries_[e].holds == holds[e],
             fmt::format("holds of {:#x} are {}, counted {}", entries_[e].id, entries_[e].holds, holds[e]));
    }
  }
  std::size_t all = 0;
  for (rank_t r = 0; r < ranks_.size(); ++r) {
    all += listed[r];
    if (!ranks_[r].alive) continue;
    demand(ranks_[r].outstanding == listed[r], fmt::format("tasks of rank {} add up", r));
    demand(ranks_[r].cpu_load == load[r], fmt::format("load of rank {} adds up", r));
    demand(ranks_[r].waiting == waiting[r], fmt::format("waiting tasks of rank {} add up", r));
    demand(ranks_[r].waiting_load == waiting_load[r], fmt::format("waiting load of rank {} adds up", r));
    demand(ranks_[r].room == room[r], fmt::format("resources of rank {} add up", r));
    demand(ranks_[r].room.cpus >= 0, fmt::format("cpus of rank {} are not overdrawn", r));
    for (const auto& [name, amount] : ranks_[r].room.others) {
      demand(amount >= 0, fmt::format("{} of rank {} is not overdrawn", name, r));
    }
  }
  demand(outstanding_ == all, "all tasks that ranks have add up");
}

}  // namespace rota::scheduler
