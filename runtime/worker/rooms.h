#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <utility>

#include "objectstore/board.h"
#include "runtime/wire/store_messages.h"
#include "runtime/worker/disk_thread.h"
#include "runtime/worker/spiller.h"
#include "runtime/worker/store_link.h"

namespace rota::detail {

// Who looks for room in the node's store when this rank's extents have none: asks the keeper for extents, and when it
// has none either, the ranks of the node to give back what they keep and to move values out, those that hold most
// first. Used by the thread that holds the pump; nothing blocks.
class rooms {
 public:
  struct site {  // of this rank
    rank_t self = 0;
    std::size_t node_rank = 0;
    std::vector<rank_t> node_ranks;
    std::string host;
  };
  // A search ends when nothing has left the node's memory for so long as `patience`; and after ten times that without a
  // new low of what lies there, for others may be faster each time.
  rooms(store_link& store, const objectstore::node_memory& memory, disk_thread& disk, spiller& own, wire::outbox& out,
        site where, std::chrono::nanoseconds patience);

  struct search {
    std::size_t bytes = 0;
    std::chrono::steady_clock::time_point last{}, until{}, again{}, asked{};
    std::uint32_t request = 0;  // of extents, 0: none
    std::uint64_t least_held = ~std::uint64_t{0};
    std::uint64_t left = 0;  // the boards' sum, when last looked at
    std::size_t asks = 0;    // of others
    objectstore::run granted;
    std::uint32_t longest = 0;  // free run, as the keeper said last
    bool books_only = false;    // no room for a value is looked for, but for pins
    bool for_books = false;     // what was asked for
    bool returning = false;     // the value could leave again without being written
    bool starved = false;       // values left, and others were faster
    bool no_memory = false;     // extents were granted that the machine has no memory for
  };
  enum class look { again, granted, hopeless };
  search begin(std::size_t bytes) const;
  // One step of a search that has just found no room. granted: adopt() what lies in `granted`.
  look step(search& s);
  // Not with the pump, for it takes milliseconds; then, with the pump, adopted().
  bool adopt(const search& s) { return store_.adopt(s.granted, s.for_books); }
  void adopted(search& s, bool good);
  // Room was found by other means: what was asked for is not wanted.
  void end(search& s) {
    if (const std::uint32_t asked = std::exchange(s.request, 0)) store_.withdraw(asked, out_);
  }
  // Why there is no room, for out_of_memory.
  std::string why(const search& s);

  // For a value that comes from disk or from another node. Calls take(), at once or later, until it returns true, or
  // gave_up().
  void find(std::size_t bytes, std::function<bool()> take, std::function<void(const search&)> gave_up);
  bool searching() const { return !open_.empty(); }
  bool tend();  // true if a search has ended

 private:
  struct open_search {
    search s;
    std::function<bool()> take;
    std::function<void(const search&)> gave_up;
    bool adopting = false;
  };
  void ask_others(search& s);
  std::uint64_t held() const;
  std::uint64_t left() const;
  std::vector<std::size_t> holders(bool stuck_too) const;
  bool writing() const;
  bool tend_once();
  void adopt_apart(open_search& one);

  store_link& store_;
  const objectstore::node_memory& memory_;
  disk_thread& disk_;
  spiller& own_;
  wire::outbox& out_;
  site site_;
  std::chrono::nanoseconds patience_;
  std::list<open_search> open_;
  bool tending_ = false;
};

}  // namespace rota::detail
