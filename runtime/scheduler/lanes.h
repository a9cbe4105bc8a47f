#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/scheduler/entries.h"
#include "runtime/wire/resources.h"

namespace rota::scheduler {

// All waiting tasks of one kind: needs, priority and place to run. Tasks of a lane are alike for placement, so that
// placing one is placing the oldest.
struct lane {
  wire::resources needs;
  std::uint8_t needs_code = wire::one_cpu;
  std::int32_t priority = 0;
  wire::where_kind where = wire::where_kind::anywhere;  // anywhere, spread, on_node or on_rank
  std::uint64_t target = 0;
  bool possible = false;  // some live rank could run it, were it idle
  bool simple = false;    // at most one CPU and nothing else: may be handed out deeper than a rank has slots
  struct list {
    index first = 0, last = 0;
  };
  list ripe, unripe;  // queued entries, oldest first: all arguments are done, or not yet

  bool empty() const { return ripe.first == 0 && unripe.first == 0; }
};

// Ranks by load, so that the least and the most loaded are found without a scan. Among equals the one that has waited
// longest comes first.
class load_order {
 public:
  void add(rank_t rank, std::uint32_t load);
  void remove(rank_t rank);
  void move(rank_t rank, std::uint32_t load) {
    load = std::min(load, most_load);
    if (rank < links_.size() && links_[rank].load != none) relink(rank, load);
  }

  // Calls use(rank) from the least loaded up until it returns true; at most `limit` ranks.
  template <class F>
  bool from_least(F&& use, std::uint32_t limit) const {
    for (std::uint32_t load = lowest(), top = highest(); load <= top; ++load) {
      for (std::uint32_t r = buckets_[load].first; r != none; r = links_[r].next) {
        if (use(r)) return true;
        if (--limit == 0) return false;
      }
    }
    return false;
  }
  std::optional<rank_t> most() const;
  std::uint32_t least_load() const { return lowest(); }

 private:
  static constexpr std::uint32_t none = 0xffff'ffff;
  static constexpr std::uint32_t most_load = 4095;
  struct link {
    std::uint32_t previous = none, next = none, load = none;
  };
  struct bucket {
    std::uint32_t first = none, last = none;
  };
  void relink(rank_t rank, std::uint32_t load);
  std::uint32_t lowest() const;
  std::uint32_t highest() const;

  std::vector<bucket> buckets_ = std::vector<bucket>(most_load + 1);
  std::vector<link> links_;
  mutable std::uint32_t low_ = 0;   // no lower bucket is filled
  mutable std::uint32_t high_ = 0;  // no higher bucket is filled
};

}  // namespace rota::scheduler
