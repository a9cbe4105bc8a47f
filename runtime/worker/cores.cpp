#include "runtime/worker/cores.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <type_traits>

#include "runtime/base/log.h"

namespace rota::detail {
namespace {

struct bitmap_deleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, bitmap_deleter>;

// Loaded once and kept to the end of the process, for threads are bound until then. Null where hwloc cannot load it.
hwloc_topology_t topology() {
  static const hwloc_topology_t loaded = [] {
    hwloc_topology_t fresh = nullptr;
    if (hwloc_topology_init(&fresh) != 0) return hwloc_topology_t{nullptr};
    hwloc_topology_set_all_types_filter(fresh, HWLOC_TYPE_FILTER_KEEP_NONE);  // caches and devices only cost time here
    hwloc_topology_set_type_filter(fresh, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(fresh) == 0) return fresh;
    hwloc_topology_destroy(fresh);
    return hwloc_topology_t{nullptr};
  }();
  return loaded;
}

// Place of a hardware thread among those of its physical core: 0 for the first.
unsigned place_in_core(hwloc_obj_t thread) {
  return thread->parent != nullptr && thread->parent->type == HWLOC_OBJ_CORE ? thread->sibling_rank : 0;
}

bool overlap(const rank_cores& a, const rank_cores& b) {
  return a.host == b.host &&
         std::find_first_of(a.allowed.begin(), a.allowed.end(), b.allowed.begin(), b.allowed.end()) != a.allowed.end();
}

using party = std::vector<std::size_t>;  // indices of ranks

std::vector<party> parties_of(std::span<const rank_cores> ranks) {
  std::vector<std::size_t> chief(ranks.size());  // a union-find forest over ranks that have a core in common
  std::iota(chief.begin(), chief.end(), std::size_t{0});
  const auto chief_of = [&](std::size_t rank) {
    while (chief[rank] != rank) rank = chief[rank] = chief[chief[rank]];
    return rank;
  };
  std::map<std::pair<std::string_view, unsigned>, std::size_t> first_on_core;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const unsigned core : ranks[rank].allowed) {
      const auto first = first_on_core.try_emplace({ranks[rank].host, core}, rank).first->second;
      chief[chief_of(rank)] = chief_of(first);
    }
  }
  std::map<std::size_t, party> parties;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) parties[chief_of(rank)].push_back(rank);
  std::vector<party> out;
  for (auto& [leader, members] : parties) out.push_back(std::move(members));
  return out;
}

// Gives each member max(slots, least) cores that nobody else of the party has; false, with `cores` as it was, where
// they do not suffice. Who may run on fewest cores chooses first, which finds a way if any exists as long as two masks
// are either disjoint or nested, as launchers make them.
bool share_out(std::span<const rank_cores> ranks, const party& members, unsigned least,
               std::vector<std::vector<unsigned>>& cores) {
  party order = members;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranks[a].allowed.size() < ranks[b].allowed.size(); });
  std::vector<unsigned> taken;
  std::vector<std::vector<unsigned>> chosen(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    const rank_cores& rank = ranks[order[at]];
    const std::size_t wanted = std::max(rank.slots, least);
    for (const unsigned core : rank.allowed) {
      if (chosen[at].size() == wanted) break;
      if (std::find(taken.begin(), taken.end(), core) != taken.end()) continue;
      chosen[at].push_back(core);
      taken.push_back(core);
    }
    if (chosen[at].size() < wanted) return false;
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    chosen[at].resize(ranks[order[at]].slots);
    cores[order[at]] = std::move(chosen[at]);
  }
  return true;
}

void report_shared(std::span<const rank_cores> ranks, const party& members,
                   std::vector<std::pair<rank_t, rank_t>>& shared) {
  std::vector<bool> named(ranks.size(), false);
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = i + 1; j < members.size(); ++j) {
      const std::size_t a = members[i], b = members[j];
      if ((named[a] && named[b]) || !ranks[a].bound || !ranks[b].bound || !overlap(ranks[a], ranks[b])) continue;
      named[a] = named[b] = true;
      shared.emplace_back(ranks[a].rank, ranks[b].rank);
    }
  }
}

}  // namespace

std::vector<unsigned> allowed_cores() {
  if (topology() == nullptr) {
    base::log().debug("hwloc cannot read the topology of this host; one core is taken");
    return {0};
  }
  const bitmap mask(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology(), mask.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    base::log().debug("hwloc cannot read the binding of this process ({}); all cores of the host are taken",
                      std::strerror(errno));
    hwloc_bitmap_copy(mask.get(), hwloc_topology_get_topology_cpuset(topology()));
  }
  std::vector<std::pair<unsigned, unsigned>> found;  // (place in its physical core, number)
  for (hwloc_obj_t thread = nullptr;
       (thread = hwloc_get_next_obj_by_type(topology(), HWLOC_OBJ_PU, thread)) != nullptr;) {
    if (hwloc_bitmap_isset(mask.get(), thread->os_index) != 0) {
      found.emplace_back(place_in_core(thread), thread->os_index);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<unsigned> cores;
  for (const auto& [place, number] : found) cores.push_back(number);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::size_t host_cores() {
  if (topology() == nullptr) return 1;
  return static_cast<std::size_t>(std::max(1, hwloc_bitmap_weight(hwloc_topology_get_topology_cpuset(topology()))));
}

void bind_this_thread(unsigned core) {
  const bitmap mask(hwloc_bitmap_alloc());
  if (topology() == nullptr || hwloc_bitmap_only(mask.get(), core) != 0 ||
      hwloc_set_cpubind(topology(), mask.get(), HWLOC_CPUBIND_THREAD) != 0) {
    base::log().debug("a thread could not be bound to core {} ({}) and runs unbound", core, std::strerror(errno));
  }
}

slot_choice offered_slots(const config& values, const slurm::environment& environment,
                          std::span<const unsigned> allowed, std::optional<double> quota) {
  if (values.cpus > 0) return {std::max(1u, static_cast<unsigned>(std::ceil(values.cpus))), "--rota-cpus"};
  const auto cores = static_cast<unsigned>(std::max<std::size_t>(1, allowed.size()));
  slot_choice choice{cores, "the cores that the rank may run on"};
  if (environment.cpus_per_task && *environment.cpus_per_task <= cores)
    choice = {std::max(1u, *environment.cpus_per_task), "Slurm's --cpus-per-task"};
  if (quota && std::ceil(*quota) < choice.slots)
    choice = {std::max(1u, static_cast<unsigned>(std::ceil(*quota))), "the CPU time of the control group"};
  return choice;
}

core_plan plan_cores(std::span<const rank_cores> ranks) {
  core_plan plan;
  plan.cores.resize(ranks.size());
  for (const party& members : parties_of(ranks)) {
    if (share_out(ranks, members, 1, plan.cores)) continue;
    report_shared(ranks, members, plan.shared);
    if (!share_out(ranks, members, 0, plan.cores)) {
      base::log().debug(
          "{} ranks of host {} offer more slots than they have cores together; their threads are not bound",
          members.size(), ranks[members.front()].host);
    }
  }
  return plan;
}

}  // namespace rota::detail
